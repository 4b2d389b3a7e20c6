"""What each piece of evidence is worth. Written by ``scripts/calibrate --write``; see there what was reached."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import NamedTuple

from kr.matching.evidence import NAMES

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


BIAS = -3.6050
WEIGHTS: dict[str, float] = {
    "question_key_words_missing": -0.5983,
    "question_in_need": 7.6033,
    "topic_key_words_missing": -0.7618,
    "words_not_in_need": 1.1073,
    "words_in_need_ahead": 3.8806,
    "names_in_need": 0.3933,
    "names_missing": -0.6776,
    "main_word_not_in_need": -1.3380,
    "other_tags_in_need": 4.3851,
    "report_relevance": 15.0379,
    "report_relevance_ahead": 8.2082,
    "key_word_relevance": -14.2501,
    "particular_words_ahead": 0.4709,
    "alike_but_rare_word_missing": -9.8459,
    "topic_known_but_more_is_asked": -1.6285,
}
LEAST = {"balanced": 0.7346, "strict": 0.8656}
"""What a likelihood must exceed, so that at most 4 or 1 of 100 near misses of frameworks that were not learned from pass."""

DEFAULT = Learned(Fitted(BIAS, tuple(WEIGHTS.get(name, 0.0) for name in NAMES)), LEAST)
