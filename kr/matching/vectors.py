"""Vectors of embeddings, packed as little-endian float32, and how near two of them are (SPEC 3.2, "Meaning beyond words")."""

import sys
from array import array
from collections.abc import Iterable
from math import hypot
from operator import mul

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
