"""Steps 2 and 3 of F1: what the cache holds for a request, and what a request carries along until its answer."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NoReturn

from kr.errors import FieldError, InvalidRequest
from kr.frameworks import lookup_keys, same_framework
from kr.models import MatchRules, Query, Related, Tier
from kr.research.decide import (
    Candidate,
    Known,
    Limits,
    Lookup,
    choose,
    judge_all,
    match_of,
    most_offered,
    named,
    offered,
    rank,
    related_of,
)
from kr.research.shelf import HIT_TIMEOUT, Shelf
from kr.store import entries, lookup, quarantine, reports, revisions
from kr.store.engine import Store, Transaction
from kr.store.entries import keywords_key, question_key, topic_key
from kr.store.lookup import Found
from kr.text import search_words, tokens

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]
Aliases = Mapping[str, str]
"""Other name of a framework: its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings that decide what is served, and what an invocation may spend. ``overall_timeout`` is in seconds."""

    limits: Limits
    match: MatchRules
    aliases: Aliases
    calls_per_story: int
    overall_timeout: float


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
    return related_of(candidate, revisions.text(tx, candidate.known.entry.sha256) or "")


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
    from kr.store.archive import unknown_entry  # heavy: for an error alone

    return str(unknown_entry(tx, entry_id))


def _refuse(reason: str) -> NoReturn:
    raise InvalidRequest(FieldError("config_overrides.use", f"Validation failed: {reason}"))
