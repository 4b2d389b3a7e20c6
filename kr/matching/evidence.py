"""What speaks for and against an entry, in numbers (SPEC 3.2, "Evidence").

All are worked out from the keys of the entries and the words of the request. ``rarity`` weighs every term: a rare word
that is missing says more than a common one.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import compress, islice
from math import sqrt

from kr.matching.compare import Comparison, compare
from kr.matching.frameworks import canonical
from kr.matching.rarity import rarity
from kr.matching.terms import (
    NEED,
    QUESTION,
    TAGS,
    TOPIC,
    WORDINGS,
    Keys,
    fillers,
    standing_in,
    terms,
    times_in_report,
    whole,
)
from kr.matching.topic import Topic, need_of, topic_of
from kr.matching.words import Concept, concepts, is_near
from kr.text.keywords import MAX_CHARACTERS
from kr.values import Entry, NamedTuple, Query, Value

NAMES = (
    "question_key_words_missing",
    "question_in_need",
    "topic_key_words_missing",
    "words_not_in_need",
    "words_in_need_ahead",
    "names_missing",
    "main_word_not_in_need",
    "other_tags_in_need",
    "report_relevance",
    "report_relevance_ahead",
    "key_word_relevance",
    "alike_but_rare_word_missing",
    "topics_opposed",
    "acts_in_need",
    "kindred_words_in_need",
    "concepts_missing",
)
"""In the order of the numbers. *Missing* is what neither need nor report has, *need* is the topic, tags, question and known
wordings of the entry, *key words* are weighed by what they say where they stand, *names* are written like an identifier."""

MEANING = {
    "question_key_words_missing": "key words of the question that the entry lacks",
    "question_in_need": "share of the question's words in the entry's need",
    "topic_key_words_missing": "key words of the topic asked for that the entry lacks",
    "words_not_in_need": "words of topic and question that the entry's need lacks",
    "words_in_need_ahead": "how far it is ahead in the share of words in its need",
    "names_missing": "names that are asked for and that the entry lacks",
    "main_word_not_in_need": "a rare word said more than once that the entry's need lacks",
    "other_tags_in_need": "words of tags of the request alone that stand in the entry's need",
    "report_relevance": "how much the report speaks of what is asked",
    "report_relevance_ahead": "how far its report is ahead of the next best entry's",
    "key_word_relevance": "the same for key words, which near misses have too",
    "alike_but_rare_word_missing": "questions alike, and yet a rare word is nowhere",
    "topics_opposed": "one topic denies, or turns round, what the other is about",
    "acts_in_need": "share of the acts that are asked for and stand in the entry's need, in any word",
    "kindred_words_in_need": "words that the entry's need says by a kindred one",
    "concepts_missing": "acts and things that are asked for and that the entry has by no word",
}
"""For people who read the table of ``kr explain``."""

NEVER_AGAINST = tuple(NAMES.index(name) for name in ("other_tags_in_need", "report_relevance"))
"""The labelled sets have more near misses that share a tag than life has: that a shared tag speaks against an entry is not to be
learned. So the words of a tag that both have count nowhere, and one more such tag changes no number; the other tags of a request
may speak for an entry, and what they ask for beyond it against it."""

_MOST_MISSING = 8.0
"""Of ``words_not_in_need``: about 98 of 100 labelled requests have less. It parts a short request from a long one, and without a
limit the words of a very long one would add up to an answer by any entry."""
_SOME = 1.0
"""Added where shares are taken, so that a single word is no whole need."""
_USUAL_ENTRIES = 5
"""Of a framework, in the labelled sets."""
_USUAL_NEXT = (0.06, 0.125)
"""Of the share of words in the need, and of relevance: what the next best of five has, and a fifth more."""
_SATURATION = 1.2
"""After how many times a word's further ones in a report say little (BM25's k1)."""
_SAME_TAG = 0.5
_MOST_TAGS = 64
"""Of a request that are looked at."""
_SHORTEST_SLIP = 5
_MOST_SLIPS = 24
"""Words of a request for which a typing error is thought of: each is held against every word of an entry's need."""
_UNUSUAL = 0.85
"""Rarer than any usual word: a name, or a typing error."""


