"""Which entry answers a request, and which others may (SPEC 3.2, "Decision"; seed 000, Step 2)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kr.matching.compare import another_name, opposite_act
from kr.matching.evidence import Asked, Candidate, Evidence, asked_of, weigh
from kr.matching.terms import REPORT, Keys, keys_of, whole
from kr.matching.weights import DEFAULT, Learned
from kr.values import (
    TIERS,
    CacheMatch,
    Entry,
    Match,
    MatchRules,
    NamedTuple,
    Query,
    Related,
    Tier,
    Value,
    replace,
)

if TYPE_CHECKING:
    from kr.matching.vectors import Meant

THRESHOLD = 0.70
"""From this overlap on the topics are the same one (seed 000, Step 2)."""
CLOSE = 0.95
"""The likelihood of an entry whose topic overlaps that much, with nothing against it and no rare word missing: of 169 such
pairs in the labelled sets 168 answer, most of them in the close ones, with which the comparison was made."""
CONTRADICTED = 0.12
"""The most likelihood that an entry has which is about a sibling of what is asked, or about the opposite."""
_RARE = 0.4
_LEAST_RELATED = 0.015
_MOST_RELATED = 3


class Considered(Value):
    """One entry that was held against a request. ``reason`` says why it is not taken, None that it may be.

    ``tier`` is the seed's, or ``framework+need`` where the evidence alone speaks for it; ``numbers`` are those of
    ``kr.matching.evidence.NAMES``, and behind them those of a model of embeddings, if one was asked. ``is_hardly_ahead``: see ``Learned``.
    """

    entry: Entry
    tier: Tier | None
    topic_overlap: float
    shared_tags: tuple[str, ...]
    likelihood: float
    numbers: tuple[float, ...]
    is_hardly_ahead: bool
    reason: str | None

    def match(self) -> Match:
        """Say why the entry answers."""
        return Match(
            entry=self.entry,
            tier=self.tier or "framework+need",
            topic_overlap=self.topic_overlap,
            shared_tags=self.shared_tags,
            likelihood=self.likelihood,
        )


class Decision(NamedTuple):
    """``match`` answers; where none does, ``related`` may. ``considered`` are all, best first."""

    match: Match | None
    related: tuple[Related, ...]
    considered: tuple[Considered, ...]


def decide(
    query: Query,
    candidates: Sequence[Candidate],
    rules: MatchRules,
    *,
    learned: Learned = DEFAULT,
    meant: "Meant | None" = None,
) -> Decision:
    """Hold live entries of one framework, whose status is judged, against what is asked.

    The likeliest goes first, then fresh before stale, then the one that was accessed last. With ``meant`` its numbers
    and weights count in place of ``learned``.
    """
    asked = asked_of(query)
    weighed = weigh(asked, candidates)
    if meant is not None:
        learned = meant.learned
        weighed = [
            replace(evidence, numbers=(*evidence.numbers, *meant.numbers[candidate.entry.id]))
            for candidate, evidence in zip(candidates, weighed, strict=True)
        ]
    considered = [
        _consider(asked, candidate, evidence, rules, learned)
        for candidate, evidence in zip(candidates, weighed, strict=True)
    ]
    considered.sort(key=lambda item: item.entry.id)
    considered.sort(key=lambda item: item.entry.last_accessed, reverse=True)
    considered.sort(key=lambda item: _order(item, rules.mode))
    best = considered[0] if considered else None
    if best is None or best.reason is not None:
        return Decision(None, tuple(_related(considered)), tuple(considered))
    related = _related(considered) if best.entry.origin == "skeleton" else ()
    return Decision(best.match(), tuple(related), tuple(considered))


def is_known(query: Query, candidate: Candidate) -> bool:
    """Tell that an entry was asked for by its very topic, or in the very words of a need that it served."""
    return _is_known(asked_of(query), candidate)


def _is_known(asked: Asked, candidate: Candidate) -> bool:
    return asked.whole == whole(candidate.entry.topic) or asked.wording in candidate.keys


def contradiction(asked: Asked, candidate: Candidate, evidence: Evidence) -> str | None:
    """Say what forbids an entry as an answer, however likely it looks; None where nothing does.

    Another name or word in the topics, or an opposite, forbids it where the topics are the same but for that, and where no report is
    known, which could outweigh it. Elsewhere an opposite is evidence: of 24 leading entries in the labelled sets that look likely in spite of
    one, 19 are the right ones ("undo a commit that is *not* pushed").
    """
    comparison = evidence.comparison
    entry, keys = candidate
    is_decisive = comparison.overlap >= THRESHOLD or not _has_report(keys)
    if is_decisive and comparison.contradiction is not None:
        return comparison.contradiction
    return another_name(asked.need, entry.topic, entry.question, keys) or opposite_act(
        asked.query.question, entry.question or ""
    )


def named(query: Query, entry: Entry) -> Match:
    """Say how an entry that the request names would have matched."""
    candidate = Candidate(entry, keys_of((entry.topic, entry.tags, entry.question), (), ""))
    rules = MatchRules(mode="seed", floor=None, fuzzy=True)
    asked = asked_of(query)
    found = _consider(asked, candidate, weigh(asked, [candidate])[0], rules, DEFAULT)
    return replace(found.match(), likelihood=None, is_named=True)


def _order(item: Considered, mode: CacheMatch) -> tuple[bool, bool, int, float, float, bool]:
    """Put what answers before what is refused, and a report before a skeleton; a topic goes before a wording."""
    tier = 0
    if (
        mode == "seed" and item.tier
    ):  # without a tier of the seed a known wording alone is taken: it goes first
        tier = TIERS.index(item.tier) if item.tier in TIERS else -1
    is_skeleton = item.entry.origin == "skeleton"
    is_old = item.entry.status != "fresh"
    return item.reason is not None, is_skeleton, tier, -item.likelihood, -item.topic_overlap, is_old


def _related(considered: Sequence[Considered]) -> list[Related]:
    likely = [
        item
        for item in sorted(considered, key=lambda item: -item.likelihood)
        if item.likelihood >= _LEAST_RELATED and item.entry.origin != "skeleton"
    ]
    return [
        Related(
            id=item.entry.id,
            framework_version=item.entry.framework_version,
            topic=item.entry.topic,
            path=item.entry.path,
            likelihood=item.likelihood,
        )
        for item in likely[:_MOST_RELATED]
    ]


def _consider(
    asked: Asked, candidate: Candidate, evidence: Evidence, rules: MatchRules, learned: Learned
) -> Considered:
    entry, keys = candidate
    overlap = round(evidence.comparison.overlap, 4)
    is_same = asked.whole == whole(entry.topic)
    is_asked_before = _is_known(asked, candidate)
    against = None if is_asked_before else evidence.comparison.contradiction
    # Without a report nothing is known of what it speaks of, and so not how far it is ahead in that.
    is_hardly_ahead = _has_report(keys) and learned.is_hardly_ahead(evidence.numbers)
    likelihood = (learned if is_hardly_ahead else learned.fitted).likelihood(evidence.numbers)
    is_close = overlap >= THRESHOLD and against is None and _lacks_nothing_rare(evidence, keys)
    forbidden = None
    if is_asked_before:
        likelihood = 1.0
    elif is_close:
        likelihood = max(likelihood, CLOSE)
    if likelihood > CONTRADICTED and not is_asked_before:
        forbidden = contradiction(asked, candidate, evidence)
        if forbidden is not None:
            likelihood, against, is_close = CONTRADICTED, forbidden, False
    tier: Tier | None = None
    if is_same or (overlap >= THRESHOLD and against is None):
        tier = "framework+topic+tags" if evidence.shared_tags else "framework+topic"
    elif evidence.shared_tags and against is None:
        tier = "framework+tags"
    reason = _refusal(
        rules,
        learned,
        tier,
        likelihood,
        against,
        is_same=is_same,
        is_wording=asked.wording in keys,
        is_known=is_asked_before or is_close,
        is_forbidden=forbidden is not None,
    )
    return Considered(
        entry=entry,
        tier=tier or ("framework+need" if reason is None else None),
        topic_overlap=1.0 if is_same else overlap,
        shared_tags=evidence.shared_tags,
        likelihood=round(likelihood, 4),
        numbers=evidence.numbers,
        is_hardly_ahead=is_hardly_ahead,
        reason=reason,
    )


def _lacks_nothing_rare(evidence: Evidence, keys: Keys) -> bool:
    """Tell that no rare word of the topic is missing; without a report nothing is known to be."""
    return evidence.rarest_missing < _RARE or not _has_report(keys)


def _has_report(keys: Keys) -> bool:
    return any(places & REPORT for places in keys.values())


def _refusal(
    rules: MatchRules,
    learned: Learned,
    tier: Tier | None,
    likelihood: float,
    against: str | None,
    *,
    is_same: bool,
    is_wording: bool,
    is_known: bool,
    is_forbidden: bool,
) -> str | None:
    if not rules.fuzzy:
        return None if is_same else "the topic is another one, and cache_fuzzy_match is off"
    if is_wording:  # kept when somebody took the entry for it: asked again, kr would never become sure
        return None
    floor = rules.floor or ("framework+tags" if rules.mode == "seed" else None)
    if floor is not None and (tier is None or TIERS.index(tier) > TIERS.index(floor)):
        return against or f"{tier or 'no tier of the seed'} is below cache_match_floor {floor}"
    if rules.mode == "seed" or is_known:
        return None
    least = learned.least[rules.mode]
    if likelihood > least and not is_forbidden:
        return None
    return against or f"likelihood {likelihood:.2f} is not above {least:.2f} ({rules.mode})"
