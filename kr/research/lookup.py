"""Steps 2 and 3 of seed 000: the entry that is served for a request, or those that may answer it (SPEC 3.2, 3.3)."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn

from kr.errors import FieldError, InvalidRequest
from kr.frameworks import lookup_keys, meant, same_framework
from kr.freshness import Limits
from kr.research.decide import (
    WITHDRAWN,
    Candidate,
    Known,
    choose,
    judge_all,
    match_of,
    most_offered,
    named,
    offered,
    rank,
)
from kr.research.shelf import Shelf
from kr.store import entries, lookup, quarantine, reports, revisions
from kr.store.engine import Store, Transaction
from kr.store.entries import keywords_key, question_key, topic_key
from kr.store.lookup import Found
from kr.store.unknown import unknown_entry
from kr.text.words import search_words, summary_of, tokens
from kr.values import NO_RATINGS, Match, MatchRules, Query, Ratings, Related, Tier
from kr.values import replace as with_values

logger = logging.getLogger(__name__)

_SUMMARY = "## Summary"
_MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What the cache holds for a request.

    ``match`` is the entry that is served, or stale, or refused, and ``report`` its text; ``related`` are the candidates, best first.
    ``is_hit``: the match is served. ``is_refused``: it is a placeholder, or was rated wrong. ``near`` are the ids of the candidates
    whose text is worth the asker's tokens unasked.
    """

    match: Match | None = None
    report: str | None = None
    ratings: Ratings = NO_RATINGS
    is_hit: bool = False
    is_refused: bool = False
    related: tuple[Related, ...] = ()
    near: frozenset[str] = frozenset()

    @property
    def is_stale(self) -> bool:
        """Whether an entry of this need is there, which is to be researched again."""
        return self.match is not None and not self.is_hit and not self.is_refused

    @property
    def is_offer(self) -> bool:
        """Whether there is something to choose from: a candidate that nobody says is wrong, and no stale entry of this very need."""
        return not self.is_stale and any(it.score > WITHDRAWN for it in self.related)

    @property
    def baseline(self) -> str | None:
        """The old report that a new research stands on, if nothing better is found (SPEC 3.3)."""
        is_of_topic = self.match is not None and self.match.tier in {
            "framework+topic+tags",
            "framework+topic",
        }
        return self.report if is_of_topic and self.is_stale else None


MISS = LookedUp()


