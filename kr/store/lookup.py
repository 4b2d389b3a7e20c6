"""What a look-up reads: the entries that may be served, and those that may answer, with what sessions say of them (SPEC 3.2)."""

import sqlite3
from collections.abc import Sequence

from kr.models import NO_RATINGS, Entry, Ratings
from kr.store.entries import COLUMNS, to_entry
from kr.store.lessons import GIVEN
from kr.store.search import Search
from kr.store.session import Part, json_list
from kr.text import beginning

Found = tuple[Entry, Ratings, bool]
"""A live entry, its ratings, and whether the question that is asked is a known wording of it."""

_OF = "FROM ratings AS r WHERE r.entry_id = e.id AND r.revision = e.revision AND r.outcome ="
_RATED = (
    f"(SELECT count(*) {_OF} 'worked') AS worked, (SELECT count(*) {_OF} 'wrong') AS wrong, "
    f"EXISTS (SELECT 1 {_OF} 'wrong' AND r.session_id LIKE 'person:%') AS by_person, "
    f"(SELECT note {_OF} 'wrong' AND note IS NOT NULL ORDER BY at DESC LIMIT 1) AS note"
)
_LIVE = f"SELECT {', '.join(f'e.{name}' for name in COLUMNS)}, {_RATED}"
_WORDING = (
    "(e.question_key = :question OR EXISTS (SELECT 1 FROM wordings AS w "
    "WHERE w.entry_id = e.id AND w.question_key = :question AND w.proved)) AS is_wording"
)
_KEYS = "e.framework_key IN (SELECT value FROM json_each(:keys)) AND e.status <> 'archived'"
_OF_KEYS = f"{_LIVE}, {_WORDING} FROM entries AS e WHERE {_KEYS}"
_FRAMEWORK = f"{_LIVE}, {_WORDING} FROM entries AS e WHERE ({_KEYS}) OR e.framework_key IS NULL"
_UNKEYED = "SELECT 1 FROM entries WHERE framework_key IS NULL LIMIT 1"
_SERVED = (
    f"{_OF_KEYS} AND (e.topic_key = :topic OR e.question_key = :question OR e.keywords_key = :keywords OR e.id IN "
    "(SELECT entry_id FROM wordings WHERE question_key = :question AND proved))"
)
_SOME = f"{_LIVE}, 0 AS is_wording FROM entries AS e WHERE e.id IN (SELECT value FROM json_each(:ids)) AND e.status <> 'archived'"
_FITS = "instr(lower(summary || ' ' || coalesce(ref, '')), value) > 0"
_LESSONS = (
    f"SELECT summary, ref, (SELECT count(*) FROM json_each(:words) WHERE {_FITS}) AS found FROM lessons "
    f"WHERE {GIVEN} AND found > 0 AND EXISTS (SELECT 1 FROM json_each(tags) AS tag "
    "JOIN json_each(:names) AS name ON replace(replace(lower(tag.value), '-', ''), '.', '') = name.value) "
    "ORDER BY found DESC, date DESC, id LIMIT :most"
)
_COUNT = f"SELECT count(*) FROM entries AS e WHERE {_KEYS}"


class Lookup(Part):
    def served(self, keys: Sequence[str], *, topic: str, question: str, keywords: str) -> list[Found]:
        """Return the entries of the frameworks ``keys`` that have this topic, question, wording or keywords, each as its key."""
        return self._found(_SERVED, keys=json_list(keys), topic=topic, question=question, keywords=keywords)

    def framework(self, keys: Sequence[str], *, question: str) -> list[Found]:
        """Return all live entries of the frameworks ``keys``, and those that plain SQL wrote without a key."""
        return self._found(_FRAMEWORK, keys=json_list(keys), question=question)

    def has_unkeyed(self) -> bool:
        """Whether plain SQL wrote entries that have no keys yet, by which a look-up would find them."""
        return self._session.value(_UNKEYED) is not None

    def candidates(
        self, keys: Sequence[str], words: Sequence[str], *, most: int = 20
    ) -> list[tuple[Found, float]]:
        """Return the entries that share words with a request, with their ``bm25`` (higher is better), best first."""
        scores = Search(self._session).rank(keys, words, most=most)
        found = {it[0].id: it for it in self._found(_SOME, ids=json_list([*scores]))}
        return [(found[entry_id], score) for entry_id, score in scores.items() if entry_id in found]

    def one(self, entry_id: str) -> Found | None:
        """Return the live entry of an id."""
        return next(iter(self._found(_SOME, ids=json_list([entry_id]))), None)

    def count(self, keys: Sequence[str]) -> int:
        return int(self._session.value(_COUNT, keys=json_list(keys)))

    def lessons(
        self, names: Sequence[str], words: Sequence[str], *, most: int
    ) -> list[tuple[str, str | None]]:
        """Return summary and ref of the lessons that carry one of the frameworks' keys as a tag and hold a word, most words first."""
        wanted = {
            "names": json_list(names),
            "words": json_list([beginning(word) for word in words]),
            "most": most,
        }
        return [(row["summary"], row["ref"]) for row in self._session.rows(_LESSONS, wanted)]

    def _found(self, statement: str, **named: str) -> list[Found]:
        return [_to_found(row) for row in self._session.rows(statement, **named)]


def _to_found(row: sqlite3.Row) -> Found:
    ratings = NO_RATINGS
    if row["worked"] or row["wrong"]:
        ratings = Ratings(row["worked"], row["wrong"], bool(row["by_person"]), row["note"])
    return to_entry(row), ratings, bool(row["is_wording"])
