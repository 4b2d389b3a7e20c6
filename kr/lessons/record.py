"""U5 of seed 003, steps 1 to 6: what an agent's failure teaches, as lines at the end of the lessons file."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from kr.contracts.lessons import (
    ALL_DUPLICATES,
    APPEND_FAILED,
    NO_EVENTS,
    NOTHING_TOLD,
    RecordRequest,
)
from kr.envelopes import RecordedEntry, RecordEnvelope, RecordProblem, RecordResults, skip
from kr.errors import InvalidRequest, StoreError
from kr.freshness import to_text
from kr.guard import clean, mask_secrets
from kr.lessons.duplicates import find_duplicates
from kr.lessons.events import (
    MOST_EVENTS,
    AgentReturn,
    EventLimits,
    Finding,
    detect,
    phase_tag,
    read_return,
)
from kr.lessons.file import AppendFailed, LessonsFile, LessonsUnreadable
from kr.lessons.index import LessonIndex, Origin, held_because, row_of, session_name
from kr.lessons.line import Lesson, make_lesson
from kr.lessons.remedies import Remedy
from kr.lessons.wording import is_vague, word_finding
from kr.lessons.words import keep_words, read_words
from kr.store import lessons
from kr.store.lessons import LessonRow
from kr.values import EventType

logger = logging.getLogger(__name__)

CONFIRMATION = "[LESSONS] {recorded} entries appended to {name} (total: {total} entries)"
_VERSION = re.compile(r"[\s@]+[v^~=<>]*\d[\w.]*$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lesson that is to be recorded; ``held`` says why it must wait for a person."""

    event: EventType | None
    lesson: Lesson
    source: str
    held: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of candidates: the new ones, and how many lessons the file holds now."""

    fresh: tuple[Candidate, ...]
    total: int


def record(
    request: RecordRequest,
    *,
    index: LessonIndex,
    project_root: Path,
    limits: EventLimits,
    now: datetime,
    own: Sequence[Remedy] = (),
) -> RecordEnvelope:
    """Answer a valid request: ``recorded``, ``skipped`` or ``failure`` (``append_write_failed``); ``own`` are users' remedies."""
    returned = read_return(request.agent_return)
    events = detect(request.event_type, request.phase, returned, limits)
    day = now.astimezone(UTC).date().isoformat()
    problems: list[RecordProblem] = []
    if request.lessons:
        detected = len(request.lessons)
        event = events[0] if events else request.event_type
        candidates, problems = _handed_over(request, event, returned, project_root, day)
    elif events:
        detected = len(events)
        candidates = list(
            _worded(request, events[:MOST_EVENTS], returned, own=own, root=project_root, day=day)
        )
    else:
        return skip({"session_id": request.session_id, "story_key": request.story_key}, NO_EVENTS)
    if detected > MOST_EVENTS:
        logger.warning("%d lessons or events; the first %d are recorded", detected, MOST_EVENTS)
    path = index.file.path
    shown = (path.relative_to(project_root) if path.is_relative_to(project_root) else path).as_posix()
    try:
        recorded = append_new(
            index, candidates, story_key=request.story_key, session_id=request.session_id, now=now
        )
    except AppendFailed as error:
        logger.warning("%s: %s", path, error)
        failure = RecordProblem(type=error.code, file_path=shown, message=f"{APPEND_FAILED}: {error}")
        results = RecordResults(events_detected=detected, file_path=shown)
        return _envelope(request, "failure", results, [failure])
    entries = [_entry(candidate) for candidate in recorded.fresh]
    held = sum(entry.quarantined for entry in entries)
    if held:
        logger.warning("%d quarantined: a person must read them first (kr lessons review)", held)
    results = RecordResults(
        events_detected=detected,
        entries_recorded=len(entries),
        entries_skipped=detected - len(entries),
        quarantined=held,
        recorded_entries=entries,
        file_path=shown,
        total_entries_in_file=recorded.total,
        message=None if entries else ALL_DUPLICATES if candidates else NOTHING_TOLD,
    )
    return _envelope(request, "recorded" if entries else "skipped", results, problems)


def confirmation(envelope: RecordEnvelope) -> str | None:
    """Return the line that tells people what was written (seed 003, step 5.6c), for standard error."""
    results = envelope.results
    written = results.entries_recorded - results.quarantined
    if envelope.status != "recorded" or not written:
        return None
    name = results.file_path.rpartition("/")[2]
    return CONFIRMATION.format(recorded=written, name=name, total=results.total_entries_in_file)


