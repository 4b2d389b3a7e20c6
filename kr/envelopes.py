"""What the operations return, every field in the order of the seeds (000 and 003, "Return Value").

``kr.models.to_plain`` makes nested plain data of an envelope; MCP and HTTP take its schema from its class.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveResults:
    """``revision`` is the number that ``kr entries restore ID N`` takes, ``replaced`` that of the text it took over from.

    ``id`` of a quarantined finding is what ``kr review`` takes. ``related`` may say the same.
    """

    id: str
    path: str | None
    revision: int | None
    replaced: int | None
    confidence: Confidence | None
    index_count: int | None
    related: list[Related]
    notes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveEnvelope:
    """What saving a finding gives back."""

    status: Literal["saved", "quarantined", "failure"]
    results: SaveResults | None
    errors: list[Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateResults:
    """How many sessions say of an entry's text that it worked or is wrong; ``withdrawn``: it is served to nobody."""

    id: str
    worked: int
    wrong: int
    revision: int
    confidence: Confidence
    origin: Origin
    withdrawn: bool


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
class RecordProblem:
    """One item of ``errors``: the file could not be written, or a lesson that was handed over is refused."""

    type: str
    file_path: str | None = optional()
    field: str | None = optional()
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEnvelope:
    """The return value of recording."""

    status: Literal["recorded", "skipped", "failure"]
    session_id: Any
    story_key: Any
    results: RecordResults
    errors: Sequence[RecordProblem] = ()


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


def save_failure(errors: Iterable[FieldError]) -> SaveEnvelope:
    """Make the envelope of a finding that is refused."""
    return SaveEnvelope(status="failure", results=None, errors=validation_problems(errors))


def skip(data: Mapping[str, Any], message: str) -> RecordEnvelope:
    """Make the ``skipped`` envelope with the seed's empty results, the identity echoed as given."""
    return RecordEnvelope(
        status="skipped",
        session_id=data.get("session_id"),
        story_key=data.get("story_key"),
        results=RecordResults(message=message),
    )
