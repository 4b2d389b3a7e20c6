"""Vectors of needs: how they are packed and compared, and what was learned for the model that makes them (SPEC 3.2, ``embeddings``)."""

import json
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import hypot
from operator import mul
from typing import NamedTuple

from kr.matching.learning import ALLOWED
from kr.matching.weights import DEFAULT, Ahead, Fitted, Learned

_WIDTH = 4
"""Bytes of a number."""


def pack(values: Iterable[float]) -> bytes:
    """Return the direction of a vector, four bytes a number: what is kept has length 1.

    Raises ``ValueError`` for a vector without a direction: empty, all zero, not finite or too long for a float.
    """
    numbers = [float(value) for value in values]
    length = hypot(*numbers)
    if not 0 < length < float("inf"):  # nor NaN, which is less than nothing and more than nothing
        raise ValueError("a vector without a direction")
    packed = array("f", (number / length for number in numbers))
    return _little_endian(packed).tobytes()


def cosine(one: bytes, other: bytes) -> float | None:
    """Return the cosine of two packed vectors, -1.0 to 1.0; None where they can't be compared.

    That is when their dimensions differ, as they do when another model stands behind the name of the first, or when
    one of them isn't what :func:`pack` makes.
    """
    if len(one) != len(other) or not one or len(one) % _WIDTH:
        return None
    product = sum(map(mul, _unpacked(one), _unpacked(other)))
    return max(-1.0, min(1.0, product)) if product == product else None  # noqa: PLR0124  # NaN is not itself


def need_text(topic: str, tags: Iterable[str], question: str | None) -> str:
    """Return what a model is given of a need; the framework, which all candidates share, is no part of it."""
    return "\n".join(part for part in (topic, question or "", ", ".join(tags)) if part.strip())


def _unpacked(vector: bytes) -> "array[float]":
    numbers = array("f")
    numbers.frombytes(vector)
    return _little_endian(numbers)


def _little_endian(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


SIMILARITIES = ("similarity", "similarity_ahead")
"""The cosine of the needs' vectors, and how far it is ahead of that of the next best entry."""

SIMILARITIES_MEANING = {
    "similarity": "likeness of the two needs by the model of embeddings",
    "similarity_ahead": "the same, ahead of the next best entry",
}
"""For people who read the table of ``kr explain``."""

_VERSION = 1


class Calibrated(NamedTuple):
    """What was learned for one model.

    ``usual_next`` is how alike the next best entry of a framework is on average. Needs that have only the framework
    in common are alike to some degree, another one with each model: an entry that stands alone is held against that.
    """

    learned: Learned
    usual_next: float


class Meant(NamedTuple):
    """What a model of embeddings says of the entries: numbers by id, and what they are worth beside the evidence in words.

    ``numbers`` are those of ``SIMILARITIES``, and there are some for every entry that is judged.
    """

    learned: Learned
    numbers: Mapping[str, tuple[float, ...]]


def calibration_key(model: str) -> str:
    """Return under which name the calibration for a model is kept in the database."""
    return f"calibration:{model}"


def similarity_numbers(similarities: Mapping[str, float], usual_next: float) -> dict[str, tuple[float, ...]]:
    """Return the ``SIMILARITIES`` of each entry, by id."""
    found: dict[str, tuple[float, ...]] = {}
    for entry_id, own in similarities.items():
        others = (value for other, value in similarities.items() if other != entry_id)
        found[entry_id] = (own, own - max(others, default=usual_next))
    return found


def to_text(names: Sequence[str], calibrated: Calibrated) -> str:
    """Return what is kept of a calibration, as JSON."""
    fitted, least, ahead = calibrated.learned
    kept = {
        "version": _VERSION,
        "bias": fitted.bias,
        "weights": dict(zip(names, fitted.weights, strict=True)),
        "least": dict(least),
        "usual_next": calibrated.usual_next,
        "ahead": list(ahead) if ahead else None,
    }
    return json.dumps(kept)


def _ahead(kept: Sequence[float] | None) -> Ahead | None:
    return Ahead(*map(float, kept)) if kept else None


def from_text(text: str, names: Sequence[str]) -> Calibrated | None:
    """Read what was kept; None where it is of other evidence than ``names``, and so has to be learned anew."""
    try:
        kept = json.loads(text)
        if kept["version"] != _VERSION or list(kept["weights"]) != list(names):
            return None
        weights = tuple(float(weight) for weight in kept["weights"].values())
        least = {mode: float(kept["least"][mode]) for mode in ALLOWED}
        ahead = _ahead(kept["ahead"]) if "ahead" in kept else DEFAULT.ahead
        learned = Learned(Fitted(float(kept["bias"]), weights), least, ahead)
        return Calibrated(learned, float(kept["usual_next"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
