"""The passages of an index that fit a question best, by ``bm25``, and whether they leave the question open."""

import math
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kr.documents.index import fill, split_words
from kr.documents.text import Form, Section, joined, markdown_sections, restructured_to_markdown
from kr.models import Query
from kr.text import fenced

_BEST = 5
"""Passages of which at least one has to hold one of the question's rare words, or the question is left open."""

RARE = 0.85
"""The share of the question's words, those that the fewest passages hold first, that are its rare ones."""

_MOST_ROWS = 80
_OF_DEPENDENCY = 40
_MOST_WORDS = 60
_WEIGHTS = "3.0, 5.0, 1.5, 1.0, 0.5"  # name, its words, signature, text, words of identifiers in the text

# What a passage's bm25 is multiplied by.
_COVERAGE = 1.0
"""Times the share of the question's rarity that the passage holds: one that has most of it goes before one that repeats a word."""
_SECONDARY = 0.6
_README = 1.2
_SPELLED = 2.0
_DEPENDENCY = 0.6

_UNSEEN = 100
"""Passages that a small package or folder is taken to have besides: a word of its only page is no common word."""

_LEAST_OF_DEPENDENCY = 0.3
"""Of the question's rarity: a dependency's passage that holds less is no answer to it."""

_WORD = re.compile(r"[^\W\d_][\w$]*(?:[.\-][^\W\d_][\w$]*)*|\d+")
_SPELLING = re.compile(r"`([\w.$]+)`|\b(\w+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)\b|\b([\w.]+)\(\)")
_SMALL_WORDS = """
a an the how do does did i my me we our us you your it its is are was were be been am to of in on for and or with that this these those
can could will would should shall may might must when what which who whom whose where why as at by from into if then than so but such
about only any each every all some more most very also both other another no not there their they them he she his her one two have has had
having get got gets make makes made making let lets use uses used using want wants need needs way ways like just again still instead
while before after without within between up
"""
_STOP = frozenset(_SMALL_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is searched for: ``words`` without the small ones, ``spelled`` the identifiers that the question writes as such."""

    words: tuple[str, ...]
    spelled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *texts: str) -> "Question":
        """Read question, topic and tags: identifiers whole and in their parts, each word once."""
        found: dict[str, None] = {}
        for text in texts:
            for word in _WORD.findall(text):
                for one in (word, *split_words(word).split()):
                    if len(one) > 1 and one.casefold() not in _STOP:
                        found.setdefault(one.casefold())
        spelled = (name for text in texts for found in _SPELLING.findall(text) for name in found if name)
        return cls(
            words=tuple(found)[:_MOST_WORDS], spelled=frozenset(name.rpartition(".")[2] for name in spelled)
        )


def question_of(query: Query) -> Question:
    """Read a request: its topic, its question and its tags."""
    return Question.of(query.topic, query.question, *query.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A passage of an index. ``held`` are the words of the question that it holds; ``score`` orders, and is no probability."""

    section: Section
    package: str
    score: float
    held: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The passages, the best first. ``lacking``: the share of the question's rarity that the best one lacks, 0 to 1.

    ``rarest``: where among the question's words, the rarest first, the rarest one stands that the best passages hold: above 0 for the
    rarest of all, 1 for the commonest, infinite where they hold none.
    """

    passages: tuple[Found, ...]
    lacking: float
    rarest: float

    @property
    def is_gap(self) -> bool:
        """Whether the best passages hold none of the question's rare words: they are about something else."""
        return self.rarest > RARE


class Index:
    """An open index and the name of the package or folder that it is of."""

    def __init__(self, package: str, connection: sqlite3.Connection) -> None:
        self.package = package
        self._connection = connection

    def size(self) -> int:
        (last,) = self._connection.execute("SELECT coalesce(max(rowid), 0) FROM passages").fetchone()
        return int(last)

    def holders(self, word: str) -> frozenset[int]:
        """Return which passages hold a word, by its stem."""
        rows = self._connection.execute("SELECT rowid FROM passages WHERE passages MATCH ?", (f'"{word}"',))
        return frozenset(rowid for (rowid,) in rows)

    def matching(self, words: Sequence[str], limit: int) -> list[tuple[int, Section, float]]:
        """Return the passages that hold any of the words with their ``bm25``, turned so that the best is the highest."""
        if not words:
            return []
        rank = f"bm25(passages, {_WEIGHTS})"
        columns = f"rowid, name, signature, text, place, form, is_secondary, {rank}"
        rows = self._connection.execute(
            f"SELECT {columns} FROM passages WHERE passages MATCH ? ORDER BY {rank} LIMIT ?",  # noqa: S608 - weights of ours
            (" OR ".join(f'"{word}"' for word in words), limit),
        )
        return [(row[0], _section(row[1:7]), -float(row[7])) for row in rows]


def _section(row: tuple[str, str, str, str, Form, int]) -> Section:
    name, signature, text, place, form, is_secondary = row
    return Section(
        name=name, signature=signature, text=text, place=place, form=form, is_secondary=bool(is_secondary)
    )


def ask(own: Index, question: Question, dependencies: Iterable[Index] = ()) -> Ranking:
    """Rank the passages of a package; its ``dependencies`` are asked where it does not know a word of the question at all.

    They are taken one by one, and only then: an iterator opens no index that is not needed.
    """
    size = own.size()
    holders = {word: own.holders(word) for word in question.words}
    rarity = {word: math.log((size + _UNSEEN) / (len(rows) + 1)) for word, rows in holders.items()}
    found = list(_weighed(own, question, holders, rarity, _MOST_ROWS))
    unknown = frozenset(word for word, rows in holders.items() if not rows)
    for other in dependencies if unknown else ():
        held = {word: other.holders(word) for word in question.words}
        found += [
            replace(one, score=one.score * _DEPENDENCY)
            for one in _weighed(other, question, held, rarity, _OF_DEPENDENCY)
            if one.held & unknown and _share(one.held, rarity) > _LEAST_OF_DEPENDENCY
        ]
    found.sort(key=lambda one: -one.score)
    best = tuple(_once(found))
    lacking = 1.0 - _share(best[0].held, rarity) if best else 1.0
    return Ranking(passages=best, lacking=lacking, rarest=_rarest(best, rarity))


def _rarest(best: Sequence[Found], rarity: dict[str, float]) -> float:
    """Return ``Ranking.rarest``; the rarest of all is always among the rare ones."""
    held = frozenset[str]().union(*(one.held for one in best[:_BEST]))
    ordered = sorted(rarity, key=lambda word: -rarity[word])
    places = (place for place, word in enumerate(ordered, 1) if word in held)
    first = next(places, None)
    return math.inf if first is None else 0.0 if first == 1 else first / len(ordered)


def _weighed(
    index: Index, question: Question, holders: dict[str, frozenset[int]], rarity: dict[str, float], limit: int
) -> Iterator[Found]:
    for rowid, section, score in index.matching(question.words, limit):
        held = frozenset(word for word, rows in holders.items() if rowid in rows)
        is_readme = section.form == "section" and section.name.lower().startswith("readme")
        factors = (
            1.0 + _COVERAGE * _share(held, rarity),
            _SECONDARY if section.is_secondary else 1.0,
            _README if is_readme else 1.0,
            _SPELLED if section.name.rpartition(".")[2] in question.spelled else 1.0,
        )
        yield Found(section=section, package=index.package, score=score * math.prod(factors), held=held)


def _share(held: Iterable[str], rarity: dict[str, float]) -> float:
    return sum(rarity.get(word, 0.0) for word in held) / (sum(rarity.values()) or 1.0)


def _once(found: Iterable[Found]) -> Iterator[Found]:
    """Yield each text once: of what a package hands on under two names the better one stays."""
    seen: set[tuple[str, str]] = set()
    for one in found:
        section = one.section
        name = section.name.rpartition(".")[2] if section.form == "python" else section.name
        key = (name, (section.text or section.signature)[:60])
        if key not in seen:
            seen.add(key)
            yield one


def markdown(section: Section) -> str:
    """Return a passage as Markdown: a section as it is, a name with its signature as code above its docstring."""
    if section.form == "section":
        return section.text
    if section.form == "typescript":
        return fenced(section.signature, "ts")
    signature = fenced(section.signature, "python") if section.signature else ""
    return joined([signature, restructured_to_markdown(section.text)])


def rank_texts(texts: Iterable[tuple[str, str, str]], question: Question) -> list[Section]:
    """Cut texts, given as ``(title, address, Markdown)``, into sections and rank them; in their order where none has a word of the question."""
    sections = [
        one for title, place, text in texts for one in markdown_sections(text, place=place, title=title)
    ]
    connection = sqlite3.connect(":memory:")
    try:
        fill(connection, sections)
        ranking = ask(Index("", connection), question)
    finally:
        connection.close()
    return [one.section for one in ranking.passages] or sections
