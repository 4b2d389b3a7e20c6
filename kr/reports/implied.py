"""What a question implies without saying it: the words that documentation uses for a need (SPEC 3.5.5).

Somebody asks how to give up after five seconds; the function is documented as a timeout. ``implied.txt`` holds such pairs.
"""

import re
from functools import cache
from pathlib import Path

from kr.text.stems import stem

_WORD = re.compile(r"[a-z0-9]+")
_LONGEST = 5  # words of a phrase
_SHORT = 4  # letters
_VALUES = (
    (re.compile(r"\b\d{1,4}[-/.]\d{1,2}[-/.]\d{2,4}\b|\b[dy]{2,4}[-/.]MM"), ("date", "format")),
    (re.compile(r"\b\d{1,2}:\d\d\b"), ("time", "date")),
    (re.compile(r"\*\*?[./]\w"), ("pattern", "glob")),
    (re.compile(r"\b\d+ ?x ?\d+\b"), ("size", "width")),
)
"""Values that a question gives as examples, and what such are called."""


def implied(question: str) -> dict[str, set[str]]:
    """Return the words that a question implies, with the words of it that do so; those of its first words first."""
    words = _WORD.findall(question.casefold())
    stems = _stems(question)
    phrases = _phrases()
    found: dict[str, set[str]] = {}
    for at in range(len(words)):
        for end in range(at + 1, min(at + _LONGEST, len(words)) + 1):
            for word in phrases.get(" ".join(stems[at:end]), ()):
                found.setdefault(word, set()).update(words[at:end])
    for pattern, called in _VALUES:
        if value := pattern.search(question):
            for word in called:
                found.setdefault(word, set()).update(_WORD.findall(value[0].casefold()))
    return found


def _stems(text: str) -> list[str]:
    """Return the words of a text by stem, short ones as they are: that of "only" is "on"."""
    return [stem(word) if len(word) > _SHORT else word for word in _WORD.findall(text.casefold())]


@cache
def _phrases() -> dict[str, tuple[str, ...]]:
    text = Path(__file__).with_name("implied.txt").read_text(encoding="utf-8")
    rows: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        said, sign, meant = line.partition(":")
        for phrase in said.split("|") if sign and not line.startswith("#") else ():
            key = " ".join(_stems(phrase))
            rows[key] = (*rows.get(key, ()), *meant.split())
    return rows
