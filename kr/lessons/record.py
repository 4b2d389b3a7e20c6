"""U5, steps 1 to 6: what an agent's failure teaches, as lines at the end of the lessons file.

Agents are careless: a list may be a single text, a number may be text, a block may be missing. What can't be read is absent.
"""

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kr.errors import InvalidRequest, StoreError
from kr.guard import mask_secrets, safe
from kr.lessons.file import LessonsFile, LessonsFileError, make_row, session_name
from kr.lessons.line import read_words
from kr.models import EVENT_TYPES, PHASES, EventType, Problem
from kr.requests import (
    IDENTITY,
    bad,
    checked,
    count,
    decoded,
    field_read_by,
    fields_of,
    loose_text,
    one_of,
    read_document,
    scalars,
)
from kr.settings import Settings
from kr.store.lessons import LessonRow
from kr.times import to_text

logger = logging.getLogger(__name__)

NO_EVENTS = "No recordable error events detected in agent return"
ALL_DUPLICATES = "All entries already exist in _lessons-learned.md"
APPEND_FAILED = "Failed to append lesson entries to file"
"""Messages of U5, steps 1, 4 and 5, as they stand; ``confirmation`` has the fourth."""
NOTHING_TOLD = "No lesson could be distilled from the agent return"
MOST_EVENTS = 3
"""At most so many lessons from one return (U5, "Event Detection Priority")."""

