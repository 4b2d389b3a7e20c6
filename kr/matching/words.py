"""Words and when two count as the same: one script, inflection, short forms, synonyms, opposites, typing errors (SPEC 3.2)."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import combinations
from typing import Literal

from kr.matching import table
from kr.text.keywords import word_set
from kr.values import NamedTuple


class Token(NamedTuple):
    """A word, a run of Chinese, Japanese or Korean characters, or a break between phrases.

    ``at`` counts words; a run or break has the place of the word after it. ``in_name`` marks the words
    of an identifier, ``joint`` those that a hyphen ties to the word before.
    """

    kind: Literal["word", "cjk", "break"]
    text: str
    at: int
    function: bool
    in_name: bool = False
    joint: bool = False


def simplified(text: str) -> str:
    """Return ``text`` in simplified characters and mainland terms, as far as ``traditional.txt`` goes; idempotent."""
    if text.isascii():
        return text
    characters, terms, found = _tables()
    return found.sub(lambda match: terms[match[0]], text.translate(characters))


@cache
def _tables() -> tuple[dict[int, int], dict[str, str], re.Pattern[str]]:
    text = table("traditional.txt")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = [line for line in lines if "/" not in line]
    characters = str.maketrans("".join(rows[::2]), "".join(rows[1::2]))
    terms = dict(pair.split("/") for line in lines if "/" in line for pair in line.split())
    return characters, terms, re.compile("|".join(sorted(terms, key=len, reverse=True)))


@cache
def pattern(*words: str) -> re.Pattern[str]:
    """Return a pattern that finds the first of ``words`` that fits, in a text that is simplified too."""
    return re.compile("|".join(map(re.escape, map(simplified, words))))


_PLURAL_LOOK = word_set(
    """
    https wss ftps ldaps imaps smtps amqps mqtts coaps rediss
    alias canvas atlas bias pandas christmas ios macos webos chaos kudos cosmos ethos axios nacos helios has does
    """
)
"""Protocols whose last letter says "secure", and other words that are no plurals."""
_PLURALS = word_set("menus submenus gpus cpus tpus apis uris guis clis emojis wikis taxis")
"""Plurals among the many words that end alike: status, analysis."""
_OWN_WORDS = word_set(
    "setting settings string strings thing things nothing something anything everything during morning spring ring"
    " king bring need speed feed seed embed heading headings building buildings meaning listing rating ping"
)
"""Words that only look inflected, or whose inflected form became a thing of its own."""


def singular(word: str) -> str:
    """Take the plural's ``s`` off."""
    if len(word) < 4 or not word.endswith("s") or word in _PLURAL_LOOK or word.endswith("ss"):
        return word
    if word.endswith(("us", "is")) and word not in _PLURALS:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1]


def bases(word: str, *, is_verb: bool = False) -> Iterator[str]:
    """Yield ``word`` and what it may be a form of (``hiding``: ``hid``, ``hide``), to be held against a table.

    ``is_verb`` tells that a word such as ``setting`` is no thing of its own.
    """
    yield word
    if (word in _OWN_WORDS and not is_verb) or not word.isascii():
        return
    if (one := singular(word)) != word:
        yield one
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < 2:
            continue
        yield rest
        yield rest + "e"
        if len(rest) > 2 and rest[-1] == rest[-2]:
            yield rest[:-1]
        if ending == "ed" and rest[-1] == "i":
            yield rest[:-1] + "y"


def _section(name: str) -> list[list[str]]:
    """Return the groups of words of one section of ``words.txt``."""
    lines = _TABLES.partition(f"[{name}]\n")[2].partition("\n[")[0].splitlines()
    return [group.split() for line in lines if not line.startswith("#") for group in line.split(";")]


_TABLES = table("words.txt")

SHORT_FORMS = {short: full for short, full in _section("short") if short != full}
"""What stands for what, as words in full; a phrase is written as one word."""

