"""Verbs whose particle makes the meaning: "log in", "log out", "turned off" (SPEC 3.2)."""

from kr.matching.inflection import bases
from kr.text.stopwords import word_set
from kr.text.tokens import Token

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


def merge(tokens: list[Token]) -> list[Token]:
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
