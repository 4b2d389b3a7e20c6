"""The lessons file with what the database knows of its lines (U5, steps 4 and 5).

The file is the authority for the text. The database knows each line by its keywords, where it came from and what
became of it; one that is busy, broken or absent costs counts and origins, and nothing else.
"""

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from hashlib import sha256

from kr.errors import StoreError, StoreUnwritable
from kr.guard import find_flagged, mask_secrets, reasons_to_hold
from kr.lessons.file import LOCK_TIMEOUT, AppendFailed, FileMark, LessonsFile, LessonsUnreadable
from kr.lessons.line import (
    DUPLICATE_OVERLAP,
    KnownLessons,
    Lesson,
    format_line,
    is_duplicate,
    lesson_keywords,
    rarest,
)
from kr.models import EventType
from kr.settings import Settings
from kr.store import lessons as lesson_rows
from kr.store.engine import LESSONS, Store, Transaction
from kr.store.lessons import LessonRow, LessonState
from kr.times import to_text

logger = logging.getLogger(__name__)

SYNC_LIMIT = 300
"""Lines of others that one recording takes in: a long file that is new to the database delays nobody for long."""

_COUNT_TIMEOUT = 2.0
"""Seconds that lessons wait for a busy database, which only counts them."""

_PLAIN_SESSION = re.compile(r"[\w.:-]{0,15}|[0-9a-z._:-]*")


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

    def append(
        self, candidates: Sequence[Candidate], *, story_key: str, session_id: str, now: datetime
    ) -> Recorded:
        """Append what is not known yet, while nobody else can, and keep where it came from. Raises ``AppendFailed``.

        What must wait for a person goes into the database alone. An event whose lesson is known is a recurrence of it; a lesson that is
        added or imported again, of no event, is none.
        """
        session, at = session_name(session_id), to_text(now)
        with self.file.lock():
            written: tuple[Candidate, ...] | None = None
            try:
                with self.store.write(scope=LESSONS) as tx:
                    self._bring_here(tx)
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
            if same := _find_same(tx, lesson):
                known.update(dict.fromkeys(same if candidate.event else ()))
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
        lesson_rows.add(tx, rows)
        return tuple(fresh.values()), list(known)

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
                    if not known.find(candidate.lesson):
                        fresh.append(candidate)
                        known.add(candidate.lesson)
                written = self._write(fresh)
            return Recorded(written, len(self.file.read().lessons))
        except LessonsUnreadable as error:
            raise AppendFailed(str(error)) from error

    def sync(self, tx: Transaction, now: datetime, limit: int | None = SYNC_LIMIT) -> int:
        """Take in what was appended to the file since it was last read; return how many lessons it holds.

        Where the file did not merely grow, the lessons that it no longer holds are marked as gone; not before PostgreSQL, where
        the file is one machine's copy. Raises ``LessonsUnreadable`` and store errors.
        """
        mark = self._mark(tx)
        news = self.file.read_news(mark)
        if news is None:
            return mark.lessons if mark else 0
        lessons = {lesson.id: lesson for lesson in news.parsed.lessons}
        known = lesson_rows.states(tx, lessons)
        new = [lesson for id_, lesson in lessons.items() if id_ not in known]
        lesson_rows.add(tx, judged_rows(new[:limit]))
        lesson_rows.bring_back(tx, known)
        if news.is_whole and not self.store.is_shared:
            lesson_rows.keep_only(tx, lessons, to_text(now))
        if limit is None or len(new) <= limit:
            tx.note(self.store.folder_key(f"lessons {self.file.path}"), json.dumps(asdict(news.mark)))
        return news.mark.lessons

    def refresh(self, now: datetime) -> None:
        """Bring the table to what the file holds, all of it. Never raises for the database's or the file's sake."""
        try:
            if not self.store.exists():
                return
            with self.store.read() as tx:
                mark, is_behind = self._mark(tx), bool(self._lacking(tx))
            if is_behind or self.file.read_news(mark) is not None:
                with self.file.lock(), self.store.write(scope=LESSONS) as tx:
                    self._bring_here(tx)
                    self.sync(tx, now, limit=None)
        except (
            StoreUnwritable,
            AppendFailed,
        ) as error:  # a folder that can only be read: what the table holds is shown
            logger.info("the lessons file was not read into the table: %s", error)
        except (StoreError, LessonsUnreadable) as error:
            _warn(error)

    def _lacking(self, tx: Transaction) -> list[Lesson]:
        """Return the lessons that other machines recorded and this one's file does not hold; before SQLite there are none."""
        if not self.store.is_shared:
            return []
        here = {lesson.id for lesson in self.file.read().lessons}
        others = map(lesson_of, lesson_rows.lacking(tx, here))
        return [
            lesson for lesson in others if lesson.id not in here
        ]  # a text without its secrets has another id

    def _bring_here(self, tx: Transaction) -> None:
        """Append to this machine's file what others recorded; the caller holds its lock."""
        if lacking := self._lacking(tx):
            self.file.append(lacking)

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
        text = tx.fact(self.store.folder_key(f"lessons {self.file.path}"))
        return None if text is None else FileMark(**json.loads(text))


def judged_rows(lessons: Sequence[Lesson]) -> list[LessonRow]:
    """Return lines of others as rows: without secrets, and with why they must wait."""
    odd = find_flagged([format_line(lesson) for lesson in lessons])
    return [_judged_row(lesson) if at in odd else row_of(lesson) for at, lesson in enumerate(lessons)]


def _judged_row(lesson: Lesson) -> LessonRow:
    ref = mask_secrets(lesson.ref) if lesson.ref else None
    masked = row_of(replace(lesson, summary=mask_secrets(lesson.summary), ref=ref))
    return replace(masked, id=lesson.id, held=held_because(lesson.summary, lesson.ref))


def _find_same(tx: Transaction, lesson: Lesson) -> list[str]:
    """Return the ids of the lessons of the database that say the same: those in quarantine as well."""
    words = lesson_keywords(lesson.summary)
    some = rarest(lesson_rows.frequency(tx, words), len(words))
    least = int(DUPLICATE_OVERLAP * len(words)) + 1
    others = map(lesson_of, lesson_rows.sharing(tx, words, some, least=least) if some else ())
    return [other.id for other in others if is_duplicate(lesson, other)]


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
        keywords=lesson_keywords(lesson.summary),
    )


def lesson_of(row: LessonRow) -> Lesson:
    return Lesson(row.date, row.tags, row.summary, row.ref)


def session_name(session_id: str) -> str:
    """Return under which name a session is kept: its own, unless that is a secret; then one made of it."""
    if _PLAIN_SESSION.fullmatch(session_id) or mask_secrets(session_id) == session_id:
        return session_id
    return f"session-{sha256(session_id.encode()).hexdigest()[:16]}"


def _warn(error: Exception) -> None:
    logger.warning("lessons are not counted: %s", error)


@contextmanager
def open_book(
    settings: Settings, *, timeout: float | None = None, lock_timeout: float | None = None
) -> Iterator[LessonBook]:
    """Open a project's lessons file with its database.

    A busy database is waited for ``timeout`` seconds (None: 2), other writers of the file ``lock_timeout`` (None: 60).
    """
    lock_timeout = LOCK_TIMEOUT if lock_timeout is None else lock_timeout
    timeout = _COUNT_TIMEOUT if timeout is None else timeout
    with Store(settings.database_url, settings.knowledge_base, timeout=timeout) as store:
        yield LessonBook(LessonsFile(settings.lessons_file, lock_timeout=lock_timeout), store)
