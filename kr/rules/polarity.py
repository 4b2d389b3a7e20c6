"""What a topic denies: "without yield", "JWT validation disabled", 不展开 (SPEC 3.2)."""

import re
from typing import Literal, NamedTuple

from kr.rules.keywords import bigrams
from kr.rules.opposites import (
    CJK_EXCLUSIONS,
    CJK_NEGATIONS,
    CJK_NO_NEGATION,
    EXCLUSIONS,
    NEGATIONS,
    PHRASES,
    SYMPTOMS,
    TRAILING,
)
from kr.rules.stopwords import CJK_FUNCTION, LIGHT_WORDS, word_set
from kr.rules.words import stem

_SCOPE = 4
_VERBAL_SCOPE = 2
_CJK_SCOPE = 6
_LEAD = 4
_VERBAL = word_set("not never cannot cant dont doesnt didnt isnt arent wasnt wont shouldnt couldnt")
_NUMBER = re.compile(r"v?\d+(?:\.\d+)*(?:\.x)?", re.IGNORECASE)
_CJK_MARK = re.compile(
    "|".join(
        f"(?P<{kind}>{'|'.join(words)})"
        for kind, words in (("none", CJK_NO_NEGATION), ("weak", CJK_EXCLUSIONS), ("strong", CJK_NEGATIONS))
    )
)
_CJK_TRAILING = word_set("禁用 停用 关闭 屏蔽 關閉 なし なしで 없이 ない")
_CJK_FUNCTION = re.compile("|".join(CJK_FUNCTION))


_SYMPTOMS = frozenset(map(stem, SYMPTOMS))


class Token(NamedTuple):
    """A word, a run of Chinese, Japanese or Korean characters, or a break between phrases.

    ``at`` counts words; a run or break has the place of the word after it. ``in_name`` marks the words
    of an identifier.
    """

    kind: Literal["word", "cjk", "break"]
    text: str
    at: int
    function: bool
    in_name: bool = False


class Denial(NamedTuple):
    """One thing that a topic says is not there: stems and bigrams of it."""

    scope: frozenset[str]
    indices: frozenset[int]
    strong: bool


def is_number(text: str) -> bool:
    """Tell a plain number or a version (``3``, ``v2.7``, ``2.x``) from other words."""
    return _NUMBER.fullmatch(text) is not None


def denials(tokens: list[Token]) -> tuple[Denial, ...]:
    """Return what the tokens deny, in order."""
    found: list[Denial] = []
    for position, token in enumerate(tokens):
        if token.kind == "cjk":
            found.extend(_cjk_denials(tokens, position))
        elif token.kind == "word" and (denial := _denial(tokens, position)):
            found.append(denial)
    return tuple(found)


def _denial(tokens: list[Token], position: int) -> Denial | None:
    mark, start = tokens[position].text, position + 1
    if start < len(tokens) and (phrase := PHRASES.get((mark, tokens[start].text))):
        mark, start = phrase, start + 1
    strong = mark in NEGATIONS and not tokens[position].in_name
    if not (mark in NEGATIONS or mark in EXCLUSIONS or mark in TRAILING):
        return None
    limit = _VERBAL_SCOPE if mark in _VERBAL else _SCOPE
    follows = start < len(tokens) and tokens[start].kind != "break" and not tokens[start].function
    if mark in TRAILING and not follows:
        scope = _scope(tokens[:position][::-1], limit)
        if scope or mark == "off":
            return _made(scope, strong=True)
    if mark == "off":
        return None
    scope = _scope(tokens[start:], limit)
    if mark in _VERBAL | {"no"} and _is_complaint(tokens[start:], has_subject=position > 0):
        return None
    return _made(scope, strong=strong)


def _is_complaint(tokens: list[Token], *, has_subject: bool) -> bool:
    """Tell "header not showing on mobile" from "not showing columns"."""
    content = next((i for i, token in enumerate(tokens) if not token.function), None)
    if content is None or stem(tokens[content].text) not in _SYMPTOMS:
        return False
    if tokens[content].text == "found":
        return True
    return has_subject and (content + 1 == len(tokens) or tokens[content + 1].function)


def _scope(tokens: list[Token], limit: int) -> list[Token]:
    """Take the phrase at the front: content words up to a break or to the function word that ends it."""
    scope: list[Token] = []
    light: list[Token] = []
    lead = 0
    for token in tokens:
        if token.kind == "break":
            break
        if token.kind == "cjk":
            scope.append(token)
            break
        if token.function:
            lead += 1
            if scope or lead > _LEAD:
                break
        elif token.text in LIGHT_WORDS:
            light.append(token)
        elif token.text not in NEGATIONS:
            scope.append(token)
        if len(scope) == limit:
            break
    return scope or light


def _made(scope: list[Token], *, strong: bool) -> Denial | None:
    terms: set[str] = set()
    for token in scope:
        if token.kind == "cjk":
            terms.update(bigrams(_phrase(token.text)))
        else:
            terms.add(stem(token.text))
    indices = frozenset(token.at for token in scope if token.kind == "word")
    return Denial(frozenset(terms), indices, strong) if terms else None


def _phrase(text: str) -> str:
    parts = [part for part in _CJK_FUNCTION.split(text) if part]
    return parts[0][:_CJK_SCOPE] if parts else ""


def _cjk_denials(tokens: list[Token], position: int) -> list[Denial]:
    run = tokens[position].text
    found: list[Denial] = []
    for match in _CJK_MARK.finditer(run):
        if match["none"]:
            continue
        strong = match["strong"] is not None
        phrase = _phrase(run[match.end() :])
        if phrase:
            found.append(Denial(frozenset(bigrams(phrase)), frozenset(), strong))
            continue
        scope = _scope(tokens[position + 1 :], _SCOPE)
        before = _CJK_FUNCTION.split(run[: match.start()])[-1]
        if not scope and before:
            found.append(Denial(frozenset(bigrams(before[-_CJK_SCOPE:])), frozenset(), strong))
        elif not scope and match[0] in _CJK_TRAILING:
            scope = _scope(tokens[:position][::-1], _SCOPE)
        if denial := _made(scope, strong=strong):
            found.append(denial)
    return found
