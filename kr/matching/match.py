"""Which entry answers a query (SPEC 3.2; seed 000, Step 2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kr.matching.compare import Comparison, compare
from kr.matching.topic import topic_of
from kr.naming import fold, tag_key
from kr.text.keywords import MAX_CHARACTERS
from kr.values import TIERS, Entry, Match, Query, Tier

THRESHOLD = 0.70
NEAR = 0.4
"""How similar a refused entry must be for a mere tag not to lead past it to another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """One entry that was held against a query. ``tier`` is None when it was refused, and ``reason`` says why."""

    entry: Entry
    tier: Tier | None
    topic_overlap: float
    shared_tags: tuple[str, ...]
    reason: str | None


def find_match(query: Query, entries: Sequence[Entry], *, fuzzy: bool, floor: Tier) -> Match | None:
    """Return the entry that answers ``query`` best, or None.

    ``entries`` share the folded framework, their status is judged and archived ones are left out. ``fuzzy=False``
    takes an equal folded topic alone; ``floor`` is the weakest tier that counts.
    """
    ranked = rank(query, entries, fuzzy=fuzzy, floor=floor)
    best = ranked[0] if ranked else None
    if best is None or best.tier is None:
        return None
    return Match(
        entry=best.entry, tier=best.tier, topic_overlap=best.topic_overlap, shared_tags=best.shared_tags
    )


def rank(query: Query, entries: Sequence[Entry], *, fuzzy: bool, floor: Tier) -> list[Considered]:
    """Return every entry with its tier or the reason of its refusal, best first.

    Tier, then the higher overlap, more shared tags, fresh before stale, the newest ``last_accessed``. Entries that
    are equal in all of these (an imported knowledge base has bare dates) are told apart by the words of the
    question and the tags, and last by id, so that the order never depends on that of ``entries``.
    """
    folded = _folded(query.topic)
    compared = [(entry, _compare(query.topic, folded, entry.topic)) for entry in entries]
    nearest = max((result.similarity for _, result in compared if result.contradiction), default=0.0)
    ranked = [
        _consider(query, entry, result, fuzzy=fuzzy, floor=floor, nearest_refused=nearest)
        for entry, result in compared
    ]
    ranked.sort(key=lambda item: item.entry.id)
    if _has_tie(ranked):
        ranked.sort(key=lambda item: _relevance(query, item.entry), reverse=True)
    ranked.sort(key=lambda item: item.entry.last_accessed, reverse=True)
    ranked.sort(key=_order)
    return ranked


def _order(item: Considered) -> tuple[int, float, int, bool]:
    place = TIERS.index(item.tier) if item.tier else len(TIERS)
    return place, -item.topic_overlap, -len(item.shared_tags), item.entry.status != "fresh"


def _has_tie(ranked: list[Considered]) -> bool:
    places = [(_order(item), item.entry.last_accessed) for item in ranked if item.tier]
    return bool(places) and places.count(min(places)) > 1


def _relevance(query: Query, entry: Entry) -> tuple[int, bool]:
    """Count the words of the whole query in the entry's topic and tags; the same script is better than another."""
    asked = topic_of(" ".join((query.topic, *query.tags, query.question))).lexicon
    topic, tags = topic_of(entry.topic), topic_of(" ".join(entry.tags))
    shared = len(asked & topic.lexicon) + len(asked & tags.lexicon)
    return shared, bool(topic.bigrams) == bool(topic_of(query.topic).bigrams)


def _consider(
    query: Query, entry: Entry, result: Comparison, *, fuzzy: bool, floor: Tier, nearest_refused: float
) -> Considered:
    shared = shared_tags(query.tags, entry.tags)
    overlap = round(result.overlap, 4)
    tier: Tier | None = None
    reason = None
    if not fuzzy and _folded(query.topic) != _folded(entry.topic):
        reason = "the topic is another one, and cache_fuzzy_match is off"
    elif result.contradiction:
        reason = result.contradiction
    elif overlap >= THRESHOLD:
        tier = "framework+topic+tags" if shared else "framework+topic"
    elif not shared:
        reason = f"topic overlap {overlap:.2f} is below {THRESHOLD:.2f}, and no tag is shared"
    elif nearest_refused >= NEAR and result.similarity < nearest_refused:
        reason = "only a tag is shared, and an entry that is nearer by topic was refused"
    else:
        tier = "framework+tags"
    if tier and TIERS.index(tier) > TIERS.index(floor):
        tier, reason = None, f"{tier} is below cache_match_floor {floor}"
    return Considered(entry=entry, tier=tier, topic_overlap=overlap, shared_tags=shared, reason=reason)


def topic_overlap(one: str, other: str) -> float:
    """Return how much two topics overlap, 0.0 to 1.0, negations and identifiers aside."""
    return round(_compare(one, _folded(one), other).overlap, 4)


def _compare(topic: str, folded: str, other: str) -> Comparison:
    if folded == _folded(other):
        return Comparison(1.0, 1.0, None)
    return compare(topic_of(topic), topic_of(other))


def _folded(topic: str) -> str:
    return _folded_short(topic) if len(topic) <= MAX_CHARACTERS else fold(topic)


_folded_short = lru_cache(maxsize=2048)(fold)


def shared_tags(query: Iterable[str], entry: Iterable[str]) -> tuple[str, ...]:
    """Return the query's tags that the entry has too, each once, as the query writes them."""
    theirs = {tag_key(tag) for tag in entry}
    found = {key: tag for tag in reversed([*query]) if (key := tag_key(tag)) and key in theirs}
    return tuple(reversed(found.values()))
