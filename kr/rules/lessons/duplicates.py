"""Whether a lesson tells what another one told already (seed 003, step 4; SPEC 4.2)."""

import heapq
import re
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

    How a lesson commands (must, 需要, 必须) makes no difference, whether it forbids does. A summary that merely
    goes on where the other ends (a reason, a version) denies nothing by it.
    """
    mine, yours = fold(one), fold(other)
    if mine == yours:
        return True
    if _is_turned_round(one, other) or _has_other_names(one, other):
        return False
    if bool(_DENIED.search(one)) != bool(_DENIED.search(other)) and not (
        mine.startswith(yours) or yours.startswith(mine)
    ):
        return False
    compared = compare(topic_of(_bare(one)), topic_of(_bare(other)))
    if compared.overlap <= THRESHOLD:
        return False
    return compared.contradiction is None or mine.startswith(yours) or yours.startswith(mine)


def _bare(text: str) -> str:
    """Take off how a lesson commands, or forbids: both lessons do the one or the other by now."""
    return " ".join(_COMMAND.sub(" ", _DENIED.sub(" ", _QUOTED.sub("", text))).split())


def _is_turned_round(one: str, other: str) -> bool:
    """Tell "replace A with B" from "replace B with A", and "A before B" from "B before A"."""
    mine, yours = _related(one), _related(other)
    for name in mine.keys() & yours.keys():
        (a, b), (c, d) = mine[name], yours[name]
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


def _has_other_names(one: str, other: str) -> bool:
    """Tell whether each of them names by code or number what the other names nowhere."""
    return bool(_names(one) - _words(other)) and bool(_names(other) - _words(one))


def _names(text: str) -> set[str]:
    return {found.strip(".#@$").casefold() for found in _IDENTIFIER.findall(_QUOTED.sub("", text))}


def _words(text: str) -> set[str]:
    plain = _QUOTED.sub("", text)
    return _names(plain) | {word.casefold() for word in re.findall(r"[\w$]+", plain)}
