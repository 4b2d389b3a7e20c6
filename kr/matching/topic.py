"""A topic taken apart for comparison: words, names (identifiers, acronyms, numbers), runs of Chinese, what it denies (SPEC 3.2)."""

import re
from collections import Counter
from functools import cache, cached_property, lru_cache
from typing import Literal

from kr.matching.opposites import (
    Axis,
    Denial,
    Direction,
    End,
    denials,
    directions,
    ends_of,
    is_denying_zero,
    is_number,
    merge_verbs,
    positive_of,
)
from kr.matching.words import Token, is_distinct, is_slip, pattern, simplified, singular, stem
from kr.text import keywords as kw
from kr.text.keywords import (
    CJK_FUNCTION,
    CJK_LIGHT,
    FUNCTION_WORDS,
    HEAVY_PREPOSITIONS,
    LIGHT_WORDS,
    word_set,
)
from kr.values import NamedTuple, Value

Kind = Literal["code", "compound", "acronym", "number", "term"]

_UNITS = word_set("k m g b kb mb gb tb ms s sec min h px rem em fps hz st nd rd th")
_PREFIX = 3
_NO_DIRECTIVE = word_set("re un de co e in on up to no my by bi")


class Name(NamedTuple):
    """``key`` is the name without case, separators and plural; ``parts`` are its words.

    ``code`` is written as no prose is (``useEffect``, ``max_overflow``, ``@Value``, ``--force``, ``unique()``,
    ``import.meta``, ``v-model``, ``E0502``); ``compound`` is a hyphenated word; ``term`` a Latin word in Chinese prose.
    ``aliases`` are the parts that may stand for the whole: ``read_csv`` of ``pd.read_csv``, ``table`` of ``el-table``;
    a name without parts is its own. ``start`` is the index of its first word.
    """

    kind: Kind
    key: str
    parts: tuple[str, ...]
    aliases: frozenset[str]
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.parts)


def name_in(
    body: str, mark: str, tail: str, components: list[list[str]], *, start: int, cased: bool, chinese: bool
) -> Name | None:
    """Return the name that a token is, or None for an ordinary word.

    ``cased`` tells that the topic's letter case means something, ``chinese`` that its prose is not Latin.
    """
    parts = tuple(part for component in components for part in component)
    if not parts:
        return None
    kind = _kind(body, mark, tail, components, cased=cased)
    if kind is None and chinese and parts[0] not in FUNCTION_WORDS and parts[0] not in LIGHT_WORDS:
        kind = "term"
    if kind is None:
        return None
    if kind == "number":
        return Name(kind, body.lower().removeprefix("v").removesuffix(".x"), (body,), frozenset(), start)
    key = singular("".join(parts)) + (tail if tail in {"++", "#"} else "")
    return Name(kind, key, parts, _aliases(key, body, mark, components), start)


def _aliases(key: str, body: str, mark: str, components: list[list[str]]) -> frozenset[str]:
    pieces = [singular("".join(component)) for component in components]
    if len(pieces) == 1:
        return frozenset({key})
    if "-" not in body:
        return frozenset({pieces[0], pieces[-1]})
    # A short prefix is that of a library: el-table, v-model. No part of --force-with-lease stands for it.
    return frozenset(pieces[-1:] if len(pieces) == 2 and len(pieces[0]) <= _PREFIX and not mark else ())


def _kind(body: str, mark: str, tail: str, components: list[list[str]], *, cased: bool) -> Kind | None:
    if is_number(body):
        return "number"
    if mark or tail or "_" in body.strip("_") or any(len(component) > 1 for component in components):
        return "code"
    unit = body.lstrip("0123456789")
    if unit != body and unit.lower() in _UNITS:
        return None
    has_digits = any(char.isdecimal() for char in body)
    if (has_digits and any(char.isalpha() for char in body)) or "." in body or ":" in body:
        return "code"
    if "-" in body:
        first = components[0][0]
        return "code" if len(first) < 3 and first not in _NO_DIRECTIVE and first.isalpha() else "compound"
    bare = body.removesuffix("s")
    if cased and len(bare) > 1 and bare.isupper() and body.lower() not in FUNCTION_WORDS:
        return "acronym"
    return None


def same_name(one: Name, other: Name) -> bool:
    """Tell whether two names mean one thing: equal but for case, separators, plural, a prefix or a typing error."""
    if one.kind == "number" and other.kind == "number":
        return _starts_with(one.key, other.key) or _starts_with(other.key, one.key)
    if one.key == other.key:
        return True
    if one.key in one.aliases & other.aliases or other.key in one.aliases & other.aliases:
        return True
    return _is_misspelt(one, other)


