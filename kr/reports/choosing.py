"""Which passages of a material answer a question, and whether they do (SPEC 3.7: a report fits a context)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from kr.reports.passages import Unit, is_example, is_shape, read_answer
from kr.reports.ranking import rank
from kr.reports.terms import Terms, question_terms
from kr.source_kinds import is_answer, is_package, is_pages
from kr.text.markdown import Block
from kr.text.sentences import plain
from kr.values import Answer, Query

MOST = 5
"""Passages of a report (SPEC 3.7)."""
_MOST_OF_PACKAGE = (
    4  # the best of them come with what stands beside them, and a further one answered hardly any need
)

_OF_BEST = 0.3  # of the best passage's score: one that has less is left out
_OF_BEST_IN_PACKAGE = 0.2  # where the passages were chosen by how rare the words are in the whole package
_OF_NEWS = 0.5  # of these shares, for a passage that tells a word of the question which no better one does
_LATER = 0.1  # by which each further place in the installed package counts less
_ASIDE = 0.3  # what a passage counts that the source warns off, or the question sets aside
_NEED = 3.0  # what it weighs how much of the need the two passages tell that tell most of it,
_TAGS = 1.5  # how many of its tags one passage says,
_LENGTH, _LONGEST = 0.2, 8  # and each word of the question, of so many at the most
_LENGTH_IN_PACKAGE = 0.18  # where what stands beside a name has words as well
_ENOUGH, _PLENTY = 3.25, 4.0  # of what was found: to be an answer, and to be no doubtful one
_ALL = _NEED + _TAGS + _LENGTH * _LONGEST
_FEWEST_LINES, _WITHIN = 3, 0.9  # of a passage that stands within another one
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
_CONTRIBUTORS = re.compile(r"\W*(?:how to )?(?:contribut\w+|authors?)\W*", re.IGNORECASE)
"""Sections of a page for those who work on what it is about."""
_HISTORY = re.compile(
    r"\W*(?:change ?logs?|release notes|what['’]?s new|(?:release |version )?history"
    # "2.1.0 (2026-03-01)" heads what changed, "3.5 Transactions" a section.
    r"|v\d+\.\d+|\d+\.\d+(?:\.\d+)*\W*(?:\Z|\d{4}\b|unreleased))",
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
    most = _MOST_OF_PACKAGE if rows and is_package(rows[0].unit.origin.source) else MOST
    taken: list[Ranked] = []
    told: set[int] = set()
    for row in rows:
        if len(taken) == most:
            break
        said = _says(row.unit, terms)
        # Pages keep the higher share: a second one has to confirm the first.
        share = _OF_BEST_IN_PACKAGE if is_package(row.unit.origin.source) else _OF_BEST
        if row.score < share * best * (_OF_NEWS if said - told else 1.0):
            continue
        if not any(_is_alike(row.unit, other.unit) for other in taken):
            taken.append(row)
            told |= said
    if not all(row.is_warned_off for row in taken):
        taken = [row for row in taken if not row.is_warned_off]
    return Choice((*taken, *_usage(taken, rows)), tuple(rows), covers=_covers(taken, terms))


def _usage(taken: Sequence[Ranked], rows: Sequence[Ranked]) -> list[Ranked]:
    """Return the package's own example where what was taken only declares: how it is called at all."""
    if not taken or not is_package(taken[0].unit.origin.source):
        return []
    if any(is_example(block) for row in taken for block in row.unit.blocks):
        return []
    shown = (row for row in rows if row not in taken and any(is_example(b) for b in row.unit.blocks))
    return list(islice(shown, 1))


def _says(unit: Unit, terms: Terms) -> set[int]:
    """Return the words of the question itself that a passage says."""
    return {at for at in terms.within(f"{unit.title}\n{unit.text}") if terms.all[at].is_main}


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


def covers(units: Sequence[Unit], terms: Terms) -> bool:
    """Tell whether what was found, the best first, speaks of enough of the need to be an answer."""
    return _spoken(units, terms) >= _ENOUGH


def is_doubtful(units: Sequence[Unit], terms: Terms) -> bool:
    """Tell whether what was found speaks of little more than ``covers`` asks for.

    Of 89 such answers of installed packages 41 were useless, or to a question that the package does not answer; of 127 others 18.
    """
    return _spoken(units, terms) < _PLENTY


def _spoken(units: Sequence[Unit], terms: Terms) -> float:
    """Return how much what was found speaks of the need, 0 to 6.1; all of it where the need says nothing ("How do I use it?").

    A need is told in a story's words, most of which no documentation has, and so its topic and tags tell more: how much of
    them the two passages say that say most, each word by how rare it is in technical English, and how many of the tags the one that says
    most of them. Of a short question few words are there to be shared, so that one is more easily shared by chance. The weights were
    learned from 168 needs of installed packages (``natural-questions.yaml`` of ``tests/data``) and 108 of 36 pages (``page-questions.yaml``),
    and from 108 and 36 more that users of these may have as well and that they do not answer, as other agents worded them; the limit is
    one that refuses no more of the short questions (``questions.yaml``) than before. Since names of a package come with what stands beside
    them, length counts a little less there: of 156 needs that packages do not answer 47 get a report (61), of 237 others five more none.
    """
    if not any(light >= 1.0 for part in terms.parts for light in part.values()):
        return _ALL if terms.all else 0.0
    question, _, tags = terms.parts
    tags = tags or question
    length = sum(light >= 1.0 for light in question.values())
    held = [terms.within(f"{unit.title}\n{unit.text}") for unit in units]
    tagged = max(sum(at in one for at in tags) for one in held) / (len(tags) or 1)
    most = sorted(map(terms.told, held), reverse=True)[:2]
    each = _LENGTH_IN_PACKAGE if is_package(units[0].origin.source) else _LENGTH
    return _NEED * sum(most) / len(most) + _TAGS * tagged + each * min(length, _LONGEST)


def _judged(unit: Unit, score: float, terms: Terms) -> Ranked:
    row = Ranked(unit, score)
    if is_package(unit.origin.source):
        row = replace(row, score=score / (1 + _LATER * unit.origin.number))
    last = unit.path[-1] if unit.path else ""
    if all(_only_names(block) for block in unit.blocks):
        row = replace(row, score=row.score * _ASIDE)
    others = _CONTRIBUTORS.fullmatch(last) if is_pages(unit.origin.source) else None
    is_of_contributors = others is not None and not terms.within(others[0])
    if is_of_contributors or is_warned_off(unit, terms) or _HISTORY.match(last):
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
    """Tell whether a passage says what another one, taken before, says: nearly all of it, or most of it where it is long or of one name.

    The methods of a router are declared alike (``get``, ``put``), and so are those of one name of several classes.
    Of a page's code, lines count: settings that are on in one and off in the other are of the same words. Declarations
    of an installed package are alike by their words.
    """
    lines = _lines(one)
    if len(lines) >= _FEWEST_LINES and len(lines & _lines(other)) >= _WITHIN * len(lines):
        return True  # the options of a function that was told with them
    left, right = _pieces(one), _pieces(other)
    both = len(left & right)
    if both >= _ALIKE * max(len(left), len(right), _FEW):
        return True
    if both >= _MOSTLY_ALIKE * len(left | right) and min(len(left), len(right)) >= _LONG:
        return True
    return _last_name(one) == _last_name(other) != "" and both >= _SAME_NAME * min(len(left), len(right))


def _lines(unit: Unit) -> set[str]:
    return {line for block in unit.blocks for line in map(str.strip, block.text.split("\n")) if line}


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
