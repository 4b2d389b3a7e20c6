"""What the database keeps of lessons: where they came from, how often they were injected, and recurred.

The file is the authority. A database that is busy, broken or absent costs these counts and nothing else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kr.errors import StoreError
from kr.lessons.file import LessonsFile, LessonsUnreadable
from kr.lessons.line import Lesson
from kr.lessons.waiting import Waiting, take
from kr.log import Logger
from kr.store.lessons import LessonRow, LessonState
from kr.store.requests import RequestRow
from kr.store.store import Store
from kr.store.times import to_text
from kr.values import EventType

logger = Logger(__name__)

MODE = "lessons-inject"
_AT_ONCE = 2000


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
        self._origins = Waiting(file.path.parent, ".origin-")

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
            # One transaction: many recorders at once queue for it.
            with _taken(self._origins) as waiting, self._store.write() as unit:
                unit.lessons.add([*rows, *waiting])
                if recording.recurred:
                    # Lines of others may have come back before anybody picked them up.
                    unit.lessons.add([_row(lesson) for lesson in recording.recurred])
                    ids = [lesson.id for lesson in recording.recurred]
                    unit.lessons.recurred(ids, session_id=recording.session_id, at=at)
        except StoreError as error:
            _tell(error)
            if rows:
                self._origins.keep([row.fields() for row in rows])
        else:
            self.reconcile(now, most=_AT_ONCE)

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

    def reconcile(self, now: datetime, *, most: int | None = None) -> None:
        """Bring the table to what the file holds: lessons that it lacks are marked as gone, those of others taken in.

        At most ``most`` are taken in at once, so that a long file delays nobody. Nothing is written where nothing has
        changed. Where the file can't be read, or the database belongs to another knowledge base, the table stays as it is.
        """
        try:
            if not self._store.exists():
                return
            with _taken(self._origins) as waiting:
                if waiting:
                    with self._store.write() as unit:
                        unit.lessons.add(waiting)
            self._reconcile(now, most)
        except StoreError as error:
            _tell(error)
        except LessonsUnreadable as error:
            logger.warning("%s: %s; its lessons are counted as they were known", self._file.path, error)

    def _reconcile(self, now: datetime, most: int | None) -> None:
        with self._store.read() as unit:
            known = unit.lessons.in_file()
        if {id_ for id_, stands in known.items() if stands} == self._held().keys():
            return
        # What others record meanwhile is in the file before it is in the table.
        with self._store.write() as unit:
            known = unit.lessons.in_file()
            held = self._held()
            unit.lessons.mark_gone(known.keys() - held.keys(), to_text(now))
            unit.lessons.mark_gone(known.keys() & held.keys(), None)
        new = [_row(lesson) for id_, lesson in held.items() if id_ not in known][:most]
        for at in range(0, len(new), _AT_ONCE):
            with self._store.write() as unit:
                unit.lessons.add(new[at : at + _AT_ONCE])

    def _held(self) -> dict[str, Lesson]:
        return {lesson.id: lesson for lesson in self._file.read().lessons}


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


def _tell(error: StoreError) -> None:
    logger.warning("lessons are not counted: %s", error)


@contextmanager
def _taken(origins: Waiting) -> Iterator[list[LessonRow]]:
    """Give the rows that wait; their files go when the block ends well. Taking one twice does no harm."""
    rows: list[LessonRow] = []
    files: list[Path] = []
    for path, items in origins.found():
        try:
            rows += [LessonRow(**{**item, "tags": tuple(item["tags"])}) for item in items]
        except (TypeError, KeyError) as error:
            logger.warning("%s: no origin of a lesson: %s", path, error)
            continue
        files.append(path)
    yield rows
    for path in files:
        take(path)
