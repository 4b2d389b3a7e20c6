"""What the database knows of one lessons file: its lines by their keywords, where they came from, what became of them.

The file is the authority for the text. A database that is busy, broken or absent costs counts and origins, and nothing else;
origins that it could not take wait in a file beside the lessons.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from kr.errors import StoreError
from kr.freshness import to_text
from kr.guard import mask_secrets, reasons_to_hold
from kr.lessons.duplicates import find_duplicates, lesson_keywords, rarest
from kr.lessons.file import FileMark, LessonsFile, LessonsUnreadable
from kr.lessons.line import Lesson
from kr.naming import sha256_of
from kr.store import lessons as lesson_rows
from kr.store import meta, requests
from kr.store.engine import Store, Transaction
from kr.store.lessons import LessonRow, LessonState
from kr.store.requests import RequestRow

logger = logging.getLogger(__name__)

SYNC_LIMIT = 1000
"""Lines of others that a recording takes in at most: a long file that is new to the database delays nobody for long."""

_BATCH = 500
_PLAIN = re.compile(r"[\w.:-]{0,15}|[0-9a-z._:-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a lesson came from."""

    event_type: str | None = None
    story_key: str | None = None
    session_id: str | None = None
    recorded_at: str | None = None
    source: str | None = None
    held: str | None = None
    gone_at: str | None = None


class LessonIndex:
    """The database's side of one lessons file."""

    def __init__(self, store: Store, file: LessonsFile) -> None:
        self.store = store
        self.file = file
        self._key = f"lessons_file {file.path}"
        self._origins = file.path.parent / ".origins.jsonl"

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
        for at in range(0, len(new[:limit]), _BATCH):
            rows = judged_rows(new[:limit][at : at + _BATCH])
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

    def find(self, tx: Transaction, lesson: Lesson) -> list[Lesson]:
        """Return the known lessons that say the same: those in quarantine as well."""
        words = lesson_keywords(lesson.summary)
        some = rarest(lesson_rows.frequency(tx, words), len(words))
        rows = lesson_rows.sharing(tx, some) if some else []
        return find_duplicates(lesson, map(lesson_of, rows))

    def add(self, tx: Transaction, rows: Sequence[LessonRow]) -> None:
        """Add rows with their origin, and the origins that wait."""
        lesson_rows.add(tx, rows, {row.id: lesson_keywords(row.summary) for row in rows})
        for row in self._waiting():
            lesson_rows.add(tx, [row], {row.id: lesson_keywords(row.summary)})

    def keep_origins(self, rows: Sequence[LessonRow]) -> None:
        """Let origins wait that the database can't take now; hold the file's lock meanwhile."""
        try:
            with self._origins.open("a", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(asdict(row))}\n" for row in rows)
        except OSError as error:
            logger.warning("%s: %s; where the lessons come from is lost", self._origins, error.strerror)

    def drop_origins(self) -> None:
        """Forget the origins that waited, once they are kept."""
        self._origins.unlink(missing_ok=True)

    def note_injection(self, request: RequestRow, phase: str, lessons: Sequence[Lesson]) -> None:
        """Keep the request, and count what was given."""
        states = self.states(lessons)
        rows = judged_rows([lesson for lesson in lessons if lesson.id not in states])
        try:
            with self.store.write() as tx:
                requests.record(tx, request)
                lesson_rows.add(tx, rows, {})
                lesson_rows.injected(
                    tx,
                    [lesson.id for lesson in lessons],
                    phase=phase,
                    story_key=request.story_key or "",
                    session_id=request.session_id or "",
                    at=request.at,
                )
        except StoreError as error:
            _warn(error)

    def remarkable(self) -> Mapping[str, LessonState]:
        """Return the states that bear on which lessons go first; nothing without a database."""
        return self._looked_up(None)

    def states(self, lessons: Sequence[Lesson]) -> Mapping[str, LessonState]:
        """Return what is known of these lessons; nothing without a database."""
        return self._looked_up([lesson.id for lesson in lessons])

    def _looked_up(self, ids: Sequence[str] | None) -> Mapping[str, LessonState]:
        try:
            if ids == [] or not self.store.exists():
                return {}
            with self.store.read() as tx:
                return lesson_rows.remarkable(tx) if ids is None else lesson_rows.states(tx, ids)
        except StoreError as error:
            _warn(error)
            return {}

    def _mark(self, tx: Transaction) -> FileMark | None:
        text = meta.get(tx, self._key)
        return None if text is None else FileMark(**json.loads(text))

    def _waiting(self) -> list[LessonRow]:
        try:
            lines = self._origins.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            logger.warning("%s: can't be read: %s", self._origins, error)
            return []
        rows: list[LessonRow] = []
        for line in lines:
            try:
                data = json.loads(line)
                rows.append(LessonRow(**{**data, "tags": tuple(data["tags"])}))
            except (ValueError, TypeError, KeyError):  # a writer was killed in the middle of it
                logger.warning("%s: a line is no origin of a lesson; passed over", self._origins)
        return rows


def judged_rows(lessons: Sequence[Lesson]) -> list[LessonRow]:
    """Return lines of others as rows: without secrets, and with why they must wait.

    They are looked at all at once, which is many times cheaper, and one by one only where there is something.
    """
    texts = [f"{lesson.summary} {lesson.ref or ''}" for lesson in lessons]
    together = "\n".join(texts)
    masked = mask_secrets(together).split("\n")
    has_order = bool(reasons_to_hold(together))
    return [
        row_of(
            lesson,
            Origin(held=held_because(text) if has_order else None),
            is_masked=len(masked) == len(texts) and text == masked[at],
        )
        for at, (lesson, text) in enumerate(zip(lessons, texts, strict=True))
    ]


def row_of(lesson: Lesson, origin: Origin, *, is_masked: bool = False) -> LessonRow:
    """Return a lesson as its row. A secret that stands in a line of the file goes into no table."""
    mask = str if is_masked else mask_secrets
    return LessonRow(
        id=lesson.id,
        date=lesson.date,
        phase=lesson.phase,
        tags=lesson.tags,
        summary=mask(lesson.summary),
        ref=mask(lesson.ref) if lesson.ref else None,
        **asdict(origin),
    )


def lesson_of(row: LessonRow) -> Lesson:
    return Lesson(row.date, row.tags, row.summary, row.ref)


def held_because(summary: str, ref: str | None = None) -> str | None:
    """Say why a text must wait for a person, or ``None``."""
    return "; ".join(reasons_to_hold(f"{summary} {ref or ''}")) or None


def session_name(session_id: str) -> str:
    """Return under which name a session is kept: its own, unless that is a secret; then one made of it."""
    if _PLAIN.fullmatch(session_id) or mask_secrets(session_id) == session_id:
        return session_id
    return f"session-{sha256_of(session_id.encode())[:16]}"


def _warn(error: Exception) -> None:
    logger.warning("lessons are not counted: %s", error)
