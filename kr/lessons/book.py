"""The lessons file with what the database knows of its lines (U5, steps 4 and 5).

The file is the authority for the text. The database knows each line by its keywords, where it came from and what
became of it; one that is busy, broken or absent costs counts and origins, and nothing else.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from kr.errors import StoreError
from kr.guard import find_flagged, mask_secrets, reasons_to_hold, safe
from kr.lessons.file import LOCK_TIMEOUT, FileMark, LessonsFile, LessonsFileError
from kr.lessons.line import format_line, is_duplicate, lesson_keywords, make_lesson, telling
from kr.models import Lesson
from kr.settings import Settings
from kr.store import lessons as lesson_rows
from kr.store.engine import LESSONS, Store, Transaction
from kr.store.lessons import LessonRow
from kr.times import to_text

logger = logging.getLogger(__name__)

COUNTS = ("injected", "recurred", "recurred_after_injection", "last_recurred_at")
"""What is counted of a lesson, by its column."""


class LessonBook:
    """One lessons file with the database's side of it."""

    def __init__(self, file: LessonsFile, store: Store) -> None:
        self.file = file
        self.store = store

    def append(self, rows: Sequence[LessonRow], *, now: datetime) -> tuple[list[LessonRow], int]:
        """Append what is not known yet, while nobody else can; return it, and how many lessons the file holds.

        What must wait for a person goes into the database alone. An event whose lesson is known is a recurrence of it; a lesson that is
        added or imported again, of no event, is none. Raises ``LessonsFileError``, and ``StoreError`` where others hold the file.
        """
        ready: list[LessonRow] = []
        with self.file.lock():
            try:
                with self.store.write(scope=LESSONS) as tx:
                    total = self.sync(tx, now)
                    fresh = _add_new(tx, rows)
                    ready = self._write(fresh)
                return fresh, total + len(ready)
            except StoreError as error:
                logger.warning("lessons are not counted: %s", error)
            # Without the database the whole file is compared, with what was written already.
            known = self.file.read().lessons
            unknown = [it for it in rows if not any(is_duplicate(it.lesson, other) for other in known)]
            ready += self._write(unknown)
            return ready, len(self.file.read().lessons)

    def _write(self, rows: Sequence[LessonRow]) -> list[LessonRow]:
        """Append what need not wait for a person to the file, and return it."""
        ready = [row for row in rows if not row.held]
        if ready:
            self.file.append([row.lesson for row in ready])
        return ready

    def sync(self, tx: Transaction, now: datetime, limit: int | None = 300) -> int:
        """Take in what was appended to the file since it was last read; return how many lessons it holds. The caller holds its lock.

        At most ``limit`` lines of others are taken in: a long file that is new to the database delays nobody for long.
        What other machines recorded before PostgreSQL is appended to this one's file. Where the file did not merely grow, the lessons that it no longer holds are marked as gone; not before PostgreSQL, where
        the file is one machine's copy. Raises ``LessonsFileError`` and store errors.
        """
        if lacking := self._lacking(tx):
            self.file.append(lacking)
        mark = self._mark(tx)
        parsed, reached, is_whole = self.file.read_since(mark)
        if reached == mark:
            return mark.lessons
        lessons = {lesson.id: lesson for lesson in parsed.lessons}
        known = lesson_rows.states(tx, lessons)
        new = [lesson for id_, lesson in lessons.items() if id_ not in known]
        lesson_rows.add(tx, judged(new[:limit]), lesson_keywords)
        lesson_rows.bring_back(tx, known)
        if is_whole and not self.store.is_shared:
            lesson_rows.keep_only(tx, lessons, to_text(now))
        if limit is None or len(new) <= limit:
            tx.note(self._key, json.dumps(asdict(reached)))
        return reached.lessons

    def refresh(self, now: datetime) -> None:
        """Bring the table to what the file holds, all of it. Where that can't be done, what the table holds is shown."""
        try:
            if not self.store.exists():
                return
            with self.store.read() as tx:
                mark, is_behind = self._mark(tx), bool(self._lacking(tx))
            if is_behind or self.file.read_since(mark)[1] != mark:
                with self.file.lock(), self.store.write(scope=LESSONS) as tx:
                    self.sync(tx, now, limit=None)
        except (StoreError, LessonsFileError) as error:
            logger.info("the lessons file was not read into the table: %s", error)

    def _lacking(self, tx: Transaction) -> list[Lesson]:
        """Return the lessons that other machines recorded and this one's file does not hold; before SQLite there are none."""
        if not self.store.is_shared:
            return []
        here = {lesson.id for lesson in self.file.read().lessons}
        others = [row.lesson for row in lesson_rows.lacking(tx, here)]
        return [it for it in others if it.id not in here]  # a text without its secrets has another id

    def states(self, lessons: Sequence[Lesson]) -> dict[str, LessonRow]:
        """Return what is known of these lessons by id; nothing without a database."""
        return self.look(lambda tx: lesson_rows.states(tx, [lesson.id for lesson in lessons]))

    def look(self, look: Callable[[Transaction], dict[str, LessonRow]]) -> dict[str, LessonRow]:
        """Return what a look into the database finds; nothing where it can't serve."""
        try:
            if self.store.exists():
                with self.store.read() as tx:
                    return look(tx)
        except StoreError as error:
            logger.warning("lessons are not counted: %s", error)
        return {}

    def _mark(self, tx: Transaction) -> FileMark:
        return FileMark(**json.loads(tx.fact(self._key) or "{}"))

    @property
    def _key(self) -> str:
        return self.store.folder_key(f"lessons read {self.file.path}")


