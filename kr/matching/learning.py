"""Learns from labelled questions what evidence is worth, and judges it on others (SPEC 3.2, ``kr calibrate``).

The examples are a few thousand and the pieces of evidence a few dozen: a logistic regression in plain Python does.
"""

from collections.abc import Collection, Mapping, Sequence
from math import sqrt
from operator import mul
from typing import Any, NamedTuple

from kr.matching.weights import AHEAD_IN, Ahead, Fitted, Learned, logistic
from kr.values import Entry, Query

FILES = tuple(f"labelled/sharing-{number}.yaml" for number in range(1, 9))
"""Beside this module. No two share an entry, so that one can judge what was learned from the others."""


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
    examples: Sequence[Example],
    *,
    never_against: Collection[int] = (),
    ahead: Ahead | None = None,
    most_folds: int | None = None,
) -> Learned:
    """Fit weights to all examples, and the limits to what weights say that were fitted to other frameworks.

    ``never_against``: places of numbers that may not get a weight below 0, see ``kr.matching.learning.fit``. ``ahead`` is
    what ``learn_ahead`` found. The frameworks are left out one by one, or together in so many folds, which is quicker.
    """
    groups = sorted({example.group for example in examples})
    number = min(len(groups), most_folds or len(groups))
    whole = _fit(examples, never_against)
    refused = []
    for fold in (set(groups[start::number]) for start in range(number)):
        fitted = _fit([example for example in examples if example.group not in fold], never_against, whole)
        judge = Learned(fitted, {}, ahead)
        refused += [
            _best(judge, example)[0] for example in examples if example.group in fold and example.want is None
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
