"""Steps 2 and 3 of seed 000: is there an entry that answers, and may it still be served."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from kr.freshness import Limits, Verdict, judge
from kr.matching.match import rank
from kr.research.shelf import Shelf
from kr.store.store import Store
from kr.values import Entry, Match, MatchRules, Query, Related, Tier

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the cache holds for a query.

    ``match`` is None for a miss. ``report`` is the matched entry's text. ``is_hit`` tells a fresh match from a
    stale one, whose text may serve as a baseline. ``related`` are live entries that were not taken, best first.
    """

    match: Match | None = None
    report: str | None = None
    related: tuple[Related, ...] = ()

    @property
    def is_hit(self) -> bool:
        """Whether the report may be served as it is."""
        return self.match is not None and self.match.entry.status == "fresh"

    @property
    def baseline(self) -> str | None:
        """The old report that a new research stands on, if nothing better is found.

        A report that shares a tag alone is about something else, and a skeleton says nothing (SPEC 3.3).
        """
        if self.match is None or not may_be_baseline(self.match.tier, self.match.entry):
            return None
        return self.report


MISS = Found()


_MOST_RELATED = 3


class Decision(NamedTuple):
    """Which entry answers, if any, and which others may (SPEC 3.2)."""

    match: Match | None
    related: tuple[Related, ...]


def decide(query: Query, candidates: Sequence[Entry], rules: MatchRules) -> Decision:
    """Hold the live entries of a framework, whose status is judged, against what is asked."""
    ranked = rank(query, candidates, fuzzy=rules.fuzzy, floor=weakest_tier(rules))
    taken = next((item for item in ranked[:1] if item.tier is not None), None)
    match = None
    if taken is not None and taken.tier is not None:
        match = Match(
            entry=taken.entry,
            tier=taken.tier,
            topic_overlap=taken.topic_overlap,
            shared_tags=taken.shared_tags,
            likelihood=taken.topic_overlap,
        )
    others = [item for item in ranked if item.tier is None and item.topic_overlap > 0]
    others.sort(key=lambda item: item.topic_overlap, reverse=True)
    return Decision(match, tuple(_related(item.entry, item.topic_overlap) for item in others[:_MOST_RELATED]))


def _related(entry: Entry, likelihood: float) -> Related:
    return Related(
        id=entry.id,
        framework_version=entry.framework_version,
        topic=entry.topic,
        path=entry.path,
        likelihood=likelihood,
    )


def weakest_tier(rules: MatchRules) -> Tier:
    """Return the weakest tier that counts under the settings (SPEC 3.2)."""
    return rules.floor or ("framework+topic" if rules.mode == "strict" else "framework+tags")


def may_be_baseline(tier: Tier, entry: Entry) -> bool:
    """Whether a stale entry that matched by its topic may be what a new research stands on (SPEC 3.3)."""
    return tier in {"framework+topic+tags", "framework+topic"} and entry.origin != "skeleton"


def judge_all(
    candidates: Sequence[Entry], query: Query, limits: Limits, now: datetime
) -> dict[str, tuple[Entry, Verdict]]:
    """Judge each entry, by its id, and give it the status it has now; ``archived`` ones are no answer."""
    verdicts = ((entry, judge(entry, query.framework_version, limits, now)) for entry in candidates)
    return {
        entry.id: (
            entry if verdict.status == "archived" else replace(entry, status=verdict.status),
            verdict,
        )
        for entry, verdict in verdicts
    }


class Cache:
    """Looks entries up, and stores the marks that a look finds due."""

    def __init__(
        self, shelf: Shelf, limits: Limits, rules: MatchRules, *, clock: Callable[[], datetime]
    ) -> None:
        self._shelf = shelf
        self._limits = limits
        self._rules = rules
        self._clock = clock

    def look_up(self, query: Query) -> Found:
        """Find the best entry for ``query``; a dangling one is removed and counts as a miss (error row 5)."""
        return self._shelf.attempt(lambda store: self._look_up(store, query), MISS)

    def _look_up(self, store: Store, query: Query) -> Found:
        with store.read() as unit:
            candidates = unit.entries.candidates(query.framework)
        judged = judge_all(candidates, query, self._limits, self._clock())
        live = [entry for entry, verdict in judged.values() if verdict.status != "archived"]
        decision = decide(query, live, self._rules)
        match = decision.match
        if match is None:
            logger.info("no entry answers; %d of %s were looked at", len(candidates), query.framework)
            return Found(related=decision.related)
        logger.info(
            "%s matches by %s (topic overlap %.2f, shared tags: %s) and is %s",
            match.entry.id,
            match.tier,
            match.topic_overlap,
            ", ".join(match.shared_tags) or "none",
            ", ".join((match.entry.status, *judged[match.entry.id][1].reasons)),
        )
        stored = next(entry for entry in candidates if entry.id == match.entry.id)
        if (stored.status, match.entry.status) == ("fresh", "stale"):
            reasons = ", ".join(judged[stored.id][1].reasons)
            self._shelf.change(lambda unit: unit.entries.mark_stale(stored.id, reasons), otherwise=False)
        report = store.read_report(match.entry)
        if report is None:
            logger.info("%s: there is no report to be read at %s", stored.id, stored.path)
            store.drop_lost(stored)
            return Found(related=decision.related)
        return Found(match=match, report=report, related=decision.related)
