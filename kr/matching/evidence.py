"""What speaks for and against an entry, in numbers (SPEC 3.2, "Evidence").

All are worked out from the keys of the entries and the words of the request. ``rarity`` weighs every term: a rare word
that is missing says more than a common one.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from math import log, sqrt
from typing import NamedTuple

from kr.matching.compare import Comparison, compare
from kr.matching.frameworks import canonical
from kr.matching.keys import NEED, TOPIC, Keys, standing_in, times_in_report, whole
from kr.matching.rarity import rarity
from kr.matching.terms import fillers, terms
from kr.matching.topic import Topic, need_of, topic_of
from kr.matching.words import is_near
from kr.text.keywords import MAX_CHARACTERS
from kr.values import Entry, Query, Value

NAMES = (
    "question_covered",
    "question_key_words_covered",
    "question_key_words_missing",
    "words_found",
    "key_words_covered",
    "topic_key_words_not_in_need",
    "words_not_in_need",
    "words_in_need",
    "topic_alike",
    "report_relevance",
    "report_relevance_ahead",
    "particular_words_ahead",
    "contradiction",
    "shared_tags",
    "alike_but_rare_word_missing",
    "topic_known_but_rare_word_missing",
    "topic_known_but_more_is_asked",
)
"""In the order of the numbers. *Covered* and *missing* are judged by need and report together, *need* is the topic, tags,
question and known wordings of the entry, *key words* are weighed by what they say where they stand."""

MEANING = {
    "question_covered": "share of the question's words that the entry has",
    "question_key_words_covered": "share of the question's key words that the entry has",
    "question_key_words_missing": "key words of the question that the entry lacks",
    "words_found": "words of the whole request that the entry has",
    "key_words_covered": "share of the request's key words that the entry has",
    "topic_key_words_not_in_need": "key words of the topic asked for that the entry's need lacks",
    "words_not_in_need": "words of the request that the entry's need lacks",
    "words_in_need": "share of the request's words in the entry's need",
    "topic_alike": "likeness of the two topics",
    "report_relevance": "how much the report speaks of what is asked",
    "report_relevance_ahead": "how far its report is ahead of the next best entry's",
    "particular_words_ahead": "how far it is ahead in words that few entries have",
    "contradiction": "an opposite, a denial, another identifier",
    "shared_tags": "tags that both have, by stems",
    "alike_but_rare_word_missing": "needs alike, and yet a rare word of the question is nowhere",
    "topic_known_but_rare_word_missing": "topic covered, and yet a rare word of the question is nowhere",
    "topic_known_but_more_is_asked": "topic covered, and yet it has words that are nowhere",
}
"""For people who read the table of ``kr explain``."""

NEVER_AGAINST = tuple(NAMES.index(name) for name in ("topic_alike", "shared_tags"))
"""The labelled sets have more near misses that share a tag, or words of the topic, than life has: that these speak against
an entry is not to be learned."""

_MOST_MISSING = 8.0
"""Of ``words_not_in_need``: about 92 of 100 labelled requests have less. It parts a short request from a long one, and without a
limit the words of a very long one would add up to an answer by any entry."""
_SOME = 0.3
"""Added where shares are taken, so that a single word is no whole need."""
_SATURATION = 1.2
"""After how many times a word's further ones in a report say little (BM25's k1)."""
_SAME_TAG = 0.5
_SHORTEST_SLIP = 5
_MOST_SLIPS = 24
"""Words of a request for which a typing error is thought of: each is held against every word of an entry's need."""
_UNUSUAL = 0.85
"""Rarer than any usual word: a name, or a typing error."""


class Candidate(NamedTuple):
    """A live entry and its keys, see ``kr.matching.keys``."""

    entry: Entry
    keys: Keys


class Evidence(Value):
    """The numbers of one entry in the order of ``NAMES``; what the seed's tiers are told from; what is missing.

    ``rarest_missing`` is the rarity of the rarest word of the topic that is nowhere in the entry.
    """

    numbers: tuple[float, ...]
    comparison: Comparison
    shared_tags: tuple[str, ...]
    rarest_missing: float


@lru_cache(maxsize=4)
def asked_of(query: Query) -> "Asked":
    """Take a request apart, once for a look-up: the best entries are chosen and the evidence weighed by the same words."""
    return Asked(query)


class Asked:
    """A request taken apart, once for all entries: of each text no more than of a topic, so that a pasted log costs little."""

    def __init__(self, query: Query) -> None:
        self.query = query
        names = (query.framework, canonical(query.framework))
        own = {term.text for name in names for term in terms(name)}
        self.name_terms = own | fillers()
        self.whole = whole(query.topic)
        self.wording = whole(query.topic, query.question)
        self.topic = self._of(query.topic)
        tags = " , ".join(query.tags)[:MAX_CHARACTERS]
        self.tags = {term.text: None for term in terms(tags) if term.text not in own}
        self.question = self._of(query.question)
        self.all = {**self.topic, **self.tags, **self.question}
        texts = (query.topic[:MAX_CHARACTERS], query.question[:MAX_CHARACTERS])
        self.compounds = {term.text for text in texts for term in terms(text) if term.is_whole}
        unusual = (
            term for term in self.all if len(term) >= _SHORTEST_SLIP and rarity(term).rarity >= _UNUSUAL
        )
        self.unusual = set(islice(unusual, _MOST_SLIPS))
        self.parsed: Topic = topic_of(query.topic)

    @cached_property
    def need(self) -> Topic:
        """Topic and question taken apart as one."""
        return need_of(self.query.topic, self.query.question)

    def _of(self, text: str) -> dict[str, None]:
        return {term.text: None for term in terms(text[:MAX_CHARACTERS]) if term.text not in self.name_terms}


