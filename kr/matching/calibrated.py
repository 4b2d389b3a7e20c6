"""What is kept of a calibration for one's own model of embeddings, and the numbers that it adds (SPEC 3.2, ``kr calibrate``)."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kr.matching.fit import Fitted
from kr.matching.trial import ALLOWED, Learned

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
    fitted, least = calibrated.learned
    kept = {
        "version": _VERSION,
        "bias": fitted.bias,
        "weights": dict(zip(names, fitted.weights, strict=True)),
        "least": dict(least),
        "usual_next": calibrated.usual_next,
    }
    return json.dumps(kept)


def from_text(text: str, names: Sequence[str]) -> Calibrated | None:
    """Read what was kept; None where it is of other evidence than ``names``, and so has to be learned anew."""
    try:
        kept = json.loads(text)
        if kept["version"] != _VERSION or list(kept["weights"]) != list(names):
            return None
        weights = tuple(float(weight) for weight in kept["weights"].values())
        least = {mode: float(kept["least"][mode]) for mode in ALLOWED}
        learned = Learned(Fitted(float(kept["bias"]), weights), least)
        return Calibrated(learned, float(kept["usual_next"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