SYNONYMS = dict(_section("synonyms"))
"""Words that are interchangeable in a topic, to be looked up by the base form."""

ALTERNATIVES = {short: tuple(full) for short, *full in _section("alternatives")}
"""Short forms that stand for one of several words, as the other topic has it."""


Poles = dict[str, tuple[tuple[int, int], ...]]


def _poles(text: str, start: int = 0) -> Poles:
    found: dict[str, list[tuple[int, int]]] = {}
    for axis, line in enumerate(dict.fromkeys(text.splitlines()), start):
        one, other = line.split("|")
        for word in one.split():
            found.setdefault(word, []).append((axis, 1))
        for word in other.split():
            found.setdefault(word, []).append((axis, -1))
    return {word: tuple(ends) for word, ends in found.items()}


@cache
def _sections() -> tuple[str, str]:
    text = table("opposites.txt")
    english, _, others = text.partition("[english]\n")[2].partition("[chinese, japanese, korean]\n")
    return english, others


@cache
def english_poles() -> Poles:
    """Return for each word the axes of meaning it lies on, with its end of each: 1 or -1. Axes are numbers."""
    return _poles(_sections()[0])


def poles_of(word: str) -> tuple[tuple[int, int], ...]:
    """Return the axes and ends of an English word in any of its forms."""
    poles = english_poles()
    for base in bases(word):
        if base in poles:
            return poles[base]
    return poles.get(SHORT_FORMS.get(word, ""), ())


def poles_in(run: str) -> list[tuple[int, int, str]]:
    """Return the axes and ends that a run of simplified Chinese, of Japanese or Korean names, each with its word."""
    poles = cjk_poles()
    return [(axis, pole, word) for word in _cjk_pattern().findall(run) for axis, pole in poles[word]]


@cache
def cjk_poles() -> Poles:
    return _poles(simplified(_sections()[1]), start=1000)


@cache
def _cjk_pattern() -> re.Pattern[str]:
    return pattern(*sorted(cjk_poles(), key=len, reverse=True))


@cache
def _confusable() -> frozenset[frozenset[str]]:
    """Return the words of the trade that are one typing error apart and still not the same."""
    return frozenset(frozenset(pair) for group in _section("confusable") for pair in combinations(group, 2))


