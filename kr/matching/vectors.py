"""Vectors of needs and reports: how they are packed and compared, and what was learned for the model that makes them.

SPEC 3.2, ``embeddings``. Of an entry the vector of its need is kept, and those of its report's passages.
"""

import json
import sys
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import hypot
from operator import mul
from typing import NamedTuple

from kr.matching.learning import ALLOWED
from kr.matching.weights import DEFAULT, Ahead, Fitted, Learned
from kr.values import Entry

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


_PASSAGE = 500
"""Characters: what a small model takes in whole. Passages of a paragraph, three times as many, told no more."""
_MOST_PASSAGES = 8
_BEST = 2


def passages(report: str) -> list[str]:
    """Return the beginning of a report in pieces: paragraphs joined to ``_PASSAGE`` characters, under their heading."""
    found: list[str] = []
    heading = piece = ""
    for paragraph in filter(None, map(str.strip, report.split("\n\n"))):
        text = paragraph.lstrip("# ") if paragraph.startswith("#") else None
        if text is not None:
            found.append(piece)
            heading, piece = text.partition("\n")[0], text
        elif len(piece) + len(paragraph) > _PASSAGE:
            found.append(piece)
            piece = f"{heading}\n{paragraph}"
        else:
            piece = f"{piece}\n{paragraph}"
    kept = (text.strip() for text in (*found, piece))
    return [text for text in kept if text][:_MOST_PASSAGES]


def texts_of(entry: Entry, report: str) -> list[str]:
    """Return what a model is given of an entry: its need, then the passages of its report."""
    return [need_text(entry.topic, entry.tags, entry.question), *passages(report)]


def joined(vectors: Sequence[bytes]) -> bytes:
    """Return what is kept of an entry: how many vectors, in a byte, and the vectors of ``texts_of``."""
    return b"".join((bytes([len(vectors)]), *vectors))


class Likeness(NamedTuple):
    """Cosines, -1.0 to 1.0: of the request's need with that of the entry, and with the passages nearest to it, on average."""

    need: float
    report: float


def likeness(need: bytes, kept: bytes) -> Likeness | None:
    """Compare the vector of a request's need with what :func:`joined` made of an entry; None where they can't be compared.

    An entry whose report is blank is judged by its need alone.
    """
    size = len(need)
    if not kept or not kept[0] or len(kept) != 1 + kept[0] * size:
        return None
    found = [cosine(need, kept[start : start + size]) for start in range(1, len(kept), size)]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return None
    own, *of_report = known
    best = sorted(of_report or [own])[-_BEST:]
    return Likeness(own, sum(best) / len(best))


def _unpacked(vector: bytes) -> "array[float]":
    numbers = array("f")
    numbers.frombytes(vector)
    return _little_endian(numbers)


def _little_endian(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


SIMILARITIES = ("similarity", "similarity_ahead", "report_similarity")
"""The likeness of the needs, how far it is ahead of that of the next best entry, and the likeness of the report's passages."""

SIMILARITIES_MEANING = {
    "similarity": "likeness of the two needs by the model of embeddings",
    "similarity_ahead": "the same, ahead of the next best entry",
    "report_similarity": "likeness of the need to the nearest passages of the report",
}
"""For people who read the table of ``kr explain``."""

_VERSION = 2


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


def similarity_numbers(
    similarities: Mapping[str, Likeness], usual_next: float, *, skeletons: Collection[str] = ()
) -> dict[str, tuple[float, ...]]:
    """Return the ``SIMILARITIES`` of each entry, by id. With ``skeletons``, which answer nobody, no other is compared."""
    found: dict[str, tuple[float, ...]] = {}
    for entry_id, own in similarities.items():
        others = (
            like.need for other, like in similarities.items() if other != entry_id and other not in skeletons
        )
        found[entry_id] = (own.need, own.need - max(others, default=usual_next), own.report)
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
