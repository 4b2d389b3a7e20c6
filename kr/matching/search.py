"""Ranks entries by the words of a search, over framework, topic and tags (SPEC 6.3)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kr.matching.words import is_near, stem
from kr.naming import fold
from kr.text.keywords import keywords
from kr.values import Entry

_FIELDS = {"framework": 1.0, "topic": 1.0, "tags": 0.8}
_EXACT, _STEM, _NEAR, _PREFIX = 1.0, 0.95, 0.8, 0.6
_SHORTEST_PREFIX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """``score`` is 0.0 to 1.0: how much of the search was found; ``found`` are its words that were."""

    entry: Entry
    score: float
    found: tuple[str, ...]


def search(words: str, entries: Iterable[Entry]) -> list[Hit]:
    """Return the entries in which a word of the search stands, best first.

    A word counts by the best place where it stands; inflected, misspelt and cut words count less. Among
    equals: fresh before stale, then the last accessed, then by id. A search without a keyword (``the``) is
    looked for as it stands.
    """
    wanted = keywords(words)
    hits = [hit for entry in entries if (hit := _hit(wanted, fold(words), entry)) is not None]
    hits.sort(key=lambda hit: hit.entry.id)
    hits.sort(key=lambda hit: hit.entry.last_accessed, reverse=True)
    hits.sort(key=lambda hit: (-hit.score, hit.entry.status != "fresh"))
    return hits


def _hit(wanted: Sequence[str], folded: str, entry: Entry) -> Hit | None:
    texts = {"framework": entry.framework, "topic": entry.topic, "tags": " ".join(entry.tags)}
    if not wanted:
        is_there = bool(folded) and any(folded in fold(text) for text in texts.values())
        return Hit(entry=entry, score=1.0, found=(folded,)) if is_there else None
    fields = [(weight, _keywords(texts[name])) for name, weight in _FIELDS.items()]
    scores = {
        word: max(
            weight * max((_alike(word, one) for one in theirs), default=0.0) for weight, theirs in fields
        )
        for word in wanted
    }
    found = tuple(word for word in wanted if scores[word])
    score = round(sum(scores.values()) / len(wanted), 4)
    return Hit(entry=entry, score=score, found=found) if found else None


def _alike(word: str, other: str) -> float:
    if word == other:
        return _EXACT
    if stem(word) == stem(other):
        return _STEM
    if len(word) >= _SHORTEST_PREFIX and other.startswith(word):
        return _PREFIX
    return _NEAR if word[0] == other[0] and is_near(word, other) else 0.0


_keywords = lru_cache(maxsize=4096)(keywords)