def _starts_with(longer: str, shorter: str) -> bool:
    return longer == shorter or longer.startswith(shorter + ".")


def _is_misspelt(one: Name, other: Name) -> bool:
    if min(len(one.key), len(other.key)) < 6 or max(len(one.key), len(other.key)) > 80:
        return False
    if len(one.parts) != len(other.parts):
        return (
            len(one.parts) == 1
            and min(len(one.key), len(other.key)) >= 8
            and is_slip(one.key, other.key, allowed=1)
        )
    different = [(a, b) for a, b in zip(one.parts, other.parts, strict=True) if singular(a) != singular(b)]
    if len(different) > 1:
        return False
    return all(
        min(len(a), len(b)) >= 4 and a[0] == b[0] and not is_distinct(a, b) and is_slip(a, b, allowed=1)
        for a, b in different
    )


MAX_WORDS = 64
MAX_NAMES = 24
LIGHT, NUMBER, FULL = 0.3, 0.5, 1.0
NAME = 1.5
"""The least weight of an identifier, however few words it has."""
CHARACTER, LIGHT_CHARACTER = 0.5, 0.15
_LONGEST_JOIN = 6

_SEPARATORS = re.compile(r"[.:-]+")


class Unit(NamedTuple):
    """One content word: where it stands among all words, how it reads, and what it weighs.

    ``denies`` is the stem of what the word denies by its form (``uncontrolled``: that of ``controlled``), if it does.
    """

    at: int
    text: str
    stem: str
    plain: str
    denies: str | None
    weight: float


class Segment(NamedTuple):
    """A run of Chinese, Japanese or Korean characters without function phrases, and each character's weight."""

    text: str
    weights: tuple[float, ...]


class Topic(Value):
    """What a comparison needs to know of one topic. Built once per text, see :func:`topic_of`."""

    units: tuple[Unit, ...]
    segments: tuple[Segment, ...]
    identifiers: tuple[Name, ...]
    denials: tuple[Denial, ...]
    stems: frozenset[str]
    bigrams: frozenset[str]
    poles: dict[Axis, Counter[End]]
    """Axis of opposites: how often each word names one of its ends."""
    directions: frozenset[Direction]
    lexicon: frozenset[str]
    """Stems and bigrams."""
    deniers: tuple[Unit, ...]
    """The words that deny by their form."""
    words: tuple[Token, ...]

    @cached_property
    def substance(self) -> float:
        """What the topic weighs without its light words."""
        words = sum(unit.weight for unit in self.units if unit.weight > LIGHT)
        return words + sum(w for segment in self.segments for w in segment.weights if w > LIGHT_CHARACTER)

    @cached_property
    def joined(self) -> dict[str, tuple[int, int]]:
        """Neighbouring words written as one, with the first place and the one past the last."""
        found: dict[str, tuple[int, int]] = {}
        for start, first in enumerate(self.words):
            text = ""
            for word in self.words[start : start + _LONGEST_JOIN]:
                text += word.text
                found.setdefault(singular(text) if text[-1] == "s" else text, (first.at, word.at + 1))
        return found

    @cached_property
    def initials(self) -> dict[str, tuple[int, int]]:
        """Neighbouring content words as an acronym, with their places."""
        units = self.units
        found: dict[str, tuple[int, int]] = {}
        for start in range(len(units)):
            for end in range(start + 3, min(start + 6, len(units)) + 1):
                letters = "".join(unit.text[0] for unit in units[start:end])
                found.setdefault(letters, (units[start].at, units[end - 1].at + 1))
        return found


def topic_of(text: str) -> Topic:
    """Take ``text`` apart. The cost is bounded whatever its length: see ``keywords.MAX_CHARACTERS``."""
    return _topic_of(text[: kw.MAX_CHARACTERS])


def need_of(topic: str, question: str | None) -> Topic:
    """Take a topic and its question apart as one text."""
    return topic_of(f"{topic} . {question or ''}")


@lru_cache(maxsize=2048)
def _topic_of(text: str) -> Topic:
    tokens, names = _read(kw.normalise(text))
    words = tuple(token for token in tokens if token.kind == "word")
    tokens = _weighed(merge_verbs(tokens))
    units = _units(tokens, names)
    segments = tuple(
        _segment(part) for token in tokens if token.kind == "cjk" for part in _without_function(token.text)
    )
    found = denials(tokens)
    stems = frozenset(unit.stem for unit in units)
    pairs = frozenset(bigram for segment in segments for bigram in kw.bigrams(segment.text))
    return Topic(
        units=units,
        segments=segments,
        identifiers=names[:MAX_NAMES],
        denials=found,
        stems=stems,
        bigrams=pairs,
        poles=ends_of(tokens, found),
        directions=directions(tokens),
        lexicon=stems | pairs,
        deniers=tuple(unit for unit in units if unit.denies),
        words=words,
    )


