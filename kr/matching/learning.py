"""Learns from labelled questions what evidence is worth, and judges it on others (SPEC 3.2, ``kr calibrate``).

The examples are a few thousand and the pieces of evidence a few dozen: a logistic regression in plain Python does.

Vectors of embeddings, how near two are, and what a calibration for one's own model is worth (SPEC 3.2, "Meaning beyond words").
"""

import json
import sys
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import hypot, sqrt
from operator import mul
from typing import Any, NamedTuple

from kr.matching.weights import AHEAD_IN, DEFAULT, Ahead, Fitted, Learned, logistic
from kr.values import Entry, Query

FILES = ("labelled/sharing-1.yaml", "labelled/sharing-2.yaml")
"""Beside this module. They share no framework, so that one can judge what was learned from the other."""


class Asked(NamedTuple):
    """A request of one ``kind`` (reworded, opposite, ...), and the id of the entry that answers it, if one does."""

    kind: str
    query: Query
    want: str | None


class Labelled(NamedTuple):
    """One file. ``reports`` are by the id of their entry."""

    entries: tuple[Entry, ...]
    reports: Mapping[str, str]
    asked: tuple[Asked, ...]


def read_labelled(text: str) -> Labelled:
    """Read the text of one file."""
    import yaml

    data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe
    return Labelled(
        tuple(map(_entry, data["entries"])),
        {item["id"]: item["report"] for item in data["entries"]},
        tuple(Asked(item["kind"], Query(**_texts(item["ask"])), item["want"]) for item in data["queries"]),
    )


def _entry(item: Mapping[str, Any]) -> Entry:
    said = {key: value for key, value in item.items() if key not in {"id", "report"}}
    return Entry(
        id=item["id"],
        path=f"frameworks/{item['id']}.md",
        created="2026-01-01",
        last_accessed="2026-01-01",
        status="fresh",
        confidence="high",
        **_texts(said),
    )


def _texts(said: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}


_ROUNDS = 50
_CLOSE = 1e-9
_SHORT_STEP = 1e-5
"""A step of the search that changes no weight by more than this is its last: the fourth digit of a likelihood stays."""


def fit(
    rows: Sequence[Sequence[float]],
    labels: Sequence[bool],
    *,
    ridge: float = 1.0,
    never_against: Collection[int] = (),
    start: Fitted | None = None,
) -> Fitted:
    """Find the weights under which the labels are likeliest, less ``ridge`` times half their squares.

    The penalty is on numbers brought to one spread, so that the unit of a piece of evidence doesn't count; one that never
    changes gets the weight 0. ``rows`` are of one length, and both labels stand in ``labels``. The numbers at the places
    ``never_against`` may not get a weight below 0, whatever the examples say. ``start`` is what was found for other
    examples: where most are the same, the search ends sooner there.
    """
    if len(set(labels)) < 2:
        raise ValueError("examples of one label alone")
    means, spreads = _scale(rows)
    columns = list(zip(*rows, strict=True))
    used = [place for place, spread in enumerate(spreads) if spread > _CLOSE]
    bias, weights = start or (0.0, (0.0,) * len(means))
    found = [bias + sum(map(mul, weights, means)), *(weights[place] * spreads[place] for place in used)]
    while True:
        scaled = [[(number - means[place]) / spreads[place] for number in columns[place]] for place in used]
        found = _newton([[1.0] * len(rows), *scaled], labels, ridge, found)
        wrong = {
            place
            for place, weight in zip(used, found[1:], strict=True)
            if weight < 0 and place in never_against
        }
        if not wrong:
            break
        kept = dict(zip(used, found[1:], strict=True))
        used = [place for place in used if place not in wrong]
        found = [found[0], *(kept[place] for place in used)]
    fitted = [0.0] * len(means)
    for place, weight in zip(used, found[1:], strict=True):
        fitted[place] = weight / spreads[place]
    return Fitted(found[0] - sum(map(mul, fitted, means)), tuple(fitted))


def least_likelihood(refused: Sequence[float], *, allowed: float) -> float:
    """Return the likelihood that an answer must exceed, so that at most this share of ``refused`` gets one.

    ``refused`` are the likelihoods of the best entry for questions that none answers; without any it is 0.0.
    """
    highest = sorted(refused, reverse=True)
    return highest[int(allowed * len(highest))] if highest else 0.0


def _newton(
    columns: Sequence[Sequence[float]], labels: Sequence[bool], ridge: float, start: Sequence[float]
) -> list[float]:
    """Search from ``start`` on; ``columns`` hold a number of every example each, the first of them only ones."""
    weights = list(start)
    for _ in range(_ROUNDS):
        odds = [sum(map(mul, weights, row)) for row in zip(*columns, strict=True)]
        likely = [logistic(value) for value in odds]
        errors = [label - value for label, value in zip(labels, likely, strict=True)]
        bends = [max(value * (1.0 - value), _CLOSE) for value in likely]
        bent = [list(map(mul, bends, column)) for column in columns]
        slope = [
            sum(map(mul, errors, column)) - (ridge * weight if place else 0.0)
            for place, (column, weight) in enumerate(zip(columns, weights, strict=True))
        ]
        curve = [
            [
                sum(map(mul, bent[one], columns[other])) + (ridge if one == other and one else 0.0)
                for other in range(one + 1)
            ]
            for one in range(len(columns))
        ]
        step = _solve(curve, slope)
        longest = max(map(abs, step))
        # A step of Newton's may go too far where the likelihoods are near 0 or 1.
        share = min(1.0, 4.0 / longest) if longest else 1.0
        weights = [weight + share * change for weight, change in zip(weights, step, strict=True)]
        if longest < _SHORT_STEP:
            break
    return weights


