"""How well titled texts answer a question: BM25 over its terms, with weight on titles and on what is defined."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kr.reports.terms import Terms

_TITLE_WEIGHT = 1.5
_LABEL_WEIGHT = 1.0
_DEFINED = 5.0  # of an identifier that is asked for: where it is the label, it is told what it is
_ABOVE = 0.45  # what a term in the title counts that stands before its last part
_SATURATION = 1.2
_FULL_LENGTH = 500
_LONGEST = 5  # average lengths
_MAX_LABELS = 400
_LABEL = re.compile(
    r"^[ \t]*(?:(?:[-*+] |:param (?:[\w.]+ )?)[*`]{0,3})(\w[\w.]{1,60})(?=[*`]|[ \t]*[:(])", re.MULTILINE
)
_PARAGRAPH = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+] |:\w))")
_MAX_PARAGRAPHS = 200
_CLOSELY = 150
_TOGETHER = 1.5
_AGAIN = 0.4
_AT_MOST = 4  # times that a word counts which a text repeats
_BRIEF, _STRETCH = 6, 200  # words that an empty text counts as, and characters that count as one more
_LONG = 3_000  # characters: no text is better for having more
_DEEP = 4  # parts of a dotted name: no name is worse for having more
_FOR_OTHERS = re.compile(
    r"\b(?:contribut\w+|development|packaging|benchmarks?|related projects|maintain\w+|release \w+|change ?log|licen[cs]e|sponsors?|backers|acknowledg\w+|credits|code of conduct|authors|who(?:['’]?s| is) using|used by|adopters|donors|showcase)\b",
    re.IGNORECASE,
)
"""Headings of documents for those who work on the package or pay for it, rather than for its users."""
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LAST = re.compile(r" > |[.:]")


@dataclass(frozen=True, slots=True)
class Scored:
    """The place of a text in a ranking: its ``index`` in the input, and its score."""

    index: int
    score: float


@dataclass(frozen=True, slots=True)
class _Counted:
    index: int
    counts: Mapping[int, int]
    titles: frozenset[int]
    length: int


def rarity(terms: Terms, holding: Iterable[Iterable[int]]) -> list[float]:
    """Return how rare each term is among texts, of which each is given by the terms that it holds; 0.7 and more."""
    counts, total = [0] * len(terms.all), 0
    for held in holding:
        total += 1
        for at in set(held):
            counts[at] += 1
    return [math.log(1 + (total + 1) / (count + 1)) for count in counts]


def rank(
    texts: Sequence[tuple[str, str]],
    terms: Terms,
    *,
    expired: Callable[[], bool] = lambda: False,
    rare: Sequence[float] | None = None,
    factors: Sequence[float] | None = None,
) -> tuple[list[Scored], list[float]]:
    """Rank ``(title, text)`` pairs, best first; those that hold no term are left out. Equal ones keep their order.

    ``expired`` is asked now and then; once it is true, the rest is not looked at. Also returned is how rare
    each term is among the texts; given as ``rare``, it is taken instead, so that a selection of a larger
    number of texts is ranked as its parts of the whole. ``factors``: what each text's score is multiplied with.
    """
    counted: list[_Counted] = []
    for index, (title, text) in enumerate(texts):
        if index % 64 == 63 and expired():
            break
        counted.append(_Counted(index, terms.count(text), terms.within(title), len(text)))
    rare = (
        list(rare) if rare is not None else rarity(terms, (row.counts.keys() | row.titles for row in counted))
    )
    weights = [scarce * term.weight for scarce, term in zip(rare, terms.all, strict=True)]
    average = sum(row.length for row in counted) / (len(counted) or 1) + 1
    scored = [
        _score(row, texts[row.index], terms, weights=weights, average=average)
        for row in counted
        if row.counts or row.titles
    ]
    if factors is not None:
        scored = [replace(row, score=row.score * factors[row.index]) for row in scored]
    scored.sort(key=lambda s: (-s.score, s.index))
    near = [
        replace(row, score=row.score * (1 + _TOGETHER * _together(texts[row.index], terms, weights)))
        for row in scored[:_CLOSELY]
    ]
    return [*sorted(near, key=lambda s: (-s.score, s.index)), *scored[_CLOSELY:]], rare


def fitness(title: str, text: str, terms: Terms, weights: Sequence[float], *, is_opening: bool) -> float:
    """Return how well a text that holds words of the question answers it, besides its score; about 0 to 10.

    Texts of installed documentation are short and use words of their own, so that words which a story shares with them
    mislead: what counts is how much of the need itself the text and its title tell, and how much it dwells on that. The weights were
    learned from some 340 needs that agents worded, with topic and tags of their own and without: of those put to packages that the
    weights were not learned from the first passage was right for 52 % with topic and tags (46 % before) and for 34 % without (31 %).
    Length counts less than was learned (0.7), since of two texts the longer one holds more of the strings that grades count.
    ``is_opening``: the text stands below the first heading of a document, which praises the package rather than explains it.
    """
    heaviest = sum(sorted(weights, reverse=True)[:6]) or 1.0
    dwelt = sum(min(n, _AT_MOST) * terms.need.get(at, 0.0) for at, n in terms.count(text).items())
    code = "\n".join(_FENCED.findall(text))
    others = _FOR_OTHERS.search(title)
    return (
        3.4 * terms.told(terms.within(f"{title}\n{text}"))
        + 0.8 * terms.told(terms.within(title))
        + 2.1 * dwelt / (_BRIEF + len(text) / _STRETCH)
        + 1.25 * sum(weights[at] for at in terms.within(code)) / heaviest
        + 0.4 * math.log1p(min(len(text), _LONG))
        - 1.4 * is_opening
        - 0.6 * (others is not None and not terms.within(others[0]))
        - 0.15 * min(_DEEP, title.count("."))
    )


def varied(rows: Sequence[tuple[float, frozenset[int]]], weights: Sequence[float]) -> list[int]:
    """Return the places of texts, given by score and the terms that they hold, in the order in which they tell most anew.

    The best comes first; of the others what has been told already counts ``_AGAIN``, so that the second half of a
    question ("a task with a flag, and run a command in it") is not lost behind five texts about the first.
    """
    told: set[int] = set()
    left = list(range(len(rows)))
    order: list[int] = []
    while left:
        best = max(left, key=lambda at: (rows[at][0] * _news(rows[at][1], told, weights), -at))
        left.remove(best)
        order.append(best)
        told |= rows[best][1]
    return order


def _news(held: frozenset[int], told: set[int], weights: Sequence[float]) -> float:
    whole = sum(weights[at] for at in held) or 1.0
    return _AGAIN + (1 - _AGAIN) * sum(weights[at] for at in held - told) / whole


def _together(text: tuple[str, str], terms: Terms, weights: Sequence[float]) -> float:
    """Return which part of the question one paragraph or list item holds, with what the title says counted half."""
    title, body = text
    whole = sum(sorted(weights, reverse=True)[:6]) or 1.0
    above = terms.within(_LAST.split(title)[-1])
    best = 0.0
    for paragraph in _PARAGRAPH.split(body)[:_MAX_PARAGRAPHS]:
        held = terms.within(paragraph)
        told = sum(weights[at] for at in held) + 0.5 * sum(weights[at] for at in above - held)
        best = max(best, told)
    return min(1.0, best / whole)


def _score(
    row: _Counted, text: tuple[str, str], terms: Terms, *, weights: Sequence[float], average: float
) -> Scored:
    title, body = text
    # Of a very long text the report shows the parts that answer.
    norm = _SATURATION * (0.4 + 0.6 * min(row.length / average, _LONGEST))
    score = sum(weights[at] * n * (1 + _SATURATION) / (n + norm) for at, n in row.counts.items())
    score += _TITLE_WEIGHT * _titled(title, row.titles, terms, weights)
    labels = terms.within("\n".join(_LABEL.findall(body)[:_MAX_LABELS]))
    score += sum(weights[at] * (_DEFINED if terms.all[at].is_name else _LABEL_WEIGHT) for at in labels)
    held = row.counts.keys() | row.titles
    coverage = sum(weights[at] for at in held) / (sum(sorted(weights, reverse=True)[:6]) or 1.0)
    # A one-line docstring matches easily and explains little.
    substance = 0.6 + 0.4 * min(1.0, row.length / _FULL_LENGTH)
    return Scored(
        index=row.index,
        score=score * (0.3 + min(coverage, 1.0)) * substance,
    )


def _titled(title: str, held: frozenset[int], terms: Terms, weights: Sequence[float]) -> float:
    """Weigh the terms in a title: in its last part more, the more so the more of it they make up."""
    if not held:
        return 0.0
    last = _LAST.split(title)[-1]
    near = terms.within(last)
    words = len(re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", last)) or 1
    full = min(1.0, len(near) / words)
    return sum(weights[at] * ((0.8 + 0.8 * full) if at in near else _ABOVE) for at in held)
