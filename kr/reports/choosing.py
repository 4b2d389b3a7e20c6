"""Which passages of a material answer a question, and whether they do (SPEC 3.7: a report fits a context)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from kr.matching.rarity import rarity as technical
from kr.reports.passages import Unit, is_example, is_shape, read_answer
from kr.reports.ranking import rank
from kr.reports.terms import Terms, question_terms, root
from kr.source_kinds import is_answer, is_package
from kr.text.markdown import Block
from kr.text.sentences import plain
from kr.values import Answer, Query

MOST = 5
"""Passages of a report (SPEC 3.7)."""

_OF_BEST = 0.3  # of the best passage's score: one that has less is left out
_OF_BEST_IN_PACKAGE = 0.3  # where the passages were chosen by how rare the words are in the whole package
_OF_WHOLE = 0.35  # there, where the first passage says all words of the question
_OF_NEWS = 0.5  # of these shares, for a passage that tells a word of the question which no better one does
_LATER = 0.1  # by which each further place in the installed package counts less
_ASIDE = 0.3  # what a passage counts that the source warns off, or the question sets aside
_IN_TITLE = 0.5
_OF_QUESTION = 0.6  # what the question alone counts, where topic and tags are about something else
_SHORTEST, _LONGEST = 3, 8  # words of a question, as far as its length tells what one passage must speak of
_LONGER = 0.4  # the power of that number by which it tells
_ENOUGH = 1.2  # of what a passage of a package says of the question, and how much it dwells on it, less what no passage says
_BRIEF = 6  # words: what an empty passage counts as
_STRETCH = 200  # characters that count as one word more
_COVERS_OF_PAGE = 0.35  # of what is asked: what one passage of a page must speak of, which has to say most words of the question besides
_ALIKE = 0.8
_MOSTLY_ALIKE = 0.6
_LONG = 80  # different words
_SAME_NAME = 0.75
_FEW = 12  # words that texts must share at least to be alike
_OPENING = 400  # characters in which a passage says what it is

WARNED_OFF = re.compile(
    r"\b(?:deprecated|legacy|obsolete|superseded|no longer (?:recommended|supported|maintained|needed)|discouraged"
    r"|not (?:be )?(?:used|recommended) (?:in|for) new|(?:will be|was|has been|were) removed|do(?: not|n['’]t) use (?:it|this|them)\b)"
    r"|弃用|废弃|已过时|不推荐",
    re.IGNORECASE,
)
_OF_ARGUMENT = re.compile(
    r"(?<!\bthis )\b(?:argument|parameter|keyword)s?\b[^.]{0,40}\b(?:is|are|was|were|been|be)\b[^.]{0,20}"
    r"\b(?:deprecated|obsolete|removed|discouraged)\b",
    re.IGNORECASE,
)
_WARNING_HEADING = re.compile(
    r"\W*(?:(?:common )?(?:pitfalls?|mistakes?|anti-?patterns?|gotchas?)\b|(?:don['’]?t|do not|avoid|never|bad|wrong|incorrect)\b)",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\W*(?:change ?logs?|release notes|what['’]?s new|(?:release |version )?history|v?\d+\.\d+(?:\.\d+)?\b)",
    re.IGNORECASE,
)


_TELLS = re.compile(r"(?:\b[a-z]{2,},? ){3,}[a-z]{2,}\b")  # words of a sentence


@dataclass(frozen=True, slots=True)
class Ranked:
    """A unit and how well it answers; scores compare within one material."""

    unit: Unit
    score: float
    is_warned_off: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """``taken``: at most five, the best first; ``rows``: all that share a word with the question, best first.

    ``covers``: what was taken speaks of enough of the question to be an answer.
    """

    taken: tuple[Ranked, ...]
    rows: tuple[Ranked, ...]
    covers: bool


def choose(units: Sequence[Unit], terms: Terms) -> Choice:
    """Take the passages that answer: none far below the best, none twice, none that its source warns off before another."""
    rows = ranked(units, terms)
    best = max((row.score for row in rows), default=0.0)
    asked = {at for at, term in enumerate(terms.all) if term.is_main}
    is_whole = bool(rows and asked and asked == _says(rows[0].unit, terms))
    taken: list[Ranked] = []
    told: set[int] = set()
    for row in rows:
        if len(taken) == MOST:
            break
        said = _says(row.unit, terms)
        share = _share(row, is_whole=is_whole) * (_OF_NEWS if said - told else 1.0)
        if row.score < share * best:
            continue
        if not any(_is_alike(row.unit, other.unit) for other in taken):
            taken.append(row)
            told |= said
    if not all(row.is_warned_off for row in taken):
        taken = [row for row in taken if not row.is_warned_off]
    return Choice((*taken, *_usage(taken, rows)), tuple(rows), covers=_covers(taken, terms))


def _usage(taken: Sequence[Ranked], rows: Sequence[Ranked]) -> list[Ranked]:
    """Return the package's own example where what was taken only declares: how it is called at all."""
    if not taken or not is_package(taken[0].unit.origin.source) or len(taken) == MOST:
        return []
    if any(is_example(block) for row in taken for block in row.unit.blocks):
        return []
    shown = (row for row in rows if row not in taken and any(is_example(b) for b in row.unit.blocks))
    return list(islice(shown, 1))


