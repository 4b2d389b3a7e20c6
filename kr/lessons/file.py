"""The append-only lessons file, and what the database knows of its lines (U5, steps 4 and 5).

The file is the authority for the text: what stands in it is never changed. Writers queue at a lock file beside it; lessons go to its end in one
write of whole lines, are flushed to disk and read back. The database knows each line by its keywords, where it came from and what became of it;
one that is busy, broken or absent costs counts and origins, and nothing else.
"""

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from kr.errors import KrError, StoreError
from kr.guard import find_flagged, mask_secrets, reasons_to_hold, safe
from kr.lessons.line import (
    BOM,
    HEADER,
    ParsedLines,
    duplicate_probe,
    format_line,
    is_duplicate,
    lesson_keywords,
    make_lesson,
    parse_lines,
)
from kr.models import Lesson
from kr.settings import Settings
from kr.store import lessons as lesson_rows
from kr.store.engine import LESSONS, Store, Transaction
from kr.store.files import file_lock, open_own, refuse_link, sync_folder
from kr.store.lessons import LessonRow
from kr.times import to_text

logger = logging.getLogger(__name__)

LOCK_TIMEOUT = 60.0
"""Seconds to queue behind other writers, each of which needs some milliseconds."""
COUNTS = ("injected", "recurred", "recurred_after_injection", "last_recurred_at")
"""What is counted of a lesson, by its column."""

_TAIL = 512


class LessonsFileError(KrError):
    """The lessons file can't be read; or it can't be written, and is as it was. The message names it and says why."""

    code = "lessons_file"


