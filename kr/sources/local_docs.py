"""The documentation that the installed package itself ships (SPEC 3.5.5): no network and no charge."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kr.errors import SourceFailure, SourceTimeout
from kr.sources.base import Ask
from kr.values import Answer, Passage

if TYPE_CHECKING:
    from kr.packages.installed import InstalledPackage
    from kr.packages.pieces import Piece, Siblings
    from kr.reports.ranking import Scored
    from kr.reports.terms import Terms

MAX_PASSAGES = 12
MAX_TEXT = 128 * 1024
_SOURCE_SECONDS = 2.5
_SECONDS = 10.0
_RENDERED = 40
_WITH_SIBLINGS = 6  # passages: of more a report shows a line each
_OF_WEIGHT = (
    0.35  # the power of a piece's weight by which it makes the piece likely; its score has it already
)
_STEEP = 0.65  # of the likelihood that a passage answers, in what it scores beside the best and how it fits
_PER_TITLE = 3
_ALIKE = 0.75  # of the different words that two texts about one name share
_THE_SAME = 0.83  # the same, about two names: one verb of many that are declared alike
_LEAST_OF_BEST = 0.1


class LocalDocs:
    """Answers from README and documentation files, the distribution's description and docstrings."""

    name = "local_docs"
    is_charged = False

    def __init__(self, projects: Sequence[Path], environ: Mapping[str, str]) -> None:
        """Take the folders whose projects count, the working directory first, and the environment's variables."""
        self._projects = projects
        self._environ = environ

    def prepare(self) -> None:
        """There is nothing heavy to import."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Return passages of the version in use. Raises ``SourceTimeout``, and ``SourceFailure`` (no fault) where nothing is installed or fits."""
        from kr.packages.installed import find_installed, places_searched, with_related
        from kr.reports.terms import question_terms

        deadline = time.monotonic() + timeout
        query = ask.query
        packages = find_installed(query.framework, self._projects, self._environ)
        if not packages:
            where = places_searched(self._projects, self._environ)
            raise SourceFailure(f"no package of this name is installed; looked in {where}", is_fault=False)
        terms = question_terms(query.framework, query.question, query.topic, query.tags)
        for package in packages:
            passages = _passages(with_related(package, self._projects), terms, deadline)
            if passages:
                return Answer(
                    source=self.name,
                    passages=passages,
                    version=package.version,
                    repository=package.repository,
                )
        if time.monotonic() >= deadline:
            raise SourceTimeout("the installed documentation could not be read in time")
        named = " and ".join(f"{p.name} {p.version} ({p.ecosystem})" for p in packages)
        raise SourceFailure(
            f"{named} is installed, but ships no documentation about the question", is_fault=False
        )


def _passages(package: "InstalledPackage", terms: "Terms", deadline: float) -> tuple[Passage, ...]:
    from kr.packages.pieces import Siblings, read_pieces
    from kr.reports.passages import is_usage
    from kr.reports.ranking import rank, varied

    expired = _limit(deadline, _SECONDS)
    pieces = list(read_pieces(package, terms, read=expired, parse=_limit(deadline, _SOURCE_SECONDS)))
    first, rare = rank(
        [(p.title, p.text) for p in pieces], terms, expired=expired, factors=[p.weight for p in pieces]
    )
    weights = [scarce * term.weight for scarce, term in zip(rare, terms.all, strict=True)]
    shown: list[tuple[Piece, str]] = []
    for row in first[:_RENDERED]:
        if not expired():
            piece = pieces[row.index]
            shown.append((piece, _rendered(piece, terms)))
    # Ranked once more, as it will be read.
    second, _ = rank(
        [(p.title, text) for p, text in shown], terms, rare=rare, factors=[p.weight for p, _ in shown]
    )
    second = _by_fitness(second, shown, terms, weights)
    enough = second[0].score * _LEAST_OF_BEST if second else 0.0
    held = [
        (row.score, terms.within("\n".join((shown[row.index][0].title, shown[row.index][1]))))
        for row in second
    ]
    order = (second[at] for at in varied(held, weights))
    fit = [shown[row.index] for row in order if row.score >= enough]
    # What the question names leads, in one word or in several; a word beside it may be rarer.
    named = next((pair for pair in fit if terms.is_symbol(pair[0].title)), None) or next(
        (pair for pair in fit if pair[0].documented and terms.is_spelled(pair[0].title)), None
    )
    best = _best(
        [named, *(pair for pair in fit if pair is not named)] if named else fit, Siblings(pieces, terms)
    )
    usage = next(
        (p for p in pieces if p.documented is None and p.package is package and is_usage(p.section)), None
    )
    if not best or usage is None or any(p.text == usage.section for p in best):
        return best
    return (*best[: MAX_PASSAGES - 1], Passage(text=usage.section, title=usage.title, url=_place(usage)))


