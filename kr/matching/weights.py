"""What each piece of evidence is worth. Written by ``scripts/calibrate --write``; see there what was reached."""

from kr.matching.evidence import NAMES
from kr.matching.fit import Fitted
from kr.matching.trial import Learned

BIAS = -4.8268
WEIGHTS: dict[str, float] = {
    "question_covered": -0.0879,
    "question_key_words_covered": -0.7003,
    "question_key_words_missing": -0.5992,
    "words_found": 0.1919,
    "key_words_covered": -0.7060,
    "topic_key_words_not_in_need": -0.5217,
    "words_not_in_need": 0.9039,
    "words_in_need": 7.2575,
    "topic_alike": 0.0000,
    "report_relevance": 2.9320,
    "report_relevance_ahead": 8.2468,
    "particular_words_ahead": 0.9039,
    "contradiction": -0.9088,
    "no_tags": 1.5025,
    "shared_tags": 0.0000,
    "alike_but_rare_word_missing": -5.8347,
    "topic_known_but_rare_word_missing": -0.8369,
    "topic_known_but_more_is_asked": -3.0670,
}
LEAST = {"balanced": 0.7943, "strict": 0.9033}
"""What a likelihood must exceed, so that at most 4 or 1 of 100 near misses of frameworks that were not learned from pass."""

DEFAULT = Learned(Fitted(BIAS, tuple(WEIGHTS.get(name, 0.0) for name in NAMES)), LEAST)
