"""Recording lessons: what is read of a request (U5), and what it gives back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kr.models import EVENT_TYPES, PHASES, EventType, Problem, optional
from kr.requests import IDENTITY, bad, checked, decoded, fields_of, loose_text, one_of, scalars, taken


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
    event_type: EventType = taken(one_of("event type", EVENT_TYPES))  # noqa: RUF009 - a dataclass field
    agent_return: Mapping[str, Any] = taken(_agent_return)
    code_paths: tuple[str, ...] = taken(scalars, ())
    framework_context: str = taken(loose_text, "")
    additional_context: str = taken(loose_text, "")
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
    values = checked(readers, given)
    return RecordRequest(**values, lessons=lessons)


def _handed_over(data: Mapping[str, Any], agent_return: object) -> Iterator[object]:
    returned = agent_return if isinstance(agent_return, Mapping) else {}
    results = returned.get("results")
    places = (data, returned, results if isinstance(results, Mapping) else {})
    for value in (place.get(name) for place in places for name in ("lesson", "lessons")):
        items = decoded(value)
        yield from items if isinstance(items, list | tuple) else [] if items in (None, "") else [items]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEntry:
    """One lesson that was written. ``quarantined``: it is not injected until a person approves it."""

    date: str
    phase: str
    event_type: str
    summary: str
    ref: str | None
    quarantined: bool = optional(default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordResults:
    """``events_detected`` is ``entries_recorded + entries_skipped`` unless the file could not be written.

    ``quarantined`` of the recorded ones wait for a person and are not in the file.
    """

    events_detected: int = 0
    entries_recorded: int = 0
    entries_skipped: int = 0
    quarantined: int = optional(default=0)
    recorded_entries: Sequence[RecordedEntry] = ()
    file_path: str = ""
    total_entries_in_file: int = 0
    message: str | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEnvelope:
    """The return value of recording."""

    status: Literal["recorded", "skipped", "failure"]
    session_id: Any
    story_key: Any
    results: RecordResults
    errors: Sequence[Problem] = ()


def skip(data: Mapping[str, Any], message: str) -> RecordEnvelope:
    """Make the ``skipped`` envelope with U5's empty results, the identity echoed as given."""
    return RecordEnvelope(
        status="skipped",
        session_id=data.get("session_id"),
        story_key=data.get("story_key"),
        results=RecordResults(message=message),
    )
