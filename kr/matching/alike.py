"""The names most like one that nothing has: for a message that offers them (SPEC 6.3)."""

from collections.abc import Iterable

from kr.naming import fold

_LONGEST = 200
_MOST = 3
_LEAST_ALIKE = 60.0
_MUCH_LESS = 15.0


def nearest(wanted: str, names: Iterable[str]) -> list[str]:
    """Return the names most like ``wanted`` when folded, at most three, the most alike first."""
    from rapidfuzz import fuzz, process

    found = process.extract(
        fold(wanted[:_LONGEST]),
        sorted(names),
        scorer=fuzz.WRatio,
        processor=fold,
        limit=_MOST,
        score_cutoff=_LEAST_ALIKE,
    )
    return [choice for choice, score, _ in found if score > found[0][1] - _MUCH_LESS]
