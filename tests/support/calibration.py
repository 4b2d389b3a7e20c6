"""Scores the matcher on labelled queries: tests/data/matching.yaml, -extra.yaml and -held-out.yaml.

A **hit** returns the expected entry. A **wrong hit** returns another one, or any at all where none answers. An answer
that only the order of the ids decided is no evidence and counts as wrong.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kr.matching import match
from kr.text.keywords import keywords
from kr.values import TIERS, Entry, Query, Tier

DATA = Path(__file__).parent.parent / "data"
TIED = "(a tie)"
Finder = Callable[[Query, Sequence[Entry], Tier], str | None]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One labelled query; ``expect`` is an entry's id, or None where no entry answers."""

    id: str
    kind: str
    query: Query
    expect: str | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    case: Case
    got: str | None

    @property
    def is_hit(self) -> bool:
        return self.case.expect is not None and self.got == self.case.expect

    @property
    def is_wrong(self) -> bool:
        return self.got is not None and self.got != self.case.expect


@dataclass(frozen=True)
class Score:
    outcomes: list[Outcome] = field(default_factory=list)

    def of(self, *kinds: str) -> "Score":
        return Score([outcome for outcome in self.outcomes if outcome.case.kind in kinds])

    def without(self, *kinds: str) -> "Score":
        return Score([outcome for outcome in self.outcomes if outcome.case.kind not in kinds])

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(outcome.case.kind for outcome in self.outcomes))

    @property
    def answerable(self) -> int:
        return sum(outcome.case.expect is not None for outcome in self.outcomes)

    @property
    def hits(self) -> int:
        return sum(outcome.is_hit for outcome in self.outcomes)

    @property
    def wrong(self) -> int:
        return sum(outcome.is_wrong for outcome in self.outcomes)

    @property
    def recall(self) -> float:
        return self.hits / self.answerable if self.answerable else 1.0

    @property
    def wrong_rate(self) -> float:
        return self.wrong / len(self.outcomes) if self.outcomes else 0.0


def load(name: str = "matching.yaml") -> tuple[list[Entry], list[Case]]:
    """Read one data file into entries that differ in nothing but what the labels speak of."""
    data: dict[str, list[dict[str, Any]]] = yaml.safe_load((DATA / name).read_text(encoding="utf-8"))
    entries = [
        Entry(
            id=item["id"],
            framework=item["framework"],
            framework_version=item.get("framework_version", "1"),
            topic=item["topic"],
            tags=tuple(item["tags"]),
            path=f"frameworks/{item['id']}.md",
            created="2026-01-01",
            last_accessed="2026-01-01",
            status="fresh",
            confidence="high",
        )
        for item in data["entries"]
    ]
    cases = [
        Case(
            id=item["id"],
            kind=item["kind"],
            query=Query(
                framework=item["framework"],
                framework_version=item.get("framework_version", "1"),
                topic=item["topic"],
                tags=tuple(item["tags"]),
                question=item.get("question", item["topic"]),
            ),
            expect=item["expect"],
        )
        for item in data["queries"]
    ]
    return entries, cases


def by_rules(query: Query, entries: Sequence[Entry], floor: Tier) -> str | None:
    """Ask the matcher."""
    found = match.find_match(query, entries, fuzzy=True, floor=floor)
    return found.entry.id if found else None


def by_dice(query: Query, entries: Sequence[Entry], floor: Tier) -> str | None:
    """Ask the baseline: the plain Dice coefficient of the keyword sets, without any rule of what differs."""
    best: tuple[int, float, int, str] | None = None
    asked = set(keywords(query.topic))
    for entry in entries:
        words = set(keywords(entry.topic))
        overlap = 2 * len(asked & words) / (len(asked) + len(words)) if asked or words else 0.0
        tags = len(match.shared_tags(query.tags, entry.tags))
        tier = (0 if tags else 1) if overlap >= match.THRESHOLD else 2
        if (tier < 2 or tags) and tier <= TIERS.index(floor):
            best = min(best or (9, 0.0, 0, ""), (tier, -overlap, -tags, entry.id))
    return best[3] if best else None


def score(
    entries: Sequence[Entry], cases: Sequence[Case], *, floor: Tier, finder: Finder = by_rules
) -> Score:
    """Put every case to ``finder``, twice with the ids in opposite order, to notice ties."""
    ids = sorted(entry.id for entry in entries)
    mirrored = dict(zip(ids, reversed(ids), strict=True))
    outcomes = []
    for case in cases:
        candidates = [entry for entry in entries if entry.framework == case.query.framework]
        got = finder(case.query, candidates, floor)
        again = finder(case.query, [replace(entry, id=mirrored[entry.id]) for entry in candidates], floor)
        tied = got is not None and (again is None or mirrored[again] != got)
        outcomes.append(Outcome(case=case, got=TIED if tied else got))
    return Score(outcomes)