def weigh(asked: Asked, candidates: Sequence[Candidate]) -> list[Evidence]:
    """Work out the evidence for each of the best entries of a framework."""
    held_by = {term: sum(term in candidate.keys for candidate in candidates) for term in asked.all}
    relevance = [_relevance(asked, candidate.keys) for candidate in candidates]
    particular = [_particular(asked, candidate.keys, held_by, len(candidates)) for candidate in candidates]
    return [
        _weigh(asked, candidate, relevance[place], _ahead(relevance, place), _ahead(particular, place))
        for place, candidate in enumerate(candidates)
    ]


def _weigh(
    asked: Asked, candidate: Candidate, relevance: float, relevance_ahead: float, particular_ahead: float
) -> Evidence:
    entry, keys = candidate
    slips = _slips(asked, keys)
    need = {term for term in asked.all if keys.get(term, 0) & NEED} | slips
    found = {term for term in asked.all if term in keys} | slips
    question, request = _cover(asked.question, found), _cover(asked.all, found)
    topic, topic_in_need = _cover(asked.topic, found), _cover(asked.topic, need)
    in_need = _cover(asked.all, need)
    comparison = compare(asked.parsed, topic_of(entry.topic))
    tags = shared_tags(asked.query.tags, entry.tags)
    own_need = standing_in(keys, NEED) - asked.name_terms
    numbers = (
        question.share,
        question.key_share,
        question.key_missing,
        request.found,
        request.key_share,
        topic_in_need.key_missing,
        min(in_need.missing, _MOST_MISSING),
        in_need.share,
        _cosine(set(asked.topic), standing_in(keys, TOPIC) - asked.name_terms),
        relevance,
        relevance_ahead,
        particular_ahead,
        1.0 if comparison.contradiction else 0.0,
        float(len(tags)),
        _cosine(set(asked.all), own_need) * question.rarest_missing,
        topic_in_need.share * question.rarest_missing,
        topic_in_need.share * topic.missing,
    )
    # Of a compound its parts are asked here: ``rowHeight`` is "row height" to the comparison of the topics too.
    missing = [rarity(term).rarity for term in asked.topic if term not in found | asked.compounds]
    return Evidence(
        numbers=numbers, comparison=comparison, shared_tags=tags, rarest_missing=max(missing, default=0.0)
    )


def _slips(asked: Asked, keys: Keys) -> set[str]:
    """Return the words that nobody writes and that are a typing error away from one of the entry's need."""
    known = [term for term, places in keys.items() if places & NEED and len(term) >= _SHORTEST_SLIP - 1]
    return {
        term
        for term in asked.unusual
        if term not in keys and any(term[0] == other[0] and is_near(term, other) for other in known)
    }


_LEADING = {
    "words_in_need": 1.0,
    "key_words_covered": 0.5,
    "question_covered": 1.0,
    "report_relevance": 1.0,
    "topic_alike": 1.0,
    "report_relevance_ahead": 0.7,
    "particular_words_ahead": 1.0,
}


def lead(numbers: Sequence[float]) -> float:
    """Return a plain measure by which entries are put in order where no weights are learned yet."""
    return sum(numbers[place] * _LEADING.get(name, 0.0) for place, name in enumerate(NAMES))


class _Cover(NamedTuple):
    """How much of some terms is found: sums of rarities, shares of them, and the same for key words."""

    found: float
    missing: float
    share: float
    key_missing: float
    key_share: float
    rarest_missing: float


def _cover(wanted: Mapping[str, None], found: set[str]) -> _Cover:
    has = lacks = key_has = key_lacks = rarest = 0.0
    for term in wanted:
        rare, weight = rarity(term)
        if term in found:
            has += rare
            key_has += rare * weight
        else:
            lacks += rare
            key_lacks += rare * weight
            rarest = max(rarest, rare)
    key_share = (key_has + 0.1) / (key_has + key_lacks + _SOME)
    return _Cover(has, lacks, has / (has + lacks + _SOME), key_lacks, key_share, rarest)


def _cosine(one: set[str], other: set[str]) -> float:
    square = {term: rarity(term).rarity ** 2 for term in one | other}
    size = sum(square[term] for term in one) * sum(square[term] for term in other)
    return sum(square[term] for term in one & other) / sqrt(size) if size else 0.0


def _relevance(asked: Asked, keys: Keys) -> float:
    found = total = 0.0
    for term in asked.all:
        rare = rarity(term).rarity
        times = times_in_report(keys.get(term, 0))
        found += rare * times / (times + _SATURATION)
        total += rare
    return found / (total + _SOME)


def _particular(asked: Asked, keys: Keys, held_by: Mapping[str, int], entries: int) -> float:
    """Return how many of the words that only some of the framework's entries have this one has."""
    has = total = 0.0
    for term in asked.all:
        if held_by[term]:
            says = rarity(term).rarity * log((entries + 1) / held_by[term])
            total += says
            has += says if term in keys else 0.0
    return has / (total + 0.1)


def _ahead(values: Sequence[float], place: int) -> float:
    return values[place] - max((value for at, value in enumerate(values) if at != place), default=0.0)


def shared_tags(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the request's tags that the entry has too, each once, as the request writes them; by stems (SPEC 3.2)."""
    theirs = [stems for tag in known if (stems := _stems(tag))]
    found: dict[frozenset[str], str] = {}
    for tag in asked:
        mine = _stems(tag)
        if mine and any(len(mine & other) >= _SAME_TAG * len(mine | other) for other in theirs):
            found.setdefault(mine, tag)
    return tuple(found.values())


def _stems(tag: str) -> frozenset[str]:
    return frozenset(term.text for term in terms(tag) if not term.is_whole)
