"""What each piece of evidence is worth. Written by ``scripts/calibrate --write``; see there what was reached."""

from kr.matching.evidence import NAMES
from kr.matching.fit import Fitted
from kr.matching.trial import Learned

BIAS = -5.7719
WEIGHTS: dict[str, float] = {
    "question_covered": -0.0129,
    "question_key_words_covered": -0.1279,
    "question_key_words_missing": -0.4085,
    "words_found": -0.0667,
    "key_words_covered": 0.3916,
    "topic_key_words_not_in_need": -0.4557,
    "words_not_in_need": 0.9605,
    "words_in_need": 7.7838,
    "topic_alike": 0.0000,
    "report_relevance": 3.5052,
    "report_relevance_ahead": 8.5133,
    "particular_words_ahead": 0.9772,
    "contradiction": -0.9121,
    "shared_tags": 0.0000,
    "alike_but_rare_word_missing": -6.2863,
    "topic_known_but_rare_word_missing": -1.0513,
    "topic_known_but_more_is_asked": -2.9509,
}
LEAST = {"balanced": 0.7866, "strict": 0.9094}
"""What a likelihood must exceed, so that at most 4 or 1 of 100 near misses of frameworks that were not learned from pass."""

DEFAULT = Learned(Fitted(BIAS, tuple(WEIGHTS.get(name, 0.0) for name in NAMES)), LEAST)
