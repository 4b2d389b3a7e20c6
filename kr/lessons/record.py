"""U5, steps 1 to 6: what an agent's failure teaches, as lines at the end of the lessons file."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from kr.errors import FieldError, InvalidRequest
from kr.guard import mask_secrets, safe
from kr.lessons.book import Candidate, LessonBook, Recorded, held_because
from kr.lessons.events import (
    MOST_EVENTS,
    AgentReturn,
    EventLimits,
    Finding,
    detect,
    phase_tag,
    read_return,
)
from kr.lessons.file import AppendFailed
from kr.lessons.line import FIX_COLUMNS, KEPT_COLUMNS, make_lesson, one_line, word_lesson
from kr.lessons.remedies import Remedy, read_own
from kr.models import PHASES, EventType, Problem
from kr.recording import (
    RecordedEntry,
    RecordEnvelope,
    RecordRequest,
    RecordResults,
    parse_record,
    skip,
)
from kr.requests import bad, decoded, loose_text, read_document, read_fields, scalars, text
from kr.text import columns

logger = logging.getLogger(__name__)

NO_EVENTS = "No recordable error events detected in agent return"
ALL_DUPLICATES = "All entries already exist in _lessons-learned.md"
APPEND_FAILED = "Failed to append lesson entries to file"
"""Messages of U5, steps 1, 4 and 5, as they stand."""

NOTHING_TOLD = "No lesson could be distilled from the agent return"

CONFIRMATION = "[LESSONS] {recorded} entries appended to {name} (total: {total} entries)"
OWN_REMEDIES = "remedies.yaml"
WRAPPER = "lessons_record"
_VERSION = re.compile(r"[\s@]+[v^~=<>]*\d[\w.]*$")


# --- the request ---


def record_document(data: bytes, book: LessonBook, **rules: Any) -> RecordEnvelope:
    """Record from a request document: any bytes in, an envelope out; nothing is raised for bad input."""
    try:
        document = read_document(data)
    except InvalidRequest as error:
        return _refused(error.read, error)
    return record(document, book, **rules)


def record(
    data: Mapping[str, Any],
    book: LessonBook,
    *,
    root: Path,
    limits: EventLimits,
    now: datetime,
    phases: Sequence[str] = PHASES,
) -> RecordEnvelope:
    """Answer a request: ``recorded``, ``skipped`` (also where it is invalid) or ``failure`` (``append_write_failed``).

    ``root`` is the project's: references are written relative to it.
    """
    data = _unwrapped(data)
    try:
        request = parse_record(data, phases=phases)
    except InvalidRequest as error:
        return _refused(data, error)
    returned = read_return(request.agent_return)
    events = detect(request.event_type, request.phase, returned, limits)
    day = now.astimezone(UTC).date().isoformat()
    problems: list[Problem] = []
    if request.lessons:
        detected = len(request.lessons)
        event = events[0] if events else request.event_type
        candidates, problems = _handed_over(request, event, returned, root, day)
    elif events:
        detected = len(events)
        own = _own_remedies(book.file.path.parent / OWN_REMEDIES)
        candidates = list(_worded(request, events[:MOST_EVENTS], returned, own=own, root=root, day=day))
    else:
        return skip({"session_id": request.session_id, "story_key": request.story_key}, NO_EVENTS)
    if detected > MOST_EVENTS:
        logger.warning("%d lessons or events; the first %d are recorded", detected, MOST_EVENTS)
    path = book.file.path
    shown = (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
    try:
        recorded = book.append(
            candidates, story_key=request.story_key, session_id=request.session_id, now=now
        )
    except AppendFailed as error:
        logger.warning("%s: %s", path, error)
        failure = Problem(type=error.code, file_path=shown, message=f"{APPEND_FAILED}: {error}")
        results = RecordResults(events_detected=detected, file_path=shown)
        return _envelope(request, "failure", results, [failure])
    results = _results(recorded, detected, shown, has_lessons=bool(candidates))
    return _envelope(request, "recorded" if recorded.fresh else "skipped", results, problems)


def _unwrapped(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take a request out of ``lessons_record: {...}``, as F1's documents wrap theirs."""
    inner = decoded(data.get(WRAPPER))
    if not isinstance(inner, Mapping):
        return data
    return {**{key: value for key, value in data.items() if key not in {WRAPPER, "mode"}}, **inner}


