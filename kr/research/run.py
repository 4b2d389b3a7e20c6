"""One research request under way: what it may spend, what it has to say on its way, and its answer (F1, steps 3 and 9)."""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kr.errors import KrError
from kr.frameworks import canonical, lookup_keys
from kr.models import (
    CandidateReport,
    LessonView,
    Match,
    MatchRules,
    MatchView,
    Problem,
    Query,
    ResearchEnvelope,
    ResearchResults,
    ResearchStatus,
    in_one_line,
)
from kr.requests import ResearchOverrides, ResearchRequest
from kr.research.cache import Aliases, Cache, Clock, Rules
from kr.research.decide import Limits, Lookup, Outcome, outcome_of, research_status, with_confidence
from kr.research.shelf import HIT_TIMEOUT, Shelf
from kr.settings import Settings
from kr.store import entries as entry_rows
from kr.store import lookup, requests, wordings
from kr.store.engine import Store, Transaction
from kr.store.requests import Need, RequestRow
from kr.text import fit, search_words, tokens_of
from kr.times import parse_time, to_text

SAVE_HINT = "what you find out otherwise and proves right: keep it with `kr save` (MCP: save_finding), so that the next one has it"
"""What an answer says that holds no report."""
OFFERED = "candidates: use: ID takes one of results.related, if_unsure: research has it researched; rate what worked"
"""What an answer says that offers candidates."""

_KEPT_BACK = (0.05, 5.0)
"""The share of the overall time, and the seconds at most, that are kept so that the answer is out before the caller gives up."""
_MOST_LESSONS = 3


def limits_of(settings: Settings) -> Limits:
    """Return the ages at which entries become stale, and are archived."""
    config = settings.knowledge_research
    return Limits(
        ttl_days=config.cache_ttl_days,
        archive_after_days=config.archive_after_days,
        max_age_days=config.max_age_days,
    )


def rules_of(settings: Settings) -> Rules:
    config = settings.knowledge_research
    return Rules(
        limits=limits_of(settings),
        match=MatchRules(
            mode=config.cache_match, floor=config.cache_match_floor, fuzzy=config.cache_fuzzy_match
        ),
        aliases=config.aliases,
        calls_per_story=config.max_calls_per_story,
        overall_timeout=settings.overall_timeout,
    )


