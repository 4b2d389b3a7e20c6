"""Steps 2 and 3 of seed 000: is there an entry that answers, and may it still be served."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kr.freshness import Limits, Verdict, judge
from kr.matching.match import find_match
from kr.research.shelf import Shelf
from kr.store.store import Store
from kr.values import Entry, Match, Query, Tier

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the cache holds for a query.

    ``match`` is None for a miss. ``report`` is the matched entry's text. ``is_hit`` tells a fresh match from a
    stale one, whose text may serve as a baseline.
    """

    match: Match | None = None
    report: str | None = None

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


def may_be_baseline(tier: Tier, entry: Entry) -> bool:
    """Whether a stale entry of this tier may be what a new research stands on."""
    return tier != "framework+tags" and entry.origin != "skeleton"


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
        self, shelf: Shelf, limits: Limits, *, fuzzy: bool, floor: Tier, clock: Callable[[], datetime]
    ) -> None:
        self._shelf = shelf
        self._limits = limits
        self._fuzzy = fuzzy
        self._floor = floor
        self._clock = clock

    def look_up(self, query: Query) -> Found:
        """Find the best entry for ``query``; a dangling one is removed and counts as a miss (error row 5)."""
        return self._shelf.attempt(lambda store: self._look_up(store, query), MISS)

    def _look_up(self, store: Store, query: Query) -> Found:
        with store.read() as unit:
            candidates = unit.entries.candidates(query.framework)
        judged = judge_all(candidates, query, self._limits, self._clock())
        live = [entry for entry, verdict in judged.values() if verdict.status != "archived"]
        match = find_match(query, live, fuzzy=self._fuzzy, floor=self._floor)
        if match is None:
            logger.info("no entry answers; %d of %s were looked at", len(candidates), query.framework)
            return MISS
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
            return MISS
        return Found(match=match, report=report)
