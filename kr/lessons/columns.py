"""Width of text as a terminal shows it: a Chinese, Japanese or Korean character takes two columns."""

import unicodedata

ELLIPSIS = "…"
_WIDE = frozenset({"W", "F"})
_NO_WIDTH = frozenset({"Mn", "Me", "Cf"})


def columns(text: str) -> int:
    """Count the columns that ``text`` takes; combining marks take none."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def cut(text: str, limit: int) -> str:
    """Return at most ``limit`` columns of ``text``; what had to be cut ends in ``…``."""
    if columns(text) <= limit:
        return text
    if limit < 1:
        return ""
    room = limit - 1
    for index, character in enumerate(text):
        room -= _width(character)
        if room < 0:
            return text[:index].rstrip() + ELLIPSIS
    return text


def cut_head(text: str, limit: int) -> str:
    """Like ``cut``, but keep the end: of a path that tells more."""
    kept = cut(text[::-1], limit)
    return kept[::-1]


def _width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