class Candidate(NamedTuple):
    """A live entry and its keys, see ``kr.matching.terms``."""

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
        self.question = self._of(query.question)
        self.words = {**self.topic, **self.question}
        self.tags = [(_stems(tag), self._of(tag)) for tag in query.tags[:_MOST_TAGS]]
        self.all = {**self.words, **{term: None for _, of_tag in self.tags for term in of_tag}}
        written = [term for text in (query.topic, query.question) for term in terms(text[:MAX_CHARACTERS])]
        self.compounds = {term.text for term in written if term.is_whole}
        self.names = {term.text: None for term in written if term.is_name and term.text in self.words}
        unusual = (
            term for term in self.all if len(term) >= _SHORTEST_SLIP and rarity(term).rarity >= _UNUSUAL
        )
        self.unusual = set(islice(unusual, _MOST_SLIPS))
        self.things = {term: [one for one in concepts(term) if not one.is_act] for term in self.words}
        self.acts = {one for term in self.words for one in concepts(term) if one.is_act}
        self.concepts = self.acts.union(*self.things.values())
        self.parsed: Topic = topic_of(query.topic)

    @cached_property
    def need(self) -> Topic:
        """Topic and question taken apart as one."""
        return need_of(self.query.topic, self.query.question)

    def _of(self, text: str) -> dict[str, None]:
        return {term.text: None for term in terms(text[:MAX_CHARACTERS]) if term.text not in self.name_terms}


def weigh(asked: Asked, candidates: Sequence[Candidate]) -> list[Evidence]:
    """Work out the evidence for each of the best entries of a framework. With a skeleton, which answers nobody, no other is compared."""
    seen = [_Seen(asked, candidate) for candidate in candidates]
    may_answer = [one.entry.origin != "skeleton" for one in seen]
    relevance = [one.relevance for one in seen]
    in_need = [one.in_need.share for one in seen]
    ahead = [
        _ahead(values, may_answer, usual)
        for values, usual in zip((in_need, relevance), _USUAL_NEXT, strict=True)
    ]
    return list(map(_weigh, seen, *ahead))


class _Seen:
    """A request beside one entry. ``asked_for``: its words, those of tags that both have left out unless it says them anyway."""

    def __init__(self, asked: Asked, candidate: Candidate) -> None:
        self.asked = asked
        self.entry, self.keys = entry, keys = candidate
        slips = _slips(asked, keys)
        self.need = {term for term in asked.all if keys.get(term, 0) & NEED} | slips
        self.found = {term for term in asked.all if term in keys} | slips
        # To stem the tags of all entries was a fifth of a decision; most have no word of the request's.
        tagged = standing_in(keys, TAGS)
        may_share = not all(tagged.isdisjoint(stems) for stems, _ in asked.tags)
        self.tags = entry.tags if may_share else ()
        theirs = [_stems(tag) for tag in self.tags]
        self.other_tags = {
            term: None for stems, of_tag in asked.tags if not _is_shared(stems, theirs) for term in of_tag
        }
        self.asked_for = {**asked.words, **self.other_tags}
        self.in_need = _cover(asked.words, self.need)
        self.relevance = _relevance(asked.words, keys)

    def main_word_not_in_need(self) -> float:
        """Return how rare the rarest word is that two of topic, question and other tags have, and the need has not."""
        topic, question, tags = self.asked.topic, self.asked.question, self.other_tags
        twice = (term for term in self.asked_for if (term in topic) + (term in question) + (term in tags) > 1)
        return max((rarity(term).rarity for term in twice if term not in self.need), default=0.0)


def _weigh(seen: _Seen, in_need_ahead: float, relevance_ahead: float) -> Evidence:
    asked, keys, need, found = seen.asked, seen.keys, seen.need, seen.found
    question = _cover(asked.question, found)
    topic = _cover(asked.topic, found)
    concepts_in_need = {concept for concept in asked.concepts if _stands(concept, keys, NEED)}
    own = standing_in(keys, TOPIC | QUESTION | WORDINGS) - asked.name_terms
    comparison = compare(asked.parsed, topic_of(seen.entry.topic))
    numbers = (
        question.key_missing,
        _cover(asked.question, need).share,
        topic.key_missing,
        min(seen.in_need.missing, _MOST_MISSING),
        in_need_ahead,
        _cover(asked.names, found).missing,
        seen.main_word_not_in_need(),
        _cover(seen.other_tags, need).found,
        _relevance(seen.asked_for, keys),
        relevance_ahead,
        _relevance(asked.words, keys, of_key_words=True),
        _cosine(set(asked.words), own) * question.rarest_missing,
        float(comparison.is_opposite),
        _share(asked.acts, concepts_in_need),
        _cover(asked.words, need | _kindred(asked, concepts_in_need)).share - seen.in_need.share,
        float(sum(not _stands(concept, keys) for concept in asked.concepts)),
    )
    # Of a compound its parts are asked here: ``rowHeight`` is "row height" to the comparison of the topics too.
    missing = [rarity(term).rarity for term in asked.topic if term not in found | asked.compounds]
    return Evidence(
        numbers=numbers,
        comparison=comparison,
        shared_tags=shared_tags(asked.query.tags, seen.tags),
        rarest_missing=max(missing, default=0.0),
    )


