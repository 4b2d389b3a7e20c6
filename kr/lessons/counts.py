"""What the database keeps of lessons: where they came from, how often they were injected, and recurred.

The file is the authority. A database that is busy, broken or absent costs these counts and nothing else.
"""

import hashlib
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from kr.errors import StoreError
from kr.lessons.file import LessonsFile, LessonsUnreadable, decoded
from kr.lessons.line import Lesson, parse_file
from kr.lessons.origins import WaitingOrigins
from kr.store.rows import LessonRow, LessonState, RequestRow
from kr.store.store import Store
from kr.store.times import to_text
from kr.values import EventType

if TYPE_CHECKING:
    from kr.store.unit import Unit

logger = logging.getLogger(__name__)

MODE = "lessons-inject"
_AT_ONCE = 2000
_PORTION = 1024 * 1024
_PICKED_UP = "lessons_picked_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One answered request of mode lessons-inject."""

    request_id: str
    phase: str
    status: str
    story_key: str
    session_id: str
    framework: str | None
    lessons: tuple[Lesson, ...]
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one agent's return taught, and which lessons of the file it showed again."""

    story_key: str
    session_id: str
    recorded: tuple[tuple[EventType, Lesson, str], ...]
    """For each new lesson what it came from: its event, and who worded it."""
    recurred: tuple[Lesson, ...]
    """The lessons of the file whose failures came back."""


class LessonCounts:
    """The database's side of one lessons file. Never raises for the database's sake."""

    def __init__(self, store: Store, file: LessonsFile) -> None:
        self._store = store
        self._file = file
        self._origins = WaitingOrigins(file.path.parent)

    def note_injection(self, injection: Injection, now: datetime) -> None:
        """Keep the request, and count what was injected."""
        at = to_text(now)
        request = RequestRow(
            id=injection.request_id,
            at=at,
            mode=MODE,
            status=injection.status,
            story_key=injection.story_key,
            session_id=injection.session_id,
            framework=injection.framework,
            duration_ms=injection.duration_ms,
        )
        try:
            with self._store.write() as unit:
                unit.requests.record(request)
                unit.lessons.add([_row(lesson) for lesson in injection.lessons])
                unit.lessons.injected(
                    [lesson.id for lesson in injection.lessons],
                    phase=injection.phase,
                    story_key=injection.story_key,
                    session_id=injection.session_id,
                    at=at,
                )
        except StoreError as error:
            _tell(error)

    def note_recording(self, recording: Recording, now: datetime) -> None:
        """Keep where new lessons came from, count those that recurred, and pick up lines of others."""
        at = to_text(now)
        rows = [
            _row(
                lesson,
                event_type=event,
                story_key=recording.story_key,
                session_id=recording.session_id,
                recorded_at=at,
                source=source,
            )
            for event, lesson, source in recording.recorded
        ]
        try:
            content = self._content()
            # One transaction: many recorders at once queue for it.
            with self._origins.taken() as waiting, self._store.write() as unit:
                unit.lessons.add([*rows, *waiting])
                if recording.recurred:
                    # Lines of others may have come back before anybody picked them up.
                    unit.lessons.add([_row(lesson) for lesson in recording.recurred])
                    ids = [lesson.id for lesson in recording.recurred]
                    unit.lessons.recurred(ids, session_id=recording.session_id, at=at)
                mark = unit.meta.get(_PICKED_UP)
                _pick_up(unit, mark, content)
            if _is_edited(mark, content):
                self.reconcile(now)
        except StoreError as error:
            _tell(error)
            self._origins.keep(rows)

    def states(self, phase: str) -> dict[str, LessonState]:
        """Return what is known of the phase's lessons that bears on which of them go first; empty without a database."""
        try:
            if not self._store.exists():
                return {}
            with self._store.read() as unit:
                return unit.lessons.remarkable(phase)
        except StoreError as error:
            _tell(error)
            return {}

    def reconcile(self, now: datetime) -> None:
        """Bring the table to what the file holds: lessons that it lacks are marked as gone, others taken in.

        Nothing is written where nothing has changed. Where the file can't be read, or the database belongs to
        another knowledge base, the table stays as it is.
        """
        try:
            if not self._store.exists():
                return
            with self._origins.taken() as waiting:
                if waiting:
                    with self._store.write() as unit:
                        unit.lessons.add(waiting)
            with self._store.read() as unit:
                known = unit.lessons.in_file()
            held = {lesson.id: lesson for lesson in self._file.read().lessons}
            if {id_ for id_, stands in known.items() if stands} == held.keys():
                return
            # What others record meanwhile is in the file before it is in the table.
            with self._store.write() as unit:
                known = unit.lessons.in_file()
                held = {lesson.id: lesson for lesson in self._file.read().lessons}
                unit.lessons.mark_gone(known.keys() - held.keys(), to_text(now))
                unit.lessons.mark_gone(known.keys() & held.keys(), None)
            new = [_row(lesson) for id_, lesson in held.items() if id_ not in known]
            for at in range(0, len(new), _AT_ONCE):
                with self._store.write() as unit:
                    unit.lessons.add(new[at : at + _AT_ONCE])
        except StoreError as error:
            _tell(error)
        except LessonsUnreadable as error:
            logger.warning("%s: %s; its lessons are counted as they were known", self._file.path, error)

    def pick_up(self) -> int:
        """Take lines that people or other tools added into the table; return how many. Raises ``StoreError``."""
        content = self._content()
        with self._store.write() as unit:
            return _pick_up(unit, unit.meta.get(_PICKED_UP), content)

    def _content(self) -> bytes:
        try:
            return self._file.content()
        except LessonsUnreadable:
            return b""