def _says(unit: Unit, terms: Terms) -> set[int]:
    """Return the words of the question itself that a passage says."""
    return {at for at in terms.within(f"{unit.title}\n{unit.text}") if terms.all[at].is_main}


def _share(row: Ranked, *, is_whole: bool) -> float:
    """Pages keep the lower share: a second one that says the same confirms the first."""
    if not is_package(row.unit.origin.source):
        return _OF_BEST
    return _OF_WHOLE if is_whole else _OF_BEST_IN_PACKAGE


def covers_question(query: Query, answer: Answer) -> bool:
    """Tell whether an answer holds passages that cover the question, so that a report can be made from it."""
    terms = question_terms(query.framework, query.question, query.topic, query.tags)
    return choose(read_answer(answer).units, terms).covers


def ranked(units: Sequence[Unit], terms: Terms) -> list[Ranked]:
    """Return the units with their scores, the best first.

    Context7 and DeepWiki answer the question itself, so all of theirs stay; of a page, what shares no
    keyword with the question goes, unless nothing does. Installed documentation comes ranked, by how rare the
    words are in the whole package: the order of its passages stays, and the later ones count less.
    """
    if not units:
        return []
    scored, _ = rank([(unit.title, unit.text) for unit in units], terms)
    points = {row.index: row.score for row in scored}
    found = [_judged(unit, points.get(at, 0.0), terms) for at, unit in enumerate(units)]
    places = _instead(found)
    found = [
        replace(row, score=max(row.score, found[place].score / _ASIDE)) if place != at else row
        for at, (row, place) in enumerate(zip(found, places, strict=True))
    ]
    if any(is_package(unit.origin.source) for unit in units):
        return [
            found[at]
            for at in sorted(range(len(found)), key=lambda at: (found[at].is_warned_off, places[at]))
        ]
    order = sorted(range(len(units)), key=lambda at: -found[at].score)
    kept = [at for at in order if at in points or is_answer(units[at].origin.source)]
    return [found[at] for at in kept or order]


def _instead(found: Sequence[Ranked]) -> list[int]:
    """Return the place of each passage, where a section beside one that its source warns off takes that one's place.

    It says what to do instead ("Cancellation > AbortController" beside "Cancellation > CancelToken (deprecated)").
    """
    places = list(range(len(found)))
    for at, row in enumerate(found):
        above, _, heading = row.unit.title.rpartition(" > ")
        if not (above and row.is_warned_off and WARNED_OFF.search(heading)):
            continue
        for other, beside in enumerate(found):
            if not beside.is_warned_off and beside.unit.title.rpartition(" > ")[0] == above:
                places[other] = min(places[other], at)
    return places


def heard(units: Iterable[Unit], terms: Terms) -> float:
    """Return how much of what is asked the one of these units that says most of it speaks of, 0 to 1.5.

    That is the mean of what it says of the question, of the topic and of the tags: one story has many words that no documentation
    has, and one tag alone says little. A word counts by how rare it is in technical English, and half as much again where
    the headings say it. Together, passages about other things hold most words of any question, so that one has to hold them alone.
    """
    if not any(light >= 1.0 for part in terms.parts for light in part.values()):
        return 1.0 if terms.all else 0.0  # "How do I use it?" is answered by whatever there is
    parts = [
        {at: light * technical(root(terms.all[at].word)).rarity for at, light in part.items()}
        for part in terms.parts
    ]
    return max((_said(unit, parts, terms) for unit in units), default=0.0)


def _said(unit: Unit, parts: Sequence[Mapping[int, float]], terms: Terms) -> float:
    anywhere, titled = terms.within(f"{unit.title}\n{unit.text}"), terms.within(unit.title)
    shares = [
        sum(weight * ((at in anywhere) + _IN_TITLE * (at in titled)) for at, weight in part.items())
        / (sum(part.values()) or 1.0)
        for part in parts
        if part
    ]
    return max(sum(shares) / len(shares), _OF_QUESTION * shares[0])


def _subjects(terms: Terms) -> list[int]:
    """Return the words of the question alone, without such as "use" and "make"."""
    return [at for part in terms.parts[:1] for at, light in part.items() if light >= 1.0]


def covers(units: Sequence[Unit], terms: Terms) -> bool:
    """Tell whether one of these units speaks of enough of the question to be an answer.

    A page is written in whole sentences, so that one passage of it has to say most words of the question: one word that it
    shares with a question about something else ("validate", "print") is heavy where the question is short. Of 231 questions
    put to pages about other things 37 were answered without this rule, and 13 with it, at the loss of 1 of 22 real ones.

    Of a package less is enough of a longer question: of two words one is shared by chance, and a need told in eight
    has words that no documentation uses. A passage that is about the question says its words again, and one that
    happens to hold them does not; and where a need is not the package's own ("How do I send a workbook by email?"), its
    rarest word stands in none of them. Of 336 questions whose answer the package holds 43 are refused, and of 109 that users
    of it may well ask and that it does not answer 15 are answered; where what no passage says did not count those were
    47 and 17.
    """
    if any(is_package(unit.origin.source) for unit in units):
        asked = _subjects(terms)
        longer: float = min(_LONGEST, max(_SHORTEST, len(asked))) ** _LONGER
        said = max(heard([unit], terms) * longer + _dwells(unit, terms) for unit in units)
        return said - _unspoken(units, terms) >= _ENOUGH
    main = sum(term.is_main for term in terms.all)
    most = max((len(_says(unit, terms)) for unit in units), default=0)
    return heard(units, terms) >= _COVERS_OF_PAGE and (2 * most > main or not main)


