"""Steps 2 and 3 of seed 000: what the cache holds for a request, and what a request carries along until its answer."""

import json
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, NoReturn

from kr.contracts.requests import ResearchOverrides, ResearchRequest
from kr.envelopes import Problem
from kr.errors import FieldError, InvalidRequest, KrError
from kr.frameworks import canonical, lookup_keys, same_framework
from kr.freshness import Limits, parse_time, to_text
from kr.models import MatchRules, Query, Related, Tier
from kr.research.decide import (
    Candidate,
    Known,
    Lookup,
    choose,
    judge_all,
    match_of,
    most_offered,
    named,
    offered,
    rank,
)
from kr.research.shelf import HIT_TIMEOUT, Shelf
from kr.settings import Settings
from kr.store import entries, lookup, quarantine, reports, revisions
from kr.store.engine import Store, Transaction
from kr.store.entries import keywords_key, question_key, topic_key
from kr.store.lookup import Found
from kr.store.requests import RequestRow
from kr.store.unknown import unknown_entry
from kr.text.counting import fit
from kr.text.words import search_words, summary_of, tokens

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]
Aliases = Mapping[str, str]
"""Other name of a framework: its name."""

_SUMMARY_CHARACTERS = 200
_KEPT_BACK = (0.05, 5.0)
"""The share of the overall time, and the seconds at most, that are kept so that the answer is out before the caller gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings that decide what is served, and what an invocation may spend. ``overall_timeout`` is in seconds."""

    limits: Limits
    match: MatchRules
    aliases: Aliases
    calls_per_story: int
    overall_timeout: float


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


class Cache:
    """Looks entries up, and stores the marks that are due."""

    def __init__(self, shelf: Shelf, rules: Rules, clock: Clock) -> None:
        self._shelf = shelf
        self._rules = rules
        self._clock = clock

    def look_up(self, query: Query, aliases: Aliases | None = None) -> Lookup:
        """Find the entry that is served, and the candidates where none is. One whose report is nowhere is removed."""
        under = self._rules.aliases if aliases is None else aliases
        return self._shelf.attempt(lambda store: self._look_up(store, query, under), Lookup())

    def use(self, query: Query, entry_id: str, tier: Tier = "use", score: float | None = None) -> Lookup:
        """Find the entry that a request names, whatever its age and ratings. Raises ``InvalidRequest`` for one that can't be served."""
        return self._shelf.attempt(lambda store: self._use(store, query, entry_id, tier, score), Lookup())

    def alike(self, query: Query) -> list[Related]:
        """Return the entries that may say the same as one for this query, best first."""
        keys = lookup_keys(query.framework, self._rules.aliases)

        def read(store: Store) -> list[Related]:
            with store.read() as tx:
                ranked = self._candidates(tx, query, keys, self._rules.aliases)
                return [_related(tx, it) for it in ranked if it.may_say_the_same]

        return self._shelf.attempt(read, [])

    def readable(self, found: Lookup) -> Lookup:
        """Leave out the first candidates whose report is nowhere, and read the report of the best one that is left."""
        for number, candidate in enumerate(found.related):
            text = self._shelf.attempt(partial(_report_of, entry_id=candidate.id), None)
            if text is not None or not self._shelf.can_write:
                shown = text if candidate.id in found.near else None
                return Lookup(related=found.related[number:], report=shown, near=found.near)
        return Lookup()

    def _use(self, store: Store, query: Query, entry_id: str, tier: Tier, score: float | None) -> Lookup:
        with store.read() as tx:
            found = lookup.one(tx, entry_id)
            if found is None:
                _refuse(_why_not(tx, entry_id))
        if found[0].origin == "placeholder":
            return Lookup()
        known = named(found, query.framework_version, self._rules.limits, self._clock())
        self._mark(known)
        match = match_of(query, known.entry, tier, score)
        report = reports.read_report(store, known.entry)
        if report is None:
            reports.drop_lost(store, known.entry)
            return Lookup()
        return Lookup(match=match, report=report, ratings=known.ratings, is_hit=True)

    def _look_up(self, store: Store, query: Query, aliases: Aliases) -> Lookup:
        keys, rules = lookup_keys(query.framework, aliases), self._rules.match
        question = question_key(query.question)
        with store.read() as tx:
            if rules.mode == "seed":
                rows = lookup.framework(tx, keys, question=question)
            else:
                topic, keywords = topic_key(query.topic), keywords_key(query.topic)
                rows = lookup.served(tx, keys, topic=topic, question=question, keywords=keywords)
            known = judge_all(_of(rows, query, aliases), *self._now(query))
            chosen = choose(query, known, rules)
            is_hit = chosen is not None and chosen[0].is_servable
            ranked = [] if is_hit else self._candidates(tx, query, keys, aliases)
            related = tuple(_related(tx, it) for it in ranked)
        near = frozenset(it.known.entry.id for it in ranked if it.is_near)
        if chosen is None:
            logger.info("nothing is served of %s; %d candidates", query.framework, len(related))
            return Lookup(related=related, near=near)
        entry = chosen[0].entry
        logger.info("%s matches by %s and is %s", entry.id, chosen[1], entry.status)
        self._mark(chosen[0])
        report = reports.read_report(store, entry)
        if report is None:
            logger.info("%s: there is no report to be read at %s", entry.id, entry.path)
            reports.drop_lost(store, entry)
            return Lookup(related=tuple(it for it in related if it.id != entry.id), near=near)
        return Lookup(
            match=match_of(query, entry, chosen[1]),
            report=report,
            ratings=chosen[0].ratings,
            is_hit=is_hit,
            is_refused=chosen[0].refusal is not None,
            related=related,
            near=near,
        )

    def _mark(self, known: Known) -> None:
        """Store that an entry is stale, where its row does not say so yet."""
        verdict, entry_id = known.verdict, known.entry.id
        if verdict.status == "stale" and verdict.is_news:
            reasons = ", ".join(verdict.reasons)
            self._shelf.write(
                lambda tx: entries.mark_stale(tx, entry_id, reasons, major=verdict.for_major),
                otherwise=False,
                timeout=HIT_TIMEOUT,
            )

    def _candidates(
        self, tx: Transaction, query: Query, keys: Sequence[str], aliases: Aliases
    ) -> list[Candidate]:
        if not self._rules.match.fuzzy:
            return []
        name = frozenset(tokens(query.framework))
        words = search_words(query.topic, " ".join(query.tags), query.question, but=name)
        found = lookup.candidates(tx, keys, words)
        scores = {row[0].id: bm25 for row, bm25 in found}
        known = judge_all(_of([row for row, _ in found], query, aliases), *self._now(query))
        ranked = rank(query, [(it, scores[it.entry.id]) for it in known])
        return offered(ranked, most=most_offered(lookup.count(tx, keys))) if ranked else []

    def _now(self, query: Query) -> tuple[str, Limits, datetime]:
        return query.framework_version, self._rules.limits, self._clock()