def _refused(data: Mapping[str, Any], error: InvalidRequest) -> RecordEnvelope:
    problems = [f"{field.field}: {mask_secrets(field.message)}" for field in error.fields]
    for problem in problems:
        logger.warning("nothing is recorded: %s", problem)
    story = data.get("story_key")
    echoed = {**data, "story_key": mask_secrets(story)} if isinstance(story, str) else data
    return skip(echoed, f"Recording skipped: {'; '.join(problems)}")


def _own_remedies(path: Path) -> tuple[Remedy, ...]:
    own, problems = read_own(path)
    for problem in problems:
        logger.warning("%s: %s; passed over", path, problem)
    return own


def _results(recorded: Recorded, detected: int, shown: str, *, has_lessons: bool) -> RecordResults:
    entries = [_entry(candidate) for candidate in recorded.fresh]
    held = sum(entry.quarantined for entry in entries)
    if held:
        logger.warning("%d quarantined: a person must read them first (kr review)", held)
    return RecordResults(
        events_detected=detected,
        entries_recorded=len(entries),
        entries_skipped=detected - len(entries),
        quarantined=held,
        recorded_entries=entries,
        file_path=shown,
        total_entries_in_file=recorded.total,
        message=None if entries else ALL_DUPLICATES if has_lessons else NOTHING_TOLD,
    )


def _entry(candidate: Candidate) -> RecordedEntry:
    lesson = candidate.lesson
    return RecordedEntry(
        date=lesson.date,
        phase=lesson.tags[0],
        event_type=candidate.event or "",
        summary=lesson.summary,
        ref=lesson.ref,
        quarantined=candidate.held is not None,
    )


def _envelope(
    request: RecordRequest,
    status: Literal["recorded", "skipped", "failure"],
    results: RecordResults,
    errors: Sequence[Problem],
) -> RecordEnvelope:
    return RecordEnvelope(
        status=status,
        session_id=request.session_id,
        story_key=request.story_key,
        results=results,
        errors=list(errors),
    )


def confirmation(envelope: RecordEnvelope) -> str | None:
    """Return the line that tells people what was written (U5, step 5.6c), for standard error."""
    results = envelope.results
    written = results.entries_recorded - results.quarantined
    if envelope.status != "recorded" or not written:
        return None
    name = results.file_path.rpartition("/")[2]
    return CONFIRMATION.format(recorded=written, name=name, total=results.total_entries_in_file)


# --- candidates ---


_MOST_READ = 4000
"""Characters of a symptom that are looked at: far more than are kept."""


@dataclass(frozen=True, slots=True)
class LessonWords:
    """A lesson in the words of who learned it."""

    symptom: str
    fix: str
    ref: str = ""
    tags: tuple[str, ...] = ()


def read_words(value: object) -> LessonWords:
    """Read one lesson that was handed over. Raises ``InvalidRequest`` with an error per bad half."""
    given = decoded(value)
    if not isinstance(given, Mapping):
        raise InvalidRequest(FieldError("", "must be a mapping with symptom and fix"))
    fields = {
        "symptom": text,
        "fix": _fix,
        "ref": loose_text,
        "tags": scalars,
    }
    read, errors = read_fields(fields, given)
    if errors:
        raise InvalidRequest(*errors)
    return LessonWords(**read)


def _fix(value: object) -> str:
    fix = " ".join(text(value).split())
    if (taken := columns(fix)) > FIX_COLUMNS:
        raise bad(f"is too long: {taken} columns, at most {FIX_COLUMNS}; say what to do in one sentence")
    return fix


def keep_words(symptom: str, fix: str) -> str:
    """Write both halves as the file keeps them, without secrets; says so where the symptom is cut."""
    taken = columns(one_line(symptom)) + columns(one_line(fix)) + 2
    if taken > KEPT_COLUMNS:
        logger.warning(
            "the symptom is cut: with its fix it takes %d columns, at most %d", taken, KEPT_COLUMNS
        )
    return word_lesson(safe(symptom[:_MOST_READ]), safe(fix[:_MOST_READ]), KEPT_COLUMNS)


