"""How rare a term is in technical English, and how much it says where it stands (SPEC 3.2).

``rarity.txt`` was counted in 22,066 sections of the documentation of fourteen frameworks, libraries and servers, at most
2,500 of each. A line holds a term, its rarity in fiftieths and its weight in quarters; the lines are sorted, so that a look-up of a
few dozen terms reads a few lines each.
"""

from functools import cache, lru_cache

from kr.matching import table
from kr.values import NamedTuple

_FIFTIETHS, _QUARTERS = 50, 4


class Rarity(NamedTuple):
    """``rarity``: 0.0 (in every text) to 1.0 (never seen), the logarithm of how few sections have the term.

    ``weight``: 0.0 to 1.0, how often a section that has the term has it again. What a text is about comes back
    ("queue"); what it merely says does not ("carry").
    """

    rarity: float
    weight: float


_UNSEEN = Rarity(1.0, 1.0)


@lru_cache(maxsize=32_768)
def rarity(term: str) -> Rarity:
    """Tell how rare a term is. One that was never seen is a name, and says the most."""
    if not term.isascii():
        return _UNSEEN
    table, wanted = _table(), term.encode("ascii")
    low, high = 0, len(table)
    while low < high:
        start = table.rfind(b"\n", 0, (low + high) // 2) + 1
        end = table.index(b"\n", start)
        found, _, numbers = table[start:end].partition(b" ")
        if found == wanted:
            fiftieths, quarters = numbers.split()
            return Rarity(int(fiftieths) / _FIFTIETHS, int(quarters) / _QUARTERS)
        low, high = (end + 1, high) if found < wanted else (low, start)
    return _UNSEEN


@cache
def _table() -> bytes:
    return table("rarity.txt").encode()