def _add_new(tx: Transaction, rows: Sequence[LessonRow]) -> list[LessonRow]:
    """Add and return the rows that say something new, and count a recurrence of each lesson that the others' events repeat."""
    fresh: list[LessonRow] = []
    for row in rows:
        words = lesson_rows.rarest_first(tx, lesson_keywords(row.lesson.summary))
        some, least = telling(words, row.lesson.summary)
        others = lesson_rows.sharing(tx, words, some, least=least)
        same = [other.id for other in others if is_duplicate(row.lesson, other.lesson)]
        if not same:
            lesson_rows.add(tx, [row], lesson_keywords)
            fresh.append(row)
        elif row.event_type:
            lesson_rows.recurred(tx, same, row)
    return fresh


def make_row(
    tags: Iterable[str], summary: str, ref: str | None, *, recorded_at: str, day: str = "", **known: Any
) -> LessonRow | None:
    """Make a lesson without secrets, of the day when it is recorded or of another; ``None`` where nothing of its text is left.

    It waits where the guard says so, unless a person wrote it and so approved of it.
    """
    lesson = make_lesson(day or recorded_at[:10], tuple(map(safe, tags)), safe(summary), safe(ref or ""))
    if lesson is None:
        return None
    held = None if known.get("approved_at") else _held_because(lesson)
    gone_at = recorded_at if held else None
    return LessonRow(
        id=lesson.id, lesson=lesson, held=held, recorded_at=recorded_at, gone_at=gone_at, **known
    )


def judged(lessons: Sequence[Lesson]) -> list[LessonRow]:
    """Return lines of others as rows: without secrets, and with why they must wait. Most are judged together."""
    rows = [LessonRow(id=lesson.id, lesson=lesson) for lesson in lessons]
    for at in find_flagged([format_line(lesson) for lesson in lessons]):
        it = lessons[at]
        masked = replace(it, summary=safe(it.summary), ref=safe(it.ref) if it.ref else None)
        rows[at] = LessonRow(id=it.id, lesson=masked, held=_held_because(it))
    return rows


def view(row: LessonRow) -> dict[str, Any]:
    """Show a lesson with what became of it."""
    return {
        "id": row.id,
        "date": row.lesson.date,
        "phase": row.lesson.phase,
        "tags": list(row.lesson.tags),
        "summary": row.lesson.summary,
        "ref": row.lesson.ref,
        "status": row.status,
        "held_because": row.held,
        "source": row.source or "file",
        **{name: getattr(row, name) for name in ("event_type", "story_key", "session_id", *COUNTS)},
    }


def _held_because(lesson: Lesson) -> str | None:
    return "; ".join(reasons_to_hold(f"{lesson.summary} {lesson.ref or ''}")) or None


def session_name(session_id: str) -> str:
    """Return under which name a session is kept: its own, unless that is a secret."""
    is_plain = re.fullmatch(r"[\w.:-]{0,15}|[0-9a-z._:-]*", session_id)
    return session_id if is_plain else mask_secrets(session_id)


@contextmanager
def open_book(
    settings: Settings, *, timeout: float = 2.0, lock_timeout: float = LOCK_TIMEOUT
) -> Iterator[LessonBook]:
    """Open a project's lessons file with its database: wait ``timeout`` seconds for the one, ``lock_timeout`` for the other."""
    with Store(settings.database_url, settings.knowledge_base, timeout=timeout) as store:
        yield LessonBook(LessonsFile(settings.lessons_file, lock_timeout=lock_timeout), store)
