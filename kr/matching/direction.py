"""Which way a topic goes: "strings to datetime" is not "datetime to strings" (SPEC 3.2)."""

from kr.matching.han import pattern
from kr.matching.words import stem
from kr.text.keywords import bigrams
from kr.text.stopwords import CJK_FUNCTION, FUNCTION_WORDS, word_set
from kr.text.tokens import Token

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
_DETERMINERS = word_set("a an the my your our their its this that each every all")
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
        elif token.text not in _DETERMINERS:
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
