"""The append-only lessons file, and what the database knows of its lines (seed 003, steps 4 and 5).

The file is the authority for the text: what stands in it is never changed. Writers queue at a lock file beside it; lessons go to
its end in one write of whole lines, are flushed to disk and read back. The database knows each line by its keywords,
where it came from and what became of it; one that is busy, broken or absent costs counts and origins, and nothing else.
"""

import json
import logging
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from kr.errors import KrError, StoreError
from kr.freshness import to_text
from kr.guard import find_odd, mask_secrets, reasons_to_hold
from kr.lessons.line import (
    HEADER,
    KnownLessons,
    Lesson,
    ParsedLines,
    format_line,
    is_duplicate,
    lesson_keywords,
    parse_lines,
    rarest,
)
from kr.models import EventType
from kr.naming import sha256_of
from kr.store import lessons as lesson_rows
from kr.store import meta
from kr.store.engine import Store, Transaction
from kr.store.lessons import LessonRow, LessonState
from kr.store.lock import file_lock

logger = logging.getLogger(__name__)

LOCK_TIMEOUT = 60.0
"""Seconds to queue behind other writers, each of which needs some milliseconds."""
SYNC_LIMIT = 1000
"""Lines of others that one recording takes in: a long file that is new to the database delays nobody for long."""

_BOM = b"\xef\xbb\xbf"
_TAIL = 512
_PLAIN_SESSION = re.compile(r"[\w.:-]{0,15}|[0-9a-z._:-]*")


class LessonsUnreadable(KrError):
    """The lessons file can't be read. The message is the detail after the seed's words."""

    code = "file_read_error"


class AppendFailed(KrError):
    """The lessons file can't be written; it is as it was."""

    code = "append_write_failed"


@dataclass(frozen=True, slots=True)
class FileMark:
    """How far a file was read: its state then, and a digest of the last bytes, which tells whether it only grew."""

    size: int = 0
    mtime_ns: int = 0
    tail: str = ""
    lessons: int = 0


@dataclass(frozen=True, slots=True)
class News:
    """What a file holds beyond a mark; ``is_whole``: the mark was of no use, and this is everything."""

    parsed: ParsedLines
    mark: FileMark
    is_whole: bool


