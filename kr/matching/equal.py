"""The answer that needs no evidence: an entry of this very topic (SPEC 3.2, "Decision").

It gives what ``kr.matching.decide`` would, without its words and weights: an equal topic always answers.
"""

from collections.abc import Sequence

from kr.naming import fold
from kr.values import TIERS, Entry, Match, MatchRules, Query


def of_equal_topic(query: Query, live: Sequence[Entry], rules: MatchRules) -> Match | None:
    """Return the entry that answers by its topic alone; None where the others have to be looked at too.

    ``live`` are entries of the framework, whose status is judged; the one that was accessed last is taken.
    """
    wanted = _folded(query.topic)
    same = [
        it for it in live if it.status == "fresh" and it.origin != "skeleton" and _folded(it.topic) == wanted
    ]
    if not same:
        return None
    entry = max(sorted(same, key=lambda it: it.id), key=lambda it: it.last_accessed)
    shared = _shared_tags(query.tags, entry.tags)
    tier = TIERS[0] if shared else TIERS[1]
    # In the seed's order another topic with a shared tag goes before an equal one without.
    is_beaten = tier != TIERS[0] and (rules.mode == "seed" or rules.floor == TIERS[0])
    if is_beaten and rules.fuzzy:
        return None
    return Match(entry=entry, tier=tier, topic_overlap=1.0, shared_tags=shared, likelihood=1.0)


def _folded(topic: str) -> str:
    return " ".join(fold(topic).split())


def _shared_tags(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    if asked == known or (len(asked) == 1 and asked[0] in known):
        return tuple(asked)
    from kr.matching.evidence import shared_tags

    return shared_tags(asked, known)
