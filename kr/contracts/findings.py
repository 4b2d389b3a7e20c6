"""What an agent or a person hands over: a finding to be saved, a rating; and what they get back (SPEC 3.10)."""

import getpass
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kr.contracts.requests import (
    Field,
    Fields,
    as_text,
    bad,
    is_blank,
    line,
    one_of,
    read_fields,
    story_key,
    text,
    unknown_keys,
)
from kr.errors import InvalidRequest
from kr.models import Outcome

MOST_TOKENS = 1200
"""The longest that a finding may be: others pay for it."""
_LONGEST_LINE = 500
_MOST_ITEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out and proved. ``answer`` may be a whole report that follows the template."""

    framework: str
    question: str
    answer: str
    code: str | None = None
    caveats: str | None = None
    sources: tuple[str, ...] = ()
    verified_by: str | None = None
    framework_version: str | None = None
    topic: str | None = None
    tags: tuple[str, ...] = ()
    entry: str | None = None
    story_key: str = "0-0"
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rating, checked."""

    outcome: Outcome
    note: str | None = None
    session_id: str | None = None
    story_key: str | None = None


@dataclass(frozen=True, slots=True)
class Writer:
    """Who hands something over. ``name`` is ``person:NAME``, ``agent:SESSION`` or ``file``; ``session`` is whose rating it is."""

    name: str
    session: str


def person(name: str | None = None) -> Writer:
    """Return the person at this terminal, or the one who signed in to review."""
    named = f"person:{name or _user()}"
    return Writer(named, named)


def agent(session_id: str | None) -> Writer:
    """Return an agent; one without a session is the user of the machine, once. A session can't name itself as a person does."""
    session = session_id or f"user:{_user()}"
    if session.startswith("person:"):
        session = f"agent:{session}"
    return Writer(f"agent:{session}", session)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return "unknown"


def _short_line(value: object) -> str:
    taken = line(value)
    if len(taken) > _LONGEST_LINE:
        raise bad(f"has {len(taken)} characters; at most {_LONGEST_LINE}")
    return taken


def _maybe(read: Any) -> Any:
    """Read an optional field: an empty text or list is as if it were not there (SPEC 3.1)."""

    def reader(value: object) -> Any:
        is_empty = value is None or value in ([], ()) or (isinstance(value, str) and is_blank(value))
        return None if is_empty else read(value)

    return reader


def _lines(value: object) -> tuple[str, ...]:
    """Take a list of lines, a single one, or a list as JSON text, as MCP clients send it."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise bad("is no list") from error
    if isinstance(value, Mapping):
        raise bad("must be a list of texts, not a mapping")
    items = value if isinstance(value, list | tuple) else [value]
    found = tuple(
        dict.fromkeys(_short_line(item) for item in items if item is not None and not is_blank(as_text(item)))
    )
    if len(found) > _MOST_ITEMS:
        raise bad(f"has {len(found)} items; at most {_MOST_ITEMS}")
    return found


_FINDING: Fields = {
    "framework": Field(_short_line),
    "question": Field(_short_line),
    "answer": Field(lambda value: text(value).strip("\n")),
    "code": Field(_maybe(lambda value: text(value).strip("\n")), None),
    "caveats": Field(_maybe(lambda value: text(value).strip("\n")), None),
    "sources": Field(_maybe(_lines), None),
    "verified_by": Field(_maybe(_short_line), None),
    "framework_version": Field(_maybe(_short_line), None),
    "topic": Field(_maybe(_short_line), None),
    "tags": Field(_maybe(_lines), None),
    "entry": Field(_maybe(line), None),
    "story_key": Field(_maybe(story_key), None),
    "session_id": Field(_maybe(line), None),
}
_RATE: Fields = {
    "outcome": Field(one_of("worked", "wrong")),
    "note": Field(_maybe(_short_line), None),
    "session_id": Field(_maybe(line), None),
    "story_key": Field(_maybe(story_key), None),
}


def parse_finding(data: Mapping[str, Any]) -> tuple[Finding, list[str]]:
    """Check a finding; returns it with what is to be said about it. Raises ``InvalidRequest`` with every bad field at once."""
    return Finding(**_given(_FINDING, data)), _warnings(_FINDING, data)


def parse_rate(data: Mapping[str, Any]) -> Rate:
    """Check a rating. Raises ``InvalidRequest``."""
    return Rate(**_given(_RATE, data))


def _given(fields: Fields, data: Mapping[str, Any]) -> dict[str, Any]:
    read, errors = read_fields(fields, data)
    if errors:
        raise InvalidRequest(*errors)
    return {name: value for name, value in read.items() if value is not None}


def _warnings(fields: Fields, data: Mapping[str, Any]) -> list[str]:
    return [f"unknown key ignored: {key}" for key in unknown_keys(fields, data)]
