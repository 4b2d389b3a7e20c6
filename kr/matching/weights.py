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


class Learned(NamedTuple):
    """``least`` is the likelihood that an answer must exceed, by mode."""

    fitted: Fitted
    least: Mapping[str, float]


def logistic(odds: float) -> float:
    """Return the likelihood of log odds."""
    return 1.0 / (1.0 + exp(-max(-_FARTHEST, min(_FARTHEST, odds))))


BIAS = -3.8432
WEIGHTS: dict[str, float] = {
    "question_key_words_missing": -0.5909,
    "question_in_need": 5.5852,
    "topic_key_words_missing": -0.8742,
    "words_not_in_need": 1.0517,
    "words_in_need_ahead": 5.2760,
    "names_in_need": 0.1729,
    "names_missing": -0.4946,
    "main_word_not_in_need": -0.8576,
    "other_tags_in_need": 3.8082,
    "report_relevance": 13.5553,
    "report_relevance_ahead": 6.1860,
    "key_word_relevance": -10.2423,
    "particular_words_ahead": 0.3814,
    "alike_but_rare_word_missing": -8.2900,
    "topic_known_but_more_is_asked": -0.5563,
    "topics_opposed": -0.9549,
}
LEAST = {"balanced": 0.7848, "strict": 0.8984}
"""What a likelihood must exceed, so that at most 4 or 1 of 100 near misses of frameworks that were not learned from pass."""

DEFAULT = Learned(Fitted(BIAS, tuple(WEIGHTS.get(name, 0.0) for name in NAMES)), LEAST)
