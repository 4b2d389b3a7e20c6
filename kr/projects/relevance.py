"""How well a text answers a question: BM25 over the question's keywords, with weight on titles."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# Endings under which two words count as the same; longest first.
_ENDINGS = (
    "ability",
    "ations",
    "ation",
    "ables",
    "able",
    "ments",
    "ment",
    "ings",
    "ing",
    "ies",
    "ers",
    "er",
    "ors",
    "or",
    "ed",
    "es",
    "ly",
    "s",
    "e",
    "y",
)
_FOLLOWS = r"(?:e|s|es|ed|d|er|ers|or|ors|ing|ings|able|y|ies|ly|ation|ations|ment|ments)?"
_IDENTIFIER = re.compile(r"[A-Za-z_@$][\w$]*(?:[._:-][A-Za-z_][\w$]*)+|[a-z]+[A-Z]\w*|\w*_\w+")
# What people say, and what documentation calls it.
_ALSO = {
    "repeatable": ("multiple", "multiple times", "several times"),
    "repeat": ("multiple", "multiple times", "several times"),
    "repeated": ("multiple", "multiple times", "several times"),
    "mandatory": ("required",),
    "compulsory": ("required",),
    "hide": ("hidden", "exclude"),
    "invoke": ("call",),
    "validate": ("validator", "validation"),
    "error": ("exception",),
    "exception": ("error",),
    "stop": ("shutdown", "cancel"),
    "retry": ("retries",),
    "directory": ("folder", "path"),
    "folder": ("directory", "path"),
}
_ALSO_WEIGHT = 0.7
MAX_TERMS = 24
_LONGEST_WORD = 80
_SAY_LITTLE = frozenset(
    {
        "add",
        "best",
        "change",
        "configuration",
        "configure",
        "correct",
        "correctly",
        "create",
        "example",
        "find",
        "get",
        "give",
        "handle",
        "make",
        "need",
        "properly",
        "run",
        "set",
        "show",
        "support",
        "use",
        "used",
        "using",
        "want",
        "way",
        "work",
        "works",
        "write",
    }
)
_LITTLE_WEIGHT = 0.3
_TITLE_WEIGHT = 1.5
_LABEL_WEIGHT = 1.5


@dataclass(frozen=True, slots=True)
class Term:
    """One keyword of a question. ``pattern`` finds it and its inflections in a case-folded text."""

    stem: str
    pattern: re.Pattern[str]
    label: re.Pattern[str]
    """Finds it where it is defined: as a parameter of a docstring, as the head of a list item."""
    weight: float
    is_main: bool
    """Whether the question itself says it, and it is no word such as "use" or "set"."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The place of a text in a ranking: its ``index`` in the input, its score, and which terms of the question it holds."""

    index: int
    score: float
    said: frozenset[int]
    titled: bool
    """Whether a term stands in its title."""


def question_terms(framework: str, question: str, topic: str) -> list[Term]:
    """Return the terms to look for: those of the question, then those of the topic at less weight.

    An identifier (``pool_pre_ping``) counts as a whole more than its parts. The framework's own name says
    nothing within its documentation and is left out, unless nothing else is left.
    """
    from kr.rules.keywords import keywords

    weights: dict[str, float] = {}
    for text, weight in ((question, 1.0), (topic, 0.6)):
        for identifier in _IDENTIFIER.findall(text[:4096]):
            if len(identifier) <= _LONGEST_WORD:
                weights.setdefault(identifier.casefold(), 2.0 * weight)
        for word in (w for w in keywords(text) if len(w) <= _LONGEST_WORD):
            weights.setdefault(word, weight * (_LITTLE_WEIGHT if word in _SAY_LITTLE else 1.0))
    said = weights.keys() - _SAY_LITTLE
    for word, weight in list(weights.items()):
        for other in _ALSO.get(word, ()):
            weights.setdefault(other, weight * _ALSO_WEIGHT)
    own = set(keywords(framework)) | {framework.casefold()}
    kept = {word: weight for word, weight in weights.items() if word not in own} or weights
    heaviest = sorted(kept.items(), key=lambda entry: -entry[1])[:MAX_TERMS]
    return [_term(word, weight, is_main=word in said) for word, weight in heaviest]


