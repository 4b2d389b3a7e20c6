"""Which way a topic goes: verbs with particles, ends of axes ("ascending", 下载), from one thing to another (SPEC 3.2)."""

from collections import Counter
from functools import lru_cache

from kr.matching.denial import Denial
from kr.matching.words import Token, bases, pattern, poles_in, poles_of, singular, stem
from kr.text.keywords import bigrams
from kr.text.stopwords import CJK_FUNCTION, FUNCTION_WORDS, word_set
from kr.values import NamedTuple

_VERBS = {
    "in": "log sign opt check clock zoom fade ease slide plug fill drill roll scale swap build",
    "on": "log sign turn switch power add toggle",
    "off": "log sign turn switch power toggle back cut hand kick take",
    "out": "log sign opt check clock time zoom fade ease slide roll scale swap print lay drop break bail lock fan read",
    "up": "set start sign back clean look pop speed scale follow warm boot spin mock hook sum wake roll clear tidy scroll page"
    " move count swipe slide step bubble round power bring",
    "down": "shut scale slow drill cool break drop spin tear step scroll page count touch roll round wind cut power move swipe"
    " slide bubble pull narrow",
    "back": "roll call fall play write feed switch scroll go move",
    "over": "fail switch hand take carry",
}
_PLACES = {"in": 0, "on": 0, "out": 1, "off": 1, "up": 2, "down": 3, "back": 4, "over": 5}
_PAIRS = {verb + particle: (verb, particle) for particle, verbs in _VERBS.items() for verb in verbs.split()}
_MEANINGS = {
    "turnon": "enable", "switchon": "enable", "toggleon": "enable", "optin": "enable",
    "turnoff": "disable", "switchoff": "disable", "toggleoff": "disable", "optout": "disable",
}  # fmt: skip
_DETERMINERS = word_set(
    "a an the this that these those my your our their his her its each every all any some no"
)
_FARTHEST = 4
"""How many words may part a verb from its particle: "turn the query cache off"."""


def place_of(word: str) -> tuple[str, int] | None:
    """Return verb and place of a word made of both (``logout``, ``rollback``), else None."""
    pair = _PAIRS.get(word)
    return (pair[0], _PLACES[pair[1]]) if pair else None


def merge_verbs(tokens: list[Token]) -> list[Token]:
    """Write each verb and its particle as one word, so that "logging in", "log-in" and "login" are the same."""
    if not any(token.text in _VERBS or token.text in _MEANINGS for token in tokens):
        return tokens
    merged: list[Token] = []
    taken: set[int] = set()
    for position, token in enumerate(tokens):
        if position in taken:
            continue
        if token.kind == "word" and not token.in_name:
            found = _particle(tokens, position)
            if found:
                at, text = found
                taken.add(at)
                merged.append(token._replace(text=_MEANINGS.get(text, text), function=False))
                continue
            if token.text in _MEANINGS:
                merged.append(token._replace(text=_MEANINGS[token.text]))
                continue
        merged.append(token)
    return merged


def _particle(tokens: list[Token], position: int) -> tuple[int, str] | None:
    """Return where the particle of a verb stands, and both as one word."""
    verb = tokens[position].text
    for at in range(position + 1, min(position + 2 + _FARTHEST, len(tokens))):
        token = tokens[at]
        if token.kind != "word":
            return None
        if token.in_name or token.text not in _VERBS:
            continue
        whole = next(
            (joined for base in bases(verb, is_verb=True) if (joined := base + token.text) in _PAIRS), None
        )
        if whole and (at == position + 1 or _is_loose(tokens, at)):
            return at, whole
        return None
    return None


def _is_loose(tokens: list[Token], at: int) -> bool:
    """Tell a particle ("log users in with tokens") from a preposition, which has an object."""
    if tokens[at].text not in {"in", "on", "over"}:
        return True
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    return following is None or (following.function and following.text not in _DETERMINERS)


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


FORTH = {
    "to": "to",
    "into": "to",
    "onto": "to",
    "toward": "to",
    "towards": "to",
    "as": "to",
    "before": "before",
    "inside": "in",
}
BACK = {"from": "to", "after": "before", "outside": "in"}
_CJK_FORTH = (
    "转换为",
    "转换成",
    "转化为",
    "转换到",
    "转为",
    "转成",
    "变为",
    "变成",
    "改为",
    "改成",
    "迁移到",
    "转",
    "到",
)
_BEFORE_THINGS = word_set("a an the my your our their its this that each every all")
_MOST = 3
_MOST_CHARACTERS = 5
_LONGEST_RUN = 12

Direction = tuple[str, str, str]


def directions(tokens: list[Token]) -> frozenset[Direction]:
    """Return what goes where: the relation, a stem or bigram of the first thing, and one of the second."""
    found: set[Direction] = set()
    for position, token in enumerate(tokens):
        if token.kind == "cjk":
            found.update(_in_run(tokens, position))
        elif token.kind == "word" and (relation := FORTH.get(token.text) or BACK.get(token.text)):
            left, right = _before(tokens, position), _after(tokens, position)
            if token.text in BACK:
                left, right = right, left
            found.update((relation, one, other) for one in left for other in right if one != other)
    return frozenset(found)


def _before(tokens: list[Token], position: int) -> list[str]:
    # An article never stands before a preposition: "A to Z".
    if position and _is_letter(tokens[position - 1]):
        return [tokens[position - 1].text]
    return _near(tokens[:position][::-1])


def _after(tokens: list[Token], position: int) -> list[str]:
    rest = tokens[position + 1 :]
    if rest and _is_letter(rest[0]) and (len(rest) == 1 or rest[1].function):
        return [rest[0].text]
    return _near(rest)


def _is_letter(token: Token) -> bool:
    return token.kind == "word" and len(token.text) == 1 and token.text in FUNCTION_WORDS


def _near(tokens: list[Token]) -> list[str]:
    """Return the stems of the phrase at the front."""
    found: list[str] = []
    for token in tokens:
        if token.kind == "cjk" and not found:
            return list(bigrams(token.text[:_LONGEST_RUN]))
        if token.kind != "word" or len(found) == _MOST:
            break
        if not token.function:
            found.append(stem(token.text))
        elif token.text not in _BEFORE_THINGS:
            break
    return found


def _in_run(tokens: list[Token], position: int) -> set[Direction]:
    run = tokens[position].text
    found: set[Direction] = set()
    for match in pattern(*_CJK_FORTH).finditer(run):
        before = pattern(*CJK_FUNCTION).split(run[: match.start()])[-1].removeprefix("从")
        after = pattern(*CJK_FUNCTION).split(run[match.end() :])[0]
        left = list(bigrams(before[-_MOST_CHARACTERS:])) if before else _near(tokens[:position][::-1])
        right = list(bigrams(after[:_MOST_CHARACTERS])) if after else _near(tokens[position + 1 :])
        found.update(("to", one, other) for one in left for other in right if one != other)
    return found


def is_reversed(one: frozenset[Direction], other: frozenset[Direction]) -> bool:
    """Tell whether one topic goes the other's way back."""
    return any(
        (relation, last, first) in other
        and (relation, last, first) not in one
        and (relation, first, last) not in other
        for relation, first, last in one
    )