class LessonsFile:
    """One lessons file. Nothing is opened before it is used."""

    def __init__(self, path: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.path = path
        self._lock_timeout = lock_timeout

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers out. Raises ``AppendFailed`` where others hold the lock for too long."""
        with ExitStack() as held:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                lock = self.path.parent / f".{self.path.name}.lock"
                held.enter_context(file_lock(lock, timeout=self._lock_timeout))
            except (StoreError, OSError) as error:
                raise AppendFailed(_reason(error, self.path)) from error
            yield

    def read(self) -> ParsedLines:
        """Read the whole file. Raises ``LessonsUnreadable``."""
        return parse_lines(_decoded(self._bytes()))

    def read_news(self, mark: FileMark | None) -> News | None:
        """Read what was appended since ``mark``; ``None`` where nothing was. Raises ``LessonsUnreadable``."""
        state = self._stat()
        if mark is not None and (state.st_size, state.st_mtime_ns) == (mark.size, mark.mtime_ns):
            return None
        if mark is not None and mark.size <= state.st_size:
            start = max(0, mark.size - _TAIL)
            grown = self._bytes(start)
            known, new = grown[: mark.size - start], grown[mark.size - start :]
            if _digest(known) == mark.tail and (not known or known.endswith(b"\n")):
                return _news(parse_lines(_decoded(new)), grown, mark, state)
        content = self._bytes()
        return _news(parse_lines(_decoded(content)), content, None, state)

    def append(self, lessons: Sequence[Lesson]) -> None:
        """Append clean lessons (``make_lesson``), in one write that is flushed and read back; hold ``lock`` meanwhile.

        It is tried again once: a tool that knows no lock may have changed the file under our hands. Raises
        ``AppendFailed``, and the file is as it was.
        """
        lines = [format_line(lesson) for lesson in lessons]
        try:
            for _ in range(2):
                size = self._stat().st_size
                addition = _addition(self._bytes(max(0, size - _TAIL)), lines)
                self._write(size, addition)
                if self._bytes(size) == addition or self._holds(lines):
                    return
        except OSError as error:
            raise AppendFailed(_reason(error, self.path)) from error
        except LessonsUnreadable as error:
            raise AppendFailed(str(error)) from error
        raise AppendFailed("the appended lines were not found when the file was read again")

    def _holds(self, lines: Sequence[str]) -> bool:
        present = {line.rstrip(b"\r") for line in self._bytes().split(b"\n")}
        return all(line.encode() in present for line in lines)

    def _stat(self) -> os.stat_result:
        try:
            return self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return os.stat_result((stat.S_IFREG, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        except OSError as error:
            raise LessonsUnreadable(error.strerror or str(error)) from error

    def _bytes(self, start: int = 0) -> bytes:
        """Return the file's bytes from ``start`` on; nothing where there is no file."""
        try:
            # A pipe or a device would keep us waiting, or never end.
            with _opened(self.path, os.O_RDONLY) as file:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise LessonsUnreadable("it is not a regular file")
                with os.fdopen(file, "rb", closefd=False) as stream:
                    stream.seek(start)
                    return stream.read()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise LessonsUnreadable(error.strerror or str(error)) from error

    def _write(self, size: int, addition: bytes) -> None:
        """Write all of it or nothing: what a full disk took of it is taken back."""
        is_new = not os.path.lexists(self.path)
        # The system lets root write anything; a file that nobody may write is meant to stay as it is.
        if self.path.exists() and not self.path.stat().st_mode & 0o222:
            raise PermissionError(13, "permission denied: the file is read-only")
        with _opened(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
            try:
                written = 0
                while written < len(addition):
                    written += os.write(file, addition[written:])
                os.fsync(file)
            except OSError:
                # Unless somebody without the lock wrote after it.
                if size < os.fstat(file).st_size <= size + len(addition):
                    os.ftruncate(file, size)
                if is_new:
                    self.path.unlink(missing_ok=True)
                raise
        if is_new:
            with suppress(OSError), _opened(self.path.parent, os.O_RDONLY | os.O_DIRECTORY) as folder:
                os.fsync(folder)


def _news(parsed: ParsedLines, content: bytes, before: FileMark | None, state: os.stat_result) -> News:
    """Mark how far the content reads; it begins within the last bytes that ``before`` knows of."""
    old = before or FileMark()
    size = max(0, old.size - _TAIL) + len(content)
    # Somebody may append while we read: what we saw counts, and a time that fits no other state.
    mark = FileMark(
        size=size,
        mtime_ns=state.st_mtime_ns if size == state.st_size else 0,
        tail=_digest(content[-_TAIL:]),
        lessons=old.lessons + len(parsed.lessons),
    )
    return News(parsed, mark, before is None)


def _digest(content: bytes) -> str:
    return sha256_of(content)[:32]


def _decoded(content: bytes) -> str:
    """Decode with a lone surrogate for a byte that is no UTF-8: it costs only its own line."""
    return content.decode("utf-8", errors="surrogateescape")


def _addition(tail: bytes, lines: Sequence[str]) -> bytes:
    """Return the bytes to append: the header in an empty file, and a new line after one that is not ended."""
    ending = "\r\n" if tail[tail.rfind(b"\n") - 1 :].startswith(b"\r\n") else "\n"
    text = "".join(line + ending for line in lines)
    if not tail.removeprefix(_BOM).strip():
        text = HEADER + text
    is_torn = bool(tail.removeprefix(_BOM)) and not tail.endswith(b"\n")
    return ((ending if is_torn else "") + text).encode()


def _reason(error: Exception, path: Path) -> str:
    """Say why, with the name of the folder or file that it is about, if that is another one than ``path``."""
    if not isinstance(error, OSError):
        return str(error)
    reason = error.strerror or str(error)
    is_other = error.filename is not None and Path(error.filename) != path
    return f"{error.filename}: {reason}" if is_other else reason


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    file = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    try:
        yield file
    finally:
        os.close(file)


# --- with the database ---


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lesson that is to be recorded; ``held`` says why it must wait for a person."""

    event: EventType | None
    lesson: Lesson
    source: str
    held: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of candidates: the new ones, and how many lessons the file holds now."""

    fresh: tuple[Candidate, ...]
    total: int


class LessonBook:
    """One lessons file with the database's side of it."""

    def __init__(self, file: LessonsFile, store: Store) -> None:
        self.file = file
        self.store = store
        self._key = f"lessons_file {file.path}"

    def append(
        self, candidates: Sequence[Candidate], *, story_key: str, session_id: str, now: datetime
    ) -> Recorded:
        """Append what is not known yet, while nobody else can, and keep where it came from. Raises ``AppendFailed``.

        What must wait for a person goes into the database alone. A candidate that is known is a recurrence of its lesson.
        """
        session, at = session_name(session_id), to_text(now)
        with self.file.lock():
            written: tuple[Candidate, ...] | None = None
            try:
                with self.store.write() as tx:
                    total = self.sync(tx, now)
                    fresh, known = self._choose(tx, candidates, story_key, session, at)
                    written = self._write(fresh)
                    lesson_rows.recurred(tx, known, session_id=session, at=at)
                    return Recorded(fresh, self.sync(tx, now) if written else total)
            except LessonsUnreadable as error:
                raise AppendFailed(str(error)) from error
            except StoreError as error:
                _warn(error)
            return self._append_uncounted(candidates, written)

    def _choose(
        self, tx: Transaction, candidates: Sequence[Candidate], story_key: str, session: str, at: str
    ) -> tuple[tuple[Candidate, ...], list[str]]:
        """Add the rows of new candidates; return these, and the ids of the lessons that the others repeat."""
        fresh: dict[str, Candidate] = {}
        known: dict[str, None] = {}
        batch = KnownLessons()
        for candidate in candidates:
            lesson = candidate.lesson
            if same := self._find(tx, lesson):
                known.update(dict.fromkeys(other.id for other in same))
            elif not batch.find(lesson):
                fresh[lesson.id] = candidate
                batch.add(lesson)
        rows = [
            replace(
                row_of(candidate.lesson),
                event_type=candidate.event,
                story_key=story_key,
                session_id=session,
                recorded_at=at,
                source=candidate.source,
                held=candidate.held,
                gone_at=at if candidate.held else None,
            )
            for candidate in fresh.values()
        ]
        lesson_rows.add(tx, rows, {row.id: lesson_keywords(row.summary) for row in rows})
        return tuple(fresh.values()), list(known)

    def _find(self, tx: Transaction, lesson: Lesson) -> list[Lesson]:
        """Return the lessons of the database that say the same: those in quarantine as well."""
        words = lesson_keywords(lesson.summary)
        some = rarest(lesson_rows.frequency(tx, words), len(words))
        others = map(lesson_of, lesson_rows.sharing(tx, some) if some else ())
        return [other for other in others if is_duplicate(lesson, other)]

    def _write(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Append what need not wait for a person to the file, and return it."""
        ready = tuple(candidate for candidate in candidates if not candidate.held)
        if ready:
            self.file.append([candidate.lesson for candidate in ready])
        return ready

    def _append_uncounted(
        self, candidates: Sequence[Candidate], written: tuple[Candidate, ...] | None
    ) -> Recorded:
        """Append without the database, unless that is done already: the whole file is compared."""
        try:
            if written is None:
                known = KnownLessons(self.file.read().lessons)
                fresh: list[Candidate] = []
                for candidate in candidates:
                    if not candidate.held and not known.find(candidate.lesson):
                        fresh.append(candidate)
                        known.add(candidate.lesson)
                written = self._write(fresh)
            return Recorded(written, len(self.file.read().lessons))
        except LessonsUnreadable as error:
            raise AppendFailed(str(error)) from error

    def sync(self, tx: Transaction, now: datetime, limit: int | None = SYNC_LIMIT) -> int:
        """Take in what was appended to the file since it was last read; return how many lessons it holds.

        Where the file did not merely grow, the lessons that it no longer holds are marked as gone. Raises
        ``LessonsUnreadable`` and store errors.
        """
        mark = self._mark(tx)
        news = self.file.read_news(mark)
        if news is None:
            return mark.lessons if mark else 0
        lessons = {lesson.id: lesson for lesson in news.parsed.lessons}
        known = lesson_rows.states(tx, lessons)
        new = [lesson for id_, lesson in lessons.items() if id_ not in known]
        rows = judged_rows(new[:limit])
        lesson_rows.add(tx, rows, {row.id: lesson_keywords(row.summary) for row in rows})
        lesson_rows.bring_back(tx, known)
        if news.is_whole:
            lesson_rows.keep_only(tx, lessons, to_text(now))
        if limit is None or len(new) <= limit:
            meta.put(tx, self._key, json.dumps(asdict(news.mark)))
        return news.mark.lessons

    def refresh(self, now: datetime) -> None:
        """Bring the table to what the file holds, all of it. Never raises for the database's or the file's sake."""
        try:
            if not self.store.exists():
                return
            with self.store.read() as tx:
                mark = self._mark(tx)
            if self.file.read_news(mark) is not None:
                with self.store.write() as tx:
                    self.sync(tx, now, limit=None)
        except (StoreError, LessonsUnreadable) as error:
            _warn(error)

    def states(self, lessons: Sequence[Lesson] | None) -> Mapping[str, LessonState]:
        """Return what is known of these lessons by id, or (``None``) of all that bear on the order; nothing without a database."""
        try:
            if (lessons is not None and not lessons) or not self.store.exists():
                return {}
            with self.store.read() as tx:
                if lessons is None:
                    return lesson_rows.remarkable(tx)
                return lesson_rows.states(tx, [lesson.id for lesson in lessons])
        except StoreError as error:
            _warn(error)
            return {}

    def quarantined(self) -> list[Lesson]:
        """Return the recorded lessons that wait for a person, and are not in the file."""
        if not self.store.exists():
            return []
        with self.store.read() as tx:
            return [lesson_of(row) for row in lesson_rows.quarantined(tx)]

    def _mark(self, tx: Transaction) -> FileMark | None:
        text = meta.get(tx, self._key)
        return None if text is None else FileMark(**json.loads(text))


def judged_rows(lessons: Sequence[Lesson]) -> list[LessonRow]:
    """Return lines of others as rows: without secrets, and with why they must wait."""
    odd = find_odd([f"{lesson.summary} {lesson.ref or ''}" for lesson in lessons])
    rows = [row_of(lesson) for lesson in lessons]
    for at in odd:
        lesson = lessons[at]
        ref = mask_secrets(lesson.ref) if lesson.ref else None
        held = held_because(lesson.summary, lesson.ref)
        rows[at] = replace(rows[at], summary=mask_secrets(lesson.summary), ref=ref, held=held)
    return rows


def held_because(summary: str, ref: str | None = None) -> str | None:
    """Say why a text must wait for a person, or ``None``."""
    return "; ".join(reasons_to_hold(f"{summary} {ref or ''}")) or None


def row_of(lesson: Lesson) -> LessonRow:
    return LessonRow(
        id=lesson.id,
        date=lesson.date,
        phase=lesson.phase,
        tags=lesson.tags,
        summary=lesson.summary,
        ref=lesson.ref,
    )


def lesson_of(row: LessonRow) -> Lesson:
    return Lesson(row.date, row.tags, row.summary, row.ref)


def session_name(session_id: str) -> str:
    """Return under which name a session is kept: its own, unless that is a secret; then one made of it."""
    if _PLAIN_SESSION.fullmatch(session_id) or mask_secrets(session_id) == session_id:
        return session_id
    return f"session-{sha256_of(session_id.encode())[:16]}"


def _warn(error: Exception) -> None:
    logger.warning("lessons are not counted: %s", error)