def rank(
    texts: Sequence[tuple[str, str]],
    terms: Sequence[Term],
    *,
    expired: Callable[[], bool],
    rarity: Sequence[float] | None = None,
) -> tuple[list[Scored], list[float]]:
    """Rank ``(title, text)`` pairs, best first; those that hold no term are left out.

    ``expired`` is asked now and then; once it is true, the rest is not looked at. Also returned is how rare
    each term is among the texts; given as ``rarity``, it is taken instead, so that a selection of a larger
    number of texts is ranked as its parts of the whole.
    """
    counted: list[_Counted] = []
    for index, (title, text) in enumerate(texts):
        if index % 64 == 63 and expired():
            break
        head, body = title.casefold(), text.casefold()
        counts = {i: n for i, term in enumerate(terms) if (n := _count(term, body))}
        titles = frozenset(i for i, term in enumerate(terms) if _count(term, head))
        counted.append(_Counted(index, counts, titles, len(body)))
    rare = list(rarity) if rarity is not None else [_rarity(i, counted) for i in range(len(terms))]
    average = sum(row.length for row in counted) / (len(counted) or 1) + 1
    scored = [
        _score(row, texts[row.index], terms, rarity=rare, average=average)
        for row in counted
        if row.counts or row.titles
    ]
    return sorted(scored, key=lambda s: (-s.score, s.index)), rare


@dataclass(frozen=True, slots=True)
class _Counted:
    index: int
    counts: dict[int, int]
    titles: frozenset[int]
    length: int


def _score(
    row: _Counted, named: tuple[str, str], terms: Sequence[Term], *, rarity: Sequence[float], average: float
) -> Scored:
    title, text = named
    weights = [rare * term.weight for rare, term in zip(rarity, terms, strict=True)]
    norm = 1.2 * (0.4 + 0.6 * row.length / average)
    score = sum(weights[i] * n * 2.2 / (n + norm) for i, n in row.counts.items())
    titled = [i for i in row.titles if terms[i].is_main]
    score += _TITLE_WEIGHT * sum(
        max(weights[i], terms[i].weight) * _closeness(title, terms[i]) for i in titled
    )
    score += _LABEL_WEIGHT * sum(weights[i] for i in row.counts if terms[i].label.search(text))
    held = row.counts.keys() | row.titles
    coverage = sum(weights[i] for i in held) / (sum(sorted(weights, reverse=True)[:6]) or 1.0)
    return Scored(
        index=row.index,
        score=score * (0.5 + min(coverage, 1.0)) * _substance(row.length),
        said=frozenset(i for i in held if terms[i].is_main),
        titled=bool(titled),
    )


def answers(best: Iterable[Scored], terms: Sequence[Term]) -> bool:
    """Tell whether a ranking holds an answer at all.

    That is a text with two terms of the question, with one in its title, or with its only one or an identifier.
    """
    is_alone = sum(term.is_main for term in terms) <= 1
    return any(
        row.titled
        or len(row.said) >= 2
        or (is_alone and row.said)
        or any(terms[i].weight >= 2.0 for i in row.said)
        for row in best
    )


def mentions(text: str, terms: Sequence[Term]) -> float:
    """Return how much of the terms a case-folded text holds, quickly and roughly; 0 when nothing."""
    return sum(min(text.count(term.stem), 5) * term.weight**3 for term in terms)


def _term(word: str, weight: float, *, is_main: bool) -> Term:
    stem = word
    if word.isascii() and word.isalpha() and len(word) > 4:
        ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= 3), "")
        stem = word[: len(word) - len(ending)]
    follows = _FOLLOWS if word.isascii() and word.isalpha() else ""
    edges = (r"(?<![a-z0-9])", r"(?![a-z0-9])") if word.isascii() else ("", "")
    core = re.escape(stem) + follows
    return Term(
        stem=stem,
        pattern=re.compile(f"{edges[0]}{core}{edges[1]}"),
        label=re.compile(
            rf"^[ \t]*(?:- `|:param (?:[\w.]+ )?)?\*{{0,2}}{core}(?:`|[ \t]*[:(])",
            re.MULTILINE | re.IGNORECASE,
        ),
        weight=weight,
        is_main=is_main,
    )


def _count(term: Term, text: str) -> int:
    # Looking for the plain stem first is many times faster than the pattern.
    return len(term.pattern.findall(text)) if term.stem in text else 0


def _rarity(term: int, counted: Sequence[_Counted]) -> float:
    held = sum(term in row.counts or term in row.titles for row in counted)
    return math.log(1 + (len(counted) - held + 0.5) / (held + 0.5))


def _substance(length: int) -> float:
    """Return 0.6 to 1: a one-line docstring matches easily and explains little."""
    return 0.6 + 0.4 * min(1.0, length / 500)


def _closeness(title: str, term: Term) -> float:
    """Return 2 when the term is the whole last part of a title (``click.core.Option``), 1 when in it, else 0.4."""
    last = re.split(r" > |[.:]", title.casefold())[-1].strip(" ()`")
    if term.pattern.fullmatch(last):
        return 2.0
    return 1.0 if term.pattern.search(last) else 0.4
