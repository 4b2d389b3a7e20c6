"""A finding and a rating: what is read of a document, and what saving and rating give back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from kr.errors import FieldError
from kr.models import Confidence, Origin, Outcome, Problem, Related, validation_problems
from kr.requests import (
    block,
    few_lines,
    framework_name,
    one_of,
    question,
    short_line,
    story_key,
    taken,
)

MOST_TOKENS = 1200
"""The longest that a finding may be: others pay for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out and proved. ``answer`` may be a whole report that follows the template."""

    framework: str = taken(framework_name)
    question: str = taken(question)
    answer: str = taken(block)
    code: str | None = taken(block, None)
    caveats: str | None = taken(block, None)
    sources: tuple[str, ...] = taken(few_lines, ())
    verified_by: str | None = taken(short_line, None)
    framework_version: str | None = taken(short_line, None)
    topic: str | None = taken(short_line, None)
    tags: tuple[str, ...] = taken(few_lines, ())
    entry: str | None = taken(short_line, None)
    story_key: str = taken(story_key, "0-0")
    session_id: str | None = taken(short_line, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rating of an entry's text: how it went for who used it."""

    outcome: Outcome = taken(one_of("outcome", get_args(Outcome)))  # noqa: RUF009 - a dataclass field
    note: str | None = taken(short_line, None)
    session_id: str | None = taken(short_line, None)
    story_key: str | None = taken(story_key, None)


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