@dataclass(kw_only=True)
class Run:
    """One research request under way. Its budget and its clocks start here."""

    request: ResearchRequest
    rules: Rules
    store: Store
    clock: Clock
    project: str
    """The folder of the project that asks."""
    knowledge_base: Path
    include_report: bool = False
    max_tokens: int | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    notes: list[str] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    persona: str | None = None
    charged: int = 0
    """Calls that this invocation was charged; ``unrecorded`` of them could not be written into the ledger."""
    unrecorded: int = 0

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self.started = self.clock()
        self.query = under_its_name(self.request.research_query, self.rules.aliases)
        self.owner = self.id
        self.shelf = Shelf(self.store)
        self.cache = Cache(self.shelf, self.rules, self.clock)

    @property
    def overrides(self) -> ResearchOverrides:
        return self.request.config_overrides

    @property
    def asks_nobody(self) -> bool:
        """Whether the request leaves no call, to a source or to a model (``max_calls: 0``)."""
        return self.overrides.max_calls == 0

    @property
    def call_limit(self) -> int:
        return self.rules.calls_per_story if self.overrides.max_calls is None else self.overrides.max_calls

    def time_left(self) -> float:
        """Return the seconds that are left of the overall time."""
        seconds = self.rules.overall_timeout
        share, most = _KEPT_BACK
        return max(0.0, self._began + seconds - min(seconds * share, most) - time.monotonic())

    def calls_left(self, spent: int) -> int:
        """Return the calls that are left, where the ledger shows so many ``spent`` by the story."""
        used = spent + self.unrecorded if self.overrides.max_calls is None else self.charged
        return max(0, self.call_limit - used)

    def may_serve(self, found: Lookup) -> bool:
        """Whether the cache answers; what is to be refreshed, only with what was researched since it was asked."""
        if not found.is_hit or not self.overrides.refresh or found.match is None:
            return found.is_hit
        researched = parse_time(found.match.entry.researched_at or "")
        return researched is not None and researched >= self.started

    def may_offer(self, found: Lookup) -> bool:
        """Whether the caller chooses among the candidates."""
        wants = self.overrides.if_unsure == "candidates" and not self.overrides.refresh
        return wants and found.is_offer

    def fitted(self, text: str) -> str:
        """Cut a text to what the caller wants to read at most."""
        return text if self.max_tokens is None else fit(text, self.max_tokens)[0]

    def add_error(self, error: KrError) -> None:
        problem = Problem(type=error.code, message=str(error))
        if problem not in self.errors:
            self.errors.append(problem)

    def row(self, status: str, **more: Any) -> RequestRow:
        """Make the row of ``requests``."""
        query = self.query
        return RequestRow(
            id=self.id,
            at=to_text(self.started),
            mode="research",
            status=status,
            story_key=self.request.story_key,
            session_id=self.request.session_id,
            framework=self.request.research_query.framework,
            framework_version=query.framework_version,
            topic=query.topic,
            question=query.question,
            tags=json.dumps(query.tags, ensure_ascii=False),
            project=self.project,
            persona=self.persona,
            duration_ms=round((time.monotonic() - self._began) * 1000),
            **more,
        )

    def _add_problem(self) -> None:
        if self.shelf.problem is not None:
            self.add_error(self.shelf.problem)

    def offer(self, found: Lookup) -> ResearchEnvelope:
        """Leave the choice to the caller: nothing is asked, nothing charged; the best candidate's report goes along."""
        self.notes.append(OFFERED)
        outcome = Outcome(is_offer=True, related=found.related, text=found.report)
        if found.report is None:
            return self.answer(outcome)
        best, now = found.related[0].id, self.clock()
        return self.answer(outcome, lambda tx: entry_rows.touch(tx, best, now) is not None)

    def serve(self, found: Lookup) -> ResearchEnvelope:
        """Step 3: touch the entry, keep wording and row in the same write, and return it; no network, no budget."""
        outcome = outcome_of(found, is_fresh_hit=True)
        match = found.match
        if match is None:
            raise ValueError("a miss can't be served")
        if match.entry.status != "fresh":
            self.notes.append(
                f"{match.entry.id} is stale and was served because config_overrides.use names it; "
                "with config_overrides.refresh it is researched again"
            )
        if found.ratings.wrong:
            why = f": {found.ratings.note}" if found.ratings.note else ""
            self.notes.append(f"{match.entry.id} was rated wrong by {found.ratings.wrong}{why}")
        return self.answer(outcome, lambda tx: _touch(tx, self, match))

    def answer(
        self, outcome: Outcome, touch: Callable[[Transaction], bool] | None = None
    ) -> ResearchEnvelope:
        """Make the envelope, and keep the request's row (step 9); ``touch`` is part of the same write."""
        status = research_status(outcome)
        if status in {"degraded", "budget-exhausted"}:
            self.notes.append(SAVE_HINT)
        text = _text_given(outcome)
        shown = None if text is None else self.fitted(text)
        self._add_problem()

        def write(tx: Transaction) -> _Counted:
            is_updated = outcome.index_updated if touch is None else touch(tx)
            counted = _count(tx, self, is_updated=is_updated)
            tokens = tokens_of(shown) if shown else 0
            requests.record(tx, _row(self, status, outcome, tokens, counted))
            return counted

        is_updated = outcome.index_updated and touch is None
        timeout = HIT_TIMEOUT if touch is not None or outcome.is_offer else None
        counted = self.shelf.write(write, None, timeout=timeout) or self.shelf.read(
            lambda tx: _count(tx, self, is_updated=is_updated),
            _Counted(
                entries=0, calls_left=self.calls_left(self.charged - self.unrecorded), is_updated=is_updated
            ),
        )
        self._add_problem()
        return ResearchEnvelope(
            status=status,
            story_key=self.request.story_key,
            mode="research",
            session_id=self.request.session_id,
            results=self._results(outcome, shown, counted),
            errors=[*self.errors],
        )

    def _results(self, outcome: Outcome, shown: str | None, counted: "_Counted") -> ResearchResults:
        is_whole = self.include_report or outcome.path is None
        candidate = None
        if outcome.is_offer and shown is not None:
            candidate = CandidateReport(id=outcome.related[0].id, text=shown)
        return ResearchResults(
            cache_hit=outcome.is_fresh_hit,
            cache_entry_id=outcome.entry_id,
            report_path=outcome.path,
            confidence=outcome.confidence,
            sources_consulted=[*outcome.attempts],
            budget_remaining=counted.calls_left,
            degradation_notes=[*self.notes],
            index_updated=counted.is_updated,
            index_count=counted.entries if outcome.index_count is None else outcome.index_count,
            lru_evicted=outcome.lru_evicted,
            match=_match_view(outcome),
            related=[*outcome.related],
            candidate_report=candidate,
            lessons=counted.lessons,
            auto_archived=outcome.auto_archived,
            report=shown if is_whole and not outcome.is_offer else None,
            report_file=f"{self.knowledge_base}/{outcome.path}" if outcome.path is not None else None,
        )


