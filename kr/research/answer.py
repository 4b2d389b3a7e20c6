"""Step 9 of seed 000: what a run came to, as the envelope that its caller gets and the row that stays."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kr.contracts.envelopes import (
    ConsultedSource,
    MatchView,
    RelatedView,
    ResearchEnvelope,
    ResearchResults,
    interruption,
    told,
)
from kr.reports.outcome import Course, research_status
from kr.research.run import Run
from kr.store.requests import RequestRow
from kr.values import Confidence, Match, Origin, Related, Value, replace

if TYPE_CHECKING:
    from kr.research.cache import Found
    from kr.store.unit import Unit


class Ending(Value):
    """How a run ended. ``index_count`` is None where nothing was written: the live entries are counted then.

    ``report`` is the text that the answer carries.
    """

    course: Course = Course()
    entry_id: str | None
    path: str | None
    confidence: Confidence | None
    match: Match | None
    related: tuple[Related, ...] = ()
    index_updated: bool
    index_count: int | None = None
    lru_evicted: int = 0
    auto_archived: int = 0
    report: str | None = None


def guessed(entry_origin: Origin, confidence: Confidence, related: Sequence[Related] = ()) -> list[str]:
    """Say of an answer of installed documentation alone that nothing confirms it; ``related`` may answer as well."""
    if entry_origin != "installed" or confidence != "low":
        return []
    other = "; results.related names known entries that may answer it" if related else ""
    return [f"from installed documentation alone: it may miss the question{other}"]


def told_by(found: "Found", course: Course, *, include_report: bool) -> Ending:
    """End with the report of the entry that was found."""
    if found.match is None:
        raise AssertionError("a miss has no match")
    entry = found.match.entry
    return Ending(
        course=course,
        entry_id=entry.id,
        path=entry.path,
        confidence=entry.confidence,
        match=found.match,
        related=found.related,
        index_updated=False,
        report=found.report if include_report else None,
    )


def answer(
    run: Run, ending: Ending, *, index_updated: bool | None = None, counted: tuple[int, int] | None = None
) -> ResearchEnvelope:
    """Make the envelope, and keep the request's row (SPEC 5).

    ``counted`` are the live entries and the calls left where the row was kept together with them already.
    """
    if index_updated is not None:
        ending = replace(ending, index_updated=index_updated)
    status = research_status(ending.course)
    if counted is not None:
        results = _results(run, ending, *counted)
    else:
        count = ending.index_count
        if count is None:
            count = run.shelf.read(lambda unit: unit.entries.count(), 0)
        results = _results(run, ending, count, run.budget.remaining())
        _tell_problem(run)
        row = request_row(run, status, ending, budget_remaining=results.budget_remaining)
        run.shelf.write(lambda unit: _keep(unit, row, run, ending), None)
    _tell_problem(run)
    return ResearchEnvelope(
        status=status,
        story_key=run.request.story_key,
        mode="research",
        session_id=run.request.session_id,
        results=results,
        errors=[*run.errors],
    )


def _tell_problem(run: Run) -> None:
    if run.shelf.problem is not None:
        run.add_error(run.shelf.problem)


def _results(run: Run, ending: Ending, count: int, remaining: int) -> ResearchResults:
    return ResearchResults(
        cache_hit=ending.course.fresh_hit,
        cache_entry_id=ending.entry_id,
        report_path=ending.path,
        confidence=ending.confidence,
        sources_consulted=[
            ConsultedSource(source=row.source, status=row.status, url=row.url)
            for row in ending.course.consulted
        ],
        budget_remaining=remaining,
        degradation_notes=[*run.notes],
        index_updated=ending.index_updated,
        index_count=count,
        lru_evicted=ending.lru_evicted,
        match=_view(ending.match) if ending.match else None,
        related=[_related(related) for related in ending.related],
        auto_archived=ending.auto_archived,
        report=ending.report,
        report_file=os.path.join(run.knowledge_base, ending.path) if ending.path is not None else None,
    )


def _keep(unit: "Unit", row: RequestRow, run: Run, ending: Ending) -> None:
    unit.requests.record(row)
    if ending.match is None and ending.related:
        unit.near_misses.keep(row.id, run.query.tags, ending.related)


def abandon(run: Run, error: BaseException) -> None:
    """Keep the row of a request that is interrupted: every request leaves one (SPEC 5)."""
    row = replace(_row(run, "failure"), error=interruption(error))
    run.shelf.write(lambda unit: None if unit.requests.has_ended(row.id) else unit.requests.record(row), None)


def request_row(run: Run, status: str, ending: Ending, *, budget_remaining: int) -> RequestRow:
    """Make the row of a request that is answered."""
    return replace(
        _row(run, status),
        error=told(run.errors),
        tier=ending.match.tier if ending.match else None,
        likelihood=_rounded(ending.match.likelihood) if ending.match else None,
        entry_id=ending.entry_id,
        budget_remaining=budget_remaining,
    )


def _row(run: Run, status: str) -> RequestRow:
    return replace(run.row, status=status, persona=run.persona, duration_ms=run.duration_ms())


def _view(match: Match) -> MatchView:
    return MatchView(
        tier=match.tier,
        topic_overlap=round(match.topic_overlap, 4),
        shared_tags=list(match.shared_tags),
        entry_status=match.entry.status,
        likelihood=_rounded(match.likelihood),
    )


def _rounded(likelihood: float | None) -> float | None:
    return None if likelihood is None else round(likelihood, 4)


def _related(related: Related) -> RelatedView:
    return RelatedView(**{**related.fields(), "likelihood": round(related.likelihood, 4)})
