"""Searching live entries, with the texts of their reports, and lessons: table ``documents``; what is nearest (SPEC 6.3).

The words of a search are no query language: FTS5 gets each of them quoted. Its tokenizer takes a run of Chinese,
Japanese or Korean as one word, so that words of these scripts are looked for as they stand.
"""

import re
from collections.abc import Iterable
from typing import Literal

from kr.errors import UnknownEntry
from kr.store.session import Part, UnitOfWork, json_list
from kr.text.characters import one_line
from kr.text.keywords import FUNCTION_WORDS, normalise, runs
from kr.values import NamedTuple

Kind = Literal["entry", "lesson"]

_WEIGHTS = "4.0, 8.0, 5.0, 4.0, 1.0"
"""Of framework, topic, tags, question and text: what an entry is about says more than what its text mentions."""

_PASSAGE_TOKENS = 40
_SHORTEST_PREFIX = 3
_AROUND = 80
_LONGEST = 1000
_SUMMARY = "## Summary\n"
_HEADER = re.compile(
    r"\A(?:[^\n]*\n)?\s*(?:[…*]*(?:Framework|Version|Research Date|Confidence|Sources):\*\*[^\n]*(?:\n|\Z))+"
)
_HEADINGS = re.compile(r"\A(?:\s*#{1,6} [^\n]*(?:\n|\Z))+")
_WORD = re.compile(r"[^\W_]+")
_ALL = "framework || ' ' || topic || ' ' || tags || ' ' || question || ' ' || text"
_FIND = (
    f"SELECT d.key, d.topic, snippet(document_search, 4, '', '', '…', {_PASSAGE_TOKENS}) AS passage "
    "FROM document_search JOIN documents AS d ON d.id = document_search.rowid "
    f"WHERE document_search MATCH :query AND d.kind = :kind ORDER BY bm25(document_search, {_WEIGHTS}), d.key"
)
_TEXT = "SELECT text FROM documents WHERE kind = 'entry' AND key = :key"
# Those that an entry is about go first.
_AS_WRITTEN = (
    "SELECT key, topic, text FROM documents "
    f"WHERE kind = :kind AND (SELECT {{}}(instr({_ALL}, value) > 0) FROM json_each(:words)) "
    "ORDER BY instr(topic, :first) > 0 DESC, key"
)
_HOLDS_ALL, _HOLDS_SOME = _AS_WRITTEN.format("min"), _AS_WRITTEN.format("max")

_FILLED_ANEW = (
    "DELETE FROM documents",
    """INSERT INTO documents (kind, key, framework, topic, tags, question, text)
       SELECT 'entry', e.id, e.framework, e.topic, e.tags, coalesce(e.question, ''), coalesce(t.text, '')
       FROM entries e LEFT JOIN report_texts t ON t.sha256 = e.sha256""",
    """INSERT INTO documents (kind, key, framework, topic, tags, question, text)
       SELECT 'lesson', id, '', phase, tags, '', summary || coalesce(' ' || ref, '') FROM lessons
       WHERE gone_at IS NULL""",
    "INSERT INTO document_search (document_search) VALUES ('rebuild')",
    "DELETE FROM entry_count",
    "INSERT INTO entry_count SELECT count(*) FROM entries",
)


class Passage(NamedTuple):
    """What was found: the id of an entry or a lesson, and the place of its text, on one line. ``topic`` is a lesson's phase."""

    key: str
    topic: str
    text: str


