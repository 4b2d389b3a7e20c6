"""Tables ``lessons`` and ``lesson_injections``: what is known of the lines of the lessons file (SPEC 4.2, 5)."""

import json
from collections.abc import Iterable, Sequence
from typing import Literal

from kr.store.session import Part, insert_into, json_list
from kr.values import Value

LessonMark = Literal["retired_at", "pinned_at", "approved_at", "superseded_by"]
"""What people decide of a lesson, by its column."""


class LessonRow(Value):
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
    """Who worded it: ``table``, ``agent``, ``tool``, ``model`` or ``person``."""


class LessonState(Value):
    """What the database knows of one lesson beside its text. ``sessions`` is how many it was given to, ``injected`` how often."""

    id: str
    event_type: str | None = None
    story_key: str | None = None
    session_id: str | None = None
    source: str | None = None
    injected: int = 0
    sessions: int = 0
    recurred: int = 0
    recurred_after_injection: int = 0
    last_recurred_at: str | None = None
    retired_at: str | None = None
    pinned_at: str | None = None
    approved_at: str | None = None
    superseded_by: str | None = None


_SUNK_AFTER = 10

_LISTED = "(SELECT value FROM json_each(:ids))"
_ORIGIN = ("event_type", "story_key", "session_id", "recorded_at", "source")
_KNOWN = tuple(name for name in LessonState.names() if name != "sessions")
_ADD = insert_into("lessons", LessonRow.names())
_ADD_ORIGIN = (
    f"UPDATE lessons SET {', '.join(f'{name} = :{name}' for name in _ORIGIN)} "
    "WHERE id = :id AND event_type IS NULL"
)
_INJECTION = insert_into("lesson_injections", ("lesson_id", "phase", "story_key", "session_id", "at"))
_COUNT_INJECTED = f"UPDATE lessons SET injected = injected + 1 WHERE id IN {_LISTED}"
_COUNT_RECURRED = (
    "UPDATE lessons SET recurred = recurred + 1, last_recurred_at = :at, "
    "recurred_after_injection = recurred_after_injection + EXISTS (SELECT 1 FROM lesson_injections AS given "
    f"WHERE given.lesson_id = lessons.id AND given.session_id = :session_id) WHERE id IN {_LISTED}"
)
_IN_FILE = "SELECT id, gone_at IS NULL AS is_there FROM lessons"
_GONE = f"UPDATE lessons SET gone_at = :at WHERE id IN {_LISTED} AND gone_at IS NULL"
_BACK = f"UPDATE lessons SET gone_at = NULL WHERE id IN {_LISTED} AND gone_at IS NOT NULL"
_IDS = f"SELECT id FROM lessons WHERE id IN {_LISTED}"
_STATES = (
    f"SELECT {', '.join(_KNOWN)}, (SELECT count(DISTINCT given.session_id) FROM lesson_injections AS given "
    f"WHERE given.lesson_id = lessons.id) AS sessions FROM lessons WHERE id IN {_LISTED}"
)
# The number of sessions costs a look at each injection, and no rank needs it.
_REMARKABLE = (
    f"SELECT {', '.join(_KNOWN)} FROM lessons WHERE instr(tags, :phase) AND gone_at IS NULL AND (recurred > 0 "
    f"OR injected >= {_SUNK_AFTER} OR source IS NOT NULL OR retired_at IS NOT NULL OR pinned_at IS NOT NULL "
    "OR approved_at IS NOT NULL OR superseded_by IS NOT NULL)"
)
_HARMLESS = "SELECT id FROM lessons WHERE harmless_by = :rules AND instr(tags, :phase)"
_FOUND_HARMLESS = f"UPDATE lessons SET harmless_by = :rules WHERE id IN {_LISTED}"
_MARKS = {
    mark: f"UPDATE lessons SET {mark} = :value WHERE id = :id"
    for mark in ("retired_at", "pinned_at", "approved_at", "superseded_by")
}


class Lessons(Part):
    def add(self, rows: Sequence[LessonRow]) -> int:
        """Add the rows whose id is new, and return how many. What was gone is back.

        Of a known one only an origin is filled in: a line may be picked up before its recorder tells where it came from.
        """
        unique = {row.id: row for row in rows}
        known = {row["id"] for row in self._session.rows(_IDS, ids=json_list([*unique]))}
        self.mark_gone(known, None)
        new = [
            {**row.fields(), "tags": json.dumps(row.tags, ensure_ascii=False)}
            for row in unique.values()
            if row.id not in known
        ]
        self._session.execute_many(_ADD, new)
        for row in unique.values():
            if row.id in known and row.event_type is not None:
                self._session.execute(_ADD_ORIGIN, row.fields())
        return len(new)

    def injected(self, ids: Sequence[str], *, phase: str, story_key: str, session_id: str, at: str) -> None:
        given = {"phase": phase, "story_key": story_key, "session_id": session_id, "at": at}
        self._session.execute_many(_INJECTION, [{"lesson_id": lesson, **given} for lesson in ids])
        self._session.execute(_COUNT_INJECTED, ids=json_list(ids))

    def recurred(self, ids: Sequence[str], *, session_id: str, at: str) -> None:
        """Count that the lessons' failures came back, and apart whether this session had been given them."""
        self._session.execute(_COUNT_RECURRED, ids=json_list(ids), session_id=session_id, at=at)

    def in_file(self) -> dict[str, bool]:
        """Return the id of every row, and whether it is in the file as far as is known."""
        return {row["id"]: bool(row["is_there"]) for row in self._session.rows(_IN_FILE)}

    def mark_gone(self, ids: Iterable[str], at: str | None) -> None:
        """Mark lessons that the file no longer holds, or with ``None`` those that it holds again. Their counts stay."""
        listed = json_list([*ids])
        if at is None:
            self._session.execute(_BACK, ids=listed)
        else:
            self._session.execute(_GONE, ids=listed, at=at)

    def states(self, ids: Iterable[str]) -> dict[str, LessonState]:
        rows = self._session.rows(_STATES, ids=json_list([*ids]))
        return {row["id"]: LessonState(**row) for row in rows}

    def remarkable(self, phase: str) -> dict[str, LessonState]:
        """Return the lessons that don't stand where their date puts them, or have an origin; of any phase, as a line may carry several."""
        rows = self._session.rows(_REMARKABLE, phase=json.dumps(phase, ensure_ascii=False))
        return {row["id"]: LessonState(**row) for row in rows}

    def harmless(self, phase: str, rules: str) -> frozenset[str]:
        """Return the lessons that these rules found to be no orders to their reader; of any phase, as above."""
        rows = self._session.rows(_HARMLESS, rules=rules, phase=json.dumps(phase, ensure_ascii=False))
        return frozenset(row["id"] for row in rows)

    def found_harmless(self, ids: Sequence[str], rules: str) -> None:
        """Keep that these rules found the lessons' texts, which are in their ids, to be no orders."""
        self._session.execute(_FOUND_HARMLESS, ids=json_list(ids), rules=rules)

    def mark(self, lesson_id: str, mark: LessonMark, value: str | None) -> None:
        self._session.execute(_MARKS[mark], id=lesson_id, value=value)
