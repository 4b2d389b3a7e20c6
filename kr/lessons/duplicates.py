"""Whether a lesson says what another one says already (seed 003, step 4; SPEC 4.2). Pure."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from kr.lessons.line import Lesson
from kr.text import contraries, keywords

THRESHOLD = 0.70
"""An overlap of keywords above this is a duplicate."""

_LONGEST = 320
# What forbids is no duplicate of what demands, nor `enable` of `disable`.
_NEGATION = re.compile(r"\b(?:not?|never|without|avoid)\b|n't\b|不|勿|避免", re.IGNORECASE)


def find_duplicates(lesson: Lesson, others: Iterable[Lesson]) -> list[Lesson]:
    """Return those of ``others`` that have the lesson's phase (its first tag) and say the same."""
    phase = lesson.tags[0]
    return [other for other in others if phase in other.tags and says_the_same(lesson.summary, other.summary)]


def says_the_same(one: str, other: str) -> bool:
    """Compare two summaries by their keywords."""
    if one == other:
        return True
    if bool(_NEGATION.search(one)) != bool(_NEGATION.search(other)) or contraries(one) != contraries(other):
        return False
    mine, yours = frozenset(lesson_keywords(one)), frozenset(lesson_keywords(other))
    return bool(mine) and len(mine & yours) > THRESHOLD * len(mine | yours)


@lru_cache(maxsize=4096)
def lesson_keywords(summary: str) -> tuple[str, ...]:
    """Return the stems of a summary's keywords, each once."""
    return tuple(dict.fromkeys(keywords(summary[:_LONGEST])))


def rarest(frequency: Sequence[tuple[str, int]], count: int) -> list[str]:
    """Return the words of which a duplicate must share one: who shares most of ``count`` words has one of any few.

    ``frequency`` tells how often each word stands in the lessons that there are; the others stand in none.
    """
    # With more than 70 % shared, at most this many are missing.
    missing = count - int(THRESHOLD * count) - 1
    absent = count - len(frequency)
    by_frequency = [word for word, _ in sorted(frequency, key=lambda item: (item[1], item[0]))]
    return by_frequency[: max(0, missing + 1 - absent)]
