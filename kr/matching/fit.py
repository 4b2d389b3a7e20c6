"""Fits the weights of the evidence to labelled examples: logistic regression in plain Python (SPEC 3.2, ``kr calibrate``).

The examples are a few thousand and the pieces of evidence a few dozen, which needs no library at run time.
"""

from collections.abc import Collection, Sequence
from math import exp, sqrt
from operator import mul
from typing import NamedTuple

_ROUNDS = 50
_CLOSE = 1e-9
_SHORT_STEP = 1e-5
"""A step of the search that changes no weight by more than this is its last: the fourth digit of a likelihood stays."""
_FARTHEST = 30.0
"""Of the log odds: beyond it a likelihood is 0 or 1 to a dozen digits."""


class Fitted(NamedTuple):
    """The log odds of an example are ``bias`` plus the sum of its numbers times ``weights``."""

    bias: float
    weights: tuple[float, ...]

    def likelihood(self, row: Sequence[float]) -> float:
        """Return how likely the example is a hit, 0.0 to 1.0."""
        return _logistic(
            self.bias + sum(weight * number for weight, number in zip(self.weights, row, strict=True))
        )


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
        likely = [_logistic(value) for value in odds]
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


def _logistic(odds: float) -> float:
    return 1.0 / (1.0 + exp(-max(-_FARTHEST, min(_FARTHEST, odds))))