_LONGEST_TEXT = 20_000
_MOST_ITEMS = 50
_FIX_KEYS = ("fix", "suggestion", "recommendation", "resolution")
_MESSAGE_KEYS = ("message", "description", "summary", "detail", "error")
_TRUE = frozenset({"true", "yes", "on", "1"})
_SUCCESS = frozenset({"success", "completed", "passed", "ok", "cache-hit", "recorded", "empty", "skipped"})
_FALLBACK: EventType = "general_agent_failure"
_RESEARCHER = "knowledge-researcher"  # F1's own agent is called bso-knowledge-researcher
_REVIEWS = frozenset({"code-review", "story-review"})
_PHASES: dict[EventType, str] = {
    "review_max_rounds": "code-review",
    "dev_failure_auto_fixed": "dev-execution",
    "high_severity_issues": "code-review",
    "e2e_verification_failure": "e2e-inspection",
}
_VERSION = re.compile(r"[\s@]+[v^~=<>]*\d[\w.]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEnvelope:
    """What recording gives back.

    ``results``: ``{events_detected, entries_recorded, entries_skipped, quarantined?, recorded_entries, file_path, total_entries_in_file,
    message?}``; what is detected is recorded or skipped, unless the file could not be written. ``recorded_entries``: ``[{date, phase, event_type,
    summary, ref, quarantined?}]``; what is quarantined waits for a person, and is not in the file.
    """

    status: Literal["recorded", "skipped", "failure"]
    session_id: Any
    story_key: Any
    results: dict[str, Any]
    errors: Sequence[Problem] = ()


def skip(data: Mapping[str, Any], message: str) -> RecordEnvelope:
    """Make the ``skipped`` envelope with U5's empty results, the identity echoed as given."""
    return RecordEnvelope(
        status="skipped",
        session_id=data.get("session_id"),
        story_key=data.get("story_key"),
        results={**_results(), "message": message},
    )


def _results(
    detected: int = 0, fresh: Sequence[LessonRow] = (), path: str = "", total: int = 0
) -> dict[str, Any]:
    held = sum(row.held is not None for row in fresh)
    return {
        "events_detected": detected,
        "entries_recorded": len(fresh),
        "entries_skipped": detected - len(fresh),
        **({"quarantined": held} if held else {}),
        "recorded_entries": [
            {
                "date": row.lesson.date,
                "phase": row.lesson.tags[0],
                "event_type": row.event_type,
                "summary": row.lesson.summary,
                "ref": row.lesson.ref,
                **({"quarantined": True} if row.held else {}),
            }
            for row in fresh
        ],
        "file_path": path,
        "total_entries_in_file": total,
    }


def record(
    data: bytes | Mapping[str, Any], file: LessonsFile, settings: Settings, *, now: datetime
) -> RecordEnvelope:
    """Answer a request, or the document of one: any bytes in, an envelope out.

    It is ``recorded``, ``skipped`` (also where it is invalid) or ``failure`` (``append_write_failed``). References are
    written relative to the project.
    """
    given: Mapping[str, Any] = {}
    try:
        given = read_document(data)
        request = parse_record(given, phases=settings.knowledge_research.all_phases)
    except InvalidRequest as error:
        # Without the name: "session_id: …" reads like a secret by itself.
        why = "; ".join(f"{it.field}: {mask_secrets(it.message)}" for it in error.fields)
        logger.warning("nothing is recorded: %s", why)
        echoed = {**error.read, **given}
        if isinstance(story := echoed.get("story_key"), str):
            echoed["story_key"] = mask_secrets(story)
        return skip(echoed, f"Recording skipped: {why}")
    returned = read_return(request.agent_return)
    events = detect(request.event_type, returned, evident_events(request.phase, returned, settings))
    identity = {"session_id": request.session_id, "story_key": request.story_key}
    if not (events or request.lessons):
        return skip(identity, NO_EVENTS)
    root, detected = settings.project_root, len(request.lessons or events)
    path = (file.path.relative_to(root) if file.path.is_relative_to(root) else file.path).as_posix()
    problems: list[Problem] = []
    if request.lessons:
        words = _handed_words(request, events[0] if events else request.event_type, problems)
    else:
        words = _found_words(request, returned, events[:MOST_EVENTS], file.path.parent / "remedies.yaml")
    rows = [row for it in words if (row := _row(it, request, returned, root, now))]
    try:
        fresh, total = file.append(rows, now=now)
    except (LessonsFileError, StoreError) as error:
        logger.warning("%s", error)
        problem = Problem(type="append_write_failed", file_path=path, message=f"{APPEND_FAILED}: {error}")
        results = {**_results(path=path), "events_detected": detected}
        return RecordEnvelope(status="failure", **identity, results=results, errors=[problem])
    results = _results(detected, fresh, path, total)
    if not fresh:
        results["message"] = ALL_DUPLICATES if rows else NOTHING_TOLD
    return RecordEnvelope(
        status="recorded" if fresh else "skipped", **identity, results=results, errors=problems
    )


def confirmation(envelope: RecordEnvelope) -> str | None:
    """Return the line that tells people what was written (U5, step 5.6c), for standard error."""
    results = envelope.results
    written = results["entries_recorded"] - results.get("quarantined", 0)
    total = results["total_entries_in_file"]
    line = f"[LESSONS] {written} entries appended to _lessons-learned.md (total: {total} entries)"
    return line if written else None


# --- the request ---


def _agent_return(value: object) -> object:
    if not isinstance(value, Mapping) or not value:
        raise bad("required: a mapping with a status; or hand over a lesson: {symptom, fix}")
    if not loose_text(value.get("status")):
        raise bad("must hold a status")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest:
    """``lessons`` are those that were handed over, as they came: here, in ``agent_return`` or in its ``results``."""

    session_id: str
    story_key: str
    phase: str
    event_type: EventType = field_read_by(one_of("event type", EVENT_TYPES))  # noqa: RUF009 - a dataclass field
    agent_return: Mapping[str, Any] = field_read_by(_agent_return)
    code_paths: tuple[str, ...] = field_read_by(scalars, ())
    framework_context: str = field_read_by(loose_text, "")
    additional_context: str = field_read_by(loose_text, "")
    lessons: tuple[object, ...] = ()

    @property
    def framework(self) -> str:
        """Its name without a version; empty where none is given."""
        return _VERSION.sub("", self.framework_context.strip())


_OF_LESSONS = {
    "phase": "dev-execution",
    "event_type": "general_agent_failure",
    "agent_return": {"status": "failure"},
}
"""What a request that hands lessons over need not say."""


def parse_record(data: Mapping[str, Any], *, phases: Sequence[str] = PHASES) -> RecordRequest:
    """Check a request to record. Raises ``InvalidRequest`` with every bad field."""
    given = {name: value for name, value in data.items() if name not in {"lesson", "lessons"}}
    given["agent_return"] = decoded(given.get("agent_return"))
    lessons = tuple(_handed_over(data, given["agent_return"]))
    if lessons:
        given = {**_OF_LESSONS, **{name: value for name, value in given.items() if value not in (None, "")}}
    readers = {**IDENTITY, "phase": one_of("phase tag", phases), **fields_of(RecordRequest)}
    return RecordRequest(**checked(readers, given), lessons=lessons)


def _handed_over(data: Mapping[str, Any], returned: object) -> Iterator[object]:
    results = returned.get("results") if isinstance(returned, Mapping) else None
    places = [place for place in (data, returned, results) if isinstance(place, Mapping)]
    for value in (decoded(place.get(name)) for place in places for name in ("lesson", "lessons")):
        yield from value if isinstance(value, list | tuple) else [] if value in (None, "") else [value]


# --- the events in an agent's return ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One error or issue: what is wrong, what its author says to do, how bad it is, and where. Texts as they came."""

    message: str = ""
    fix: str = ""
    severity: str = ""
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReturn:
    """``status`` and ``agent`` are folded: small letters, dashes for spaces and underscores."""

    status: str
    agent: str
    summary: str
    errors: tuple[Fault, ...]
    issues: tuple[Fault, ...]
    review_rounds: int | None
    is_auto_fixed: bool
    artifacts: tuple[str, ...]

    @property
    def severe(self) -> tuple[Fault, ...]:
        """The issues of severity HIGH or worse."""
        return tuple(issue for issue in self.issues if issue.severity in {"high", "critical", "blocker"})


def read_return(data: Mapping[str, Any]) -> AgentReturn:
    """Read an ``agent_return``: each fact stands in it or in its ``results``."""
    results = data.get("results")
    results = results if isinstance(results, Mapping) else {}
    facts = {**data, **{name: value for name, value in results.items() if value not in (None, "", [])}}
    return AgentReturn(
        status=_folded(data.get("status")),
        agent=_folded(data.get("agent")),
        summary=text_of(data.get("summary")),
        errors=tuple(_faults(_items(facts.get("errors")))),
        issues=tuple(_faults(_items(facts.get("issues")))),
        review_rounds=count(facts.get("review_rounds")),
        is_auto_fixed=_folded(facts.get("auto_fix_applied")) in _TRUE,
        artifacts=tuple(filter(None, map(_path, _items(facts.get("artifacts"))))),
    )


def detect(declared: EventType, returned: AgentReturn, seen: Collection[EventType]) -> tuple[EventType, ...]:
    """Return every event that happened, in the table's order: the caller keeps the first ``MOST_EVENTS``. ``seen`` are ``evident_events``.

    What the caller declared counts, unless the agent returned a clean success: no errors, no auto-fix, no HIGH issue. The last row is for returns that no other
    one is about: it is not added to what the caller declared.
    """
    has_faults = bool(returned.errors or returned.is_auto_fixed or returned.severe)
    if returned.status in _SUCCESS and not has_faults:
        return ()
    happened = {*seen} - {_FALLBACK} | {declared}
    return tuple(event for event in EVENT_TYPES if event in happened)


def evident_events(phase: str, returned: AgentReturn, settings: Settings) -> tuple[EventType, ...]:
    """Return the rows of the trigger table that hold, whatever anybody declares (U5, "Configuration Dependencies")."""
    status, defaults = returned.status, settings.defaults
    most = defaults.max_story_review_rounds if phase == "story-review" else defaults.max_review_rounds
    is_e2e = phase == "e2e-inspection" and settings.e2e_inspection.enabled
    needs_somebody = status == "needs-intervention"
    rows: dict[EventType, bool] = {
        "review_max_rounds": needs_somebody and (returned.review_rounds or 0) >= most,
        "dev_failure_auto_fixed": status == "success" and returned.is_auto_fixed,
        "high_severity_issues": bool(returned.severe),
        "agent_needs_intervention": needs_somebody,
        "knowledge_researcher_timeout": status == "timeout" and returned.agent.endswith(_RESEARCHER),
        "e2e_verification_failure": status == "failure" and is_e2e,
    }
    seen = tuple(event for event, holds in rows.items() if holds)
    return (_FALLBACK,) if status == "failure" and not seen else seen


def phase_tag(event: EventType, phase: str) -> str:
    """Return the phase of the event's lesson: the table's, unless the given one is a review as well."""
    tag = _PHASES.get(event, phase)
    return phase if tag in _REVIEWS and phase in _REVIEWS else tag


def _faults(items: Sequence[object]) -> Iterator[Fault]:
    for item in items:
        data = item if isinstance(item, Mapping) else {"message": text_of(item)}
        found = Fault(
            message=_first(data, _MESSAGE_KEYS),
            fix=_first(data, _FIX_KEYS),
            severity=_folded(data.get("severity")),
            path=_path(data),
        )
        if found.message or found.fix or found.severity:
            yield found


def _path(item: object) -> str | None:
    data = item if isinstance(item, Mapping) else {"path": item}
    path, line = _first(data, ("file", "path")), count(data.get("line"))
    return (f"{path}:{line}" if path and line and not path.rpartition(":")[2].isdigit() else path) or None


def _items(value: object) -> Sequence[object]:
    if value is None or value == "":
        return ()
    return value[:_MOST_ITEMS] if isinstance(value, list | tuple) else (value,)


def _first(data: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next(filter(None, (text_of(data.get(key)) for key in keys)), "")


def text_of(value: object) -> str:
    """Return what a value says as text: of a list its items, of a mapping nothing, of a long text its beginning and its end."""
    if isinstance(value, list | tuple):
        value = "; ".join(filter(None, map(text_of, value[:_MOST_ITEMS])))
    if value is None or isinstance(value, Mapping):
        return ""
    text = str(value).strip() if not isinstance(value, bool) else str(value).lower()
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    # The rest of a line that was cut might be half a secret.
    return f"{text[:half].rpartition(chr(10))[0] or text[:half]}\n{text[-half:].partition(chr(10))[2]}"


def _folded(value: object) -> str:
    return text_of(value).casefold().replace("_", "-").replace(" ", "-")


# --- the lessons ---


class _Words(NamedTuple):
    """What a lesson of an event says, as yet without its phase."""

    event: EventType
    summary: str
    ref: str
    tags: Sequence[str]
    source: str


def _handed_words(request: RecordRequest, event: EventType, problems: list[Problem]) -> Iterator[_Words]:
    """Yield the lessons that were handed over, both halves as they were worded; a bad one is a problem, and costs only itself."""
    for number, value in enumerate(request.lessons[:MOST_EVENTS]):
        try:
            words = read_words(value)
        except InvalidRequest as error:
            for problem in error.fields:
                field, message = f"lessons[{number}].{problem.field}", mask_secrets(problem.message)
                problems.append(Problem(type="validation_error", field=field, message=message))
        else:
            tags = (request.framework, *words["tags"])
            yield _Words(event, words["summary"], words["ref"], tags, "agent")


def _found_words(
    request: RecordRequest, returned: AgentReturn, events: Sequence[EventType], own_remedies: Path
) -> Iterator[_Words]:
    """Word one lesson for each event, from what its author reported (U5, step 3).

    Each phase's next agent gets the best there is; only within one phase lessons must differ.
    """
    from kr.lessons.remedies import read_own, word_fault  # heavy

    own, used = read_own(own_remedies), set[tuple[str, str]]()
    for event in events:
        phase = phase_tag(event, request.phase)
        faults = _faults_of(event, returned, request.additional_context)
        worded = [(it, word) for it in faults if (word := word_fault(it.message, it.fix, own))]
        unused = [(it, word) for it, word in worded if (phase, word.summary) not in used]
        if unused:
            fault, word = next((pair for pair in unused if pair[1].has_fix), unused[0])
            used.add((phase, word.summary))
            tags = (request.framework,) if request.framework else word.tags
            yield _Words(event, word.summary, fault.path or "", tags, word.source)


def _faults_of(event: EventType, returned: AgentReturn, context: str) -> list[Fault]:
    """Return what an event is about, the worst first; what the agent says in all only where that is all there is.

    Secrets are taken out before anything is cut: half of one is one still.
    """
    from kr.lessons.remedies import is_vague  # heavy

    issues = sorted(returned.issues, key=lambda issue: issue not in returned.severe)
    if event == "high_severity_issues":
        found = list(returned.severe)
    elif event == "review_max_rounds":
        found = [*issues, *returned.errors]
    else:
        found = [*returned.errors, *issues]
    said = [Fault(message=text) for text in (returned.summary, context) if text]
    found = [it for it in found if not is_vague(f"{it.message} {it.fix}")] or said
    return [replace(it, message=safe(it.message), fix=safe(it.fix)) for it in found]


def _row(
    words: _Words, request: RecordRequest, returned: AgentReturn, root: Path, now: datetime
) -> LessonRow | None:
    """Make a lesson of the event's phase; its reference is the first path that is one, relative to the project."""
    paths = map(str.strip, (words.ref, *request.code_paths, *returned.artifacts))
    return make_row(
        (phase_tag(words.event, request.phase), *words.tags),
        words.summary,
        next(filter(None, paths), "").removeprefix(f"{root}/").removeprefix("./"),
        recorded_at=to_text(now),
        story_key=request.story_key,
        session_id=session_name(request.session_id),
        event_type=words.event,
        source=words.source,
    )
