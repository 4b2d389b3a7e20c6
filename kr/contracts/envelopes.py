"""Return values of F1 (seed 000, "Return Value"), every field in the seed's order.

``envelope.plain()`` gives nested plain data for YAML or JSON.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kr.errors import FieldError
from kr.values import Confidence, EntryStatus, ResearchStatus, SourceOutcome, Tier, Value


class Problem(Value):
    """One item of ``errors``."""

    type: str
    field: str | None = None
    message: str

    def plain(self) -> dict[str, Any]:
        """Leave ``field`` out where no field is to blame."""
        return {name: value for name, value in super().plain().items() if value is not None}


class ConsultedSource(Value):
    """One item of ``sources_consulted``."""

    source: str
    status: SourceOutcome
    url: str | None


class MatchView(Value):
    """Why an entry answered (SPEC 3.2)."""

    tier: Tier
    topic_overlap: float
    shared_tags: list[str]
    entry_status: EntryStatus
    likelihood: float | None


class RelatedView(Value):
    """An entry that may answer and was not taken (SPEC 3.2)."""

    id: str
    framework_version: str
    topic: str
    path: str
    likelihood: float


class ResearchResults(Value):
    """The ``results`` of a research. ``lru_evicted`` is -1 when the capacity guard failed.

    ``related`` holds at most three, best first; ``report_file`` is the absolute path of the report.
    """

    cache_hit: bool
    cache_entry_id: str | None
    report_path: str | None
    confidence: Confidence | None
    sources_consulted: list[ConsultedSource]
    budget_remaining: int
    degradation_notes: list[str]
    index_updated: bool
    index_count: int
    lru_evicted: int
    match: MatchView | None
    related: list[RelatedView]
    auto_archived: int
    report: str | None
    report_file: str | None


class Envelope(Value):
    """What every request of F1 gets back."""

    status: str
    story_key: Any
    mode: Any
    session_id: Any
    results: Any
    errors: list[Problem]


class ResearchEnvelope(Envelope):
    """The return value of mode ``research``."""

    status: ResearchStatus
    results: ResearchResults | None


def failure(data: Mapping[str, Any], *problems: Problem, mode: str | None = None) -> Envelope:
    """Make the ``failure`` envelope: the identity echoed as given, null where absent (SPEC 3.1).

    ``mode`` stands in for a missing one, as in ``parse_request``.
    """
    return Envelope(
        status="failure",
        story_key=data.get("story_key"),
        mode=mode if data.get("mode") is None else data["mode"],
        session_id=data.get("session_id"),
        results=None,
        errors=list(problems),
    )


def validation_problems(fields: tuple[FieldError, ...]) -> list[Problem]:
    """One item of ``errors`` per bad field."""
    return [Problem(type="validation_error", field=field.field, message=field.message) for field in fields]


def told(problems: Iterable[Problem]) -> str | None:
    """Say in one text what went wrong, for the row of the request; None where nothing did."""
    texts = (f"{item.type}: {f'{item.field}: ' if item.field else ''}{item.message}" for item in problems)
    return "; ".join(texts) or None


def interruption(error: BaseException) -> str:
    """Say in one text what ended a request before it had an answer."""
    return f"interrupted: {type(error).__name__}"
