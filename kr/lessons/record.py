"""U5, steps 1 to 6: what an agent's failure teaches, as lines at the end of the lessons file."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kr.errors import InvalidRequest, StoreError
from kr.guard import mask_secrets, safe
from kr.lessons.events import MOST_EVENTS, AgentReturn, Fault, detect, evident, phase_tag, read_return
from kr.lessons.file import LessonsFile, LessonsFileError, make_row, session_name
from kr.lessons.line import FIX_COLUMNS, KEPT_COLUMNS, LONGEST, word_lesson
from kr.models import EVENT_TYPES, PHASES, EventType, Problem
from kr.requests import (
    IDENTITY,
    bad,
    checked,
    decoded,
    field_read_by,
    fields_of,
    loose_text,
    one_of,
    read_document,
    scalars,
    text,
)
from kr.settings import Settings
from kr.store.lessons import LessonRow
from kr.text import columns
from kr.times import to_text

logger = logging.getLogger(__name__)

NO_EVENTS = "No recordable error events detected in agent return"
ALL_DUPLICATES = "All entries already exist in _lessons-learned.md"
APPEND_FAILED = "Failed to append lesson entries to file"
"""Messages of U5, steps 1, 4 and 5, as they stand; ``confirmation`` has the fourth."""

NOTHING_TOLD = "No lesson could be distilled from the agent return"

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
        given = read_document(data) if isinstance(data, bytes) else data
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
    distiller = _Distiller(request, returned, root, now)
    problems: list[Problem] = []
    if request.lessons:
        rows = distiller.handed_over(events[0] if events else request.event_type, problems)
    else:
        rows = distiller.distill(events[:MOST_EVENTS], file.path.parent / "remedies.yaml")
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


def evident_events(phase: str, returned: AgentReturn, settings: Settings) -> tuple[EventType, ...]:
    """Return the events that an agent's return shows by itself (U5, "Configuration Dependencies")."""
    defaults = settings.defaults
    most = defaults.max_story_review_rounds if phase == "story-review" else defaults.max_review_rounds
    return evident(phase, returned, most_rounds=most, is_e2e_enabled=settings.e2e_inspection.enabled)


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
        raise bad("required: a mapping with a status")
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


def read_words(value: object) -> dict[str, Any]:
    """Read one lesson that was handed over, ``{symptom, fix, ref, tags}``, as ``{summary, ref, tags}``: both halves, without secrets.

    Raises ``InvalidRequest`` with an error per bad half.
    """
    words = checked({"symptom": text, "fix": _fix, "ref": loose_text, "tags": scalars}, decoded(value))
    summary = word_lesson(safe(words["symptom"][:LONGEST]), safe(words["fix"]), KEPT_COLUMNS)
    return {"summary": summary, "ref": words["ref"], "tags": words["tags"]}


def _fix(value: object) -> str:
    fix = " ".join(text(value).split())
    if (width := columns(fix)) > FIX_COLUMNS:
        raise bad(f"is too long: {width} columns, at most {FIX_COLUMNS}; say what to do in one sentence")
    return fix


# --- the lessons ---


@dataclass(frozen=True, slots=True)
class _Distiller:
    """Makes the lessons of one request (U5, step 2)."""

    request: RecordRequest
    returned: AgentReturn
    root: Path
    now: datetime

    @property
    def framework(self) -> str:
        return _VERSION.sub("", self.request.framework_context.strip())

    def handed_over(self, event: EventType, problems: list[Problem]) -> list[LessonRow]:
        """Take the lessons that were handed over, both halves as they were worded; a bad one is a problem, and costs only itself."""
        rows: list[LessonRow] = []
        for number, value in enumerate(self.request.lessons[:MOST_EVENTS]):
            try:
                words = read_words(value)
            except InvalidRequest as error:
                for problem in error.fields:
                    field, message = f"lessons[{number}].{problem.field}", mask_secrets(problem.message)
                    problems.append(Problem(type="validation_error", field=field, message=message))
                continue
            tags = (self.framework, *words["tags"])
            rows += self._row(event, tags, words["summary"], words["ref"], source="agent")
        return rows

    def distill(self, events: Sequence[EventType], own_remedies: Path) -> list[LessonRow]:
        """Word one lesson for each event, from what its author reported (U5, step 3).

        Each phase's next agent gets the best there is; only within one phase lessons must differ.
        """
        from kr.lessons.remedies import read_own, word_fault  # heavy

        own, rows, used = read_own(own_remedies), list[LessonRow](), set[tuple[str, str]]()
        for event in events:
            phase = phase_tag(event, self.request.phase)
            worded = [(it, word) for it in self._faults(event) if (word := word_fault(it, own))]
            unused = [(it, word) for it, word in worded if (phase, word.summary) not in used]
            if unused:
                finding, word = next((pair for pair in unused if pair[1].has_fix), unused[0])
                tags = (self.framework,) if self.framework else word.tags
                rows += self._row(event, tags, word.summary, finding.path or "", source=word.source)
                used.add((phase, word.summary))
        return rows

    def _row(
        self, event: EventType, tags: Sequence[str], summary: str, ref: str, *, source: str
    ) -> list[LessonRow]:
        """Make a lesson of the event's phase; its reference is the first path that is one, relative to the project."""
        paths = map(str.strip, (ref, *self.request.code_paths, *self.returned.artifacts))
        row = make_row(
            (phase_tag(event, self.request.phase), *tags),
            summary,
            next(filter(None, paths), "").removeprefix(f"{self.root}/").removeprefix("./"),
            recorded_at=to_text(self.now),
            story_key=self.request.story_key,
            session_id=session_name(self.request.session_id),
            event_type=event,
            source=source,
        )
        return [row] if row else []

    def _faults(self, event: EventType) -> list[Fault]:
        """Return what an event is about, the worst first; what the agent says in all only where that is all there is.

        Secrets are taken out before anything is cut: half of one is one still.
        """
        from kr.lessons.remedies import is_vague  # heavy

        returned = self.returned
        issues = sorted(returned.issues, key=lambda issue: issue not in returned.severe)
        if event == "high_severity_issues":
            found = list(returned.severe)
        elif event == "review_max_rounds":
            found = [*issues, *returned.errors]
        else:
            found = [*returned.errors, *issues]
        texts = (returned.summary, self.request.additional_context)
        said = [Fault(message=text) for text in texts if text]
        found = [it for it in found if not is_vague(f"{it.message} {it.fix}")] or said
        return [replace(it, message=safe(it.message), fix=safe(it.fix)) for it in found]
