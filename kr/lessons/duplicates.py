"""Whether a lesson tells what another one told already (seed 003, step 4; SPEC 4.2)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache

from kr.lessons.distill import phrases
from kr.lessons.line import Lesson
from kr.text.keywords import keywords, stem
from kr.values import NamedTuple

THRESHOLD = 0.70
"""An overlap of keywords above this is a duplicate."""

_FEWEST = 4
"""With fewer keywords a lesson that goes on may be about something else."""

_LONGEST = 320
"""Characters of a summary that are compared: twice as many as a lesson has columns."""

# How a lesson commands says nothing of what it is about.
_COMMAND = re.compile("must|should|need|ensur|alway|pleas|rememb|sure|make|never|avoid|not|don")
_CHINESE_COMMAND = re.compile(r"一定要|必须要?|务必|需要?|应该|应当|必|须|请|确保|要|在")


class _Read(NamedTuple):
    """What a comparison needs to know of a summary."""

    words: frozenset[str]
    order: tuple[str, ...]
    names: frozenset[str]
    denies: bool
    sides: tuple[frozenset[str], frozenset[str]] | None


def duplicates(lesson: Lesson, others: Iterable[Lesson]) -> Iterator[Lesson]:
    """Yield those of ``others`` that have the lesson's phase (its first tag) and tell the same."""
    phase = lesson.tags[0]
    return (
        other for other in others if phase in other.tags and tells_the_same(lesson.summary, other.summary)
    )


class Told:
    """Lessons that many others are compared with: each costs the same however many there are."""

    def __init__(self, lessons: Iterable[Lesson] = ()) -> None:
        self._with: defaultdict[tuple[str, str], dict[str, Lesson]] = defaultdict(dict)
        for lesson in lessons:
            self.add(lesson)

    def add(self, lesson: Lesson) -> None:
        """Take a lesson in."""
        for tag in lesson.tags:
            for word in _read(lesson.summary).words:
                self._with[tag, word][lesson.summary] = lesson

    def near(self, lesson: Lesson) -> Iterable[Lesson]:
        """Return the lessons of its phase among which those stand that share most of its words."""
        words = _read(lesson.summary).words
        # Who shares seven words of ten is among those of any four; the rarest are the shortest lists.
        rarest = sorted((self._with.get((lesson.tags[0], word), {}) for word in words), key=len)
        some = rarest[: max(1, len(rarest) * 2 // 3)]
        return {text: other for found in some for text, other in found.items()}.values()

    def tells(self, lesson: Lesson) -> bool:
        """Tell whether one of the lessons has the phase of this one and tells the same."""
        return any(duplicates(lesson, self.near(lesson)))


def contradicting(lessons: Iterable[Lesson]) -> Iterator[tuple[Lesson, Lesson]]:
    """Yield the pairs of one phase that speak of the same, of which one says what the other forbids."""
    told = Told()
    for lesson in lessons:
        mine = _read(lesson.summary)
        for other in told.near(lesson):
            yours = _read(other.summary)
            is_opposite = mine.denies != yours.denies or _is_turned_round(mine, yours)
            if is_opposite and _overlap(mine, yours) > THRESHOLD:
                yield other, lesson
        told.add(lesson)


def tells_the_same(one: str, other: str) -> bool:
    """Compare two summaries by their keywords. Opposites and different names are never the same.

    How a lesson commands (must, 需要, 必须) makes no difference, whether it forbids does.
    """
    if one == other:
        return True
    mine, yours = _read(one), _read(other)
    if mine.denies != yours.denies or _names_another(mine, yours) or _names_another(yours, mine):
        return False
    is_near = _overlap(mine, yours) > THRESHOLD
    return is_near and not _is_turned_round(mine, yours) and not _names_in_its_place(mine, yours)


def _names_another(one: _Read, other: _Read) -> bool:
    """Tell whether one names what the other does not, where the other has words of its own."""
    return bool(one.names - other.names - other.words) and bool(other.words - one.words)


def _names_in_its_place(one: _Read, other: _Read) -> bool:
    """Tell one sentence about two things: word for word the same, but for some that stand in the place of others."""
    mine, yours = one.words - other.words, other.words - one.words
    swapped = [pair for pair in zip(one.order, other.order, strict=False) if pair[0] != pair[1]]
    # In Chinese it is not words that are compared but pairs of characters.
    is_one_sentence = len(one.order) == len(other.order) and "".join(mine | yours).isascii()
    return is_one_sentence and bool(swapped) and all(a in mine and b in yours for a, b in swapped)


def _overlap(one: _Read, other: _Read) -> float:
    """Return how much of all keywords both share; one that merely goes on where the other ends tells the same."""
    fewer, more = sorted((one.words, other.words), key=len)
    if len(fewer) >= _FEWEST and fewer <= more:
        return 1.0
    return len(fewer & more) / len(fewer | more) if more else 0.0


def _is_turned_round(one: _Read, other: _Read) -> bool:
    """Tell "A before B" from "B before A"."""
    if one.sides is None or other.sides is None:
        return False
    (a, b), (c, d) = one.sides, other.sides
    return bool((a - c) & (d - b) and (b - d) & (c - a))


@lru_cache(maxsize=8192)
def _read(text: str) -> _Read:
    plain = phrases("error_part").sub("", text[:_LONGEST])
    sides = phrases("ordered").match(plain)
    names = (
        next(filter(None, found)).strip('.#@$^~"').casefold() for found in phrases("name").findall(plain)
    )
    return _Read(
        words=frozenset(_stems(plain)),
        order=_stems(plain),
        names=frozenset(names),
        denies=phrases("denied").search(plain) is not None,
        sides=(frozenset(_stems(sides["one"])), frozenset(_stems(sides["other"]))) if sides else None,
    )


def _stems(text: str) -> tuple[str, ...]:
    stems = map(stem, keywords(_CHINESE_COMMAND.sub(" ", phrases("denied").sub(" ", text))))
    return tuple(word for word in stems if not _COMMAND.fullmatch(word))