def _handed_over(
    request: RecordRequest, event: EventType, returned: AgentReturn, root: Path, day: str
) -> tuple[list[Candidate], list[Problem]]:
    """Take the lessons that were handed over, both halves as they were worded; a bad one costs only itself."""
    candidates: list[Candidate] = []
    problems: list[Problem] = []
    for number, value in enumerate(request.lessons):
        if len(candidates) == MOST_EVENTS:
            break
        try:
            words = read_words(value)
        except InvalidRequest as error:
            for problem in error.fields:
                field = f"lessons[{number}].{problem.field}".rstrip(".")
                message = mask_secrets(problem.message)
                logger.warning("not recorded: %s: %s", field, message)
                problems.append(Problem(type="validation_error", field=field, message=message))
            continue
        ref = _ref((words.ref, *request.code_paths, *returned.artifacts), root)
        tags = (phase_tag(event, request.phase), *_frameworks(request), *words.tags)
        summary = keep_words(words.symptom, words.fix)
        if candidate := make_candidate(event, day, tags, summary, ref=ref, source="agent"):
            candidates.append(candidate)
    return candidates, problems


def _worded(
    request: RecordRequest,
    events: Sequence[EventType],
    returned: AgentReturn,
    *,
    own: Sequence[Remedy],
    root: Path,
    day: str,
) -> Iterator[Candidate]:
    """Word one lesson for each event, from what its author reported."""
    from kr.lessons.wording import word_finding  # heavy

    used: set[tuple[str, str]] = set()
    for event in events:
        phase = phase_tag(event, request.phase)
        findings = [_masked(finding) for finding in _findings(event, returned, request.additional_context)]
        worded = [(finding, word) for finding in findings if (word := word_finding(finding, own))]
        # Each phase's next agent gets the best there is; only within one phase lessons must differ.
        unused = [pair for pair in worded if (phase, pair[1].summary) not in used]
        best = next((pair for pair in unused if pair[1].has_fix), next(iter(unused), None))
        if best is None:
            logger.warning("%s: the agent's return says nothing that a lesson could be made of", event)
            continue
        finding, word = best
        used.add((phase, word.summary))
        ref = _ref((finding.path or "", *request.code_paths, *returned.artifacts), root)
        tags = (phase, *(_frameworks(request) or word.tags))
        if candidate := make_candidate(event, day, tags, word.summary, ref=ref, source=word.source):
            yield candidate


def make_candidate(
    event: EventType | None, day: str, tags: Sequence[str], summary: str, *, ref: str | None, source: str
) -> Candidate | None:
    """Make a lesson without secrets that waits where the guard says so; ``None`` where nothing of its text is left."""
    lesson = make_lesson(day, tuple(map(safe, tags)), mask_secrets(summary), ref)
    return Candidate(event, lesson, source, held_because(lesson.summary, lesson.ref)) if lesson else None


def _findings(event: EventType, returned: AgentReturn, more: str) -> list[Finding]:
    """Return what an event is about, the worst first; what the agent says in all only where that is all there is."""
    from kr.lessons.wording import is_vague  # heavy

    issues = sorted(returned.issues, key=lambda issue: issue not in returned.severe)
    if event == "high_severity_issues":
        found = list(returned.severe)
    elif event == "review_max_rounds":
        found = [*issues, *returned.errors]
    else:
        found = [*returned.errors, *issues]
    said = [Finding(message=text) for text in (returned.summary, more) if text]
    found = [finding for finding in found if not is_vague(f"{finding.message} {finding.fix}")] or said
    if returned.fix and found and not any(finding.fix for finding in found):
        found[0] = replace(found[0], fix=returned.fix)
    return found


def _masked(finding: Finding) -> Finding:
    """Take secrets out before anything is cut: half of one is one still."""
    return replace(finding, message=safe(finding.message), fix=safe(finding.fix))


def _frameworks(request: RecordRequest) -> tuple[str, ...]:
    name = _VERSION.sub("", request.framework_context.strip())
    return (name,) if name else ()


def _ref(paths: Sequence[str], root: Path) -> str | None:
    """Return the first path that is one, relative to the project."""
    for path in map(str.strip, paths):
        if path and "\n" not in path and len(path) <= 300:
            return safe(path.removeprefix(f"{root}/").removeprefix("./"))
    return None
