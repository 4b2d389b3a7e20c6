"""What is known of lessons beside the file (tables ``lessons``, ``lesson_keywords`` and ``lesson_injections``)."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from kr.models import Lesson
from kr.store.engine import Row, Transaction, insert_into, json_list, named
from kr.store.lookup import IS_GIVEN

LessonMark = Literal["retired_at", "pinned_at", "approved_at"]
"""What people decide of a lesson, by its column."""

SUNK_AFTER = 10
"""Given so often without coming back, a lesson makes room for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonRow:
    """What the database knows of a lesson: its text without secrets, where it came from, and what became of it.

    ``id`` is that of the line as it stands in the file. What a line of other tools came from is not known: None.
    """

    id: str
    lesson: Lesson
    event_type: str | None = None
    story_key: str | None = None
    session_id: str | None = None
    recorded_at: str | None = None
    source: str | None = None
    """Who worded it: ``agent``, ``table``, ``tool`` or ``person``; ``file``: an import."""
    held: str | None = None
    """Why it waits for a person (quarantine); what was recorded is not in the file meanwhile."""
    gone_at: str | None = None
    injected: int = 0
    recurred: int = 0
    recurred_after_injection: int = 0
    last_recurred_at: str | None = None
    retired_at: str | None = None
    pinned_at: str | None = None
    approved_at: str | None = None
    superseded_by: str | None = None

    @property
    def status(self) -> str:
        """Where it stands: ``retired``, ``superseded``, ``quarantined`` (it waits for a person), ``pinned`` or ``live``."""
        if self.retired_at:
            return "retired"
        if self.superseded_by:
            return "superseded"
        if self.held and not self.approved_at:
            return "quarantined"
        return "pinned" if self.pinned_at else "live"

    @property
    def is_given(self) -> bool:
        """Whether agents may see it."""
        return self.status in {"pinned", "live"}


_TEXT = ("date", "phase", "tags", "summary", "ref")
_KNOWN = tuple(field.name for field in fields(LessonRow) if field.name != "lesson")
_MOST_PARAMETERS = 1000


def add(tx: Transaction, rows: Sequence[LessonRow], keywords_of: Callable[[str], Iterable[str]]) -> None:
    """Add rows, each with the keywords of its summary, by which duplicates are found. Of a known one only whether it is gone."""
    added = f"{insert_into('lessons', (*_KNOWN, *_TEXT))} ON CONFLICT (id) DO UPDATE SET gone_at = excluded.gone_at"
    tx.execute_many(added, [_written(row) for row in rows])
    words = [{"keyword": it, "lesson": row.id} for row in rows for it in keywords_of(row.lesson.summary)]
    tx.execute_many("INSERT INTO lesson_keywords VALUES (:keyword, :lesson) ON CONFLICT DO NOTHING", words)


def bring_back(tx: Transaction, ids: Iterable[str]) -> None:
    """Take off the mark of lessons that the file holds again."""
    again = "UPDATE lessons SET gone_at = NULL WHERE id = :id AND gone_at IS NOT NULL"
    tx.execute_many(again, [{"id": it} for it in ids])


def keep_only(tx: Transaction, ids: Iterable[str], at: str) -> None:
    """Mark all others as gone: the file no longer holds them. Their counts stay."""
    present = {*tx.column("SELECT id FROM lessons WHERE gone_at IS NULL")}
    gone = [{"id": lesson, "at": at} for lesson in present - {*ids}]
    tx.execute_many("UPDATE lessons SET gone_at = :at WHERE id = :id", gone)


def lacking(tx: Transaction, present: Collection[str]) -> list[LessonRow]:
    """Return the lessons that are given to agents, oldest first, but for those with the ids ``present``; some of very many."""
    every = tx.column(f"SELECT id FROM lessons WHERE {IS_GIVEN} ORDER BY date, id")
    absent, parameters = named("id", [it for it in every if it not in present][:_MOST_PARAMETERS])
    return _select(tx, f"id IN {absent} ORDER BY date, id", **parameters)


def rarest_first(tx: Transaction, words: Sequence[str]) -> list[str]:
    """Order words by in how many lessons they stand.

    One in 100 or more is common, however many have it: counting them all would cost more with each lesson.
    """
    if not words:
        return []
    counted = "(SELECT count(*) FROM (SELECT 1 FROM lesson_keywords WHERE keyword = :w{0} LIMIT 100) AS c{0}) AS w{0}"
    columns = ", ".join(counted.format(at) for at in range(len(words)))
    [counts] = tx.rows(f"SELECT {columns}", **{f"w{at}": word for at, word in enumerate(words)})
    number = dict(zip(words, counts.values(), strict=True))
    return sorted(words, key=number.__getitem__)


