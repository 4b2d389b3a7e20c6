"""Whether a lesson tells what another one told already (seed 003, step 4; SPEC 4.2)."""

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from kr.lessons.line import Lesson
from kr.matching.compare import compare
from kr.matching.topic import Topic, topic_of
from kr.naming import fold
from kr.text.keywords import is_cjk, keywords

THRESHOLD = 0.70
"""An overlap of keywords above this is a duplicate."""

_LEAST_SHARED = 0.3
_ROOT = 4
_COMPARED = 200
_COMPARED_OF_MANY = 24
_LOOKED_UP = 1000
_LONGEST = 320
"""Characters of a summary that are compared: twice as many as a lesson has columns."""

# Words that only command: two lessons are the same whichever of them each uses, except for the denial.
_DENIED = re.compile(
    r"不要(?:再)?|避免(?:使用)?|禁止|严禁|切勿|请勿|不得|不应该?|杜绝|(?<!切|请)勿"
    r"|\b(?:do not|don't|never|avoid|must not|mustn't|should not|shouldn't|no need to)\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"一定要|必须要?|务必|需要|应该|应当|(?<!不)需|须|请(?!求)|应(?!用)|(?<=[\s\u3400-\u9fff])要(?!求)|确保"
    r"|\b(?:must(?: be)?|should(?: be)?|needs? to(?: be)?|ha(?:ve|s) to(?: be)?|make sure (?:to|that)|ensure(?: that)?|always|please|remember to|be sure to)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"['\"`‘’“”「」]")
# What a lesson tells of two things, and which of them comes first or is to be left: (pattern, is the first one left).
_RELATIONS = tuple(
    (name, is_swapped, re.compile(pattern, re.IGNORECASE))
    for name, is_swapped, pattern in (
        ("replace", False, r"(?:replace|swap|exchange|substitute) (.+?) (?:with|for|by) (.+)"),
        ("replace", True, r"(.+?),? (?:instead of|rather than|in place of|over) (.+)"),
        ("replace", False, r".*?\bfrom (.+?) (?:to|into) (.+)"),
        ("replace", False, r"(?:rename|change|convert|migrate|switch|move|turn) (.+?) (?:to|into) (.+)"),
        ("replace", True, r"(.+?)(?:代替|替代|取代|替换掉|，?而不是|，?而非|，?不要用)(.+)"),
        (
            "replace",
            False,
            r"(.+?)(?:替换[成为]|换[成为]|改[成为用]|迁移[到至]|转[成为换]+|升级[到为]|变成)(.+)",
        ),
        ("replace", True, r"(?:使?用|以)(.+?)替换(.+)"),
        ("order", False, r"(.+?) (?:before|prior to|ahead of) (.+)"),
        ("order", True, r"(.+?) (?:after|following) (.+)"),
        ("order", False, r".*?先(.+?)[，,]?(?:再|后|然后)(.+)"),
        ("order", True, r".*?在?(.+?)(?:之后|以后)(.+)"),
        ("order", False, r".*?在?(.+?)(?:之前|以前)(.+)"),
    )
)
_IDENTIFIER = re.compile(
    r"[A-Za-z_$][\w$]*(?=\()|(?<![\w.])[.#@$][A-Za-z][\w-]*|\b[a-z]+[A-Z]\w*|\b\w+_\w+|\b\w+(?:\.\w+)+|\b[A-Z][a-z]+[A-Z]\w*|\b\d+(?:\.\w+)*\b|--[a-z][\w-]+"
)


def duplicates(lesson: Lesson, others: Iterable[Lesson]) -> Iterator[Lesson]:
    """Yield those of ``others`` that have the lesson's phase and tell the same.

    The phase is the lesson's first tag. Of a long file only the lessons that share the most words are looked
    at closely, so that it costs little however long the file is.
    """
    yield from _telling_the_same(lesson, _nearest(lesson, others))


class Told:
    """Lessons that many others are compared with: each costs the same however many there are."""

    def __init__(self, lessons: Iterable[Lesson]) -> None:
        self._lessons: list[Lesson] = []
        self._equal: dict[tuple[str, str], int] = {}
        self._with: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for lesson in lessons:
            self.add(lesson)

    def add(self, lesson: Lesson) -> None:
        """Take a lesson in."""
        number = len(self._lessons)
        self._lessons.append(lesson)
        marks = _marks(lesson)
        for tag in lesson.tags:
            self._equal.setdefault((tag, lesson.summary), number)
            for mark in marks:
                self._with[tag, mark].append(number)

    def tells(self, lesson: Lesson) -> bool:
        """Tell whether one of the lessons has the phase of this one and tells the same.

        Only the last thousand that share a word are looked for by that word.
        """
        phase = lesson.tags[0]
        if (phase, lesson.summary) in self._equal:
            return True
        marks = _marks(lesson)
        shared: Counter[int] = Counter()
        for mark in marks:
            shared.update(self._with.get((phase, mark), ())[-_LOOKED_UP:])
        needed = len(marks) * _LEAST_SHARED
        near = ((count, number) for number, count in shared.items() if count >= needed)
        best = heapq.nlargest(_COMPARED_OF_MANY, near)
        return any(_telling_the_same(lesson, (self._lessons[number] for _, number in best)))


def _telling_the_same(lesson: Lesson, others: Iterable[Lesson]) -> Iterator[Lesson]:
    return (other for other in others if tells_the_same(lesson.summary, other.summary))


def _marks(lesson: Lesson) -> frozenset[str]:
    """Return the words of a lesson, and the roots of those that may be inflected."""
    words = keywords(lesson.summary[:_LONGEST])
    return frozenset([*words, *(f"{word[:_ROOT]}…" for word in words if len(word) > _ROOT)])


def _nearest(lesson: Lesson, others: Iterable[Lesson]) -> list[Lesson]:
    words = keywords(lesson.summary[:_LONGEST])
    roots = [word if is_cjk(word) or len(word) < _ROOT else word[:_ROOT] for word in words]
    needed = len(roots) * _LEAST_SHARED
    phase, length = lesson.tags[0], len(lesson.summary)
    near: list[tuple[int, int, int, int, Lesson]] = []
    for number, other in enumerate(others):
        if phase in other.tags:
            text = other.summary[:_LONGEST].casefold()
            is_equal = other.summary == lesson.summary
            shared = len(roots) + 1 if is_equal else sum([root in text for root in roots])
            if shared >= needed:
                whole = sum([word in text for word in words])
                near.append((shared, whole, -abs(len(other.summary) - length), number, other))
    return [other for *_, other in heapq.nlargest(_COMPARED, near)]


class _Read(NamedTuple):
    """What a comparison needs to know of a summary."""

    folded: str
    denies: bool
    topic: Topic
    names: frozenset[str]
    words: frozenset[str]
    related: dict[str, tuple[frozenset[str], frozenset[str]]]


@lru_cache(maxsize=2048)
def _read(text: str) -> _Read:
    plain = _QUOTED.sub("", text)
    names = frozenset(found.strip(".#@$").casefold() for found in _IDENTIFIER.findall(plain))
    return _Read(
        folded=fold(text),
        denies=_DENIED.search(text) is not None,
        topic=topic_of(_bare(text)),
        names=names,
        words=names | {word.casefold() for word in re.findall(r"[\w$]+", plain)},
        related=_related(text),
    )


def tells_the_same(one: str, other: str) -> bool:
    """Compare two summaries by their keywords. Opposites and different names are never the same.

    How a lesson commands (must, 需要, 必须) makes no difference, whether it forbids does. A summary that merely
    goes on where the other ends (a reason, a version) denies nothing by it. Of a line that is longer than a
    lesson can be only the beginning is compared.
    """
    mine, yours = _read(one[:_LONGEST]), _read(other[:_LONGEST])
    if mine.folded == yours.folded:
        return True
    if _is_turned_round(mine, yours) or (mine.names - yours.words and yours.names - mine.words):
        return False
    goes_on = mine.folded.startswith(yours.folded) or yours.folded.startswith(mine.folded)
    if mine.denies != yours.denies and not goes_on:
        return False
    compared = compare(mine.topic, yours.topic)
    return compared.overlap > THRESHOLD and (compared.contradiction is None or goes_on)


def _bare(text: str) -> str:
    """Take off how a lesson commands, or forbids: both lessons do the one or the other by now."""
    return " ".join(_COMMAND.sub(" ", _DENIED.sub(" ", _QUOTED.sub("", text))).split())


def _is_turned_round(one: _Read, other: _Read) -> bool:
    """Tell "replace A with B" from "replace B with A", and "A before B" from "B before A"."""
    for name in one.related.keys() & other.related.keys():
        (a, b), (c, d) = one.related[name], other.related[name]
        if (a - c) & (d - b) and (b - d) & (c - a):
            return True
    return False


def _related(text: str) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    found: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for name, is_swapped, pattern in _RELATIONS:
        match = pattern.match(text)
        if match and name not in found:
            sides = frozenset(keywords(match[1])), frozenset(keywords(match[2]))
            found[name] = sides[::-1] if is_swapped else sides
    return found