def _pick_up(unit: "Unit", mark: str | None, content: bytes) -> int:
    """Take what the file holds beyond ``mark``, which remembers how far it came; return how many lessons that is.

    Looks from the start again when what it saw was edited. At most 2,000 lessons at once, so that a long file delays
    nobody.
    """
    seen = _seen(mark, content)
    whole = content.rfind(b"\n") + 1
    end = _end_of_portion(content, seen, whole)
    lessons = parse_file(decoded(content[seen:end])).lessons
    if not lessons and seen == whole:
        return 0
    if len(lessons) > _AT_ONCE:
        lessons = lessons[:_AT_ONCE]
        end = _end_of_line(content, seen, lessons[-1].position)
    unit.lessons.add([_row(lesson) for lesson in lessons])
    unit.meta.put(_PICKED_UP, f"{end} {_digest(content[:end])}")
    return len(lessons)


def _is_edited(mark: str | None, content: bytes) -> bool:
    """Tell whether what was picked up is no longer as it was; not of a long file, which is left to reconcile."""
    is_short = bool(content) and len(content) <= _PORTION
    return is_short and mark is not None and not mark.startswith("0 ") and not _seen(mark, content)


def _row(
    lesson: Lesson,
    *,
    event_type: str | None = None,
    story_key: str | None = None,
    session_id: str | None = None,
    recorded_at: str | None = None,
    source: str | None = None,
) -> LessonRow:
    return LessonRow(
        id=lesson.id,
        date=lesson.date,
        phase=lesson.phase,
        tags=lesson.tags,
        summary=lesson.summary,
        ref=lesson.ref,
        event_type=event_type,
        story_key=story_key,
        session_id=session_id,
        recorded_at=recorded_at,
        source=source,
    )


def _seen(mark: str | None, content: bytes) -> int:
    """Return how much of ``content`` was looked at before: nothing when that part is not as it was."""
    end, _, digest = (mark or "0 ").partition(" ")
    size = int(end) if end.isdigit() else 0
    return size if 0 < size <= len(content) and _digest(content[:size]) == digest else 0


def _end_of_portion(content: bytes, start: int, whole: int) -> int:
    """Return the end of the last line that ends within a portion from ``start``, or of the first line."""
    if whole - start <= _PORTION:
        return whole
    end = content.rfind(b"\n", start, start + _PORTION) + 1
    return end or content.find(b"\n", start) + 1


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _end_of_line(content: bytes, start: int, lines: int) -> int:
    """Return where the line number ``lines`` (from 0) after ``start`` ends."""
    end = start
    for _ in range(lines + 1):
        end = content.index(b"\n", end) + 1
    return end


def _tell(error: StoreError) -> None:
    logger.warning("lessons are not counted: %s", error)
