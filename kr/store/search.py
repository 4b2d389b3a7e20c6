"""The full-text index over live entries, and searching lessons (SPEC 3.2, 6.2).

An entry's row is written in the transaction that writes the entry. The words of a search are no query language: each is quoted.
"""

from collections.abc import Iterable, Sequence

from kr.errors import UnknownEntry
from kr.frameworks import canonical, most_alike
from kr.models import Entry
from kr.store.session import Part, UnitOfWork, json_list
from kr.text import beginning, one_line, search_words, searchable, tokens
from kr.values import NamedTuple

WEIGHTS = "0.0, 2.0, 2.0, 2.0, 2.0, 1.0"
"""Of framework, topic, tags, question, wordings and report (SPEC 3.2)."""

_LONGEST = 1000
_PASSAGE = 200
_SUMMARY = "## Summary\n"
_RANK = (
    f"SELECT of.entry_id, -bm25(entry_search, {WEIGHTS}) AS score FROM entry_search "
    "JOIN search_rows AS of ON of.row = entry_search.rowid WHERE entry_search MATCH :query "
    "ORDER BY score DESC, of.entry_id LIMIT :most"
)
_ROW = "SELECT row FROM search_rows WHERE entry_id = :id"
_NEXT_ROW = "SELECT coalesce(max(row), 0) + 1 FROM search_rows"
_KEEP_ROW = "INSERT INTO search_rows (entry_id, row) VALUES (:id, :row)"
_FORGET = "DELETE FROM entry_search WHERE rowid = :row"
_PUT = (
    "INSERT INTO entry_search (rowid, framework, topic, tags, question, wordings, report) "
    "VALUES (:row, :framework, :topic, :tags, :question, :wordings, :report)"
)
_GONE = "SELECT row FROM search_rows WHERE entry_id NOT IN (SELECT id FROM entries)"
_FORGET_ROW = "DELETE FROM search_rows WHERE row = :row"
_WORDINGS = "SELECT topic || ' ' || question FROM wordings WHERE entry_id = :id ORDER BY id"
_REPORT = "SELECT text FROM report_texts WHERE sha256 = :sha256"
_EMPTY = ("DELETE FROM entry_search", "DELETE FROM search_rows")
_LESSON_TEXT = "lower(summary || ' ' || tags || ' ' || coalesce(ref, ''))"
_LESSONS = (
    f"SELECT id, phase, summary, (SELECT count(*) FROM json_each(:words) WHERE instr({_LESSON_TEXT}, value) > 0) AS found "
    "FROM lessons WHERE gone_at IS NULL AND found > 0 ORDER BY found DESC, date DESC, id LIMIT :most"
)


class Passage(NamedTuple):
    """What was found: the id of an entry or a lesson, and the place of its text on one line. ``topic`` is a lesson's phase."""

    key: str
    topic: str
    text: str


class Search(Part):
    def index(self, entry: Entry, report: str) -> None:
        """Write an entry's row in place of the one it has."""
        row = self._session.value(_ROW, id=entry.id)
        if row is None:
            row = self._session.value(_NEXT_ROW)
            self._session.execute(_KEEP_ROW, id=entry.id, row=row)
        else:
            self._session.execute(_FORGET, row=row)
        wordings = (found[0] for found in self._session.rows(_WORDINGS, id=entry.id))
        self._session.execute(
            _PUT,
            row=row,
            framework=_framework_word(canonical(entry.framework)),
            topic=searchable(entry.topic),
            tags=searchable(" ".join(entry.tags)),
            question=searchable(entry.question or ""),
            wordings=searchable(" ".join(wordings)),
            report=searchable(report),
        )

    def index_again(self, entry: Entry) -> None:
        """Write an entry's row anew, with the report that the database has."""
        self.index(entry, self._session.value(_REPORT, sha256=entry.sha256) or "")

    def prune(self) -> None:
        """Remove the rows of entries that are gone."""
        for (row,) in self._session.rows(_GONE):
            self._session.execute(_FORGET, row=row)
            self._session.execute(_FORGET_ROW, row=row)

    def refill(self, entries: Iterable[Entry]) -> None:
        """Make the whole index anew."""
        for statement in _EMPTY:
            self._session.execute(statement)
        for entry in entries:
            self.index_again(entry)

    def rank(
        self, keys: Sequence[str], words: Sequence[str], *, most: int, every: bool = False
    ) -> dict[str, float]:
        """Return the ids of the entries that hold some (or ``every``) of the words, each with its ``bm25``, higher is better, best first.

        ``keys`` are frameworks' keys; none means all of them.
        """
        if not words:
            return {}
        asked = (" AND " if every else " OR ").join(f'"{word}"' for word in words)
        query = f"{{topic tags question wordings report}} : ({asked})"
        if keys:
            named = " OR ".join(f'"{_framework_word(key)}"' for key in keys)
            query = f"framework : ({named}) AND {query}"
        rows = self._session.rows(_RANK, query=query, most=most)
        return {row["entry_id"]: row["score"] for row in rows}

    def find(self, text: str, *, keys: Sequence[str] = (), most: int) -> list[str]:
        """Return the ids of entries that hold all words of a text, best first, and after them those that hold some."""
        words = search_words(text[:_LONGEST]) or tokens(text[:_LONGEST])
        found = [*self.rank(keys, words, most=most, every=True)]
        if len(found) < most:
            found += self.rank(keys, words, most=most)
        return [*dict.fromkeys(found)][:most]

    def lessons(self, text: str, *, most: int) -> list[Passage]:
        """Return the lessons that hold words of a text, most words first."""
        words = [beginning(word) for word in search_words(text[:_LONGEST])]
        rows = self._session.rows(_LESSONS, words=json_list(words), most=most)
        return [Passage(row["id"], row["phase"], one_line(row["summary"], _LONGEST)) for row in rows]


def _framework_word(key: str) -> str:
    """Write a framework's key as one word of letters and digits."""
    return f"fw{key.encode(errors='replace').hex()}"


def passage_of(report: str, text: str) -> str:
    """Return the line of a report that holds most words of a text, cut around the first of them."""
    _, is_there, body = report.partition(_SUMMARY)
    lines = [line.strip(" >#*-|`") for line in (body if is_there else report).splitlines()]
    stems = [beginning(word) for word in search_words(text[:_LONGEST])]
    held = [(sum(word in line.casefold() for word in stems), line) for line in lines if line]
    if not held:
        return ""
    best = max(held, key=lambda it: it[0])[1]
    folded = best.casefold()
    first = min((folded.find(word) for word in stems if word in folded), default=0)
    start = max(0, first - _PASSAGE // 3) if len(best) > _PASSAGE else 0
    cut = one_line(best[start : start + _PASSAGE], _PASSAGE)
    return f"{'…' if start else ''}{cut}{'…' if start + _PASSAGE < len(best) else ''}"


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
    alike = ", ".join(one_line(found, _LONGEST_ID) for found in most_alike(entry_id, ids))
    hint = f"nearest: {alike}" if alike else f"{command} shows them"
    return UnknownEntry(f"{what} {_shown(entry_id)}; {hint}")


def _shown(entry_id: str) -> str:
    return f'"{one_line(entry_id, _LONGEST_ID)}"'