def _unspoken(units: Sequence[Unit], terms: Terms) -> float:
    """Return which part of the question no passage says, each word by how rare it is; 0 to 1."""
    weights = {at: technical(root(terms.all[at].word)).rarity for at in _subjects(terms)}
    said = terms.within("\n".join(f"{unit.title}\n{unit.text}" for unit in units))
    return sum(weight for at, weight in weights.items() if at not in said) / (sum(weights.values()) or 1.0)


def _dwells(unit: Unit, terms: Terms) -> float:
    """Return how much of a passage's length the words of the question are, each by how rare it is; 0 to about 2."""
    asked = terms.parts[0] if terms.parts else {}
    said = sum(
        times * asked[at] * technical(root(terms.all[at].word)).rarity
        for at, times in terms.count(unit.text).items()
        if at in asked
    )
    return said / (_BRIEF + len(unit.text) / _STRETCH)


def _judged(unit: Unit, score: float, terms: Terms) -> Ranked:
    row = Ranked(unit, score)
    if is_package(unit.origin.source):
        row = replace(row, score=score / (1 + _LATER * unit.origin.number))
    last = unit.path[-1] if unit.path else ""
    if all(_only_names(block) for block in unit.blocks):
        row = replace(row, score=row.score * _ASIDE)
    if is_warned_off(unit, terms) or _HISTORY.match(last):
        return replace(row, score=row.score * _ASIDE, is_warned_off=True)
    return replace(row, score=row.score * _ASIDE) if terms.is_aside(plain(last)) else row


def _only_names(block: Block) -> bool:
    """Tell whether a block names things without a word about them: a type, an index, an overview of signatures."""
    if block.kind == "code":
        return is_shape(block.text)
    rows = block.text.split("\n")[2:]
    return block.kind == "table" and 3 * sum(_TELLS.search(row) is not None for row in rows) <= len(rows)


def is_warned_off(unit: Unit, terms: Terms) -> bool:
    """Tell whether a source marks a passage as deprecated, legacy or as what not to do, where nobody asked for such."""
    heading = plain(unit.path[-1]) if unit.path else ""
    if found := WARNED_OFF.search(heading) or _WARNING_HEADING.match(heading):
        return not terms.within(found[0])
    prose = [block for block in unit.blocks if block.kind == "prose"][:2]
    opening = "\n".join(plain(block.text) for block in prose)[:_OPENING]
    found = WARNED_OFF.search(opening)
    return found is not None and not terms.within(found[0]) and _is_subject(opening, found.start())


def _is_subject(opening: str, at: int) -> bool:
    """Tell whether a mark of deprecation in the opening is about the passage itself.

    It stands in its first sentences, and these do not say it of an argument.
    """
    start = max(opening.rfind(mark, 0, at) + len(mark) for mark in (". ", "\n"))
    sentence = re.split(r"\. |\n", opening[start:], maxsplit=1)[0]
    return opening[:at].count(". ") <= 1 and _OF_ARGUMENT.search(sentence) is None


def _is_alike(one: Unit, other: Unit) -> bool:
    """Tell whether a passage says what another says: nearly all of it, or most of it where it is long or of one name.

    The methods of a router are declared alike (``get``, ``put``), and so are those of one name of several classes.
    Of a page's code, lines count: settings that are on in one and off in the other are of the same words. Declarations
    of an installed package are alike by their words.
    """
    left, right = _pieces(one), _pieces(other)
    both = len(left & right)
    if both >= _ALIKE * max(len(left), len(right), _FEW):
        return True
    if both >= _MOSTLY_ALIKE * len(left | right) and min(len(left), len(right)) >= _LONG:
        return True
    return _last_name(one) == _last_name(other) != "" and both >= _SAME_NAME * min(len(left), len(right))


def _pieces(unit: Unit) -> set[str]:
    if is_package(unit.origin.source):
        return set(unit.text.split())
    lines = (line.strip() for block in unit.blocks if block.kind == "code" for line in block.text.split("\n"))
    return {word for block in unit.blocks if block.kind != "code" for word in block.text.split()}.union(lines)


def _last_name(unit: Unit) -> str:
    """Return the last part of a dotted name that heads a passage; empty where no name does."""
    container, dot, last = unit.title.rpartition(".")
    return last if dot and not re.search(r"\s", last) and container else ""


def _covers(taken: Sequence[Ranked], terms: Terms) -> bool:
    if not taken:
        return False
    if is_answer(taken[0].unit.origin.source):
        return True
    return covers([row.unit for row in taken], terms)