def sharing(tx: Transaction, words: Sequence[str], some: Sequence[str], *, least: int) -> list[LessonRow]:
    """Return the lessons that have one of ``some`` words, and at least so many of all.

    One that waits, was retired or worded anew is among them whether or not its line is there: it shall not come back otherwise.
    """
    one, parameters = named("some", some)
    every, more = named("word", words)
    return _select(
        tx,
        "id IN (SELECT lesson_id FROM lesson_keywords "
        f"WHERE keyword IN {every} AND lesson_id IN (SELECT lesson_id FROM lesson_keywords WHERE keyword IN {one}) "
        "GROUP BY lesson_id HAVING count(*) >= :least) "
        "AND (gone_at IS NULL OR held IS NOT NULL OR retired_at IS NOT NULL OR superseded_by IS NOT NULL)",
        **parameters,
        **more,
        least=least,
    )


def injected(tx: Transaction, ids: Sequence[str], phase: str, request: Row) -> None:
    """Count that the lessons were given to a session."""
    given = {name: request[name] for name in ("story_key", "session_id", "at")} | {"phase": phase}
    rows = [{"lesson_id": lesson, **given} for lesson in ids]
    tx.execute_many(insert_into("lesson_injections", ("lesson_id", *given)), rows)
    tx.execute_many("UPDATE lessons SET injected = injected + 1 WHERE id = :lesson_id", rows)


def recurred(tx: Transaction, ids: Iterable[str], again: LessonRow) -> None:
    """Count that the lessons' failures came back, and apart whether the session had been given them. ``again`` says the same."""
    tx.execute_many(
        "UPDATE lessons SET recurred = recurred + 1, last_recurred_at = :at, recurred_after_injection = "
        "recurred_after_injection + CASE WHEN EXISTS (SELECT 1 FROM lesson_injections AS given "
        "WHERE given.lesson_id = lessons.id AND given.session_id = :session) THEN 1 ELSE 0 END WHERE id = :id",
        [{"id": it, "session": again.session_id, "at": again.recorded_at} for it in ids],
    )


def supersede(tx: Transaction, old: str, new: str) -> None:
    """Let a lesson that was added with what is known of an old one take its place: what was counted is counted once."""
    emptied = "injected = 0, recurred = 0, recurred_after_injection = 0, pinned_at = NULL"
    tx.execute(f"UPDATE lessons SET superseded_by = :new, {emptied} WHERE id = :old", old=old, new=new)
    tx.execute("UPDATE lesson_injections SET lesson_id = :new WHERE lesson_id = :old", old=old, new=new)


def states(tx: Transaction, ids: Iterable[str]) -> dict[str, LessonRow]:
    """Return what is known of these lessons, by their ids."""
    listed, found = list(ids), list[LessonRow]()
    for at in range(0, len(listed), _MOST_PARAMETERS):
        some, parameters = named("id", listed[at : at + _MOST_PARAMETERS])
        found += _select(tx, f"id IN {some}", **parameters)
    return {row.id: row for row in found}


def remarkable(tx: Transaction) -> dict[str, LessonRow]:
    """Return the lessons of the file that don't stand where their date puts them."""
    found = _select(
        tx,
        f"gone_at IS NULL AND (recurred > 0 OR injected >= {SUNK_AFTER} OR held IS NOT NULL OR retired_at IS NOT NULL "
        "OR pinned_at IS NOT NULL OR superseded_by IS NOT NULL)",
    )
    return {row.id: row for row in found}


def quarantined(tx: Transaction) -> dict[str, LessonRow]:
    """Return the recorded lessons that wait for a person, and are not in the file."""
    waits = "gone_at IS NOT NULL AND held IS NOT NULL AND approved_at IS NULL AND retired_at IS NULL"
    return {row.id: row for row in _select(tx, f"{waits} ORDER BY recorded_at, id")}


def mark(tx: Transaction, lesson_id: str, mark: LessonMark, value: str | None) -> None:
    tx.execute(f"UPDATE lessons SET {mark} = :value WHERE id = :id", id=lesson_id, value=value)


def _select(tx: Transaction, condition: str, **parameters: Any) -> list[LessonRow]:
    return [_read(row) for row in tx.rows(f"SELECT * FROM lessons WHERE {condition}", **parameters)]


def _written(row: LessonRow) -> Row:
    texts = {name: getattr(row.lesson, name) for name in _TEXT}
    return {name: getattr(row, name) for name in _KNOWN} | texts | {"tags": json_list(row.lesson.tags)}


def _read(row: Row) -> LessonRow:
    lesson = Lesson(row["date"], tuple(json.loads(row["tags"])), row["summary"], row["ref"])
    return LessonRow(lesson=lesson, **{name: row[name] for name in _KNOWN})