class Cache:
    """Looks entries up, and stores the marks that are due. ``more_aliases``, the project's, are read when nothing answers without."""

    def __init__(
        self,
        shelf: Shelf,
        limits: Limits,
        rules: MatchRules,
        *,
        aliases: Mapping[str, str],
        more_aliases: Callable[[], Mapping[str, str]],
        clock: Callable[[], datetime],
    ) -> None:
        self._shelf = shelf
        self._limits = limits
        self._rules = rules
        self._aliases = aliases
        self._more_aliases = more_aliases
        self._clock = clock

    def look_up(self, query: Query) -> LookedUp:
        """Find the entry that is served, and the candidates where none is. One whose report is nowhere is removed (error row 5)."""
        found = self._shelf.attempt(lambda store: self._look_up(store, query, self._aliases), MISS)
        if found.match is not None or found.related:
            return found
        packages = self._more_aliases()
        other = self._shelf.attempt(lambda store: _meant(store, query.framework, packages), None)
        if other is None and not packages:
            return found
        under = query if other is None else with_values(query, framework=other)
        more = {**packages, **self._aliases}
        return self._shelf.attempt(lambda store: self._look_up(store, under, more), found)

    def use(self, query: Query, entry_id: str, tier: Tier = "use", score: float | None = None) -> LookedUp:
        """Find the entry that a request names, whatever its age and ratings. Raises ``InvalidRequest`` for one that can't be served."""
        return self._shelf.attempt(lambda store: self._use(store, query, entry_id, tier, score), MISS)

    def alike(self, query: Query) -> tuple[Related, ...]:
        """Return the entries that may say the same as one for this need, best first."""
        keys = lookup_keys(query.framework, self._aliases)

        def read(store: Store) -> tuple[Related, ...]:
            with store.read() as tx:
                ranked = self._candidates(tx, query, keys, self._aliases)
                return tuple(_related(tx, it) for it in ranked if it.may_say_the_same)

        return self._shelf.attempt(read, ())

    def report_of(self, entry_id: str) -> str | None:
        """Return the report of a live entry; one whose report is nowhere is removed."""

        def read(store: Store) -> str | None:
            with store.read() as tx:
                entry = entries.get(tx, entry_id)
            if entry is None:
                return None
            report = reports.read_report(store, entry)
            if report is None:
                reports.drop_lost(store, entry)
            return report

        return self._shelf.attempt(read, None)

    def _use(self, store: Store, query: Query, entry_id: str, tier: Tier, score: float | None) -> LookedUp:
        with store.read() as tx:
            found = lookup.one(tx, entry_id)
            if found is None:
                _refuse(_why_not(tx, entry_id))
        entry = found[0]
        names = (entry.framework, query.framework)
        if not same_framework(*names, self._aliases) and not same_framework(*names, self._more_aliases()):
            _refuse(f"{entry.id} is about {entry.framework}, not about {query.framework}")
        if entry.origin == "placeholder":
            return MISS
        known = named(found, query.framework_version, self._limits, self._clock())
        match = match_of(query, known.entry, tier, score)
        return self._with_report(store, known, LookedUp(match=match, is_hit=True))

    def _look_up(self, store: Store, query: Query, aliases: Mapping[str, str]) -> LookedUp:
        keys = lookup_keys(query.framework, aliases)
        asked = question_key(query.question)
        with store.read() as tx:
            if self._rules.mode == "seed":
                rows = lookup.framework(tx, keys, question=asked)
            else:
                rows = lookup.served(
                    tx, keys, topic=topic_key(query.topic), question=asked, keywords=keywords_key(query.topic)
                )
            known = self._judged(query, [row for row in rows if _is_of(row, query, aliases)])
            match = choose(query, known, self._rules)
            chosen = next((it for it in known if match and it.entry.id == match.entry.id), None)
            is_served = chosen is not None and chosen.is_servable
            ranked = [] if is_served else self._candidates(tx, query, keys, aliases)
            related = tuple(_related(tx, it) for it in ranked)
            near = frozenset(it.known.entry.id for it in ranked if it.is_near)
        if match is None or chosen is None:
            logger.info("nothing is served of %s; %d candidates", query.framework, len(related))
            return LookedUp(related=related, near=near)
        logger.info("%s matches by %s and is %s", match.entry.id, match.tier, match.entry.status)
        return self._with_report(
            store, chosen, LookedUp(match=match, is_hit=is_served, related=related, near=near)
        )

    def _judged(self, query: Query, rows: Sequence[Found]) -> list[Known]:
        return judge_all(rows, query.framework_version, self._limits, self._clock())

    def _candidates(
        self, tx: Transaction, query: Query, keys: Sequence[str], aliases: Mapping[str, str]
    ) -> list[Candidate]:
        if not self._rules.fuzzy:
            return []
        name = frozenset(tokens(query.framework))
        words = search_words(query.topic, " ".join(query.tags), query.question, but=name)
        rows = [
            (row, bm25) for row, bm25 in lookup.candidates(tx, keys, words) if _is_of(row, query, aliases)
        ]
        scores = {row[0].id: bm25 for row, bm25 in rows}
        known = self._judged(query, [row for row, _ in rows])
        ranked = rank(query, [(it, scores[it.entry.id]) for it in known])
        return offered(ranked, most=most_offered(lookup.count(tx, keys))) if ranked else []

    def _with_report(self, store: Store, known: Known, found: LookedUp) -> LookedUp:
        """Store the mark that is due, and read the report; without one there is no match."""
        entry, verdict = known.entry, known.verdict
        if verdict.status == "stale" and verdict.is_news:
            reasons = ", ".join(verdict.reasons)
            self._shelf.write(
                lambda tx: entries.mark_stale(tx, entry.id, reasons, major=verdict.for_major),
                otherwise=False,
            )
        report = reports.read_report(store, entry)
        if report is None:
            logger.info("%s: there is no report to be read at %s", entry.id, entry.path)
            reports.drop_lost(store, entry)
            return LookedUp(related=tuple(it for it in found.related if it.id != entry.id), near=found.near)
        return replace(found, report=report, ratings=known.ratings, is_refused=known.refusal is not None)


def _is_of(row: Found, query: Query, aliases: Mapping[str, str]) -> bool:
    """Tell whether a row is of the framework: aliases may part what the shipped table joins, and a row may have no key yet."""
    return same_framework(row[0].framework, query.framework, aliases)


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
    _, is_there, body = report.partition(f"{_SUMMARY}\n")
    section = (body if is_there else report).partition("\n## ")[0]
    lines = (line.strip().lstrip("> ").strip() for line in section.splitlines())
    return summary_of(
        " ".join(line for line in lines if line and not line.startswith("```")), _MOST_CHARACTERS
    )


def _why_not(tx: Transaction, entry_id: str) -> str:
    if quarantine.get(tx, entry_id) is not None:
        return f"{entry_id} waits for a person; `kr review` shows it"
    return str(unknown_entry(tx, entry_id))


def _meant(store: Store, framework: str, packages: Collection[str]) -> str | None:
    with store.read() as tx:
        return meant(framework, entries.frameworks(tx), packages)


def _refuse(reason: str) -> NoReturn:
    raise InvalidRequest(FieldError("config_overrides.use", f"Validation failed: {reason}"))