class LessonsFile:
    """One lessons file with the database's side of it. What can't be done with the file raises ``LessonsFileError``."""

    def __init__(self, path: Path, store: Store, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.path = path
        self.store = store
        self._lock_timeout = lock_timeout

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers out. Raises ``StoreError`` where others hold the lock for too long."""
        with _named_errors(self.path):
            refuse_link(self.path.parent)
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(self.path.parent / f".{self.path.name}.lock", timeout=self._lock_timeout):
            yield

    def read(self) -> ParsedLines:
        """Read the whole file; no file is an empty one."""
        return parse_lines(read_bytes(self.path))

    def write(self, lessons: Sequence[Lesson]) -> None:
        """Append clean lessons (``make_lesson``), all or none, flushed and read back; hold ``lock`` meanwhile."""
        lines = "".join(f"{format_line(lesson)}\n" for lesson in lessons)
        with _named_errors(self.path):
            is_new = not self.path.exists()
            with os.fdopen(
                open_own(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "rb+", buffering=0
            ) as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - _TAIL))
                addition = _addition(stream.read(), lines)
                try:
                    written = 0
                    while written < len(addition):
                        written += stream.write(addition[written:])
                    os.fsync(stream.fileno())
                except OSError:  # a full disk
                    # Unless somebody without the lock wrote after it.
                    if size < os.fstat(stream.fileno()).st_size <= size + len(addition):
                        stream.truncate(size)
                    raise
            if is_new:
                sync_folder(self.path.parent)
        if addition not in read_bytes(self.path, size):
            raise LessonsFileError(f"{self.path}: the appended lines were not found when it was read again")

    def append(self, rows: Sequence[LessonRow], *, now: datetime) -> tuple[list[LessonRow], int]:
        """Append what is not known yet, while nobody else can; return it, and how many lessons the file holds.

        What must wait for a person goes into the database alone. An event whose lesson is known is a recurrence of it; a lesson that is
        added or imported again, of no event, is none. Raises ``StoreError`` where others hold the file.
        """
        ready: list[LessonRow] = []
        with self.lock():
            try:
                with self.store.write(scope=LESSONS) as tx:
                    total = self._sync(tx, now)
                    is_known = self._noted(tx)[0] == self._state()
                    fresh = _add_new(tx, rows)
                    ready = self._write_ready(fresh)
                    if is_known:
                        self._note(tx, total + len(ready))
                return fresh, total + len(ready)
            except StoreError as error:
                logger.warning("lessons are not counted: %s", error)
            # Without the database the whole file is compared, with what was written already.
            known = self.read().lessons
            ready += self._write_ready(
                [it for it in rows if not any(is_duplicate(it.lesson, other) for other in known)]
            )
            return ready, len(self.read())

    def _write_ready(self, rows: Sequence[LessonRow]) -> list[LessonRow]:
        """Write what need not wait for a person, and return it."""
        ready = [row for row in rows if not row.held]
        if ready:
            self.write([row.lesson for row in ready])
        return ready

    def _sync(self, tx: Transaction, now: datetime, limit: int | None = 300) -> int:
        """Take in what others changed since kr wrote the file; return how many lessons it holds. The caller holds its lock.

        At most ``limit`` lines of others are taken in: a long file that is new to the database delays nobody for long. What other machines
        recorded in a shared PostgreSQL is appended to this one's file. The lessons that the file no longer holds are marked as gone; not with
        PostgreSQL, where it is one machine's copy.
        """
        if lacking := self._lacking(tx):
            self.write(lacking)
        state, total = self._noted(tx)
        if state == self._state():
            return total
        parsed = self.read()
        lessons = {lesson.id: lesson for lesson in parsed.lessons}
        known = lesson_rows.states(tx, lessons)
        new = [lesson for id_, lesson in lessons.items() if id_ not in known]
        lesson_rows.add(tx, judged(new[:limit]), lesson_keywords)
        lesson_rows.bring_back(tx, known)
        if not self.store.is_shared:
            lesson_rows.keep_only(tx, lessons, to_text(now))
        if limit is None or len(new) <= limit:
            self._note(tx, len(parsed))
        return len(parsed)

    def refresh(self, now: datetime) -> None:
        """Bring the table to what the file holds, all of it. Where that can't be done, what the table holds is shown."""
        try:
            if not self.store.exists():
                return
            with self.store.read() as tx:
                is_known = self._noted(tx)[0] == self._state() and not self._lacking(tx)
            if not is_known:
                with self.lock(), self.store.write(scope=LESSONS) as tx:
                    self._sync(tx, now, limit=None)
        except (StoreError, LessonsFileError) as error:
            logger.info("the lessons file was not read into the table: %s", error)

    def _lacking(self, tx: Transaction) -> list[Lesson]:
        """Return the lessons that other machines recorded and this one's file does not hold; with SQLite there are none."""
        if not self.store.is_shared:
            return []
        here = {lesson.id for lesson in self.read().lessons}
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

    def _state(self) -> list[int]:
        with suppress(OSError):
            status = self.path.stat()
            return [status.st_size, status.st_mtime_ns]
        return []

    def _noted(self, tx: Transaction) -> tuple[list[int], int]:
        """Return size and time of the file as the database knows it, and how many lessons it held."""
        state, total = json.loads(tx.fact(self._key) or "[[], 0]")
        return state, total

    def _note(self, tx: Transaction, total: int) -> None:
        tx.note(self._key, json.dumps([self._state(), total]))

    @property
    def _key(self) -> str:
        return self.store.folder_key(f"lessons known {self.path}")


@contextmanager
def open_lessons(
    settings: Settings, *, timeout: float = 2.0, lock_timeout: float = LOCK_TIMEOUT
) -> Iterator[LessonsFile]:
    """Open a project's lessons file with its database: wait ``timeout`` seconds for the one, ``lock_timeout`` for the other."""
    with Store(settings.database_url, settings.knowledge_base, timeout=timeout) as store:
        yield LessonsFile(settings.lessons_file, store, lock_timeout=lock_timeout)


def read_bytes(path: Path, start: int = 0) -> bytes:
    """Return a file's bytes from ``start`` on; nothing where there is no file. Raises ``LessonsFileError``."""
    with _named_errors(path):
        try:
            with os.fdopen(open_own(path, os.O_RDONLY), "rb") as stream:
                stream.seek(start)
                return stream.read()
        except (FileNotFoundError, NotADirectoryError):
            return b""


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Of a folder that was opened, Python names the number of its descriptor.
        name = path if isinstance(error.filename, int) else error.filename or path
        raise LessonsFileError(f"{name}: {error.strerror or error}") from error


def _addition(tail: bytes, lines: str) -> bytes:
    """Return the bytes to append: the header in an empty file, and a new line after one that is not ended."""
    tail = tail.removeprefix(BOM)
    header = "" if tail.strip() else HEADER
    start = "\n" if tail and not tail.endswith(b"\n") else ""
    return f"{start}{header}{lines}".encode()


# --- rows ---


def _add_new(tx: Transaction, rows: Sequence[LessonRow]) -> list[LessonRow]:
    """Add and return the rows that say something new, and count a recurrence of each lesson that the others' events repeat."""
    fresh: list[LessonRow] = []
    for row in rows:
        words = lesson_rows.rarest_first(tx, lesson_keywords(row.lesson.summary))
        some, least = duplicate_probe(words, row.lesson.summary)
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


def _held_because(lesson: Lesson) -> str | None:
    return "; ".join(reasons_to_hold(f"{lesson.summary} {lesson.ref or ''}")) or None


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


def session_name(session_id: str) -> str:
    """Return under which name a session is kept: its own, unless that is a secret."""
    is_plain = re.fullmatch(r"[\w.:-]{0,15}|[0-9a-z._:-]*", session_id)
    return session_id if is_plain else mask_secrets(session_id)
