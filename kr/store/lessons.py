"""Tables ``lessons``, ``lesson_keywords`` and ``lesson_injections``: what is known of lessons beside the file (SPEC 4.2, 5)."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Literal

from kr.store.session import Part, insert_into, json_list

LessonMark = Literal["retired_at", "pinned_at", "approved_at", "superseded_by"]
"""What people decide of a lesson, by its column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonRow:
    """One row of ``lessons``, but for its counts. What a line of other tools came from is not known: None."""

    id: str
    date: str
    phase: str
    tags: tuple[str, ...]
    summary: str
    ref: str | None = None
    event_type: str | None = None
    story_key: str | None = None
    session_id: str | None = None
    recorded_at: str | None = None
    source: str | None = None
    """Who worded it: ``agent``, ``table``, ``tool`` or ``person``."""
    held: str | None = None
    """Why it waits for a person (quarantine); what was recorded is not in the file meanwhile."""
    gone_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonState:
    """What the database knows of one lesson: its text without secrets, and what became of it.

    ``sessions`` is how many it was given to, ``injected`` how often.
    """

    id: str
    summary: str | None = None
    ref: str | None = None
    event_type: str | None = None
    story_key: str | None = None
    session_id: str | None = None
    source: str | None = None
    held: str | None = None
    injected: int = 0
    sessions: int = 0
    recurred: int = 0
    recurred_after_injection: int = 0
    last_recurred_at: str | None = None
    retired_at: str | None = None
    pinned_at: str | None = None
    approved_at: str | None = None
    superseded_by: str | None = None

    @property
    def is_quarantined(self) -> bool:
        """Whether it waits for a person."""
        return self.held is not None and self.approved_at is None


_SUNK_AFTER = 10

_LISTED = "(SELECT value FROM json_each(:ids))"
_COLUMNS = tuple(field.name for field in fields(LessonRow))
_KNOWN = ", ".join(field.name for field in fields(LessonState) if field.name != "sessions")
_ADD = f"{insert_into('lessons', _COLUMNS)} ON CONFLICT (id) DO NOTHING"
_ADD_KEYWORD = "INSERT OR IGNORE INTO lesson_keywords (keyword, lesson_id) VALUES (:keyword, :lesson_id)"
_ADD_ORIGIN = (
    "UPDATE lessons SET event_type = :event_type, story_key = :story_key, session_id = :session_id, "
    "recorded_at = :recorded_at, source = :source WHERE id = :id AND event_type IS NULL"
)
_INJECTION = insert_into("lesson_injections", ("lesson_id", "phase", "story_key", "session_id", "at"))
_COUNT_INJECTED = f"UPDATE lessons SET injected = injected + 1 WHERE id IN {_LISTED}"
_COUNT_RECURRED = (
    "UPDATE lessons SET recurred = recurred + 1, last_recurred_at = :at, "
    "recurred_after_injection = recurred_after_injection + EXISTS (SELECT 1 FROM lesson_injections AS given "
    f"WHERE given.lesson_id = lessons.id AND given.session_id = :session_id) WHERE id IN {_LISTED}"
)
_GONE = f"UPDATE lessons SET gone_at = :at WHERE gone_at IS NULL AND id NOT IN {_LISTED}"
_BACK = f"UPDATE lessons SET gone_at = NULL WHERE gone_at IS NOT NULL AND id IN {_LISTED}"
# A word in more lessons than these is common, however many have it: to count them all would cost more with each lesson.
_FREQUENCY = (
    "SELECT value AS keyword, (SELECT count(*) FROM (SELECT 1 FROM lesson_keywords WHERE keyword = value LIMIT 100)) AS lessons "
    "FROM json_each(:ids) WHERE lessons > 0"
)
# A quarantined or rejected one is known as well: it is not to come back by another door.
_SHARING = (
    "SELECT DISTINCT id, date, tags, summary, ref FROM lesson_keywords JOIN lessons ON lessons.id = lesson_id "
    f"WHERE keyword IN {_LISTED} AND (gone_at IS NULL OR held IS NOT NULL)"
)
_STATES = (
    f"SELECT {_KNOWN}, (SELECT count(DISTINCT given.session_id) FROM lesson_injections AS given "
    f"WHERE given.lesson_id = lessons.id) AS sessions FROM lessons WHERE id IN {_LISTED}"
)
# The number of sessions costs a look at each injection, and no rank needs it.
_REMARKABLE = (
    f"SELECT {_KNOWN} FROM lessons WHERE gone_at IS NULL AND (recurred > 0 OR injected >= {_SUNK_AFTER} "
    "OR held IS NOT NULL OR retired_at IS NOT NULL OR pinned_at IS NOT NULL OR superseded_by IS NOT NULL)"
)
_QUARANTINED = (
    "SELECT id, date, tags, summary, ref FROM lessons WHERE gone_at IS NOT NULL AND held IS NOT NULL "
    "AND approved_at IS NULL AND retired_at IS NULL ORDER BY recorded_at, id"
)
GIVEN = "gone_at IS NULL AND retired_at IS NULL AND superseded_by IS NULL AND (held IS NULL OR approved_at IS NOT NULL)"
"""Which lessons are given to agents."""
_GIVEN = f"SELECT id FROM lessons WHERE {GIVEN}"
_MARKS = {
    mark: f"UPDATE lessons SET {mark} = :value WHERE id = :id"
    for mark in ("retired_at", "pinned_at", "approved_at", "superseded_by")
}


