"""The request and the return value of U5, lessons recording (seed 003, "Input Schema", "Return Value")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kr.contracts.requests import (
    Field,
    Fields,
    as_text,
    bad,
    decoded,
    optional_paths,
    optional_text,
    read_fields,
    shown,
    story_key,
    tag_of,
    text,
    unknown_keys,
)
from kr.errors import InvalidRequest
from kr.models import EVENT_TYPES, PHASES, EventType

NO_EVENTS = "No recordable error events detected in agent return"
ALL_DUPLICATES = "All entries already exist in _lessons-learned.md"
APPEND_FAILED = "Failed to append lesson entries to file"
"""Messages of seed 003, steps 1, 4 and 5, as they stand."""

NOTHING_TOLD = "No lesson could be distilled from the agent return"


_ALONE = {
    "phase": "dev-execution",
    "event_type": "general_agent_failure",
    "agent_return": {"status": "failure"},
}
"""What a request need not say when it hands lessons over (SPEC 4.2)."""


def _agent_return(value: object) -> object:
    if not isinstance(value, Mapping) or not value:
        raise bad("required: a mapping with a status")
    status = value.get("status")
    if status is None or isinstance(status, Mapping | list) or not as_text(status).strip():
        raise bad("must hold a status")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest:
    session_id: str
    story_key: str
    phase: str
    event_type: EventType
    agent_return: Mapping[str, Any]
    code_paths: tuple[str, ...]
    framework_context: str
    additional_context: str
    lessons: tuple[object, ...] = ()
    """Lessons that were handed over, as they came: here, in ``agent_return`` or in its ``results``."""


def _fields(phases: Sequence[str]) -> Fields:
    return {
        "session_id": Field(text),
        "story_key": Field(story_key),
        "phase": Field(tag_of("phase tag", phases)),
        "event_type": Field(tag_of("event type", EVENT_TYPES)),
        "agent_return": Field(_agent_return),
        "code_paths": Field(optional_paths),
        "framework_context": Field(optional_text),
        "additional_context": Field(optional_text),
    }


@dataclass(frozen=True, slots=True)
class ParsedRecord:
    request: RecordRequest
    warnings: tuple[str, ...]


def parse_record(data: Mapping[str, Any], *, phases: Sequence[str] = PHASES) -> ParsedRecord:
    """Validate a request (seed 003, "Input Validation Rules"). Raises ``InvalidRequest`` with a ``FieldError`` per bad field.

    A request that hands lessons over needs no more than story and session.
    """
    given = {name: value for name, value in data.items() if name not in {"lesson", "lessons"}}
    if "agent_return" in given:
        given["agent_return"] = decoded(given["agent_return"])
    lessons = _handed_over(data, given.get("agent_return"))
    if lessons:
        given = {**_ALONE, **{name: value for name, value in given.items() if value is not None}}
    fields = _fields(phases)
    read, errors = read_fields(fields, given)
    if errors:
        raise InvalidRequest(*errors)
    warnings = (f"unknown key ignored: {shown(key)}" for key in unknown_keys(fields, given))
    return ParsedRecord(RecordRequest(**read, lessons=lessons), tuple(warnings))


def _handed_over(data: Mapping[str, Any], agent_return: object) -> tuple[object, ...]:
    returned = agent_return if isinstance(agent_return, Mapping) else {}
    results = returned.get("results")
    places = (data, returned, results if isinstance(results, Mapping) else {})
    found: list[object] = []
    for value in (place.get(name) for place in places for name in ("lesson", "lessons")):
        items = decoded(value)
        found += items if isinstance(items, list | tuple) else [] if items in (None, "") else [items]
    return tuple(found)
