"""The keys of an entry, made when it is written: where each of its terms stands (SPEC 3.2).

A look-up then reads what it asks for and does no language work over the entries.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from kr.matching.terms import terms
from kr.naming import fold

VERSION = 3
"""Of how keys are made: entries with other keys get new ones."""

TOPIC, TAGS, QUESTION, WORDINGS, REPORT = (1 << place for place in range(5))
NEED = TOPIC | TAGS | QUESTION | WORDINGS
_COUNT = 5
"""From this bit on stands how often the report has the term."""
_MOST = 255

Need = tuple[str, Iterable[str], str | None]
"""Topic, tags and question."""

Keys = Mapping[str, int]
"""What ``keys_of`` returns, or a part of it."""


def keys_of(own: Need, wordings: Iterable[Need], report: str) -> dict[str, int]:
    """Return for each term of an entry the bits of the places where it stands, and the count of the report.

    ``=`` and a folded topic stands for the whole of it, with the question behind it for a whole wording: what was asked
    in these very words is known when it is asked again. A wording's topic alone says less: many needs go by a short one.
    """
    topic, tags, question = own
    found: Counter[str] = Counter()
    _mark(found, topic, TOPIC)
    _mark(found, " , ".join(tags), TAGS)
    _mark(found, question or "", QUESTION)
    found[whole(topic)] |= TOPIC
    for asked, with_tags, in_words in wordings:
        _mark(found, " , ".join((asked, *with_tags, in_words or "")), WORDINGS)
        found[whole(asked, in_words or "")] |= WORDINGS
    for term, times in Counter(term.text for term in terms(report)).items():
        found[term] |= REPORT | min(times, _MOST) << _COUNT
    return dict(found)


def whole(topic: str, question: str | None = None) -> str:
    """Return the key of a whole topic, or of a whole wording: white space and case don't count."""
    texts = (topic,) if question is None else (topic, question)
    return "=" + "\n".join(" ".join(fold(text).split()) for text in texts)


def times_in_report(places: int) -> int:
    """Return how often the report has the term of these places."""
    return places >> _COUNT


def standing_in(keys: Mapping[str, int], places: int) -> set[str]:
    """Return the terms, whole topics aside, that stand in one of the places."""
    return {term for term, where in keys.items() if where & places and not term.startswith("=")}


def _mark(found: Counter[str], text: str, place: int) -> None:
    for term in terms(text):
        found[term.text] |= place
