"""Searching live entries, with the texts of their reports, and lessons: table ``documents`` (SPEC 6.3).

The words of a search are no query language: FTS5 gets each of them quoted. Its tokenizer takes a run of Chinese,
Japanese or Korean as one word, so that words of these scripts are looked for as they stand.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

import sqlalchemy as sa

from kr.store.schema import SEARCH_INDEX, documents
from kr.text.keywords import normalise, runs
from kr.text.stopwords import FUNCTION_WORDS

Kind = Literal["entry", "lesson"]

_WEIGHTS = "4.0, 8.0, 5.0, 4.0, 1.0"
"""Of framework, topic, tags, question and text: what an entry is about says more than what its text mentions."""

_PASSAGE_TOKENS = 40
_SHORTEST_PREFIX = 3
_AROUND = 80
_LONGEST = 1000
_WORD = re.compile(r"[^\W_]+")
_EVERYTHING = ("framework", "topic", "tags", "question", "text")
_ALL: sa.ColumnElement[str] = sa.literal_column(" || ' ' || ".join(_EVERYTHING))

_FILLED_ANEW = (
    "DELETE FROM documents",
    """INSERT INTO documents (kind, key, framework, topic, tags, question, text)
       SELECT 'entry', e.id, e.framework, e.topic, e.tags, coalesce(e.question, ''), coalesce(t.text, '')
       FROM entries e LEFT JOIN report_texts t ON t.sha256 = e.sha256""",
    """INSERT INTO documents (kind, key, framework, topic, tags, question, text)
       SELECT 'lesson', id, '', phase, tags, '', summary || coalesce(' ' || ref, '') FROM lessons
       WHERE gone_at IS NULL""",
    f"INSERT INTO {SEARCH_INDEX} ({SEARCH_INDEX}) VALUES ('rebuild')",
)


class Passage(NamedTuple):
    """What was found: the id of an entry or a lesson, and the place of its text that says it, on one line.

    ``topic`` is a lesson's phase.
    """

    key: str
    topic: str
    text: str


class Search:
    """Searches in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def find(self, words: str, kind: Kind) -> list[Passage]:
        """Return what holds all the words, best first, and after that what holds some of them."""
        plain, written = _terms(words)
        if not plain and not written:
            return []
        ranked = (*self._find(plain, written, kind, " AND "), *self._find(plain, written, kind, " OR "))
        found: dict[str, Passage] = {}
        for passage in ranked:
            found.setdefault(passage.key, passage)
        return list(found.values())

    def refill(self) -> None:
        """Make everything that is searched anew, from entries, texts and lessons."""
        for statement in _FILLED_ANEW:
            self._connection.exec_driver_sql(statement)

    def _find(self, plain: list[str], written: list[str], kind: Kind, junction: str) -> list[Passage]:
        if not plain:
            return self._as_written(written, kind, junction)
        query = sa.text(
            f"SELECT d.key, d.topic, snippet({SEARCH_INDEX}, 4, '', '', '…', {_PASSAGE_TOKENS}) AS passage "
            f"FROM {SEARCH_INDEX} JOIN documents d ON d.id = {SEARCH_INDEX}.rowid "
            f"WHERE {SEARCH_INDEX} MATCH :query AND d.kind = :kind ORDER BY bm25({SEARCH_INDEX}, {_WEIGHTS}), d.key"
        )
        matches = self._connection.execute(query, {"query": junction.join(plain), "kind": kind})
        found = [Passage(row.key, row.topic, _one_line(row.passage)) for row in matches]
        if not written:
            return found
        also = {passage.key: passage for passage in self._as_written(written, kind, junction)}
        if junction == " AND ":
            return [passage for passage in found if passage.key in also]
        return [*found, *(also[key] for key in also.keys() - {passage.key for passage in found})]

    def _as_written(self, written: list[str], kind: Kind, junction: str) -> list[Passage]:
        """Look for words as they stand; those that an entry is about go first."""
        holds = [sa.func.instr(_ALL, word) > 0 for word in written]
        which = sa.and_(*holds) if junction == " AND " else sa.or_(*holds)
        about = sa.func.instr(documents.c.topic, written[0]) > 0
        query = sa.select(documents.c.key, documents.c.topic, documents.c.text).where(
            documents.c.kind == kind, which
        )
        rows = self._connection.execute(query.order_by(about.desc(), documents.c.key))
        return [Passage(row.key, row.topic, _around(row.text, written)) for row in rows]


def _terms(words: str) -> tuple[list[str], list[str]]:
    """Return the words as FTS5 takes them, and those to be looked for as they stand."""
    parts = runs(normalise(words[:_LONGEST]))
    plain = [word for run, is_written in parts if not is_written for word in _WORD.findall(run)]
    telling = [word for word in plain if word not in FUNCTION_WORDS] or plain
    written = [run for run, is_written in parts if is_written]
    return [
        f'"{word}"{" *" if len(word) >= _SHORTEST_PREFIX else ""}' for word in dict.fromkeys(telling)
    ], written


def _around(text: str, words: Iterable[str]) -> str:
    at = min((place for word in words if (place := text.find(word)) >= 0), default=0)
    start = max(0, at - _AROUND)
    cut = _one_line(text[start : at + 2 * _AROUND])
    return f"{'…' if start else ''}{cut}{'…' if at + 2 * _AROUND < len(text) else ''}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
