"""What each piece of evidence is worth. Written by ``scripts/calibrate --write``; see there what was reached."""

from collections.abc import Mapping, Sequence
from math import exp

from kr.matching.evidence import NAMES
from kr.values import NamedTuple

_FARTHEST = 30.0
"""Of the log odds: beyond it a likelihood is 0 or 1 to a dozen digits."""


class Fitted(NamedTuple):
    """The log odds of an example are ``bias`` plus the sum of its numbers times ``weights``."""

    bias: float
    weights: tuple[float, ...]

    def likelihood(self, row: Sequence[float]) -> float:
        """Return how likely the example is a hit, 0.0 to 1.0."""
        return logistic(
            self.bias + sum(weight * number for weight, number in zip(self.weights, row, strict=True))
        )


AHEAD_IN = tuple(
    NAMES.index(name)
    for name in (
        "words_in_need_ahead",
        "report_relevance_ahead",
        "acts_in_need",
        "kindred_words_in_need",
    )
)
_HARDLY = 0.5


class Ahead(NamedTuple):
    """What it is worth to be ahead of the framework's next best entry, in the need's words and in the report, and to share acts and things."""

    in_need: float
    in_report: float
    in_acts: float
    in_things: float

    def of(self, row: Sequence[float]) -> float:
        """Return how far an entry stands out from the others; up to 1.0 it hardly does."""
        return sum(worth * row[place] for worth, place in zip(self, AHEAD_IN, strict=True))


class Learned(NamedTuple):
    """``least`` is the likelihood that an answer must exceed, by mode.

    The weights are learned from reworded needs and near misses. Near misses share words with an entry by their making, so that few
    shared words come to speak for it; and what has nothing to do with any entry shares few. ``ahead`` keeps that out: it is
    learned from requests whose own entry was taken away, and what hardly stands out is half as likely.
    """

    fitted: Fitted
    least: Mapping[str, float]
    ahead: Ahead | None = None

    def likelihood(self, row: Sequence[float]) -> float:
        """Return how likely an entry that has a report answers, 0.0 to 1.0."""
        return self.fitted.likelihood(row) * (_HARDLY if self.is_hardly_ahead(row) else 1.0)

    def is_hardly_ahead(self, row: Sequence[float]) -> bool:
        """Tell whether an entry is no likelier the one that is asked for than any other of its framework."""
        return self.ahead is not None and self.ahead.of(row) <= 1.0


def logistic(odds: float) -> float:
    """Return the likelihood of log odds."""
    return 1.0 / (1.0 + exp(-max(-_FARTHEST, min(_FARTHEST, odds))))


BIAS = -3.7067
WEIGHTS: dict[str, float] = {
    "question_key_words_missing": -0.6130,
    "question_in_need": 6.7511,
    "topic_key_words_missing": -1.0400,
    "words_not_in_need": 1.1905,
    "words_in_need_ahead": 2.8800,
    "names_missing": -0.5419,
    "main_word_not_in_need": -1.1303,
    "other_tags_in_need": 3.6416,
    "report_relevance": 15.4931,
    "report_relevance_ahead": 8.2372,
    "key_word_relevance": -14.5346,
    "alike_but_rare_word_missing": -8.1595,
    "topics_opposed": -0.9773,
    "acts_in_need": 1.4307,
    "kindred_words_in_need": 8.0438,
    "concepts_missing": -0.1403,
}
LEAST = {"balanced": 0.7425, "strict": 0.9098}
"""What a likelihood must exceed, so that at most 4 or 1 of 100 near misses of frameworks that were not learned from pass."""

AHEAD = Ahead(1.86, 9.00, 1.22, 3.66)
"""Four of five entries that answer a labelled need are further ahead."""

DEFAULT = Learned(Fitted(BIAS, tuple(WEIGHTS.get(name, 0.0) for name in NAMES)), LEAST, AHEAD)
