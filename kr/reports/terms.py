"""The words of a question, in a form that finds them in long texts: what passages are ranked by (SPEC 3.7).

Two words are one when they share a stem, once short forms ("env") and synonyms are made one. What a question of any kind
may say ("use", "make", "get") weighs little, the framework's own name nothing, since all of its documentation is about
it, and nothing weighs what is set aside ("a cursor instead of offset").
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from posixpath import commonprefix

from kr.matching.rarity import rarity
from kr.matching.words import SHORT_FORMS, SYNONYMS
from kr.text.keywords import (
    FUNCTION_WORDS,
    WORD,
    bigrams,
    keywords,
    normalise,
    runs,
    split_compound,
    stem,
    word_set,
)

MAX_WORDS = 20
MAX_NAMES = 12
_MAX_WORD = 80
_FROM_TOPIC = 0.5
_FROM_TAGS = 0.5
_GENERIC_WEIGHT = 0.25
_NAME_WEIGHT = 1.5
_PART_OF_NAME = 0.4
_SELDOM, _COMES_BACK = 0.3, 0.75  # see ``kr.matching.rarity``
_FEWEST_SPELLED = 2  # words of a name that a question spells
_MEMORY = 60_000  # distinct words of texts that are remembered

_RUN = re.compile(f"[{WORD}]+")
_NAME = re.compile(r"(?<!\w)(?:[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)")
_LANGUAGE = re.compile(r"\b(?:Type|Java)Script\b")
"""Written like a name, and yet it only says where the question comes from."""
_CODE = re.compile(r"`([A-Za-z]{2,24})`")
"""A name may be a word that says nothing elsewhere: `where`, `with`."""
_SYMBOL = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w+)+|(?<=`)[A-Za-z_]\w+(?=(?:\(\))?`)")
_ABOVE = re.compile(r" > |/")
_VALUE = re.compile(r"(?<!^)\b(?:None|null|NULL|nil)\b")  # function words to a reader, values to a programmer
_ASIDE = re.compile(
    r"\b(?:instead of|rather than|in place of|as opposed to)\s+((?:(?!(?:in|on|for|to|with|when|and|or|but|from|by)\b)[\w`'.-]+\s*){1,4})",
    re.IGNORECASE,
)
_OUR = re.compile(r"our(?=(?:s|ed|ing)?$)")
_ISE = re.compile(
    r"(?<=(?:[aeo]r|[aeio]n|gn|[iy]m|al|il|et|it)i)s(?=(?:e[ds]?|ers?|ing|ations?)$)|(?<=ly)s(?=e[ds]?$|ing$)"
)
_SHORTER = 5  # letters of "hours" and "rise"
_HYPHENED = re.compile(r"(?<![\w-])([A-Za-z]{3,})-([A-Za-z]{2,5})(?![\w-])")
_AT_ONCE = re.compile(r"\b(?:at the same time|in parallel)\b", re.IGNORECASE)
_OF_QUESTIONS = {"repeatable": "multiple", "several": "multiple"}
"""What questions call in other words than documentation does, besides the synonyms of topics."""
_GENERIC = word_set(
    """
    add added adding adds afterwards again allow allowed allowing allows another apply applying back best bring call
    calling certain change changes changing choose configuration configure configured configuring correct correctly
    create created creating define defining different dozen eight eleven example examples exist existing fifteen fifty
    find finding five fix forty four get gets getting give given gives giving go goes going good got guide handle
    handling happen happens help implement implementing javascript keep keeping know leave leaves let like little look made make
    makes making mean means need needed needs new nine once one ones only other others own possible practice practices
    problem problems proper properly provide provides put python question recommended right run running runs say says set sets
    setting setup seven several show simple simplest six sixty solve some something support supported supports switch
    take takes tell ten thing things thirty thousand thousands three try trying turn turns tutorial twelve twenty two typescript
    understand usage use used useful uses using want wants way ways whenever while whole without work working works write
    writing
    """
)
"""Words that a question of any kind may hold: what is asked about is said by the others."""


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a question. ``weight`` is 1 for what the question itself says, before any rarity.

    ``is_name``: it is an identifier (``pool_pre_ping``) that a text must hold as a whole.
    """

    word: str
    weight: float
    is_name: bool = False

    @property
    def is_main(self) -> bool:
        """Whether the question itself says it, and it is no word such as "use" or "make"."""
        return self.weight >= 1.0