@cache
def _token(is_ascii: bool) -> re.Pattern[str]:  # what no ASCII text has takes long to compile
    word, stops = (r"\w", "") if is_ascii else (f"{kw.WORD}’", "、。，；：！？（）—")
    return re.compile(
        r"(?P<mark>@|(?<![\w-])--?|\$)?"
        rf"(?P<body>\w[{word}.:'-]*)"
        r"(?P<tail>\(\)|\+\+|\#)?"
        rf"|(?P<stop>[,;.!?()|{stops}])"
    )


def _read(text: str) -> tuple[list[Token], tuple[Name, ...]]:
    tokens: list[Token] = []
    names: dict[str, Name] = {}
    cased = any(char.islower() for char in text)
    runs = kw.runs(text)
    chinese = any(is_run for _, is_run in runs)
    at = 0
    for run, is_run in runs:
        if is_run:
            tokens.append(Token("cjk", simplified(kw.fold_word(run)), at, function=False))
            continue
        for match in _token(run.isascii()).finditer(run):
            if match["body"]:
                parts, name = _word(match, at, cased=cased, chinese=chinese)
                tokens.extend(parts)
                at += len(parts)
                if name:
                    names.setdefault(name.key, name)
            if not match["body"] or match["body"][-1] in ".:":
                tokens.append(Token("break", "", at, function=True))
            if at >= 2 * MAX_WORDS:
                return tokens, tuple(names.values())
    return tokens, tuple(names.values())


def _word(match: re.Match[str], at: int, *, cased: bool, chinese: bool) -> tuple[list[Token], Name | None]:
    """Read one word or compound that starts at place ``at``; cut where it has too many parts."""
    body = match["body"].rstrip(".:'’-")
    components = [parts for piece in _SEPARATORS.split(body) if (parts := kw.split_compound(piece))]
    parts = [part for component in components for part in component]
    if is_number(body):
        parts = [body.lower().removeprefix("v")]
    mark, tail = match["mark"] or "", match["tail"] or ""
    name = name_in(body, mark, tail, components, start=at, cased=cased, chinese=chinese)
    content = sum(part not in FUNCTION_WORDS for part in parts)
    whole = len(parts) > 1 and content < 2 and "-" not in body
    in_code = name is not None and name.kind == "code"
    tokens = [
        Token(
            "word",
            part,
            at + offset,
            function=part in FUNCTION_WORDS and not (whole and offset),
            in_name=in_code and part != "non",
            joint=offset > 0 and "-" in body,
        )
        for offset, part in enumerate(parts[: 2 * MAX_WORDS])
    ]
    return tokens, name


def _weighed(tokens: list[Token]) -> list[Token]:
    """Mend which words are function words: ``zero`` and ``-free`` that deny, a preposition that has no object."""
    found = list(tokens)
    for position, token in enumerate(tokens):
        if token.kind != "word" or token.in_name:
            continue
        if (token.text == "free" and token.joint) or (
            token.text == "zero" and is_denying_zero(tokens, position)
        ):
            found[position] = token._replace(function=True)
        elif token.text in HEAVY_PREPOSITIONS and all(
            later.kind == "break" for later in tokens[position + 1 :]
        ):
            found[position] = token._replace(function=False)
    return found


def _units(tokens: list[Token], names: tuple[Name, ...]) -> tuple[Unit, ...]:
    least = {
        index: NAME / len(name.parts)
        for name in names
        if name.kind == "code"
        for index in range(name.start, name.end)
    }
    return tuple(
        _unit(token, least.get(token.at, 0.0))
        for token in tokens
        if token.kind == "word" and not token.function
    )[:MAX_WORDS]


def _unit(token: Token, least: float) -> Unit:
    positive = positive_of(token.text)
    return Unit(
        at=token.at,
        text=token.text,
        stem=stem(token.text),
        plain=singular(token.text),
        denies=stem(positive) if positive else None,
        weight=max(_weight(token.text), least),
    )


def _weight(word: str) -> float:
    if word in LIGHT_WORDS:
        return LIGHT
    return NUMBER if word[0].isdigit() else FULL


def _without_function(run: str) -> list[str]:
    return [part for part in pattern(*CJK_FUNCTION).split(run) if part] or [run]


def _segment(text: str) -> Segment:
    weights = [CHARACTER] * len(text)
    for match in pattern(*CJK_LIGHT).finditer(text):
        weights[match.start() : match.end()] = [LIGHT_CHARACTER] * (match.end() - match.start())
    return Segment(text, tuple(weights))
