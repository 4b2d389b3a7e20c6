"""The operations on one project's lessons, over requests of any shape; the faces of kr call these."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kr.contracts.lessons import RecordEnvelope, parse_record, skip
from kr.documents import read_document
from kr.errors import InvalidRequest, StoreError
from kr.lessons.catalog import Catalog
from kr.lessons.choose import matching, of_phase
from kr.lessons.duplicates import Told
from kr.lessons.events import Limits, shown
from kr.lessons.file import LOCK_TIMEOUT, LessonsFile, LessonsUnreadable
from kr.lessons.line import Lesson, cleaned, parse_file
from kr.lessons.record import record
from kr.lessons.returned import read_return
from kr.store.store import Store
from kr.text.counting import counted

logger = logging.getLogger(__name__)

_SHOWN_BAD_LINES = 20


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the lines of imported files; ``unread`` names files that can't be read at all."""

    imported: int
    duplicates: int
    refused: int
    total: int
    unread: tuple[str, ...]


class LessonBook:
    """The lessons of a project. ``store`` should not wait long: a busy database must not hinder anybody."""

    def __init__(
        self,
        lessons_file: Path,
        *,
        project_root: Path,
        limits: Limits,
        store: Store,
        clock: Callable[[], datetime],
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> None:
        self.path = lessons_file
        self._file = LessonsFile(lessons_file, lock_timeout=lock_timeout)
        self._root = project_root
        self._limits = limits
        self._store = store
        self._clock = clock
        self._lock_timeout = lock_timeout

    def record_document(self, data: bytes) -> RecordEnvelope:
        """Record from a request document: any bytes in, an envelope out; nothing is raised for bad input."""
        try:
            document = read_document(data)
        except InvalidRequest as error:
            return _refused(error.read, error)
        for warning in document.warnings:
            logger.warning("%s", warning)
        return self.record(document.data)

    def record(self, data: Mapping[str, Any]) -> RecordEnvelope:
        """Record from plain data (seed 003). Invalid data is ``skipped``, with a warning."""
        try:
            parsed = parse_record(data)
        except InvalidRequest as error:
            return _refused(data, error)
        for warning in parsed.warnings:
            logger.warning("%s", warning)
        return record(
            parsed.request,
            lessons_file=self.path,
            project_root=self._root,
            limits=self._limits,
            store=self._store,
            now=self._clock(),
            lock_timeout=self._lock_timeout,
        )

    def record_shown(
        self, phase: str, agent_return: Mapping[str, Any], *, session_id: str, story_key: str
    ) -> RecordEnvelope | None:
        """Record what a return shows by itself, when nobody declared an event; ``None`` when it shows nothing."""
        events = shown(phase, read_return(agent_return), self._limits)
        if not events:
            return None
        identity = {"session_id": session_id, "story_key": story_key}
        return self.record(
            {**identity, "phase": phase, "event_type": events[0], "agent_return": agent_return}
        )

    def lessons(
        self, *, phase: str | None = None, query: str = "", limit: int = 1000
    ) -> list[dict[str, Any]]:
        """List lessons, newest first, or the best matches of a query; with what the database knows of them.

        Raises ``LessonsUnreadable``.
        """
        try:
            found: Sequence[Lesson] = self._file.read(None if phase is None else {phase}).lessons
        except LessonsUnreadable as error:
            raise LessonsUnreadable(f"{self.path}: {error}") from error
        self.reconcile()
        if phase is not None:
            found = of_phase(found, phase)
        if query.strip():
            chosen = matching(found, limit, query=query)
        else:
            chosen = sorted(found, key=lambda lesson: (lesson.date, lesson.position), reverse=True)[:limit]
        counts = self._counts(chosen)
        return [_view(lesson, *counts.get(lesson.id, (0, 0))) for lesson in chosen]

    def take_in(self, files: Sequence[Path]) -> Imported:
        """Append the lessons of other files that are not told yet. Raises ``AppendFailed``."""
        lessons: list[Lesson] = []
        refused, unread = 0, []
        for path in files:
            try:
                text = LessonsFile(path).text() if path.exists() else None
            except (LessonsUnreadable, OSError) as error:
                logger.warning("%s: %s", path, error)
                text = None
            if text is None:
                unread.append(str(path))
                continue
            parsed = parse_file(text)
            clean = [cleaned(lesson) for lesson in parsed.lessons]
            lessons += [lesson for lesson in clean if lesson is not None]
            refused += parsed.unread + clean.count(None)
            _tell_bad_lines(path, text)
        appended = self._file.append(lambda present: _new_ones(lessons, present))
        return Imported(
            imported=len(appended.lessons),
            duplicates=len(lessons) - len(appended.lessons),
            refused=refused,
            total=appended.total,
            unread=tuple(unread),
        )

    def reconcile(self) -> None:
        """Bring the database's table to what the file holds (SPEC 4.2). Never raises for the database's sake."""
        Catalog(self._store, self._file).reconcile(self._clock())

    def _counts(self, lessons: Sequence[Lesson]) -> dict[str, tuple[int, int]]:
        try:
            if not lessons or not self._store.path.exists():
                return {}
            with self._store.read() as unit:
                return unit.lessons.counts([lesson.id for lesson in lessons])
        except StoreError as error:
            logger.warning("%s", error)
            return {}


def _new_ones(lessons: Sequence[Lesson], present: Sequence[Lesson]) -> list[Lesson]:
    told = Told(present)
    new: list[Lesson] = []
    for lesson in lessons:
        if not told.tells(lesson):
            told.add(lesson)
            new.append(lesson)
    return new


def _tell_bad_lines(path: Path, text: str) -> None:
    told = 0
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if parse_file(line).unread:
            told += 1
            if told <= _SHOWN_BAD_LINES:
                logger.warning("%s:%d: no lesson; it is not imported", path, number)
    if told > _SHOWN_BAD_LINES:
        more = counted(told - _SHOWN_BAD_LINES, "more line is no lesson", "more lines are no lessons")
        logger.warning("%s: %s", path, more)


def _refused(data: Mapping[str, Any], error: InvalidRequest) -> RecordEnvelope:
    for field in error.fields:
        logger.warning("nothing is recorded: %s: %s", field.field, field.message)
    told = "; ".join(f"{field.field}: {field.message}" for field in error.fields)
    return skip(data, f"Recording skipped: {told}")


def _view(lesson: Lesson, injected: int, recurred: int) -> dict[str, Any]:
    return {
        "id": lesson.id,
        "date": lesson.date,
        "phase": lesson.phase,
        "tags": list(lesson.tags),
        "summary": lesson.summary,
        "ref": lesson.ref,
        "line": lesson.position + 1,
        "injected": injected,
        "recurred": recurred,
    }