class Terms:
    """The terms of one question. Texts are given to it; it answers with the places (0, 1, ...) of its terms."""

    def __init__(
        self,
        terms: Iterable[Term],
        *,
        joined: Iterable[tuple[str, str]] = (),
        aside: Iterable[str] = (),
        parts: Iterable[Mapping[str, float]] = (),
        symbols: Iterable[str] = (),
    ) -> None:
        self.all = tuple(terms)
        self._symbols = tuple(symbols)
        self.parts = tuple(
            {at: part[term.word] for at, term in enumerate(self.all) if term.word in part} for part in parts
        )
        """What the question, its topic and its tags say: the terms of each, by what they weigh in it."""
        named = [at for part in self.parts[1:] for at in part] or [at for part in self.parts for at in part]
        self.need = {at: rarity(root(self.all[at].word)).rarity for at in named}
        """The terms of topic and tags, where these say nothing those of the question, by how rare they are in technical English."""
        self.aside = frozenset(map(root, aside))
        self._by_word: dict[str, int] = {}
        self._by_root: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._joined: dict[str, tuple[int, ...]] = {}
        self._known: dict[str, tuple[int, ...]] = {}
        for at, term in enumerate(self.all):
            if term.is_name:
                self._names[term.word] = at
                continue
            self._by_word[term.word] = at
            self._by_root.setdefault(root(term.word), at)
        for one, other in joined:
            if one in self._by_word and other in self._by_word:
                self._joined[one + other] = (self._by_word[one], self._by_word[other])
        self._beginnings = [(term.word,) if term.is_name else _beginnings(term.word) for term in self.all]
        self._starts = {form[:2] for form in (*self._by_word, *self._by_root, *self._names, *self._joined)}

    def count(self, text: str) -> Counter[int]:
        """Return how often each term occurs in a text of any length."""
        found: Counter[int] = Counter()
        for run in _RUN.findall(text):
            at = self._known.get(run)
            if at is None:
                at = self._look(run)
            if at:
                found.update(at)
        return found

    def within(self, text: str) -> frozenset[int]:
        """Return the terms that occur."""
        return frozenset(self.count(text))

    def is_aside(self, text: str) -> bool:
        """Tell whether a short text speaks of what the question sets aside, and of nothing that it asks for."""
        if not self.aside or any(self.all[at].is_main for at in self.within(text)):
            return False
        return not self.aside.isdisjoint(map(root, keywords(text)))

    def is_symbol(self, title: str) -> bool:
        """Tell whether a title names a symbol that the question names: ``foo.Bar.run`` where it says `run` or `Bar.run`."""
        name = _ABOVE.split(title)[-1].strip("`()")
        for symbol in self._symbols:
            above, _, last = symbol.rpartition(".")
            short = f"{above.rpartition('.')[2]}.{last}".strip(".")
            if f".{name}".endswith(f".{short}") or name == last:
                return True
        return False

    def is_spelled(self, title: str) -> bool:
        """Tell whether a title's name has all words of the question and no other: ``StreamingResponse``."""
        words = split_compound(_ABOVE.split(title)[-1].strip("`()").rpartition(".")[2])
        held = [self.within(word) for word in words]
        if len(words) < _FEWEST_SPELLED or not all(any(self.all[at].is_main for at in one) for one in held):
            return False
        return frozenset().union(*held) >= {at for at, term in enumerate(self.all) if term.is_main}

    def told(self, held: AbstractSet[int]) -> float:
        """Return which part of the need (``need``) is held, 0 to 1."""
        return sum(rare for at, rare in self.need.items() if at in held) / (sum(self.need.values()) or 1.0)

    def coverage(self, held: Iterable[int]) -> float:
        """Return which part of what the question itself says these terms are, 0 to 1; all of it where it says nothing."""
        whole = sum(term.weight for term in self.all if term.is_main)
        own = sum(self.all[at].weight for at in set(held) if self.all[at].is_main)
        return own / whole if whole else 1.0

    def glimpse(self, text: str) -> dict[int, int]:
        """Return roughly how often each term occurs, up to 5: quick enough for all of a package's sources."""
        folded = text.casefold()
        counts = (sum(map(folded.count, starts)) for starts in self._beginnings)
        return {at: min(n, 5) for at, n in enumerate(counts) if n}

    def _look(self, run: str) -> tuple[int, ...]:
        run = run[:_MAX_WORD]
        found: list[int] = []
        for text, is_cjk in runs(run):
            parts = bigrams(text) if is_cjk else split_compound(text)
            found += [at for part in parts for at in self._part(part)]
            whole = text.casefold()
            if not is_cjk and whole in self._names:
                found.append(self._names[whole])
            if len(parts) > 1 and not is_cjk:
                found += self._joined.get("".join(parts), ())
        answer = tuple(found)
        if len(self._known) < _MEMORY:
            self._known[run] = answer
        return answer

    def _part(self, part: str) -> tuple[int, ...]:
        if part[:2] not in self._starts and part not in SHORT_FORMS and part not in SYNONYMS:
            return ()
        if part in self._by_word:
            return (self._by_word[part],)
        if part in self._joined:
            return self._joined[part]
        at = self._by_root.get(root(part))
        return () if at is None else (at,)