def _slips(asked: Asked, keys: Keys) -> set[str]:
    """Return the words that nobody writes and that are a typing error away from one of the entry's need."""
    due = [term for term in asked.unusual if term not in keys]
    if not due:
        return set()
    known = [term for term, places in keys.items() if places & NEED and len(term) >= _SHORTEST_SLIP - 1]
    return {term for term in due if any(term[0] == other[0] and is_near(term, other) for other in known)}


_LEADING = {
    "question_in_need": 1.0,
    "words_in_need_ahead": 1.0,
    "report_relevance": 1.0,
    "report_relevance_ahead": 1.0,
    "acts_in_need": 1.0,
    "kindred_words_in_need": 1.0,
}


def lead(numbers: Sequence[float]) -> float:
    """Return a plain measure by which entries are put in order where no weights are learned yet."""
    return sum(numbers[place] * _LEADING.get(name, 0.0) for place, name in enumerate(NAMES))


class _Cover(NamedTuple):
    """How much of some terms is found: sums of rarities, the share of them, and what is missing of key words."""

    found: float
    missing: float
    share: float
    key_missing: float
    rarest_missing: float


def _cover(wanted: Iterable[str], found: set[str]) -> _Cover:
    has = lacks = key_lacks = rarest = 0.0
    for term in wanted:
        rare, weight = rarity(term)
        if term in found:
            has += rare
        else:
            lacks += rare
            key_lacks += rare * weight
            rarest = max(rarest, rare)
    return _Cover(has, lacks, has / (has + lacks + _SOME), key_lacks, rarest)


def _cosine(one: set[str], other: set[str]) -> float:
    square = {term: rarity(term).rarity ** 2 for term in one | other}
    size = sum(square[term] for term in one) * sum(square[term] for term in other)
    return sum(square[term] for term in one & other) / sqrt(size) if size else 0.0


def _relevance(wanted: Iterable[str], keys: Keys, *, of_key_words: bool = False) -> float:
    found = total = 0.0
    for term in wanted:
        rare, weight = rarity(term)
        says = rare * weight if of_key_words else rare
        times = times_in_report(keys.get(term, 0))
        found += says * times / (times + _SATURATION)
        total += says
    return found / (total + _SOME)


def _stands(concept: Concept, keys: Keys, places: int = -1) -> bool:
    """Tell whether an entry has a concept, in whichever word."""
    return any(keys.get(root, 0) & places for root in concept.roots)


def _share(acts: set[Concept], found: set[Concept]) -> float:
    return len(acts & found) / (len(acts) + _SOME)


def _kindred(asked: Asked, found: set[Concept]) -> set[str]:
    """Return the words of a request that stand for a thing which was found."""
    return {term for term, things in asked.things.items() if not found.isdisjoint(things)}


def _ahead(values: Sequence[float], may_answer: Sequence[bool], usual: float) -> list[float]:
    """Return how far each value is ahead of the best of the others that may answer.

    An entry that stands alone is ahead of nobody: in place of those that are not there yet the next best is presumed to have
    what it has with five, ``usual``. Without this 14 of 100 near misses of the labelled sets are answered by a
    framework's only entry, with it as many as among five.
    """
    compared = sorted(compress(values, may_answer), reverse=True)
    best, second = [*compared, 0.0, 0.0][:2]

    def presumed(others: int) -> float:
        return usual * max(0.0, 1 - others / (_USUAL_ENTRIES - 1))

    second = max(second, presumed(len(compared) - 1))
    beside = max(best, presumed(len(compared)))  # what a skeleton is held against
    return [
        value - (beside if not is_compared else second if value == best else best)
        for value, is_compared in zip(values, may_answer, strict=True)
    ]


def shared_tags(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the request's tags that the entry has too, each once, as the request writes them; by stems (SPEC 3.2)."""
    theirs = [stems for tag in known if (stems := _stems(tag))]
    found: dict[frozenset[str], str] = {}
    for tag in asked:
        mine = _stems(tag)
        if _is_shared(mine, theirs):
            found.setdefault(mine, tag)
    return tuple(found.values())


def _is_shared(stems: frozenset[str], theirs: Sequence[frozenset[str]]) -> bool:
    return any(stems and len(stems & other) >= _SAME_TAG * len(stems | other) for other in theirs)


def _stems(tag: str) -> frozenset[str]:
    return frozenset(term.text for term in terms(tag[:MAX_CHARACTERS]) if not term.is_whole)
