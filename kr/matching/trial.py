"""Learns from labelled questions what evidence is worth, and judges it on others (SPEC 3.2, ``kr calibrate``)."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kr.matching.fit import Fitted, fit, least_likelihood

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


class Learned(NamedTuple):
    """``least`` is the likelihood that an answer must exceed, by mode."""

    fitted: Fitted
    least: Mapping[str, float]


class Reached(NamedTuple):
    """Shares, 0.0 to 1.0. ``first``: of the questions with an answer, those whose entry is the likeliest one.

    ``recall``: of these, those that get it; ``wrong``: of the questions without one, those that get any; by mode.
    """

    first: float
    recall: Mapping[str, float]
    wrong: Mapping[str, float]


def learn(examples: Sequence[Example], *, never_against: Collection[int] = ()) -> Learned:
    """Fit weights to all examples, and the limits to what weights say that were fitted to other frameworks.

    ``never_against``: places of numbers that may not get a weight below 0, see ``kr.matching.fit.fit``.
    """
    groups = sorted({example.group for example in examples})
    whole = _fit(examples, never_against)
    refused = []
    for group in groups:
        judge = _fit([example for example in examples if example.group != group], never_against, whole)
        refused += [
            _best(judge, example)[0]
            for example in examples
            if example.group == group and example.want is None
        ]
    least = {mode: least_likelihood(refused, allowed=allowed) for mode, allowed in ALLOWED.items()}
    return Learned(whole, least)


def judge(learned: Learned, examples: Sequence[Example]) -> Reached:
    """Tell what was reached on examples that nothing was learned from."""
    best = [(*_best(learned.fitted, example), example.want) for example in examples]
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


def _best(fitted: Fitted, example: Example) -> tuple[float, str | None]:
    rows = example.rows.items()
    found = [(fitted.likelihood(row), name) for name, row in rows if name not in example.forbidden]
    return max(found) if found else (0.0, None)


def _above(likelihoods: Sequence[float], least: float) -> int:
    return sum(likelihood > least for likelihood in likelihoods)
