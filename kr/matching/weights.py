"""What each piece of evidence is worth. Written by ``scripts/calibrate --write``; see there what was reached."""

from kr.matching.evidence import NAMES
from kr.matching.fit import Fitted
from kr.matching.trial import Learned

BIAS = -5.7142
WEIGHTS: dict[str, float] = {
    "question_covered": -0.0426,
    "question_key_words_covered": -0.1190,
    "question_key_words_missing": -0.4111,
    "words_found": -0.0615,
    "key_words_covered": 0.2664,
    "topic_key_words_not_in_need": -0.4506,
    "words_not_in_need": 0.9535,
    "words_in_need": 7.8024,
    "topic_alike": 0.0000,
    "report_relevance": 3.7450,
    "report_relevance_ahead": 8.3917,
    "particular_words_ahead": 0.9467,
    "contradiction": -0.9161,
    "shared_tags": 0.0000,
    "alike_but_rare_word_missing": -6.2729,
    "topic_known_but_rare_word_missing": -1.0668,
    "topic_known_but_more_is_asked": -2.9357,
}
LEAST = {"balanced": 0.7971, "strict": 0.9074}
"""What a likelihood must exceed, so that at most 4 or 1 of 100 near misses of frameworks that were not learned from pass."""

DEFAULT = Learned(Fitted(BIAS, tuple(WEIGHTS.get(name, 0.0) for name in NAMES)), LEAST)
