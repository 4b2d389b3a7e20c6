"""A finding and a rating: what is read of a document, and what saving and rating give back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kr.errors import FieldError
from kr.models import Confidence, Origin, Outcome, Problem, Related, validation_problems
from kr.requests import (
    Fields,
    block,
    checked,
    few_lines,
    framework_name,
    one_of,
    optional,
    question,
    short_line,
    story_key,
)

MOST_TOKENS = 1200
"""The longest that a finding may be: others pay for it."""


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


_FINDING: Fields = {
    "framework": framework_name,
    "question": question,
    "answer": block,
    "code": optional(block),
    "caveats": optional(block),
    "sources": optional(few_lines, ()),
    "verified_by": optional(short_line),
    "framework_version": optional(short_line),
    "topic": optional(short_line),
    "tags": optional(few_lines, ()),
    "entry": optional(short_line),
    "story_key": optional(story_key, "0-0"),
    "session_id": optional(short_line),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rating of an entry's text: how it went for who used it."""

    outcome: Outcome
    note: str | None = None
    session_id: str | None = None
    story_key: str | None = None


_RATE: Fields = {
    "outcome": one_of(*get_args(Outcome)),
    "note": optional(short_line),
    "session_id": optional(short_line),
    "story_key": optional(story_key),
}


def parse_finding(data: Mapping[str, Any]) -> Finding:
    """Check a finding. Raises ``InvalidRequest`` with every bad field."""
    return Finding(**checked(_FINDING, data))


def parse_rate(data: Mapping[str, Any]) -> Rate:
    """Check a rating. Raises ``InvalidRequest`` with every bad field."""
    return Rate(**checked(_RATE, data))


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveResults:
    """``revision`` is the number that ``kr entries restore ID N`` takes, ``replaced`` that of the text it took over from.

    ``id`` of a quarantined finding is what ``kr review`` takes. ``related`` may say the same.
    """

    id: str
    path: str | None = None
    revision: int | None = None
    replaced: int | None = None
    confidence: Confidence | None = None
    index_count: int | None = None
    related: Sequence[Related] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveEnvelope:
    """What saving a finding gives back."""

    status: Literal["saved", "quarantined", "failure"]
    results: SaveResults | None
    errors: list[Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateResults:
    """How many sessions say of an entry's text that it worked or is wrong; ``withdrawn``: it is served to nobody.

    ``note`` says whose word it counts as, where that is not the session that was named.
    """

    id: str
    worked: int
    wrong: int
    revision: int
    confidence: Confidence
    origin: Origin
    withdrawn: bool
    note: str | None = None


def save_failure(errors: Iterable[FieldError]) -> SaveEnvelope:
    """Make the envelope of a finding that is refused."""
    return SaveEnvelope(status="failure", results=None, errors=validation_problems(errors))
