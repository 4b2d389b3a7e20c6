"""Labelled questions put to the matcher, and what came of them, by kind.

``sharing``: needs that several agents worded on their own, eight files that kr ships.
``close``: tests/data/matching*.yaml, whose queries stay near the words of the entry and whose entries have no report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kr.matching import learning
from kr.matching.decide import contradiction, decide
from kr.matching.evidence import NEVER_AGAINST, Asked, Candidate, lead, weigh
from kr.matching.frameworks import canonical, meant
from kr.matching.learning import Example, learn, learn_ahead
from kr.matching.terms import keys_of
from kr.matching.weights import DEFAULT, Learned
from kr.values import Entry, MatchRules, Query

DATA = Path(__file__).parent.parent / "data"
SHARING = [Path(learning.__file__).parent / name for name in learning.FILES]
FIRST_TWO = SHARING[:2]
"""What most tests do with: each is judged by what the other taught."""
CLOSE = ("matching.yaml", "matching-extra.yaml", "matching-held-out.yaml")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One labelled query; ``expect`` is an entry's id, or None where no entry answers. ``candidates`` share its framework."""

    kind: str
    query: Query
    expect: str | None
    candidates: Sequence[Candidate]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """``got`` is the id of the answer, ``offered`` that or those of the related entries."""

    case: Case
    got: str | None
    offered: tuple[str, ...]

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
    def answerable(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.case.expect is not None]

    @property
    def recall(self) -> float:
        """Of the queries with an answer, those that get it."""
        found = self.answerable
        return sum(outcome.is_hit for outcome in found) / len(found) if found else 1.0

    @property
    def offered(self) -> float:
        """Of the queries with an answer, those for which it is taken or related."""
        found = self.answerable
        return sum(outcome.case.expect in outcome.offered for outcome in found) / len(found) if found else 1.0

    @property
    def answered(self) -> float:
        """Of the queries without an answer, those that get one all the same."""
        found = [outcome for outcome in self.outcomes if outcome.case.expect is None]
        return sum(outcome.got is not None for outcome in found) / len(found) if found else 0.0

    @property
    def wrong(self) -> float:
        """Of all queries, those that get an entry that is not theirs."""
        return sum(outcome.is_wrong for outcome in self.outcomes) / len(self.outcomes)


def load_sharing(path: Path) -> list[Case]:
    """Read one file of needs that several agents worded."""
    read = learning.read_labelled(path.read_text(encoding="utf-8"))
    held: dict[str, list[Candidate]] = {}
    for entry in read.entries:
        keys = keys_of((entry.topic, entry.tags, entry.question), (), read.reports[entry.id])
        held.setdefault(canonical(entry.framework), []).append(Candidate(entry, keys))
    return [_case(asked.kind, asked.query, asked.want, held) for asked in read.asked]


def load_close(name: str) -> list[Case]:
    """Read one file whose queries stay near the words of the entry; its entries have neither question nor report."""
    data: dict[str, list[dict[str, Any]]] = yaml.safe_load((DATA / name).read_text(encoding="utf-8"))
    held: dict[str, list[Candidate]] = {}
    for item in data["entries"]:
        entry = Entry(
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
        keys = keys_of((entry.topic, entry.tags, None), (), "")
        held.setdefault(canonical(entry.framework), []).append(Candidate(entry, keys))
    return [_case(item["kind"], _query(item), item["expect"], held) for item in data["queries"]]


def topics() -> list[str]:
    """Return the topics of the entries of all close wordings."""
    held = {id(case.candidates): case.candidates for name in CLOSE for case in load_close(name)}
    return sorted({candidate.entry.topic for candidates in held.values() for candidate in candidates})


def score(cases: Sequence[Case], rules: MatchRules, learned: Learned | None = None) -> Score:
    """Put every case to the matcher."""
    return Score([_outcome(case, rules, learned) for case in cases])


def examples(cases: Sequence[Case]) -> list[Example]:
    """Give what is learned from."""
    found = []
    for case in cases:
        asked = Asked(case.query)
        pairs = [*zip(case.candidates, weigh(asked, case.candidates), strict=True)]
        rows = sorted(((c.entry.id, e.numbers) for c, e in pairs), key=lambda row: -lead(row[1]))
        forbidden = {c.entry.id for c, e in pairs if contradiction(asked, c, e) is not None}
        found.append(Example(case.kind, canonical(case.query.framework), dict(rows), case.expect, forbidden))
    return found


def learned_from(files: Sequence[Sequence[Case]]) -> Learned:
    """Learn from the cases of some files."""
    found = [one for file in files for one in examples(file)]
    ahead = learn_ahead(found, [one for file in files for one in examples(left_out(file))])
    return learn(found, never_against=NEVER_AGAINST, ahead=ahead)


def left_out(cases: Sequence[Case]) -> list[Case]:
    """Give the requests that an entry answers without that entry: among the framework's others, and beside one of them alone."""
    found = []
    for at, case in enumerate(case for case in cases if case.expect is not None):
        others = [candidate for candidate in case.candidates if candidate.entry.id != case.expect]
        alone = others[at % len(others) :][:1] if others else []
        found += [replace(case, expect=None, candidates=held) for held in (others, alone) if held]
    return found


def _outcome(case: Case, rules: MatchRules, learned: Learned | None) -> Outcome:
    decision = decide(case.query, case.candidates, rules, learned=learned or DEFAULT)
    taken = decision.match.entry.id if decision.match else None
    offered = (taken,) if taken else tuple(related.id for related in decision.related)
    return Outcome(case=case, got=taken, offered=offered)


def _case(kind: str, query: Query, want: str | None, held: Mapping[str, list[Candidate]]) -> Case:
    key = canonical(query.framework)
    if key not in held:
        key = canonical(meant(query.framework, held) or query.framework)
    return Case(kind=kind, query=query, expect=want, candidates=held.get(key, []))


def _query(item: Mapping[str, Any]) -> Query:
    return Query(
        framework=item["framework"],
        framework_version=item.get("framework_version", "1"),
        topic=item["topic"],
        tags=tuple(item["tags"]),
        question=item.get("question", item["topic"]),
    )
