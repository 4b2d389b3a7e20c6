"""The terms by which a request and an entry are compared: stems of words, names, Chinese terms in English (SPEC 3.2)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from kr.matching import table
from kr.matching.words import SHORT_FORMS, SYNONYMS, bases, simplified, singular
from kr.naming import fold
from kr.text.keywords import FUNCTION_WORDS, runs, split_compound, stem
from kr.values import NamedTuple

MOST_CHARACTERS = 262_144
"""Of a text that are looked at: no report is longer (SPEC 3.7)."""

REPORT_CHARACTERS = 1_900
"""Of a report that count. Weights are learned from reports of 1,500 characters, 1,881 at most; one that fits a context
(SPEC 3.7) is four times as long, and its later passages are near to any other need of the framework: with all of it 5 of 24
second needs of a framework were answered by the entry that stood there alone, with this none."""

_BESIDE = re.compile(r"^> (?:Other m|M)embers of `[^`\n]+`:\n(?:>[ ]*\n)?(?:> - .*\n)+", re.MULTILINE)
"""What a report tells of what stands beside a name (``Siblings`` of ``kr.packages.pieces``): other needs, a line each."""
_WORD = re.compile(r"[^\W_](?:\w|['’](?=[a-z])|[.-](?=\w)|\+\+|#)*|@\w+|--?[a-z][\w-]+")
_NAME = re.compile(r"[a-z][A-Z]|_|\w\.\w|^@|^--|\d|^[A-Z]{2}")
_SEPARATORS = re.compile(r"[.\-+#@\s/:]+")
_SHORTEST_BRITISH = 7
_DISTINCT = {"customer": "customer", "customers": "customer"}
"""Words whose stem is that of another one: a customer is nothing custom."""


class Term(NamedTuple):
    """``is_whole`` marks a compound as one word (``usememo``), beside which its parts stand too.

    ``is_name``: written like an identifier, a name or a number (``useMemo``, ``S3``, ``max_overflow``, ``--if-unsure``).
    """

    text: str
    is_whole: bool = False
    is_name: bool = False


@lru_cache(maxsize=64)
def terms(text: str) -> tuple[Term, ...]:
    """Return the terms of a text, in its order and as often as they stand there.

    A word is its stem, with usual short forms, British spelling and synonyms made one; a compound name stands as one word
    and by its parts; of Chinese prose the technical terms that the table knows stand in English.
    """
    found: list[Term] = []
    for run, is_cjk in runs(unicodedata.normalize("NFKC", text[:MOST_CHARACTERS])):
        if is_cjk:
            found += _of_chinese(run)
            continue
        for match in _WORD.finditer(run):
            found += _of_word(match[0].strip(".'’"))
    return tuple(found)


def _of_word(raw: str) -> Iterable[Term]:
    parts = [part for piece in _SEPARATORS.split(raw) if piece for part in split_compound(piece) if part]
    is_name = _NAME.search(raw) is not None
    if len(parts) > 1:
        yield Term("".join(parts), is_whole=True, is_name=is_name)
    for part in parts:
        if part not in FUNCTION_WORDS and not (part.isdigit() and len(part) == 1):
            yield Term(root(part), is_name=is_name)


@lru_cache(maxsize=32_768)
def root(word: str) -> str:
    """Return what all forms and spellings of a folded word share."""
    if word in _DISTINCT:
        return _DISTINCT[word]
    word = SHORT_FORMS.get(word, word)
    if len(word) >= _SHORTEST_BRITISH and "is" in word:
        word = _british().sub(r"iz\1", word)
    if len(word) > 3 and word.isascii() and word.isalpha():
        one = singular(word)
        word = SHORT_FORMS.get(one, word)
        word = next((SYNONYMS[base] for base in bases(one) if base in SYNONYMS), word)
    return stem(word)


@cache
def _british() -> re.Pattern[str]:
    return re.compile(r"(?<=[a-z]{3})is(e|ed|es|ing|er|ers|ation|ations)$")


def in_english(text: str) -> str:
    """Return the technical terms of a Chinese text in English, and the Latin words among them, in its order."""
    words = (" ".join(_english_of(run)) if is_cjk else run for run, is_cjk in runs(text))
    return " ".join(" ".join(words).split())


def _of_chinese(run: str) -> Iterable[Term]:
    return (Term(root(word)) for word in _english_of(run))


def _english_of(run: str) -> list[str]:
    table, pattern = _chinese()
    return [word for match in pattern.finditer(simplified(run)) for word in table[match[0]].split()]


@cache
def _chinese() -> tuple[dict[str, str], re.Pattern[str]]:
    lines = table("chinese.txt").splitlines()
    meant = {chinese: english for chinese, _, english in (line.partition(" ") for line in lines)}
    return meant, re.compile("|".join(map(re.escape, sorted(meant, key=len, reverse=True))))


_FILLERS = """
actual actually again alreadi already also alway always anoth another any anyth anything back best both can
come correct could current currently did do doe does each even everi every exampl example explain first fix
fixed get give given go got happen happens help here how insid inside instead just keep know last least less
let like look make mani many may might more most much must need never new next often on one only other own
plea please possibl possible proper properly put realli really right run same see set should show so someth
something still such take tell than then there two understand use used using usual usually veri very want
way what when where which while who whose why within without work working works would yet
"""
"""With the roots of all of them, which a test holds together: to stem them would cost more than all else that a look-up does."""


@cache
def fillers() -> frozenset[str]:
    """Return what questions are made of, whatever they ask: it is no evidence."""
    return frozenset(_FILLERS.split())


VERSION = 5
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
    for term, times in Counter(term.text for term in terms(_lead(report))).items():
        found[term] |= REPORT | min(times, _MOST) << _COUNT
    return dict(found)


def _lead(report: str) -> str:
    """Return what of a report counts, in whole words: from its first section on, the Summary and the passage that answers."""
    head, found, body = report.partition("\n## ")
    if found and "**Framework:**" in head:
        # What kr writes above the first section is about the report.
        report = f"## {body}"
    report = _BESIDE.sub("", report)
    return report if len(report) <= REPORT_CHARACTERS else report[:REPORT_CHARACTERS].rpartition(" ")[0]


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