class Lessons(Part):
    def add(self, rows: Sequence[LessonRow], keywords: Mapping[str, Sequence[str]]) -> None:
        """Add rows, with the keywords of each by its id. Of a known one an origin is filled in, and it is back if it was gone.

        A line may be read in the file before its recorder tells where it came from.
        """
        data = [{**asdict(row), "tags": json_list(row.tags)} for row in rows]
        self._session.execute_many(_ADD, data)
        self._session.execute_many(_ADD_ORIGIN, [row for row in data if row["event_type"] is not None])
        self.bring_back(row.id for row in rows if row.gone_at is None)
        words = [{"keyword": word, "lesson_id": row.id} for row in rows for word in keywords.get(row.id, ())]
        self._session.execute_many(_ADD_KEYWORD, words)

    def bring_back(self, ids: Iterable[str]) -> None:
        """Take off the mark of lessons that the file holds again."""
        self._session.execute(_BACK, ids=json_list([*ids]))

    def keep_only(self, ids: Iterable[str], at: str) -> None:
        """Mark all others as gone: the file no longer holds them. Their counts stay."""
        self._session.execute(_GONE, ids=json_list([*ids]), at=at)

    def frequency(self, words: Sequence[str]) -> list[tuple[str, int]]:
        """Return in how many lessons, up to 100, each of the words stands; words that stand in none are left out."""
        rows = self._session.rows(_FREQUENCY, ids=json_list(words))
        return [(row["keyword"], row["lessons"]) for row in rows]

    def sharing(self, words: Sequence[str]) -> list[LessonRow]:
        """Return the lessons that have one of the words."""
        return [_row(row) for row in self._session.rows(_SHARING, ids=json_list(words))]

    def injected(self, ids: Sequence[str], *, phase: str, story_key: str, session_id: str, at: str) -> None:
        given = {"phase": phase, "story_key": story_key, "session_id": session_id, "at": at}
        self._session.execute_many(_INJECTION, [{"lesson_id": lesson, **given} for lesson in ids])
        self._session.execute(_COUNT_INJECTED, ids=json_list(ids))

    def recurred(self, ids: Sequence[str], *, session_id: str, at: str) -> None:
        """Count that the lessons' failures came back, and apart whether this session had been given them."""
        self._session.execute(_COUNT_RECURRED, ids=json_list(ids), session_id=session_id, at=at)

    def states(self, ids: Iterable[str]) -> dict[str, LessonState]:
        rows = self._session.rows(_STATES, ids=json_list([*ids]))
        return {row["id"]: LessonState(**row) for row in rows}

    def remarkable(self) -> dict[str, LessonState]:
        """Return the lessons of the file that don't stand where their date puts them."""
        return {row["id"]: LessonState(**row) for row in self._session.rows(_REMARKABLE)}

    def quarantined(self) -> list[LessonRow]:
        """Return the recorded lessons that wait for a person, and are not in the file."""
        return [_row(row) for row in self._session.rows(_QUARANTINED)]

    def injectable(self) -> set[str]:
        """Return the ids of the lessons that an agent may see."""
        return {row["id"] for row in self._session.rows(_GIVEN)}

    def mark(self, lesson_id: str, mark: LessonMark, value: str | None) -> None:
        self._session.execute(_MARKS[mark], id=lesson_id, value=value)


def _row(row: sqlite3.Row) -> LessonRow:
    tags = tuple(json.loads(row["tags"]))
    return LessonRow(
        id=row["id"], date=row["date"], phase=tags[0], tags=tags, summary=row["summary"], ref=row["ref"]
    )
