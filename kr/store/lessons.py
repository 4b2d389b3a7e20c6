"""What is known of lessons beside the file (tables ``lessons``, ``lesson_keywords`` and ``lesson_injections``)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from kr.store.engine import Row, Transaction
from kr.store.sql import IS_GIVEN, columns_of, insert_into, named, record_of, texts_of

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
    keywords: tuple[str, ...] = ()
    """What a duplicate is found by."""


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
_MOST_PARAMETERS = 1000
_NAMES = tuple(field.name for field in fields(LessonRow) if field.name != "keywords")
_ORIGIN = ("event_type", "story_key", "session_id", "recorded_at", "source")


def add(tx: Transaction, rows: Sequence[LessonRow]) -> None:
    """Add rows with their keywords. Of a known one an origin is filled in, and it is back if it was gone.

    A line may be read in the file before its recorder says where it came from.
    """
    data = [{name: columns_of(row)[name] for name in _NAMES} for row in rows]
    tx.execute_many(f"{insert_into('lessons', _NAMES)} ON CONFLICT (id) DO NOTHING", data)
    origin = ", ".join(f"{name} = :{name}" for name in _ORIGIN)
    tx.execute_many(
        f"UPDATE lessons SET {origin} WHERE id = :id AND event_type IS NULL",
        [row for row in data if row["event_type"] is not None],
    )
    bring_back(tx, [row.id for row in rows if row.gone_at is None])
    words = [{"keyword": word, "lesson_id": row.id} for row in rows for word in row.keywords]
    tx.execute_many(
        f"{insert_into('lesson_keywords', ('keyword', 'lesson_id'))} ON CONFLICT DO NOTHING", words
    )


def bring_back(tx: Transaction, ids: Iterable[str]) -> None:
    """Take off the mark of lessons that the file holds again."""
    tx.execute_many(
        "UPDATE lessons SET gone_at = NULL WHERE id = :id AND gone_at IS NOT NULL", [{"id": it} for it in ids]
    )


def keep_only(tx: Transaction, ids: Iterable[str], at: str) -> None:
    """Mark all others as gone: the file no longer holds them. Their counts stay."""
    present = {row[0] for row in tx.rows("SELECT id FROM lessons WHERE gone_at IS NULL")}
    gone = [{"id": lesson, "at": at} for lesson in present - {*ids}]
    tx.execute_many("UPDATE lessons SET gone_at = :at WHERE id = :id", gone)


def lacking(tx: Transaction, present: Collection[str]) -> list[LessonRow]:
    """Return the lessons that are given to agents, oldest first, but for those with the ids ``present``."""
    every = [row[0] for row in tx.rows(f"SELECT id FROM lessons WHERE {IS_GIVEN} ORDER BY date, id")]
    absent, parameters = named("id", [it for it in every if it not in present][:_MOST_PARAMETERS])
    rows = tx.rows(
        f"SELECT * FROM lessons WHERE id IN {absent} ORDER BY date, id",
        **parameters,
    )
    return [_row(row) for row in rows]


def frequency(tx: Transaction, words: Sequence[str]) -> list[tuple[str, int]]:
    """Return in how many lessons each of the words stands; words that stand in none are left out.

    A word in 100 lessons or more is common, however many have it: counting them all would cost more with each lesson.
    """
    if not words:
        return []
    counted = (
        "(SELECT count(*) FROM (SELECT 1 FROM lesson_keywords WHERE keyword = :{name} LIMIT 100) AS found)"
    )
    names = [f"word{at}" for at in range(len(words))]
    counts = tx.row(
        f"SELECT {', '.join(counted.format(name=name) for name in names)}",
        **dict(zip(names, words, strict=True)),
    )
    return [(word, number) for word, number in zip(words, counts or (), strict=True) if number]


def sharing(tx: Transaction, words: Sequence[str], rarest: Sequence[str], *, least: int) -> list[LessonRow]:
    """Return the lessons that have one of the rarest words, and at least so many of all.

    A quarantined or rejected one is among them: it shall not come back otherwise.
    """
    some, parameters = named("rare", rarest)
    every, more = named("word", words)
    rows = tx.rows(
        "SELECT * FROM lessons WHERE id IN (SELECT lesson_id FROM lesson_keywords "
        f"WHERE keyword IN {every} AND lesson_id IN (SELECT lesson_id FROM lesson_keywords WHERE keyword IN {some}) "
        "GROUP BY lesson_id HAVING count(*) >= :least) AND (gone_at IS NULL OR held IS NOT NULL)",
        **parameters,
        **more,
        least=least,
    )
    return [_row(row) for row in rows]


def injected(
    tx: Transaction, ids: Sequence[str], *, phase: str, story_key: str, session_id: str, at: str
) -> None:
    """Count that the lessons were given to a session."""
    given = {"phase": phase, "story_key": story_key, "session_id": session_id, "at": at}
    rows = [{"lesson_id": lesson, **given} for lesson in ids]
    tx.execute_many(insert_into("lesson_injections", ("lesson_id", *given)), rows)
    tx.execute_many("UPDATE lessons SET injected = injected + 1 WHERE id = :lesson_id", rows)


def recurred(tx: Transaction, ids: Sequence[str], *, session_id: str, at: str) -> None:
    """Count that the lessons' failures came back, and apart whether this session had been given them."""
    tx.execute_many(
        "UPDATE lessons SET recurred = recurred + 1, last_recurred_at = :at, recurred_after_injection = "
        "recurred_after_injection + CASE WHEN EXISTS (SELECT 1 FROM lesson_injections AS given "
        "WHERE given.lesson_id = lessons.id AND given.session_id = :session) THEN 1 ELSE 0 END WHERE id = :id",
        [{"id": lesson, "session": session_id, "at": at} for lesson in ids],
    )


