"""Which ends of which axes a topic speaks of: "ascending", "log out", 下载 (SPEC 3.2)."""

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from kr.matching.axes import poles_in, poles_of
from kr.matching.denial import Denial
from kr.matching.inflection import singular
from kr.matching.phrasal import place_of
from kr.matching.words import stem
from kr.text.stopwords import word_set
from kr.text.tokens import Token

_ACCESSORS = word_set("get gets getting got set sets setting")
_ARTICLES = frozenset({"a", "the"})
Axis = int | str


class End(NamedTuple):
    """One end of an axis of opposites, and the word that names it."""

    pole: int
    text: str


def ends_of(tokens: list[Token], denials: tuple[Denial, ...]) -> dict[Axis, Counter[End]]:
    """Return for each axis how often each word names an end; what is denied names the other one."""
    denied = {denial.head for denial in denials}
    found: dict[Axis, Counter[End]] = {}
    for position, token in enumerate(tokens):
        flip = -1 if token.kind == "word" and token.at in denied else 1
        for axis, pole, text in _ends(tokens, position):
            found.setdefault(axis, Counter())[End(pole * flip, text)] += 1
    return found


def are_opposed(one: Counter[End], other: Counter[End]) -> bool:
    """Compare the ends that each topic names for itself: "connect ... connections", "disconnect ... connections"."""
    mine, yours = {end.pole for end in one - other}, {end.pole for end in other - one}
    return bool(mine and yours) and mine.isdisjoint(yours)


def _ends(tokens: list[Token], position: int) -> list[tuple[Axis, int, str]]:
    token = tokens[position]
    if token.kind == "cjk":
        return [*poles_in(token.text)]
    if token.kind == "break" or (token.text == "up" and _follows(tokens, position, "to")):
        return []
    if token.text in _ACCESSORS and not _is_verb(tokens, position):
        return []
    return _named(token.text)


@lru_cache(maxsize=8192)
def _named(word: str) -> list[tuple[Axis, int, str]]:
    root = stem(word)
    found: list[tuple[Axis, int, str]] = [(axis, pole, root) for axis, pole in poles_of(word)]
    if phrase := place_of(word) or place_of(singular(word)):
        found.append((*phrase, root))
    return found


def _is_verb(tokens: list[Token], position: int) -> bool:
    """Tell "set a cookie" from "the result set" and "a set of cookies"."""
    before = tokens[position - 1] if position else None
    if before is not None and before.kind == "word" and (not before.function or before.text in _ARTICLES):
        return False
    return not _follows(tokens, position, "of")


def _follows(tokens: list[Token], position: int, text: str) -> bool:
    return position + 1 < len(tokens) and tokens[position + 1].text == text
