"""Research from the door to the answer (seed 000): look up, serve or offer. What is left is handed to ``kr.research.pipeline``."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kr.contracts.requests import ResearchRequest
from kr.envelopes import (
    CandidateReport,
    LessonView,
    MatchView,
    ResearchEnvelope,
    ResearchResults,
    in_one_line,
)
from kr.errors import InvalidRequest
from kr.frameworks import lookup_keys
from kr.freshness import parse_time, to_text
from kr.research.lookup import LookedUp
from kr.research.run import Policy, Run, Services
from kr.research.shelf import HIT_TIMEOUT
from kr.store import entries, lookup, requests, wordings
from kr.store.requests import Need, RequestRow
from kr.text.counting import tokens_of
from kr.text.words import search_words
from kr.values import (
    NO_RATINGS,
    Confidence,
    Consulted,
    Match,
    Ratings,
    Related,
    ResearchStatus,
    Value,
    replace,
)

if TYPE_CHECKING:
    from kr.store.engine import Transaction

SAVE_HINT = "what you find out otherwise and proves right: keep it with `kr save` (MCP: save_finding), so that the next one has it"
"""What an answer that holds none says (SPEC 3.10)."""
OFFERED = "candidates: use: ID takes one of results.related, if_unsure: research has it researched; rate what worked"
"""What an answer says that offers candidates."""
_MOST_LESSONS = 3


class Course(Value):
    """What happened on the way to an answer."""

    fresh_hit: bool = False
    offered: bool = False
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
    if course.offered:
        return "candidates"
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
    """How a run ended. ``index_count`` None: the live entries are counted then. ``text`` is the report, which the answer need not carry."""

    course: Course = Course()
    entry_id: str | None = None
    path: str | None = None
    confidence: Confidence | None = None
    match: Match | None = None
    ratings: Ratings = NO_RATINGS
    related: tuple[Related, ...] = ()
    index_updated: bool = False
    index_count: int | None = None
    lru_evicted: int = 0
    auto_archived: int = 0
    text: str | None = None


def of_entry(found: LookedUp, course: Course) -> Ending:
    """End with the entry that was found, as it is."""
    if found.match is None:
        raise AssertionError("a miss has no entry")
    entry = found.match.entry
    return Ending(
        course=course,
        entry_id=entry.id,
        path=entry.path,
        confidence=entry.confidence,
        match=found.match,
        ratings=found.ratings,
        related=found.related,
        text=found.report,
    )


class ResearchService:
    """Answers research requests; one for each configuration."""

    def __init__(self, policy: Policy, services: Services) -> None:
        self._policy = policy
        self._services = services

    def research(
        self, request: ResearchRequest, *, include_report: bool = False, max_tokens: int | None = None
    ) -> ResearchEnvelope:
        """Answer one valid request; degrades rather than fails. A text in the answer has at most ``max_tokens``.

        Raises ``InvalidRequest`` for an entry that is named and can't serve.
        """
        run = Run(request, self._policy, self._services, include_report=include_report, max_tokens=max_tokens)
        try:
            found = self._look_up(run)
            if may_serve(run, found):
                return serve(run, self._services, found)
            if found.is_offer and run.overrides.if_unsure == "candidates" and not run.overrides.refresh:
                offered = _readable(run, found)
                if offered.is_offer:
                    return self._offer(run, offered)
                found = offered
            from kr.research.pipeline import Pipeline

            return Pipeline(self._policy, self._services).research(run, found)
        except InvalidRequest:
            raise
        except BaseException as error:
            abandon(run, error)
            raise

    @staticmethod
    def _look_up(run: Run) -> LookedUp:
        if run.overrides.use is not None:
            named = run.cache.use(run.query, run.overrides.use)
            if named.match is not None:
                return named
            run.notes.append(
                f"{run.overrides.use} has no report that could be served: the question was answered without it"
            )
        return run.cache.look_up(run.query)

    def _offer(self, run: Run, found: LookedUp) -> ResearchEnvelope:
        """Leave the choice to the caller: nothing is asked, nothing charged; the best candidate's report goes along (SPEC 3.2)."""
        best = found.related[0]
        text = found.report if best.id in found.near else None
        run.notes.append(OFFERED)
        ending = Ending(course=Course(offered=True), related=found.related, text=text)
        now = self._services.clock()

        def touch(tx: "Transaction") -> bool:
            return entries.touch(tx, best.id, now) is not None

        is_there = run.shelf.write(touch, otherwise=False, timeout=HIT_TIMEOUT) if text is not None else False
        return answer(run, replace(ending, index_updated=is_there))