def move_counts(tx: Transaction, old: str, new: str) -> None:
    """Give a lesson that was worded anew what is known of the old one: its pin, its counts, and to whom it was given."""
    counts = ("injected", "recurred", "recurred_after_injection")
    moments = ("pinned_at", "last_recurred_at")
    was = {name: f"(SELECT {name} FROM lessons WHERE id = :old)" for name in (*counts, *moments)}
    changes = [f"{name} = {name} + {was[name]}" for name in counts]
    changes += [f"{name} = coalesce({name}, {was[name]})" for name in moments]
    tx.execute(f"UPDATE lessons SET {', '.join(changes)} WHERE id = :new", old=old, new=new)
    tx.execute(
        f"UPDATE lessons SET {', '.join(f'{name} = 0' for name in counts)}, pinned_at = NULL WHERE id = :old",
        old=old,
    )
    tx.execute("UPDATE lesson_injections SET lesson_id = :new WHERE lesson_id = :old", old=old, new=new)


def states(tx: Transaction, ids: Iterable[str]) -> dict[str, LessonState]:
    """Return what is known of these lessons, by their ids."""
    sessions = "(SELECT count(DISTINCT given.session_id) FROM lesson_injections AS given WHERE given.lesson_id = lessons.id)"
    found: dict[str, LessonState] = {}
    for some in _batches(ids):
        listed, parameters = named("id", some)
        rows = tx.rows(f"SELECT *, {sessions} AS sessions FROM lessons WHERE id IN {listed}", **parameters)
        found |= {row["id"]: record_of(LessonState, row) for row in rows}
    return found


def remarkable(tx: Transaction) -> dict[str, LessonState]:
    """Return the lessons of the file that don't stand where their date puts them; the number of their sessions is not counted."""
    rows = tx.rows(
        f"SELECT * FROM lessons WHERE gone_at IS NULL AND (recurred > 0 OR injected >= {_SUNK_AFTER} "
        "OR held IS NOT NULL OR retired_at IS NOT NULL OR pinned_at IS NOT NULL OR superseded_by IS NOT NULL)"
    )
    return {row["id"]: record_of(LessonState, row, sessions=0) for row in rows}


def quarantined(tx: Transaction) -> list[LessonRow]:
    """Return the recorded lessons that wait for a person, and are not in the file."""
    rows = tx.rows(
        "SELECT * FROM lessons WHERE gone_at IS NOT NULL AND held IS NOT NULL "
        "AND approved_at IS NULL AND retired_at IS NULL ORDER BY recorded_at, id"
    )
    return [_row(row) for row in rows]


def injectable(tx: Transaction) -> set[str]:
    """Return the ids of the lessons that an agent may see."""
    return {row[0] for row in tx.rows(f"SELECT id FROM lessons WHERE {IS_GIVEN}")}


def mark(tx: Transaction, lesson_id: str, mark: LessonMark, value: str | None) -> None:
    tx.execute(f"UPDATE lessons SET {mark} = :value WHERE id = :id", id=lesson_id, value=value)


def _row(row: Row) -> LessonRow:
    return record_of(LessonRow, row, tags=texts_of(row["tags"]), keywords=())


def _batches(ids: Iterable[str]) -> Iterable[Sequence[str]]:
    """Cut a list so that each part fits into one statement's parameters."""
    listed = list(ids)
    return [listed[at : at + _MOST_PARAMETERS] for at in range(0, len(listed), _MOST_PARAMETERS)]