def _of(rows: Sequence[Found], query: Query, aliases: Aliases) -> list[Found]:
    """Keep the rows of the framework: aliases may part what the shipped table joins."""
    return [row for row in rows if same_framework(row[0].framework, query.framework, aliases)]


def _related(tx: Transaction, candidate: Candidate) -> Related:
    entry, ratings = candidate.known.entry, candidate.known.ratings
    return Related(
        id=entry.id,
        framework_version=entry.framework_version,
        topic=entry.topic,
        question=entry.question,
        summary=summary_in(revisions.text(tx, entry.sha256) or ""),
        origin=entry.origin,
        confidence=entry.confidence,
        worked=ratings.worked,
        wrong=ratings.wrong,
        score=candidate.score,
        note=ratings.note if ratings.wrong else None,
    )


def summary_in(report: str) -> str:
    """Return the first sentences of a report's Summary on one line, without the signs of quoting."""
    _, is_there, body = report.partition("## Summary\n")
    section = (body if is_there else report).partition("\n## ")[0]
    lines = (line.strip().lstrip("> ").strip() for line in section.splitlines())
    return summary_of(
        " ".join(line for line in lines if line and not line.startswith("```")), _SUMMARY_CHARACTERS
    )


def _report_of(store: Store, entry_id: str) -> str | None:
    """Return the report of a live entry; one whose report is nowhere is removed."""
    with store.read() as tx:
        entry = entries.get(tx, entry_id)
    report = None if entry is None else reports.read_report(store, entry)
    if entry is not None and report is None:
        reports.drop_lost(store, entry)
    return report


def _why_not(tx: Transaction, entry_id: str) -> str:
    if quarantine.get(tx, entry_id) is not None:
        return f"{entry_id} waits for a person; `kr review` shows it"
    return str(unknown_entry(tx, entry_id))


def _refuse(reason: str) -> NoReturn:
    raise InvalidRequest(FieldError("config_overrides.use", f"Validation failed: {reason}"))


@dataclass(kw_only=True)
class Run:
    """One research request under way. Its budget and its clocks start here."""

    request: ResearchRequest
    rules: Rules
    store: Store
    clock: Clock
    project: str
    """The folder of the project that asks."""
    include_report: bool = False
    max_tokens: int | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    notes: list[str] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    persona: str | None = None
    charged: int = 0
    """Calls that this invocation was charged; ``unrecorded`` of them the ledger could not be told."""
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


def under_its_name(query: Query, aliases: Aliases) -> Query:
    """Ask about a framework under the name that the configuration gives it: sources know that one."""
    names = {canonical(other): name for other, name in aliases.items()}
    name, seen = query.framework, set[str]()
    while (key := canonical(name)) in names and key not in seen:
        seen.add(key)
        name = names[key]
    return query if name == query.framework else replace(query, framework=name)


def may_serve(run: Run, found: Lookup) -> bool:
    """Whether the cache answers; what is to be refreshed, only with what was researched since it was asked."""
    if not found.is_hit or not run.overrides.refresh or found.match is None:
        return found.is_hit
    researched = parse_time(found.match.entry.researched_at or "")
    return researched is not None and researched >= run.started


def may_offer(run: Run, found: Lookup) -> bool:
    """Whether the caller chooses among the candidates."""
    wants = run.overrides.if_unsure == "candidates" and not run.overrides.refresh
    return wants and found.is_offer
