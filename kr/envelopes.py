"""What the operations return, every field in the order of F1 and U5.

``kr.models.to_plain`` makes nested plain data of an envelope; MCP and HTTP take its schema from its class.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kr.errors import FieldError
from kr.models import Confidence, EntryStatus, Origin, Related, ResearchStatus, SourceAttempt, Tier, optional


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One item of ``errors``. ``field`` is left out where no field is to blame."""

    type: str
    field: str | None = optional()
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchView:
    """Why an entry answered."""

    tier: Tier
    topic_overlap: float
    shared_tags: list[str]
    entry_status: EntryStatus
    origin: Origin
    worked: int
    wrong: int
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateReport:
    """The report of the best candidate, so that the asker mostly needs no second call."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonView:
    """A lesson of the framework whose words the question shares."""

    summary: str
    ref: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchResults:
    """The ``results`` of a research. ``lru_evicted`` is -1 when the capacity guard failed.

    ``related`` holds the candidates, best first; ``report_file`` is the absolute path of the report.
    """

    cache_hit: bool
    cache_entry_id: str | None
    report_path: str | None
    confidence: Confidence | None
    sources_consulted: list[SourceAttempt]
    budget_remaining: int
    degradation_notes: list[str]
    index_updated: bool
    index_count: int
    lru_evicted: int
    match: MatchView | None
    related: list[Related]
    candidate_report: CandidateReport | None
    lessons: list[LessonView]
    auto_archived: int
    report: str | None
    report_file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What every request of F1 gets back."""

    status: str
    story_key: Any
    mode: Any
    session_id: Any
    results: Any
    errors: list[Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchEnvelope(Envelope):
    """The return value of mode ``research``."""

    status: ResearchStatus
    results: ResearchResults | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedLesson:
    """One lesson of the block with where it comes from: ``source`` says who worded it."""

    id: str
    summary: str
    ref: str | None
    tags: list[str]
    date: str
    source: str
    story_key: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectResults:
    """The ``results`` of mode ``lessons-inject``."""

    phase: str
    total_lessons_found: int
    phase_filtered_count: int
    injected_count: int
    injection_block: str
    lessons: Sequence[InjectedLesson] = ()


def failure(data: Mapping[str, Any], *problems: Problem, mode: str | None = None) -> Envelope:
    """Make the ``failure`` envelope: the identity echoed as given, null where absent; ``mode`` stands in for a missing one."""
    return Envelope(
        status="failure",
        story_key=data.get("story_key"),
        mode=mode if data.get("mode") is None else data["mode"],
        session_id=data.get("session_id"),
        results=None,
        errors=list(problems),
    )


def validation_problems(errors: Iterable[FieldError]) -> list[Problem]:
    """Return the items of ``errors`` for the bad fields of a request."""
    return [Problem(type="validation_error", field=error.field, message=error.message) for error in errors]


def in_one_line(problems: Iterable[Problem]) -> str | None:
    """Return all problems in one line, for the row of the request; None where there are none."""
    texts = (f"{it.type}: {f'{it.field}: ' if it.field else ''}{it.message}" for it in problems)
    return "; ".join(texts) or None
