"""The knowledge base as one request sees it: what it holds (F1, step 2), and never in the way (error rows 3, 4 and 14)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from kr.errors import (
    FieldError,
    InvalidRequest,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
    StoreUnwritable,
)
from kr.frameworks import lookup_keys, same_framework
from kr.models import Entry, Match, Query, Related, Tier
from kr.research.decide import (
    MORE,
    Candidate,
    JudgedEntry,
    choose,
    judge_all,
    judge_row,
    match_of,
    most_offered,
    offered,
    rank,
    related_of,
)
from kr.settings.model import KnowledgeResearch
from kr.store import entries, lookup, reports, usage
from kr.store.engine import ALONE, Store, Transaction
from kr.store.lookup import Found, keywords_key, question_key, topic_key
from kr.text import search_words, tokens

logger = logging.getLogger(__name__)

T = TypeVar("T")
Clock = Callable[[], datetime]
Aliases = Mapping[str, str]
"""Other name of a framework: its name."""

HIT_TIMEOUT = 0.2
"""Seconds that a hit waits for a writer at most."""
_FEW_FINDINGS = 10
"""So few findings of a framework are named where none shares a word with the need."""
_LASTING = (StoreBusy, StoreCorrupt, StoreTooNew)
"""Problems that the next transaction would meet again, perhaps after another long wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What the cache holds for a request: an exact entry, candidates, or neither (a miss).

    ``known`` is the entry that is served, or stale, or refused, ``match`` says why, and ``report`` is its text (without an
    entry that of the first candidate, where it is worth reading); ``related`` are the candidates, best first. ``is_hit``: the
    entry is served. ``best``: the first candidate, where its text is worth reading unasked.
    """

    known: JudgedEntry | None = None
    match: Match | None = None
    report: str | None = None
    is_hit: bool = False
    related: tuple[Related, ...] = ()
    best: Entry | None = None

    @property
    def entry(self) -> Entry | None:
        return self.known.entry if self.known else None

    @property
    def is_stale(self) -> bool:
        """Whether an entry for this very request is there, which is to be researched again."""
        return self.known is not None and not self.is_hit and self.known.refusal is None

    @property
    def is_offer(self) -> bool:
        """Whether there is something to choose from; what was rated wrong is offered with its note."""
        return not self.is_stale and bool(self.related)

    @property
    def baseline(self) -> str | None:
        """The stale report that a new research stands on, if nothing better is found: only one of the same topic."""
        is_of_topic = self.match is not None and self.match.tier.startswith("framework+topic")
        return self.report if is_of_topic and self.is_stale else None


class Cache:
    """Looks entries up, and stores the marks that are due.

    It keeps the first ``problem`` of the database, for the answer; a request goes on without what could not be had.
    """

    def __init__(self, store: Store, config: KnowledgeResearch, clock: Clock) -> None:
        self.store = store
        self.problem: StoreError | None = None
        self.can_write = True
        self._config = config
        self._clock = clock
        self._is_closed = False

    def attempt(self, action: Callable[[], T], otherwise: T) -> T:
        """Run ``action``, or give ``otherwise`` where the database can't serve, now or since earlier in the request."""
        if self._is_closed:
            return otherwise
        try:
            return action()
        except StoreError as error:
            self.note(error)
            return otherwise

    def read(self, action: Callable[[Transaction], T], otherwise: T) -> T:
        def run() -> T:
            with self.store.read() as tx:
                return action(tx)

        return self.attempt(run, otherwise)

    def write(
        self,
        action: Callable[[Transaction], T],
        otherwise: T,
        *,
        timeout: float | None = None,
        scope: str | None = ALONE,
    ) -> T:
        """Write in one transaction. After a ``timeout`` in seconds the request goes on without writing."""
        if not self.can_write:
            return otherwise
        try:
            return self.store.change(action, timeout=timeout, scope=scope)
        except StoreError as error:
            if timeout is None or not isinstance(error, StoreBusy):
                self.note(error)
            else:
                logger.warning("%s", error)
                self.can_write = False
        return otherwise

    def note(self, error: StoreError) -> None:
        logger.warning("%s", error)
        self.problem = self.problem or error
        self._is_closed = self._is_closed or isinstance(error, _LASTING)
        self.can_write = self.can_write and not isinstance(error, (*_LASTING, StoreUnwritable))

    def look_up(self, query: Query, aliases: Aliases | None = None) -> Lookup:
        """Find the entry that is served, and the candidates where none is. One whose report is nowhere is removed."""
        under = self._config.aliases if aliases is None else aliases
        return self.attempt(lambda: self._look_up(query, under), Lookup())

    def use(self, query: Query, entry_id: str, tier: Tier = "use", score: float | None = None) -> Lookup:
        """Find the entry that a request names, whatever its age and ratings. Raises ``InvalidRequest`` for one that can't be served."""
        return self.attempt(lambda: self._use(query, entry_id, tier, score), Lookup())

    def alike(self, query: Query) -> list[Related]:
        """Return the entries that may say the same as one for this query, best first."""

        def read(tx: Transaction) -> list[Related]:
            ranked = self._candidates(tx, query, self._config.aliases)
            alike = [it for it in ranked if it.may_say_the_same]
            return [related_of(it, text) for it, text in zip(alike, _texts_of(tx, alike), strict=True)]

        return self.read(read, [])

    def findings(self, query: Query) -> list[Related]:
        """Return the framework's findings, the last accessed first, for a need whose words none of them shares; none where they are many.

        Whoever asks knows what other words mean. Of many findings the words have to choose.
        """
        aliases = self._config.aliases
        keys, none = lookup_keys(query.framework, aliases), list[Found]()
        rows = self.read(lambda tx: lookup.findings(tx, keys, most=_FEW_FINDINGS + 1), none)
        known = [it for it in self._judge(rows, query, aliases) if it.refusal is None]
        is_few = len(rows) <= _FEW_FINDINGS
        return [related_of(Candidate(it, 0.0, 0, 0), "") for it in known[:MORE]] if is_few else []

    def report_of_best(self, found: Lookup) -> str | None:
        """Return the text of the best candidate, where it is worth reading unasked; an edit of its file is taken in first."""
        best = found.best
        if best is None or (found.known is None and found.report is not None):
            return found.report
        return self.attempt(lambda: reports.read_report(self.store, best), None)

    def _look_up(self, query: Query, aliases: Aliases) -> Lookup:
        keys, question = lookup_keys(query.framework, aliases), question_key(query.question)
        with self.store.read() as tx:
            if self._config.cache_match == "seed":
                rows = lookup.framework(tx, keys, question=question)
            else:
                topic, keywords = topic_key(query.topic), keywords_key(query.topic)
                rows = lookup.served(tx, keys, topic=topic, question=question, keywords=keywords)
            chosen = choose(query, self._judge(rows, query, aliases), self._config)
            is_hit = chosen is not None and chosen[0].is_servable
            served = chosen[0].entry if chosen and is_hit else None
            may_offer = served is None or served.is_installed_excerpt
            ranked = self._candidates(tx, query, aliases) if may_offer else []
            # Beside an excerpt of installed documentation stand the findings.
            ranked = [it for it in ranked if served is None or it.known.entry.is_written]
            texts = _texts_of(tx, ranked)
            offers = [(it, text) for it, text in zip(ranked, texts, strict=True) if text]
            related = tuple(related_of(it, text) for it, text in offers)
            best = offers[0][0].known.entry if offers and offers[0][0].is_near else None
            wanted = chosen[0].entry if chosen else best
            report = None if wanted is None else lookup.settled(tx, wanted)
        for it, text in zip(ranked, texts, strict=True):
            if not text:
                reports.drop_lost(self.store, it.known.entry)
        if chosen is not None:
            logger.info("%s matches by %s and is %s", chosen[0].entry.id, chosen[1], chosen[0].entry.status)
            found = self._found(query, *chosen, report, is_hit=is_hit)
            return replace(found, related=related, best=best)
        logger.info("nothing is served of %s; %d candidates", query.framework, len(related))
        return Lookup(related=related, best=best, report=report)

    def _use(self, query: Query, entry_id: str, tier: Tier, score: float | None) -> Lookup:
        with self.store.read() as tx:
            found = lookup.one(tx, entry_id)
            if found is None:
                why = f"Validation failed: {_why_not(tx, entry_id)}"
                raise InvalidRequest(FieldError("config_overrides.use", why))
        if found[0].origin == "placeholder":
            return Lookup()
        known = judge_row(found, query.framework_version, self._config, self._clock())
        return self._found(query, known, tier, None, score=score, is_hit=True)

    def _found(
        self,
        query: Query,
        known: JudgedEntry,
        tier: Tier,
        report: str | None,
        *,
        is_hit: bool,
        score: float | None = None,
    ) -> Lookup:
        """Return the entry with its report; nothing where that is nowhere, and the entry was removed."""
        entry = known.entry
        self._mark(known)
        if report is None:
            report = reports.read_report(self.store, entry)
            edited = self.read(lambda tx: entries.get(tx, entry.id), None)  # its file may have been
            known = replace(known, entry=edited or entry)
        if report is None:
            logger.info("%s: there is no report to be read at %s", entry.id, entry.path)
            reports.drop_lost(self.store, entry)
            return Lookup()
        match = match_of(query, known, tier, score)
        return Lookup(known=known, match=match, report=report, is_hit=is_hit)

    def _mark(self, known: JudgedEntry) -> None:
        """Store that an entry is stale, where its row does not say so yet."""
        verdict, entry_id = known.verdict, known.entry.id
        if verdict.status == "stale" and verdict.needs_marking:
            reasons = ", ".join(verdict.reasons)
            self.write(
                lambda tx: entries.mark_stale(tx, entry_id, reasons, major=verdict.for_major),
                otherwise=False,
                timeout=HIT_TIMEOUT,
            )

    def _candidates(self, tx: Transaction, query: Query, aliases: Aliases) -> list[Candidate]:
        if not self._config.cache_fuzzy_match:
            return []
        keys = lookup_keys(query.framework, aliases)
        found = lookup.candidates(tx, keys, words_of(query))
        scores = {row[0].id: bm25 for row, bm25 in found}
        known = self._judge([row for row, _ in found], query, aliases)
        ranked = rank(query, [(it, scores[it.entry.id]) for it in known])
        return offered(ranked, most=most_offered(lookup.count(tx, keys))) if ranked else []

    def _judge(self, rows: Sequence[Found], query: Query, aliases: Aliases) -> list[JudgedEntry]:
        # Aliases may part what the shipped table joins.
        own = [row for row in rows if same_framework(row[0].framework, query.framework, aliases)]
        return judge_all(own, query.framework_version, self._config, self._clock())


def words_of(query: Query) -> list[str]:
    """Return the words by which a query's candidates are searched for."""
    name = frozenset(tokens(query.framework))
    return search_words(query.topic, " ".join(query.tags), query.question, but=name)


def _texts_of(tx: Transaction, candidates: Sequence[Candidate]) -> list[str]:
    """Return the candidates' texts as they are kept; empty where one is nowhere."""
    listed = [it.known.entry for it in candidates]
    kept = lookup.texts(tx, [it.sha256 for it in listed]) if listed else {}
    return [kept.get(it.sha256) or tx.files.read_text(it.path) for it in listed]


def _why_not(tx: Transaction, entry_id: str) -> str:
    if usage.quarantined(tx, entry_id):
        return f"{entry_id} waits for a person; `kr review` shows it"
    return str(entries.unknown_entry(tx, entry_id))
