"""What the database keeps of lessons: where they came from, how often they were injected, and recurred.

The file is the authority. A database that is busy, broken or absent costs these counts and nothing else.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Lock

from kr.errors import StoreError
from kr.freshness import to_text
from kr.lessons.distill.trust import rules_version
from kr.lessons.file import Candidate, LessonsFile, LessonsUnreadable, Waiting, take
from kr.lessons.line import Lesson
from kr.log import Logger
from kr.naming import sha256_of
from kr.store.lessons import LessonRow, LessonState
from kr.store.requests import RequestRow
from kr.store.store import Store
from kr.values import NamedTuple

logger = Logger(__name__)

_AT_ONCE = 2000
_reconciling = Lock()
# Small letters, or short: no key looks so, and the rules against secrets need not be loaded.
_PLAIN = re.compile(r"[\w.:-]{0,15}|[0-9a-z._:-]*")


class Known(NamedTuple):
    """The states that bear on which lessons go first, and the lessons that were judged ``harmless`` before."""

    states: Mapping[str, LessonState]
    harmless: frozenset[str]


NOTHING_KNOWN = Known({}, frozenset())


class LessonCounts:
    """The database's side of one lessons file. Never raises for the database's sake."""

    def __init__(self, store: Store, file: LessonsFile) -> None:
        self._store = store
        self._file = file
        self._origins = Waiting(file.path.parent, ".origin-")

    def note_injection(
        self, request: RequestRow, phase: str, lessons: Sequence[Lesson], judged: Sequence[Lesson]
    ) -> None:
        """Keep the request, count what was injected, and which of it was ``judged`` harmless just now."""
        try:
            with self._store.write() as unit:
                unit.requests.record(request)
                unit.lessons.add([row_of(lesson) for lesson in lessons])
                unit.lessons.injected(
                    [lesson.id for lesson in lessons],
                    phase=phase,
                    story_key=request.story_key or "",
                    session_id=request.session_id or "",
                    at=request.at,
                )
                if judged:
                    unit.lessons.found_harmless([lesson.id for lesson in judged], rules_version())
        except StoreError as error:
            _tell(error)

    def note_recording(
        self,
        recorded: Sequence[Candidate],
        recurred: Sequence[Lesson],
        *,
        story_key: str,
        session_id: str,
        now: datetime,
    ) -> None:
        """Keep where new lessons came from, count those whose failures came back, and pick up lines of others."""
        at = to_text(now)
        session_id = session_name(session_id)
        origin = {"story_key": story_key, "session_id": session_id, "recorded_at": at}
        rows = [row_of(one.lesson, event_type=one.event, source=one.source, **origin) for one in recorded]
        try:
            # One transaction: many recorders at once queue for it.
            with self._store.write() as unit:
                # Lines of others may have come back before anybody picked them up.
                unit.lessons.add([*rows, *map(row_of, recurred)])
                unit.lessons.recurred([lesson.id for lesson in recurred], session_id=session_id, at=at)
        except StoreError as error:
            _tell(error)
            if rows:
                self._origins.keep([row.fields() for row in rows])
        else:
            # Of many recorders in one process one does it for all: each holds the whole file in memory meanwhile.
            if _reconciling.acquire(blocking=False):
                try:
                    self.reconcile(now, most=_AT_ONCE)
                finally:
                    _reconciling.release()

    def known(self, phase: str) -> Known:
        """Return what is known of the phase's lessons; nothing without a database."""
        try:
            if not self._store.exists():
                return NOTHING_KNOWN
            with self._store.read() as unit:
                return Known(unit.lessons.remarkable(phase), unit.lessons.harmless(phase, rules_version()))
        except StoreError as error:
            _tell(error)
            return NOTHING_KNOWN

    def reconcile(self, now: datetime, *, most: int | None = None) -> None:
        """Bring the table to what the file holds: lessons that it lacks are marked as gone, those of others taken in.

        At most ``most`` are taken in at once, so that a long file delays nobody. Nothing is written where nothing has
        changed. Where the file can't be read, or the database belongs to another knowledge base, the table stays as it is.
        """
        try:
            if self._store.exists():
                self._add_waiting()
                self._reconcile(now, most)
        except StoreError as error:
            _tell(error)
        except LessonsUnreadable as error:
            logger.warning("%s: %s; its lessons are counted as they were known", self._file.path, error)

    def _add_waiting(self) -> None:
        """Add the origins that wait. Their files go when they are kept; taking one twice does no harm."""
        for path, items in self._origins.found():
            try:
                rows = [LessonRow(**{**item, "tags": tuple(item["tags"])}) for item in items]
            except (TypeError, KeyError) as error:
                logger.warning("%s: no origin of a lesson: %s", path, error)
                continue
            with self._store.write() as unit:
                unit.lessons.add(rows)
            take(path)

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
        new = [row_of(lesson) for id_, lesson in held.items() if id_ not in known][:most]
        for at in range(0, len(new), _AT_ONCE):
            with self._store.write() as unit:
                unit.lessons.add(new[at : at + _AT_ONCE])

    def _held(self) -> dict[str, Lesson]:
        return {lesson.id: lesson for lesson in self._file.read().lessons}


def session_name(session_id: str) -> str:
    """Return under which name a session is kept: its own, unless that is a secret; then one made of it."""
    if _PLAIN.fullmatch(session_id):
        return session_id
    from kr.guard import mask_secrets

    is_secret = mask_secrets(session_id) != session_id
    return f"session-{sha256_of(session_id.encode())[:16]}" if is_secret else session_id


def row_of(lesson: Lesson, **origin: str | None) -> LessonRow:
    """Return a lesson as its row, with what is known of its origin: the fields of ``LessonRow`` from event_type on."""
    return LessonRow(
        id=lesson.id,
        date=lesson.date,
        phase=lesson.phase,
        tags=lesson.tags,
        summary=lesson.summary,
        ref=lesson.ref,
        **origin,
    )


def _tell(error: StoreError) -> None:
    logger.warning("lessons are not counted: %s", error)
