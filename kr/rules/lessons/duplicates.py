"""Whether a lesson tells what another one told already (seed 003, step 4; SPEC 4.2)."""

import heapq
from collections.abc import Iterable, Iterator

from kr.rules.compare import compare
from kr.rules.keywords import is_cjk, keywords
from kr.rules.lessons.line import Lesson
from kr.rules.naming import fold
from kr.rules.topics import topic_of

THRESHOLD = 0.70
"""An overlap of keywords above this is a duplicate."""

_LEAST_SHARED = 0.3
_ROOT = 4
_COMPARED = 200


def duplicates(lesson: Lesson, others: Iterable[Lesson]) -> Iterator[Lesson]:
    """Yield those of ``others`` that have the lesson's phase and tell the same.

    The phase is the lesson's first tag. Of a long file only the lessons that share the most words are looked
    at closely, so that it costs little however long the file is.
    """
    for other in _nearest(lesson, others):
        if tells_the_same(lesson.summary, other.summary):
            yield other


def _nearest(lesson: Lesson, others: Iterable[Lesson]) -> list[Lesson]:
    roots = [word if is_cjk(word) or len(word) < _ROOT else word[:_ROOT] for word in keywords(lesson.summary)]
    needed = len(roots) * _LEAST_SHARED
    phase, length = lesson.tags[0], len(lesson.summary)
    near: list[tuple[int, int, Lesson]] = []
    for other in others:
        if phase in other.tags:
            text = other.summary.casefold()
            is_equal = other.summary == lesson.summary
            shared = len(roots) + 1 if is_equal else sum([root in text for root in roots])
            if shared >= needed:
                near.append((shared, -abs(len(text) - length), other))
    return [other for _, _, other in heapq.nlargest(_COMPARED, near)]


def tells_the_same(one: str, other: str) -> bool:
    """Compare two summaries by their keywords. Opposites and different names are never the same.

    A summary that merely goes on where the other ends (a reason, a version) denies nothing by it.
    """
    mine, yours = fold(one), fold(other)
    if mine == yours:
        return True
    compared = compare(topic_of(one), topic_of(other))
    if compared.overlap <= THRESHOLD:
        return False
    return compared.contradiction is None or mine.startswith(yours) or yours.startswith(mine)