_VOWELS = frozenset("aeiouy")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return what the inflected forms of an English word share; other words come back as they are."""
    word = SHORT_FORMS.get(word, word)
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    word = singular(word)
    word = SHORT_FORMS.get(word, word)
    word = next((SYNONYMS[base] for base in bases(word) if base in SYNONYMS), word)
    for ending, least, replacement in _BY_LAST_LETTER.get(word[-1], ()):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            if len(rest) >= least and not _VOWELS.isdisjoint(rest):
                # "provisioning" is a form of a noun that has a verb's root itself.
                return stem(rest) if rest.endswith("ion") else _tidy(rest + replacement)
    return _tidy(word)


_ENDINGS = (
    ("ification", 3, "ify"), ("ified", 3, "ify"), ("ifier", 4, "ify"), ("atically", 4, ""), ("atic", 4, ""),
    ("ically", 3, "ic"), ("ical", 4, "ic"), ("ability", 4, ""), ("ibility", 4, ""), ("ity", 5, ""), ("ness", 4, ""),
    ("ism", 5, ""), ("ence", 6, ""), ("ance", 6, ""),
    ("ionship", 4, ""), ("ization", 4, "iz"), ("isation", 4, "iz"), ("ational", 4, ""), ("ation", 4, ""),
    ("ional", 4, ""), ("ating", 4, ""), ("ated", 4, ""), ("ator", 4, ""), ("ate", 4, ""), ("ally", 4, "al"),
    ("scription", 2, "scrib"), ("scribing", 2, "scrib"), ("ion", 4, ""), ("ement", 5, ""), ("ment", 6, ""), ("able", 4, ""),
    ("ible", 4, ""), ("ency", 4, ""), ("ancy", 4, ""), ("ingly", 4, ""), ("edly", 4, ""), ("ing", 3, ""),
    ("eed", 99, ""), ("ied", 3, "y"), ("ed", 3, ""), ("ily", 3, "y"), ("ly", 4, ""), ("er", 5, ""), ("or", 6, ""), ("ndent", 4, "nd"), ("rrent", 4, "r"), ("stent", 4, "st"),
    ("potent", 3, "pot"), ("erent", 4, "er"),
)  # fmt: skip

_BY_LAST_LETTER = {
    letter: tuple(row for row in _ENDINGS if row[0][-1] == letter)
    for letter in {row[0][-1] for row in _ENDINGS}
}


def _tidy(root: str) -> str:
    if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "sl":
        root = root[:-1]
    if len(root) > 3 and root.endswith("e"):
        root = root[:-1]
    return root


def is_short_for(one: str, other: str) -> bool:
    """Tell whether one word is an ambiguous short form of the other: ``auth`` of both ``authorization`` and ..."""
    return any(
        stem(full) == stem(long)
        for short, long in ((one, other), (other, one))
        for full in ALTERNATIVES.get(singular(short), ())
    )


def is_near(one: str, other: str) -> bool:
    """Tell whether two words are the same but for a typing error: ``validaton``, ``rewirte``.

    One edit (or two neighbours swapped) in words of five letters or more, two in words of nine or more; the first
    letter and every digit must agree, and opposites and well-known lookalikes stay apart.
    """
    shorter = min(len(one), len(other))
    if shorter < 5 or one[0] != other[0] or abs(len(one) - len(other)) > 2 or shorter > 40:
        return False
    return is_slip(one, other, allowed=2 if shorter >= 9 else 1)


def is_slip(one: str, other: str, *, allowed: int) -> bool:
    """Tell whether at most ``allowed`` typing errors part two words that are not known to be different."""
    # Each error exchanges at most two letters: what that excludes need not load the library.
    if abs(len(one) - len(other)) > allowed:
        return False
    if sum(abs(one.count(letter) - other.count(letter)) for letter in {*one, *other}) > 2 * allowed:
        return False
    if not (one.isalpha() and other.isalpha()) or is_distinct(one, other):
        return False
    from rapidfuzz.distance import OSA

    return OSA.distance(one, other, score_cutoff=allowed) <= allowed


def is_distinct(one: str, other: str) -> bool:
    """Tell whether two similar words are known to mean different things."""
    if frozenset((singular(one), singular(other))) in _confusable():
        return True
    poles = dict(poles_of(one))
    return any(poles.get(axis, pole) != pole for axis, pole in poles_of(other))


class Concept(NamedTuple):
    """Roots of words that may stand for one another: an act ("delete", "purge", "clear"), or a thing ("modal", "dialog").

    ``at`` is its place in ``concepts.txt``.
    """

    at: int
    is_act: bool
    roots: tuple[str, ...]


@lru_cache(maxsize=4096)
def concepts(root: str) -> tuple[Concept, ...]:
    """Return the concepts of ``concepts.txt`` that a word may stand for, by its root; a word may have several."""
    text, things = _concepts()
    found = []
    at = text.find(f" {root} ")
    while at >= 0:
        start, end = text.rindex("\n", 0, at + 1), text.index("\n", at)
        found.append(Concept(start, start < things, tuple(text[start:end].split())))
        at = text.find(f" {root} ", end)
    return tuple(found)


@cache
def _concepts() -> tuple[str, int]:
    """Return the table, each word of it between spaces, and where its things begin."""
    # Searched as it is: to take it apart would cost a look-up more than the few dozen words that it asks for.
    text = table("concepts.txt").partition("\n")[2].replace("\n", " \n ")
    return f"\n {text}\n", text.index("\n  \n")