def _handed_over(
    request: RecordRequest, event: EventType, returned: AgentReturn, root: Path, day: str
) -> tuple[list[Candidate], list[RecordProblem]]:
    """Take the lessons that were handed over, both halves as they were worded; a bad one costs only itself."""
    candidates: list[Candidate] = []
    problems: list[RecordProblem] = []
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
                problems.append(RecordProblem(type="validation_error", field=field, message=message))
            continue
        summary = keep_words(words.symptom, words.fix)
        ref = _ref((words.ref, *request.code_paths, *returned.artifacts), root)
        tags = (phase_tag(event, request.phase), *_frameworks(request), *words.tags)
        candidate = make_candidate(event, day, tags, summary, ref=ref, source="agent")
        if candidate:
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
        candidate = make_candidate(
            event, day, tags, word.summary, ref=ref, source=word.source, fallback=word.fallback
        )
        if candidate:
            yield candidate


def make_candidate(
    event: EventType | None,
    day: str,
    tags: Sequence[str],
    summary: str,
    *,
    ref: str | None,
    source: str,
    fallback: str = "",
) -> Candidate | None:
    """Make a lesson under the guard's rules; ``fallback`` is given instead of a summary that would be held."""
    text = fallback if fallback and held_because(summary, ref) else summary
    lesson = make_lesson(day, tuple(mask_secrets(clean(tag)) for tag in tags), mask_secrets(text), ref)
    return Candidate(event, lesson, source, held_because(lesson.summary, lesson.ref)) if lesson else None


def _findings(event: EventType, returned: AgentReturn, more: str) -> list[Finding]:
    """Return what an event is about, the worst first; what the agent says in all only where that is all there is."""
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
    return replace(
        finding, message=mask_secrets(clean(finding.message)), fix=mask_secrets(clean(finding.fix))
    )


def _frameworks(request: RecordRequest) -> tuple[str, ...]:
    name = _VERSION.sub("", request.framework_context.strip())
    return (name,) if name else ()


def _ref(paths: Sequence[str], root: Path) -> str | None:
    """Return the first path that is one, relative to the project."""
    for path in map(str.strip, paths):
        if path and "\n" not in path and len(path) <= 300:
            relative = path.removeprefix(f"{root}/").removeprefix("./")
            return mask_secrets(clean(relative))
    return None


def append_new(
    index: LessonIndex, candidates: Sequence[Candidate], *, story_key: str, session_id: str, now: datetime
) -> Recorded:
    """Append what is not known yet, while nobody else can, and keep where it came from. Raises ``AppendFailed``.

    What must wait for a person goes into the database alone. A candidate that is known is a recurrence of its lesson.
    """
    session = session_name(session_id)

    def row(candidate: Candidate) -> LessonRow:
        at = to_text(now)
        return row_of(
            candidate.lesson,
            Origin(
                event_type=candidate.event,
                story_key=story_key,
                session_id=session,
                recorded_at=at,
                source=candidate.source,
                held=candidate.held,
                gone_at=at if candidate.held else None,
            ),
        )

    with index.file.lock():
        written: tuple[Candidate, ...] | None = None
        try:
            with index.store.write() as tx:
                total = index.sync(tx, now)
                fresh, known = _choose(candidates, lambda lesson: index.find(tx, lesson))
                written = _append(index.file, fresh)
                index.add(tx, [row(candidate) for candidate in fresh])
                lessons.recurred(tx, [lesson.id for lesson in known], session_id=session, at=to_text(now))
                if written:
                    total = index.sync(tx, now)
            index.drop_origins()
            return Recorded(fresh, total)
        except LessonsUnreadable as error:
            raise AppendFailed(str(error)) from error
        except StoreError as error:
            logger.warning("lessons are not counted: %s", error)
        # The file is the authority: it is written without the database, and read whole for it.
        try:
            present = index.file.read().lessons
        except LessonsUnreadable as error:
            raise AppendFailed(str(error)) from error
        if written is None:
            kept = [candidate for candidate in candidates if not candidate.held]
            fresh, _ = _choose(kept, lambda lesson: find_duplicates(lesson, present))
            written = _append(index.file, fresh)
            present = (*present, *(candidate.lesson for candidate in written))
        index.keep_origins([row(candidate) for candidate in written])
        return Recorded(written, len(present))


def _choose(
    candidates: Sequence[Candidate], find: Callable[[Lesson], Sequence[Lesson]]
) -> tuple[tuple[Candidate, ...], list[Lesson]]:
    """Part candidates into new ones and the lessons that the others repeat, each once however often."""
    fresh: list[Candidate] = []
    known: dict[str, Lesson] = {}
    for candidate in candidates:
        same = find(candidate.lesson)
        known.update((lesson.id, lesson) for lesson in same)
        if not same and not find_duplicates(candidate.lesson, [other.lesson for other in fresh]):
            fresh.append(candidate)
    return tuple(fresh), list(known.values())


def _append(file: LessonsFile, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Append what need not wait for a person, and return it."""
    ready = tuple(candidate for candidate in candidates if not candidate.held)
    if ready:
        file.append([candidate.lesson for candidate in ready])
    return ready


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
    errors: Sequence[RecordProblem],
) -> RecordEnvelope:
    return RecordEnvelope(
        status=status,
        session_id=request.session_id,
        story_key=request.story_key,
        results=results,
        errors=list(errors),
    )
