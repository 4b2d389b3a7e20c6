"""Chinese in one script and one usage for comparison: traditional to simplified characters, Taiwan's terms (SPEC 3.2).

No converter for reading: characters that have several simplified ones by context get the usual one. That does no harm, since
both topics get the same.
"""

import re
from functools import cache
from pathlib import Path


def simplified(text: str) -> str:
    """Return ``text`` in simplified characters and mainland terms, as far as ``traditional.txt`` goes; idempotent."""
    if text.isascii():
        return text
    characters, terms, found = _tables()
    return found.sub(lambda match: terms[match[0]], text.translate(characters))


@cache
def _tables() -> tuple[dict[int, int], dict[str, str], re.Pattern[str]]:
    text = Path(__file__).with_name("traditional.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = [line for line in lines if "/" not in line]
    characters = str.maketrans("".join(rows[::2]), "".join(rows[1::2]))
    terms = dict(pair.split("/") for line in lines if "/" in line for pair in line.split())
    return characters, terms, re.compile("|".join(sorted(terms, key=len, reverse=True)))


@cache
def pattern(*words: str) -> re.Pattern[str]:
    """Return a pattern that finds the first of ``words`` that fits, in a text that is simplified too."""
    return re.compile("|".join(map(re.escape, map(simplified, words))))