def _by_fitness(
    rows: "Sequence[Scored]", shown: "Sequence[tuple[Piece, str]]", terms: "Terms", weights: Sequence[float]
) -> "list[Scored]":
    """Order by the score beside the best and how each fits, as likelihoods."""
    from kr.reports.ranking import fitness

    judged = []
    for row in rows:
        piece, text = shown[row.index]
        fit = fitness(piece.title, text, terms, weights, is_opening=piece.is_opening)
        likely = math.exp(_STEEP * (row.score / rows[0].score + fit)) * piece.weight**_OF_WEIGHT
        judged.append(replace(row, score=likely))
    return sorted(judged, key=lambda row: (-row.score, row.index))


def _limit(deadline: float, seconds: float) -> "Callable[[], bool]":
    """Tell when to stop: at the deadline, or after so many seconds of own work, so that load changes no answer."""
    enough = time.thread_time() + seconds
    return lambda: time.thread_time() >= enough or time.monotonic() >= deadline


def _best(ranked: "Sequence[tuple[Piece, str]]", siblings: "Siblings") -> tuple[Passage, ...]:
    """Take the best pieces, few of the same title and each text once, also where it varies a little.

    The best ones come with what stands beside them in their class or module: a need is seldom met by one name alone.
    """
    taken: list[Passage] = []
    size = 0
    titles: dict[str, int] = {}
    seen: list[tuple[str, frozenset[str]]] = []
    for piece, text in ranked:
        titles[piece.title] = titles.get(piece.title, 0) + 1
        if titles[piece.title] > _PER_TITLE or size + len(text.encode()) > MAX_TEXT:
            continue
        name, words = _last_of(piece), frozenset(text.split())
        if any(
            len(words & known) >= (_ALIKE if other == name else _THE_SAME) * len(words | known)
            for other, known in seen
        ):
            continue
        seen.append((name, words))
        beside = siblings.listed(piece) if len(taken) < _WITH_SIBLINGS else ""
        whole = f"{text}\n\n{beside}" if beside else text
        told = whole if size + len(whole.encode()) <= MAX_TEXT else text
        size += len(told.encode())
        taken.append(Passage(text=told, title=piece.title, url=_place(piece)))
        if len(taken) == MAX_PASSAGES:
            break
    return tuple(taken)


def _place(piece: "Piece") -> str:
    """Tell in which file a piece stands, without a place of the machine: ``click 8.1.7, click/core.py``."""
    return f"{piece.package.name} {piece.package.version}, {piece.origin}"


def _last_of(piece: "Piece") -> str:
    return piece.title.rpartition(" > " if piece.documented is None else ".")[2]


def _rendered(piece: "Piece", terms: "Terms") -> str:
    """Return a piece as Markdown: a section as it is, a name with its signature and its text."""
    if piece.documented is None:
        return piece.section
    from kr.packages.documented import docstring_markdown, shortened, without_sections
    from kr.packages.restructured import fence

    entry = piece.documented
    told = docstring_markdown(entry.docstring) if piece.is_python and entry.docstring else entry.docstring
    text = without_sections(f"{told}\n\n{entry.more}".strip())
    signature = shortened(entry.signature, text, terms)
    return f"{fence(signature, piece.language)}\n\n{text}".strip() if signature else text