class Search(Part):
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
        """Make everything that is searched anew, from entries, texts and lessons; and count the entries."""
        for statement in _FILLED_ANEW:
            self._session.execute(statement)

    def _find(self, plain: list[str], written: list[str], kind: Kind, junction: str) -> list[Passage]:
        if not plain:
            return self._as_written(written, kind, junction)
        matches = self._session.rows(_FIND, query=junction.join(plain), kind=kind)
        found = [
            Passage(row["key"], row["topic"], self._telling(row["key"], row["passage"])) for row in matches
        ]
        if not written:
            return found
        also = {passage.key: passage for passage in self._as_written(written, kind, junction)}
        if junction == " AND ":
            return [passage for passage in found if passage.key in also]
        return [*found, *(also[key] for key in also.keys() - {passage.key for passage in found})]

    def _telling(self, key: str, passage: str) -> str:
        """Leave a report's title and header lines out of a passage; where little else is in it, the text begins it."""
        told = _body(passage)
        if told == passage or len(told.split()) >= _PASSAGE_TOKENS // 2 or not told.endswith("…"):
            return _one_line(told)
        return f"{_one_line(_body(self._session.value(_TEXT, key=key))[: 3 * _AROUND])}…"

    def _as_written(self, written: list[str], kind: Kind, junction: str) -> list[Passage]:
        statement = _HOLDS_ALL if junction == " AND " else _HOLDS_SOME
        rows = self._session.rows(statement, kind=kind, words=json_list(written), first=written[0])
        return [Passage(row["key"], row["topic"], _around(row["text"], written)) for row in rows]


def _terms(words: str) -> tuple[list[str], list[str]]:
    """Return the words as FTS5 takes them, and those to be looked for as they stand."""
    parts = runs(normalise(words[:_LONGEST]))
    plain = [word for run, is_written in parts if not is_written for word in _WORD.findall(run)]
    telling = [word for word in plain if word not in FUNCTION_WORDS] or plain
    written = [run for run, is_written in parts if is_written]
    return [
        f'"{word}"{" *" if len(word) >= _SHORTEST_PREFIX else ""}' for word in dict.fromkeys(telling)
    ], written


def _body(text: str) -> str:
    """Cut off what stands before the first section of a report: title and header lines (seed 000, step 6.1)."""
    _, is_there, body = text.partition(_SUMMARY)
    return body.lstrip() if is_there else _HEADINGS.sub("", _HEADER.sub("", text))


def _around(text: str, words: Iterable[str]) -> str:
    body = _body(text)
    text = body if any(word in body for word in words) else text
    at = min((place for word in words if (place := text.find(word)) >= 0), default=0)
    start = max(0, at - _AROUND)
    cut = _one_line(text[start : at + 2 * _AROUND])
    return f"{'…' if start else ''}{cut}{'…' if at + 2 * _AROUND < len(text) else ''}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


_LONGEST_ID = 200


def unknown_entry(unit: UnitOfWork, entry_id: str) -> UnknownEntry:
    """Say that no live entry has this id, and where it is instead or which ids are like it."""
    if unit.archive.of_id(entry_id):
        how = f"kr archive restore {entry_id}"
        return UnknownEntry(f"{_shown(entry_id)} is in the archive, not in the index; {how} brings it back")
    return _unknown("no entry has the id", entry_id, unit.entries.all_ids(), "kr entries list")


def unknown_archived(unit: UnitOfWork, entry_id: str) -> UnknownEntry:
    """Say that no archived entry has this id, and where it is instead or which ids are like it."""
    if unit.entries.get(entry_id) is not None:
        return UnknownEntry(f"{_shown(entry_id)} is not in the archive: it is live; see kr entries show")
    return _unknown("no archived entry has the id", entry_id, unit.archive.ids(), "kr archive list")


def nowhere(entry_id: str) -> UnknownEntry:
    return UnknownEntry(f"no entry has the id {_shown(entry_id)}; there is no database yet")


def _unknown(what: str, entry_id: str, ids: Iterable[str], command: str) -> UnknownEntry:
    from kr.matching.frameworks import most_alike

    alike = ", ".join(one_line(found, _LONGEST_ID) for found in most_alike(entry_id, ids))
    hint = f"nearest: {alike}" if alike else f"{command} shows them"
    return UnknownEntry(f"{what} {_shown(entry_id)}; {hint}")


def _shown(entry_id: str) -> str:
    return f'"{one_line(entry_id, _LONGEST_ID)}"'
