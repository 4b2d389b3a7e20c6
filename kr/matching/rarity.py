"""How rare a term is in technical English, and how much it says where it stands (SPEC 3.2).

``rarity.txt`` was counted in 22,066 sections of the documentation of fourteen frameworks, libraries and servers, at most
2,500 of each. A line holds a rarity in fiftieths, a weight in quarters, and the terms that have both.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

_FIFTIETHS, _QUARTERS = 50, 4


class Rarity(NamedTuple):
    """``rarity``: 0.0 (in every text) to 1.0 (never seen), the logarithm of how few sections have the term.

    ``weight``: 0.0 to 1.0, how often a section that has the term has it again. What a text is about comes back
    ("queue"); what it merely says does not ("carry").
    """

    rarity: float
    weight: float


_UNSEEN = Rarity(1.0, 1.0)


def rarity(term: str) -> Rarity:
    """Tell how rare a term is. One that was never seen is a name, and says the most."""
    return _table().get(term, _UNSEEN)


@cache
def _table() -> dict[str, Rarity]:
    found: dict[str, Rarity] = {}
    for line in Path(__file__).with_name("rarity.txt").read_text(encoding="ascii").splitlines():
        fiftieths, quarters, *terms = line.split()
        found.update(dict.fromkeys(terms, Rarity(int(fiftieths) / _FIFTIETHS, int(quarters) / _QUARTERS)))
    return found
