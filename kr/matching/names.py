"""Names in a topic that are no ordinary words: identifiers, acronyms, numbers (SPEC 3.2)."""

from typing import Literal

from kr.matching.denial import is_number
from kr.matching.words import is_distinct, is_slip, singular
from kr.text.stopwords import FUNCTION_WORDS, LIGHT_WORDS, word_set
from kr.values import NamedTuple

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
