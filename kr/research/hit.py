"""Steps 1 to 3 and 9 of research (seed 000, "Workflow Steps"): an entry that answers is served; the envelope and the row that stays.

What a miss needs (``kr.research.pipeline``) is imported on a miss.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kr.contracts.envelopes import (
    MatchView,
    ResearchEnvelope,
    ResearchResults,
    interruption,
    told,
)
from kr.contracts.requests import ResearchRequest
from kr.errors import InvalidRequest
from kr.freshness import parse_time, to_text
from kr.research.cache import Found, is_sure
from kr.research.run import Policy, Run, Services
from kr.store.requests import Need, RequestRow
from kr.values import Confidence, Consulted, Match, Origin, Related, ResearchStatus, Value, replace

if TYPE_CHECKING:
    from kr.research.cache import Found
    from kr.store.saving import HandedOver
    from kr.store.session import UnitOfWork


class Course(Value):
    fresh_hit: bool = False
    consulted: tuple[Consulted, ...] = ()
    budget_ended: bool = False
    """A source was not asked because the budget was empty."""
    answered: bool = False
    """A source of the chain answered the question. The installed package's own documentation is none, and what does
    not cover the question is no answer (SPEC 3.7), although it was charged."""
    written: bool = True
    """Both the report and its index row are on disk."""


def research_status(course: Course) -> ResearchStatus:
    """Return the first status of SPEC 3.9's table that holds, for a request that was not refused."""
    if course.fresh_hit:
        return "cache-hit"
    from kr.source_kinds import is_package

    asked = {row.status for row in course.consulted if not is_package(row.source)}
    if not course.answered:
        return "budget-exhausted" if course.budget_ended else "degraded"
    if not course.written:
        return "partial"
    # The chain stops at the first answer, so whatever failed was asked before it.
    if "timeout" in asked:
        return "timeout"
    return "partial" if "unavailable" in asked else "success"


class Ending(Value):
    """How a run ended. ``index_count`` None: the live entries are counted then. ``report`` is the text that the answer carries."""

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
    """Make the envelope, and keep the request's row (SPEC 5), unless it was kept together with what is ``counted``: entries, calls left."""
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
        sources_consulted=[*ending.course.consulted],
        budget_remaining=remaining,
        degradation_notes=[*run.notes],
        index_updated=ending.index_updated,
        index_count=count,
        lru_evicted=ending.lru_evicted,
        match=_view(ending.match) if ending.match else None,
        related=[*ending.related],
        auto_archived=ending.auto_archived,
        report=ending.report,
        report_file=os.path.join(run.knowledge_base, ending.path) if ending.path is not None else None,
    )


def _keep(unit: "UnitOfWork", row: RequestRow, run: Run, ending: Ending) -> None:
    unit.requests.record(row)
    if ending.match is None and ending.related:
        unit.near_misses.keep(row.id, run.query.tags, ending.related)


def abandon(run: Run, error: BaseException) -> None:
    """Keep the row of a request that is interrupted: every request leaves one (SPEC 5)."""
    row = _row(run, "failure", error=interruption(error))
    run.shelf.write(lambda unit: None if unit.requests.has_ended(row.id) else unit.requests.record(row), None)


def request_row(run: Run, status: str, ending: Ending, *, budget_remaining: int) -> RequestRow:
    return _row(
        run,
        status,
        error=told(run.errors),
        tier=ending.match.tier if ending.match else None,
        likelihood=_rounded(ending.match.likelihood) if ending.match else None,
        entry_id=ending.entry_id,
        budget_remaining=budget_remaining,
    )


def _row(run: Run, status: str, **more: object) -> RequestRow:
    return replace(run.row, status=status, persona=run.persona, duration_ms=run.duration_ms(), **more)


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