def _readable(run: Run, found: LookedUp) -> LookedUp:
    """Leave out the first candidates whose report is nowhere, and read the report of the best one that is left."""
    for number, candidate in enumerate(found.related):
        text = run.cache.report_of(candidate.id)
        if text is not None or not run.shelf.can_write:
            return LookedUp(related=found.related[number:], report=text, near=found.near)
    return LookedUp()


def may_serve(run: Run, found: LookedUp) -> bool:
    """Whether the cache answers; what is to be refreshed, only with what was written since it was asked."""
    if not found.is_hit or not run.overrides.refresh or found.match is None:
        return found.is_hit
    researched = parse_time(found.match.entry.researched_at or "")
    return researched is not None and researched >= run.started


def serve(run: Run, services: Services, found: LookedUp) -> ResearchEnvelope:
    """Step 3: the entry is touched and returned, in one write with the wording and the request's row; no network, no budget."""
    if found.match is None:
        raise AssertionError("a miss has no entry")
    match = found.match
    if match.entry.status != "fresh":
        run.notes.append(
            f"{match.entry.id} is stale and was served because config_overrides.use names it; "
            "with config_overrides.refresh it is researched again"
        )
    if found.ratings.wrong:
        said = f": {found.ratings.note}" if found.ratings.note else ""
        run.notes.append(f"{match.entry.id} was rated wrong by {found.ratings.wrong}{said}")
    ending = of_entry(found, Course(fresh_hit=True))

    def touch(tx: "Transaction") -> "tuple[bool, tuple[int, int], list[LessonView]]":
        is_there = _touch(tx, run, match, services)
        counted = run.budget.counted_in(tx)
        requests.record(tx, request_row(run, "cache-hit", ending, budget_remaining=counted[1]))
        return is_there, counted, _lessons(tx, run)

    done = run.shelf.write(touch, None, timeout=HIT_TIMEOUT)
    if done is None:
        return answer(run, ending)
    is_there, counted, lessons = done
    return _envelope(run, "cache-hit", replace(ending, index_updated=is_there), counted, lessons)


def _touch(tx: "Transaction", run: Run, match: Match, services: Services) -> bool:
    """Note the access, and how the need was worded where somebody chose the entry; False when the entry went meanwhile."""
    now = services.clock()
    if entries.touch(tx, match.entry.id, now) is None:
        return False
    if match.tier == "use":
        at = to_text(now)
        requests.settle_alike(tx, run.query.framework, run.query.question, match.entry.id, at=at)
        if run.policy.rules.fuzzy:
            need = Need(run.query.topic, run.query.tags, run.query.question)
            wordings.keep(tx, match.entry, need, at=at, session_id=run.request.session_id)
    return True


def answer(run: Run, ending: Ending) -> ResearchEnvelope:
    """Make the envelope, and keep the request's row (SPEC 5)."""
    status = research_status(ending.course)
    count = ending.index_count
    if count is None:
        count = run.shelf.read(entries.count, 0)
    remaining = run.budget.remaining()
    nothing: list[LessonView] = []
    lessons = run.shelf.read(lambda tx: _lessons(tx, run), nothing)
    if status in {"degraded", "budget-exhausted"}:
        run.notes.append(SAVE_HINT)
    _tell_problem(run)
    row = request_row(run, status, ending, budget_remaining=remaining)
    run.shelf.write(lambda tx: requests.record(tx, row), None)
    return _envelope(run, status, ending, (count, remaining), lessons)