def _solve(lower: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solve a symmetric positive system by Cholesky; of the matrix only the lower half is read."""
    size = len(right)
    root = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            rest = lower[i][j] - sum(root[i][k] * root[j][k] for k in range(j))
            root[i][j] = sqrt(max(rest, _CLOSE)) if i == j else rest / root[j][j]
    forward: list[float] = []
    for i in range(size):
        forward.append((right[i] - sum(root[i][k] * forward[k] for k in range(i))) / root[i][i])
    found = [0.0] * size
    for i in reversed(range(size)):
        found[i] = (forward[i] - sum(root[k][i] * found[k] for k in range(i + 1, size))) / root[i][i]
    return found


def _scale(rows: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    columns = list(zip(*rows, strict=True))
    means = [sum(column) / len(column) for column in columns]
    spreads = [
        sqrt(sum((number - mean) ** 2 for number in column) / len(column))
        for column, mean in zip(columns, means, strict=True)
    ]
    return means, spreads


ALLOWED = {"balanced": 0.04, "strict": 0.01}
"""The share of questions without an answer that may get one (SPEC 3.2, "Decision")."""

_RIDGE = 1.0
"""Pieces of evidence say much the same: without a penalty their weights would cancel each other out."""


class Example(NamedTuple):
    """A labelled question: the evidence for each entry of its framework, by id, and the id of the one that answers.

    The entry that leads by a plain measure stands first in ``rows``: weights are learned from it alone, since what is to be
    told is when the best is not good enough. ``group`` is the framework: what is learned from one is judged on others.
    ``forbidden`` are ids of entries that can't be the answer, whatever weights say: no limit is set because of them.
    """

    kind: str
    group: str
    rows: Mapping[str, Sequence[float]]
    want: str | None
    forbidden: Collection[str] = ()


class Reached(NamedTuple):
    """Shares, 0.0 to 1.0. ``first``: of the questions with an answer, those whose entry is the likeliest one.

    ``recall``: of these, those that get it; ``wrong``: of the questions without one, those that get any; by mode.
    """

    first: float
    recall: Mapping[str, float]
    wrong: Mapping[str, float]


def learn(
    examples: Sequence[Example], *, never_against: Collection[int] = (), ahead: Ahead | None = None
) -> Learned:
    """Fit weights to all examples, and the limits to what weights say that were fitted to other frameworks.

    ``never_against``: places of numbers that may not get a weight below 0, see ``kr.matching.learning.fit``. ``ahead`` is
    what ``learn_ahead`` found.
    """
    groups = sorted({example.group for example in examples})
    whole = _fit(examples, never_against)
    refused = []
    for group in groups:
        fitted = _fit([example for example in examples if example.group != group], never_against, whole)
        judge = Learned(fitted, {}, ahead)
        refused += [
            _best(judge, example)[0]
            for example in examples
            if example.group == group and example.want is None
        ]
    least = {mode: least_likelihood(refused, allowed=allowed) for mode, allowed in ALLOWED.items()}
    return Learned(whole, least, ahead)


_LEFT_BEHIND = 0.2


def learn_ahead(examples: Sequence[Example], left_out: Sequence[Example]) -> Ahead:
    """Learn what it is worth to be ahead from entries that answer, and from the leading ones of requests whose own was taken away.

    So measured, a fifth of the entries that answer are behind 1.0; most of these were no answers for other reasons either.
    """
    own = [row for example in examples for name, row in example.rows.items() if name == example.want]
    others = [next(iter(example.rows.values())) for example in left_out if example.rows]
    rows = [[row[place] for place in AHEAD_IN] for row in (*own, *others)]
    fitted = fit(rows, [True] * len(own) + [False] * len(others))
    worth = sorted(sum(map(mul, fitted.weights, row)) for row in rows[: len(own)])
    limit = worth[int(_LEFT_BEHIND * len(worth))]
    return Ahead(*(weight / limit for weight in fitted.weights))


def judge(learned: Learned, examples: Sequence[Example]) -> Reached:
    """Tell what was reached on examples that nothing was learned from."""
    best = [(*_best(learned, example), example.want) for example in examples]
    hits = [likelihood for likelihood, found, want in best if want is not None and found == want]
    answerable = sum(want is not None for *_, want in best) or 1
    refused = [likelihood for likelihood, _, want in best if want is None]
    return Reached(
        first=len(hits) / answerable,
        recall={mode: _above(hits, least) / answerable for mode, least in learned.least.items()},
        wrong={mode: _above(refused, least) / (len(refused) or 1) for mode, least in learned.least.items()},
    )


def mean(reached: Sequence[Reached]) -> Reached:
    """Return the means of several judgements."""
    return Reached(
        sum(one.first for one in reached) / len(reached),
        {mode: sum(one.recall[mode] for one in reached) / len(reached) for mode in ALLOWED},
        {mode: sum(one.wrong[mode] for one in reached) / len(reached) for mode in ALLOWED},
    )


def _fit(examples: Sequence[Example], never_against: Collection[int], start: Fitted | None = None) -> Fitted:
    leaders = [(next(iter(example.rows.items())), example.want) for example in examples if example.rows]
    rows, labels = [row for (_, row), _ in leaders], [name == want for (name, _), want in leaders]
    return fit(rows, labels, ridge=_RIDGE, never_against=never_against, start=start)


def _best(learned: Learned, example: Example) -> tuple[float, str | None]:
    rows = example.rows.items()
    found = [(learned.likelihood(row), name) for name, row in rows if name not in example.forbidden]
    return max(found) if found else (0.0, None)


def _above(likelihoods: Sequence[float], least: float) -> int:
    return sum(likelihood > least for likelihood in likelihoods)


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