class Researcher:
    def __init__(self, policy: Policy, services: Services) -> None:
        self._policy = policy
        self._services = services

    def research(self, request: ResearchRequest, *, include_report: bool = False) -> ResearchEnvelope:
        """Answer one valid request; degrades rather than fails. Raises ``InvalidRequest`` for an entry that is named and can't serve."""
        run = Run(request, self._policy, self._services, include_report=include_report)  # step 1
        try:
            found, is_served = self._find(run)  # step 2
            if is_served:
                return serve(run, self._services, found)  # step 3
            from kr.research.pipeline import Pipeline

            return Pipeline(self._policy, self._services).research(run, found)
        except InvalidRequest:
            raise
        except BaseException as error:
            abandon(run, error)
            raise

    @staticmethod
    def _find(run: Run) -> tuple[Found, bool]:
        if run.overrides.use is not None:
            named = run.cache.use(run.query, run.overrides.use)
            if named.match is not None:
                return named, True
            run.notes.append(
                f"{run.overrides.use} has no report that could be served: the question was answered without it"
            )
        found = run.cache.look_up(run.query)
        return found, may_serve(run, found)


def may_serve(run: Run, found: Found) -> bool:
    """Whether the cache answers; what is to be refreshed, only with what was researched since it was asked."""
    if not found.is_hit or not run.overrides.refresh:
        return found.is_hit
    researched = parse_time(matched(found).entry.researched_at or "")
    return researched is not None and researched >= run.started


def matched(found: Found) -> Match:
    if found.match is None:
        raise AssertionError("a miss has no match")
    return found.match


def serve(run: Run, services: Services, found: Found) -> ResearchEnvelope:
    """Step 3: the entry is touched and returned, in one write with the wording and the request's row; no network, no budget."""
    match = matched(found)
    if match.entry.status != "fresh":
        run.notes.append(
            f"{match.entry.id} is stale and was served because config_overrides.use names it; "
            "with config_overrides.refresh it is researched again"
        )
    run.notes += guessed(match.entry.origin, match.entry.confidence)
    ending = told_by(found, Course(fresh_hit=True), include_report=run.include_report)

    def touch(unit: "UnitOfWork") -> "tuple[bool, HandedOver | None, tuple[int, int]]":
        is_there, handed = _touch(unit, run, match, services)
        counted = run.budget.counted_in(unit)
        unit.requests.record(request_row(run, "cache-hit", ending, budget_remaining=counted[1]))
        return is_there, handed, counted

    done = run.shelf.write(touch, None)
    if done is None:
        return answer(run, ending)
    is_there, handed, counted = done
    if handed is not None:
        _tell_handed(run, services, match.entry.id, handed)
    return answer(run, ending, index_updated=is_there, counted=counted)


def _touch(
    unit: "UnitOfWork", run: Run, match: Match, services: Services
) -> "tuple[bool, HandedOver | None]":
    """Note the access, and how the need was worded; False when the entry went meanwhile."""
    now = services.clock()
    if unit.entries.touch(match.entry.id, now) is None:
        return False, None
    need, session_id = Need(run.query.topic, run.query.tags, run.query.question), run.request.session_id
    handed = None
    if match.is_named:
        unit.near_misses.settle_alike(need.topic, need.question, match.entry.id, at=to_text(now))
        if run.cache.goes_by_words:
            from kr.store.saving import hand_over

            is_told = match.likelihood is None  # by a person, or an agent, and by no language model
            handed = hand_over(unit, match.entry, need, now, session_id, archives=is_told)
    elif is_sure(match):
        unit.wordings.keep(match.entry, need, at=to_text(now), session_id=session_id)
    return True, handed


def _tell_handed(run: Run, services: Services, entry_id: str, handed: "HandedOver") -> None:
    run.notes += [
        f"{it} was researched for these words and is now in the archive; kr archive restore {it} brings it back"
        for it in handed.gave_way
    ]
    run.notes += [
        f"{it} has exactly this topic and answers before {entry_id}; with another topic the question is answered by {entry_id}"
        for it in handed.stay
    ]
    if handed.gave_way:
        services.export_into(run.notes)