def _envelope(
    run: Run,
    status: ResearchStatus,
    ending: Ending,
    counted: tuple[int, int],
    lessons: "list[LessonView]",
) -> ResearchEnvelope:
    """``counted``: the live entries, and the calls that are left of the story's budget."""
    _tell_problem(run)
    return ResearchEnvelope(
        status=status,
        story_key=run.request.story_key,
        mode="research",
        session_id=run.request.session_id,
        results=_results(run, ending, counted, lessons),
        errors=[*run.errors],
    )


def _tell_problem(run: Run) -> None:
    if run.shelf.problem is not None:
        run.add_error(run.shelf.problem)


def _results(
    run: Run, ending: Ending, counted: tuple[int, int], lessons: "list[LessonView]"
) -> ResearchResults:
    candidate = None
    if ending.course.offered and ending.text is not None:
        candidate = CandidateReport(id=ending.related[0].id, text=run.fitted(ending.text))
    carries = not ending.course.offered and (run.include_report or ending.path is None)
    return ResearchResults(
        cache_hit=ending.course.fresh_hit,
        cache_entry_id=ending.entry_id,
        report_path=ending.path,
        confidence=ending.confidence,
        sources_consulted=[*ending.course.consulted],
        budget_remaining=counted[1],
        degradation_notes=[*run.notes],
        index_updated=ending.index_updated,
        index_count=counted[0],
        lru_evicted=ending.lru_evicted,
        match=_view(ending) if ending.match else None,
        related=[*ending.related],
        candidate_report=candidate,
        lessons=lessons,
        auto_archived=ending.auto_archived,
        report=run.fitted(ending.text) if carries and ending.text is not None else None,
        report_file=f"{run.policy.knowledge_base}/{ending.path}" if ending.path is not None else None,
    )


def _view(ending: Ending) -> MatchView | None:
    match = ending.match
    if match is None:
        return None
    return MatchView(
        tier=match.tier,
        topic_overlap=round(match.topic_overlap, 4),
        shared_tags=list(match.shared_tags),
        entry_status=match.entry.status,
        origin=match.entry.origin,
        worked=ending.ratings.worked,
        wrong=ending.ratings.wrong,
        score=match.score,
    )


def _lessons(tx: "Transaction", run: Run) -> "list[LessonView]":
    """Return the lessons of the framework whose words the question shares (SPEC 3.9)."""
    keys = lookup_keys(run.query.framework, run.policy.aliases)
    words = search_words(run.query.topic, run.query.question, but=frozenset(keys))
    found = lookup.lessons(tx, keys, words, most=_MOST_LESSONS)
    return [LessonView(summary=summary, ref=ref) for summary, ref in found]


def abandon(run: Run, error: BaseException) -> None:
    """Keep the row of a request that is interrupted: every request leaves one (SPEC 5)."""
    row = _row(run, "failure", error=f"interrupted: {type(error).__name__}")
    run.shelf.write(lambda tx: None if requests.has_ended(tx, row.id) else requests.record(tx, row), None)


def request_row(run: Run, status: str, ending: Ending, *, budget_remaining: int) -> RequestRow:
    given = run.fitted(ending.text) if ending.text is not None else ""
    return _row(
        run,
        status,
        error=in_one_line(run.errors),
        tier=ending.match.tier if ending.match else None,
        score=ending.match.score if ending.match else ending.related[0].score if ending.related else None,
        entry_id=ending.entry_id,
        budget_remaining=budget_remaining,
        answer_tokens=tokens_of(given),
        candidates=_offered(ending.related) if ending.match is None or not ending.course.fresh_hit else None,
    )


def _offered(related: Sequence[Related]) -> str | None:
    if not related:
        return None
    offered: list[dict[str, Any]] = [{"id": it.id, "score": it.score} for it in related]
    return json.dumps(offered)


def _row(run: Run, status: str, **more: object) -> RequestRow:
    return replace(run.row, status=status, persona=run.persona, duration_ms=run.duration_ms(), **more)
