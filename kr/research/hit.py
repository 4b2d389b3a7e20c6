"""Steps 1 to 3 of research (seed 000, "Workflow Steps"): is there an entry that answers, then it is served.

What a miss needs (``kr.research.pipeline``) is imported on a miss.
"""

from typing import TYPE_CHECKING

from kr.contracts.envelopes import ResearchEnvelope
from kr.contracts.requests import ResearchRequest
from kr.errors import InvalidRequest
from kr.freshness import parse_time
from kr.reports.outcome import Course
from kr.research.answer import abandon, answer, guessed, request_row, told_by
from kr.research.cache import Found, is_sure
from kr.research.run import Policy, Run, Services
from kr.store.times import to_text
from kr.store.wordings import Need
from kr.values import Match, Value

if TYPE_CHECKING:
    from kr.store.restoring import HandedOver
    from kr.store.unit import Unit


class Researcher:
    """Answers requests in mode ``research``."""

    def __init__(self, policy: Policy, services: Services) -> None:
        self._policy = policy
        self._services = services

    def research(self, request: ResearchRequest, *, include_report: bool = False) -> ResearchEnvelope:
        """Answer one valid request. Degrades rather than fails: nothing but an interruption leaves it.

        Raises ``InvalidRequest`` for an entry that the request names and that can't serve.
        """
        run = Run(request, self._policy, self._services, include_report=include_report)  # step 1
        try:
            found = self._find(run)  # step 2
            if found.is_served:
                return serve(run, self._services, found.found)  # step 3
            from kr.research.pipeline import Pipeline

            return Pipeline(self._policy, self._services).research(run, found.found)
        except InvalidRequest:
            raise
        except BaseException as error:
            abandon(run, error)
            raise

    @staticmethod
    def _find(run: Run) -> "_Step2":
        if run.overrides.use is not None:
            named = run.cache.use(run.query, run.overrides.use)
            if named.match is not None:
                return _Step2(found=named, is_served=True)
            run.notes.append(
                f"{run.overrides.use} has no report that could be served: the question was answered without it"
            )
        found = run.cache.look_up(run.query)
        return _Step2(found=found, is_served=may_serve(run, found))


class _Step2(Value):
    found: Found
    is_served: bool


def may_serve(run: Run, found: Found) -> bool:
    """Whether the cache answers; what is to be refreshed, only with what was researched since it was asked."""
    if not found.is_hit or not run.overrides.refresh:
        return found.is_hit
    researched = parse_time(matched(found).entry.researched_at or "")
    return researched is not None and researched >= run.started


def matched(found: Found) -> Match:
    """Return the match that is known to be there."""
    if found.match is None:
        raise AssertionError("a miss has no match")
    return found.match


def serve(run: Run, services: Services, found: Found) -> ResearchEnvelope:
    """Step 3: a fresh hit, or the entry that was named, is touched and returned; no network, no budget.

    The access, the wording, the request's row and what the answer counts are one write.
    """
    match = matched(found)
    if match.entry.status != "fresh":
        run.notes.append(
            f"{match.entry.id} is stale and was served because config_overrides.use names it; "
            "with config_overrides.refresh it is researched again"
        )
    run.notes += guessed(match.entry.origin, match.entry.confidence)
    ending = told_by(found, Course(fresh_hit=True), include_report=run.include_report)

    def touch(unit: "Unit") -> "_Touched":
        is_there, handed = _touch(unit, run, match, services)
        count, remaining = unit.entries.count(), run.budget.remaining_in(unit)
        unit.requests.record(request_row(run, "cache-hit", ending, budget_remaining=remaining))
        return _Touched(is_there=is_there, handed=handed, entries=count, calls_left=remaining)

    done = run.shelf.write(touch, None)
    if done is None:
        return answer(run, ending)
    if done.handed is not None:
        _tell_handed(run, services, match.entry.id, done.handed)
    return answer(run, ending, index_updated=done.is_there, counted=(done.entries, done.calls_left))


class _Touched(Value):
    is_there: bool
    handed: "HandedOver | None"
    entries: int
    calls_left: int


def _touch(unit: "Unit", run: Run, match: Match, services: Services) -> "tuple[bool, HandedOver | None]":
    """Note the access, and how the need was worded; False when the entry went meanwhile."""
    now = services.clock()
    if unit.entries.touch(match.entry.id, now) is None:
        return False, None
    need, session_id = Need(run.query.topic, run.query.tags, run.query.question), run.request.session_id
    handed = None
    if match.likelihood is None:  # the caller named it
        unit.near_misses.settle_alike(need.topic, need.question, match.entry.id, at=to_text(now))
        if run.cache.goes_by_words:
            handed = services.store.hand_over(unit, match.entry, need, now, session_id=session_id)
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