def question_terms(framework: str, question: str, topic: str = "", tags: Iterable[str] = ()) -> Terms:
    """Return the terms of a question, the heaviest first: at most 20 words and 12 identifiers.

    What the topic or the tags say weighs half, on top of what the question says, and the parts of a name less than the
    name. A question of the framework's name alone is asked with what it has; a single letter ("x y z") says nothing.
    """
    own = set(keywords(framework)) | {framework.casefold()}
    question = _HYPHENED.sub(_as_one, _AT_ONCE.sub("concurrently", question[:4096]))
    aside, wanted = " ".join(_ASIDE.findall(question)), _ASIDE.sub(" ", question)
    known: dict[str, str] = {}
    said = [_said(text, own, known) for text in (wanted, topic[:4096], " ".join(tags)[:4096])]
    weights: dict[str, float] = {}
    for part, weight in zip(said, (1.0, _FROM_TOPIC, _FROM_TAGS), strict=True):
        for word, light in part.items():
            weights[word] = weights.get(word, 0.0) + weight * light
    names = [word for word in weights if any(part.get(word) == _NAME_WEIGHT for part in said)]
    set_aside = [word for word in keywords(aside) if root(word) not in set(map(root, keywords(wanted)))]
    dropped = own | {word for word in weights if any(root(word) == root(other) for other in set_aside)}
    kept = {word: weight for word, weight in weights.items() if word not in names}
    kept = {word: weight for word, weight in kept.items() if word not in dropped} or kept
    heaviest = sorted(kept, key=lambda word: -kept[word])[:MAX_WORDS]
    return Terms(
        [
            *(Term(word, kept[word]) for word in heaviest),
            *(Term(name, weights[name], is_name=True) for name in names[:MAX_NAMES]),
        ],
        joined=pairwise(kept),
        aside=set_aside,
        parts=said,
        symbols=_symbols(wanted, framework),
    )


def _symbols(question: str, framework: str) -> list[str]:
    """Return what the question is about by name. A class alone (`Session`) is none: its members answer."""
    names = [*_SYMBOL.findall(question), *(name for name in _NAME.findall(question) if not name[0].isupper())]
    return [name for name in dict.fromkeys(names) if name.casefold() != framework.casefold()][:MAX_NAMES]


def _as_one(found: re.Match[str]) -> str:
    """Write as one word what would lose half of itself with its function word: "drop-down", "opt-in"."""
    return f"{found[0]} {found[1]}{found[2]}" if found[2].casefold() in FUNCTION_WORDS else found[0]


def _said(text: str, own: AbstractSet[str], known: dict[str, str]) -> dict[str, float]:
    """Return what one text says: its identifiers and words, by weight, each word in the form in which it is ``known`` first."""
    text = _LANGUAGE.sub(lambda found: found[0].lower(), text)
    names = {name.casefold(): name for name in _NAME.findall(normalise(text)) if len(name) <= _MAX_WORD}
    said = {folded: _NAME_WEIGHT for folded in names if folded not in own}
    parts = {part for name in names.values() for part in split_compound(name)}
    for word in (
        *keywords(text),
        *map(str.casefold, _VALUE.findall(text)),
        *map(str.casefold, _CODE.findall(text)),
    ):
        if len(word) <= _MAX_WORD and not (len(word) == 1 and word.isascii()):
            light = _GENERIC_WEIGHT if _is_generic(word) else _PART_OF_NAME if word in parts else 1.0
            said.setdefault(known.setdefault(root(word), word), light)
    return said


def _is_generic(word: str) -> bool:
    return word in _GENERIC or word.removesuffix("s") in _GENERIC or word.isdigit()


def root(word: str) -> str:
    """Return the stem of a folded word: of its long form where it is a usual short one (``env``), of its synonym.

    British spelling is made American, in which packages are documented ("colours", "serialise").
    """
    if len(word) > _SHORTER:
        word = _OUR.sub("or", _ISE.sub("z", word))
    found = stem(SHORT_FORMS.get(word, word))
    return _synonyms().get(found, found)


def is_subject(word: str) -> bool:
    """Tell whether texts are about a word ("queue") rather than merely say it ("come", "longer", "generated")."""
    found = rarity(root(word))
    return word.isascii() and found.rarity >= _SELDOM and found.weight >= _COMES_BACK


@cache
def _synonyms() -> dict[str, str]:
    # An inflected form has the stem of another word: "paging", that of "page".
    pairs = {**SYNONYMS, **_OF_QUESTIONS}.items()
    return {stem(one): stem(other) for one, other in pairs if not one.endswith(("ing", "ed"))}


def _beginnings(word: str) -> tuple[str, ...]:
    """Return what the forms of a word begin with, and what those of its synonym do."""
    shared = commonprefix((word, stem(word))).removesuffix("i") or word  # "queries" has the stem "queri"
    found = root(word)
    return (shared,) if found.startswith(shared) else (shared, found)