def under_its_name(query: Query, aliases: Aliases) -> Query:
    """Ask about a framework under the name that the configuration gives it: sources know that one."""
    names = {canonical(other): name for other, name in aliases.items()}
    name, seen = query.framework, set[str]()
    while (key := canonical(name)) in names and key not in seen:
        seen.add(key)
        name = names[key]
    return query if name == query.framework else replace(query, framework=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What every answer says of the knowledge base: live entries, calls left, lessons that fit."""

    entries: int
    calls_left: int
    is_updated: bool
    lessons: list[LessonView] = field(default_factory=list)


def _count(tx: Transaction, run: Run, *, is_updated: bool) -> _Counted:
    entries, spent = lookup.counts(tx, run.request.session_id, run.request.story_key)
    return _Counted(
        entries=entries, calls_left=run.calls_left(spent), is_updated=is_updated, lessons=_lessons(tx, run)
    )


def _lessons(tx: Transaction, run: Run) -> list[LessonView]:
    """Return the lessons of the framework whose words the question shares."""
    keys = lookup_keys(run.query.framework, run.rules.aliases)
    words = search_words(run.query.topic, run.query.question, but=frozenset(keys))
    found = lookup.lessons(tx, keys, words, most=_MOST_LESSONS)
    return [LessonView(summary=summary, ref=ref) for summary, ref in found]


def _touch(tx: Transaction, run: Run, match: Match) -> bool:
    """Note the access, and how a request worded it that chose the entry; False when the entry went meanwhile."""
    now = run.clock()
    if entry_rows.touch(tx, match.entry.id, now) is None:
        return False
    if match.tier == "use":
        query, at = run.query, to_text(now)
        requests.settle_alike(tx, query.framework, query.question, match.entry.id, at=at)
        if run.rules.match.fuzzy:
            need = Need(query.topic, query.tags, query.question)
            wordings.keep(tx, match.entry, need, at=at, session_id=run.request.session_id)
    return True


def _text_given(outcome: Outcome) -> str | None:
    """Return the report with the confidence that the entry has now."""
    level = outcome.related[0].confidence if outcome.is_offer else outcome.confidence
    return outcome.text if outcome.text is None or level is None else with_confidence(outcome.text, level)


def _row(run: Run, status: ResearchStatus, outcome: Outcome, tokens: int, counted: _Counted) -> RequestRow:
    match, related = outcome.match, outcome.related
    offered = [{"id": it.id, "score": it.score} for it in related]
    return run.row(
        status,
        error=in_one_line(run.errors),
        tier=match.tier if match else None,
        score=match.score if match else related[0].score if related else None,
        entry_id=outcome.entry_id,
        budget_remaining=counted.calls_left,
        answer_tokens=tokens,
        candidates=json.dumps(offered) if offered and not outcome.is_fresh_hit else None,
    )


def _match_view(outcome: Outcome) -> MatchView | None:
    match = outcome.match
    if match is None:
        return None
    return MatchView(
        tier=match.tier,
        topic_overlap=round(match.topic_overlap, 4),
        shared_tags=list(match.shared_tags),
        entry_status=match.entry.status,
        origin=match.entry.origin,
        worked=outcome.ratings.worked,
        wrong=outcome.ratings.wrong,
        score=match.score,
    )
