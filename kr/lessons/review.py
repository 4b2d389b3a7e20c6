"""What people do with lessons: list, search, add, edit, retire, pin, approve, import."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from kr.errors import KrError
from kr.guard import safe
from kr.lessons.book import LessonBook, judged, make_row
from kr.lessons.file import LessonsFile, LessonsFileError
from kr.lessons.line import KEPT_COLUMNS, format_line, lesson_keywords
from kr.lessons.record import read_words
from kr.models import Lesson
from kr.store import lessons as lesson_rows
from kr.store.engine import LESSONS
from kr.store.lessons import LessonMark, LessonRow
from kr.text import beginning, columns, search_words
from kr.times import to_text

logger = logging.getLogger(__name__)

_COUNTS = ("injected", "recurred", "recurred_after_injection", "last_recurred_at")


class UnknownLessonError(KrError):
    """No lesson has this id, or several begin with it."""

    code = "unknown_lesson"
    http_status = 404


class Lessons:
    """The lessons of a project, for people. What can't be done with the file raises ``LessonsFileError``."""

    def __init__(self, book: LessonBook, *, clock: Callable[[], datetime]) -> None:
        self._book = book
        self._clock = clock

    def lessons(
        self, *, phase: str | None = None, query: str = "", limit: int = 1000
    ) -> list[dict[str, Any]]:
        """List lessons, newest first, or the best matches of a query; with what the database knows of them."""
        self.refresh()
        found = [lesson for lesson in self._read() if phase is None or phase in lesson.tags]
        words = [beginning(word) for word in search_words(query)]
        if query.strip():
            found = [lesson for lesson in found if _shared(lesson, words)]
        found.sort(key=lambda it: (_shared(it, words), it.date, it.position), reverse=True)
        return self._views(found[:limit])

    def show(self, lesson_id: str) -> dict[str, Any]:
        """Show one lesson. Raises ``UnknownLessonError``."""
        self.refresh()
        return self._views([self._one(lesson_id)])[0]

    def quarantined(self) -> list[dict[str, Any]]:
        """List the lessons that wait for a person: in the database alone, or written into the file by hand."""
        self.refresh()
        views = self._views([*self._recorded_in_quarantine(), *self._read()])
        return [lesson for lesson in views if lesson["status"] == "quarantined"]

    def refresh(self) -> None:
        """Bring the database's table to what the file holds; see ``LessonBook.refresh``."""
        self._book.refresh(self._clock())

    def mark(self, lesson_id: str, mark: LessonMark, *, is_set: bool = True) -> dict[str, Any]:
        """Retire, pin or approve a lesson, or take that back; who approves or pins a retired one brings it back.

        A recorded lesson that was in quarantine goes into the file when it is approved. Raises ``UnknownLessonError`` and store errors.
        """
        lesson, now = self._one(lesson_id), self._clock()
        with self._book.file.lock(), self._book.store.write(scope=LESSONS) as tx:
            if lesson.position >= 0:
                lesson_rows.add(tx, judged([lesson]), lesson_keywords)
            lesson_rows.mark(tx, lesson.id, mark, to_text(now) if is_set else None)
            if is_set and mark != "retired_at":
                lesson_rows.mark(tx, lesson.id, "retired_at", None)
            if is_set and mark == "approved_at" and lesson.position < 0:
                self._book.file.append([lesson])
                lesson_rows.bring_back(tx, [lesson.id])
            state = lesson_rows.states(tx, [lesson.id])[lesson.id]
        return view(lesson, state)

    def add(
        self,
        symptom: str,
        fix: str,
        *,
        phase: str,
        tags: Sequence[str] = (),
        ref: str | None = None,
        by_person: bool,
    ) -> dict[str, Any]:
        """Append a lesson in somebody's own words; what no person wrote may have to wait for one.

        Raises ``KrError`` for words that are no lesson's, or that a lesson says already.
        """
        row = self._row((phase, *tags), symptom, fix, ref, by_person=by_person)
        if not self._append([row])[0]:
            raise KrError(f"a lesson says this already: {row.lesson.summary}")
        return self.show(row.id)

    def edit(
        self, lesson_id: str, symptom: str, fix: str | None = None, *, by_person: bool
    ) -> dict[str, Any]:
        """Word a lesson anew: a line of its own at the end of the file, which takes the place of the old one, its pin and its counts.

        Without ``fix`` the symptom is the whole lesson. Raises ``UnknownLessonError``, and ``KrError`` for a text that is no lesson's.
        """
        old = self._one(lesson_id)
        row = self._row(old.tags, symptom, fix, old.ref, by_person=by_person)
        if row.held:
            raise KrError(f"the new words would be quarantined: {row.held}")
        with self._book.file.lock(), self._book.store.write(scope=LESSONS) as tx:
            if old.position >= 0:
                lesson_rows.add(tx, judged([old]), lesson_keywords)
            states = lesson_rows.states(tx, [old.id, row.id])
            if newer := states[old.id].superseded_by or (row.id if row.id in states else None):
                raise KrError(f"it was worded so already: {newer}")
            kept = {name: getattr(states[old.id], name) for name in (*_COUNTS, "pinned_at")}
            self._book.file.append([row.lesson])
            lesson_rows.add(tx, [replace(row, **kept)], lesson_keywords)
            lesson_rows.supersede(tx, old.id, row.id)
        return self.show(row.id)

    def import_files(self, files: Sequence[Path]) -> dict[str, int]:
        """Append the lessons of other files that are not known yet, and count; none where one file can't be read."""
        lessons: list[Lesson] = []
        refused = 0
        for path in files:
            if not path.exists():
                raise LessonsFileError(f"{path}: No such file or directory")
            parsed = LessonsFile(path.resolve()).read()
            if parsed.unread:
                logger.warning("%s: %d lines are no lesson; not imported", path, parsed.unread)
            lessons += parsed.lessons
            refused += parsed.unread
        at = to_text(self._clock())
        made = [
            make_row(it.date, it.tags, it.summary, it.ref, recorded_at=at, source="file") for it in lessons
        ]
        rows = [row for row in made if row]
        fresh, total = self._append(rows)
        held = sum(row.held is not None for row in fresh)
        return {
            "imported": len(fresh) - held,
            "duplicates": len(rows) - len(fresh),
            "quarantined": held,
            "refused": refused + len(made) - len(rows),
            "total": total,
        }

    def _append(self, rows: Sequence[LessonRow]) -> tuple[list[LessonRow], int]:
        return self._book.append(rows, now=self._clock())

    def _row(
        self, tags: Sequence[str], symptom: str, fix: str | None, ref: str | None, *, by_person: bool
    ) -> LessonRow:
        """Make a lesson of somebody's words; nobody need read what a person wrote."""
        words = {"symptom": symptom, "fix": fix}
        summary = safe(symptom) if fix is None else read_words(words)["summary"]
        now = self._clock()
        row = make_row(
            to_text(now)[:10],
            tags,
            summary,
            ref,
            recorded_at=to_text(now),
            source="person" if by_person else "agent",
            approved_at=to_text(now) if by_person else None,
        )
        if row is None or columns(row.lesson.summary) > KEPT_COLUMNS:
            raise KrError(f"a lesson is one line of 1 to {KEPT_COLUMNS} columns")
        return row

    def _views(self, lessons: Sequence[Lesson]) -> list[dict[str, Any]]:
        states = self._book.states(lessons)
        return [view(lesson, states.get(lesson.id)) for lesson in lessons]

    def _read(self) -> list[Lesson]:
        return list({lesson.id: lesson for lesson in self._book.file.read().lessons}.values())

    def _recorded_in_quarantine(self) -> list[Lesson]:
        if not self._book.store.exists():
            return []
        with self._book.store.read() as tx:
            return [row.lesson for row in lesson_rows.quarantined(tx)]

    def _one(self, lesson_id: str) -> Lesson:
        everything = [*self._recorded_in_quarantine(), *self._read()] if lesson_id else []
        found = [lesson for lesson in everything if lesson.id.startswith(lesson_id)]
        if len(found) != 1:
            what = "several lessons have an id that begins with" if found else "no lesson has the id"
            raise UnknownLessonError(f'{what} "{lesson_id}"; kr lessons list shows them')
        return found[0]


def _shared(lesson: Lesson, words: Sequence[str]) -> int:
    line = format_line(lesson).casefold()
    return sum(word in line for word in words)


def view(lesson: Lesson, state: LessonRow | None) -> dict[str, Any]:
    """Show a lesson with what became of it."""
    known = state or judged([lesson])[0]
    return {
        "id": lesson.id,
        "date": lesson.date,
        "phase": lesson.phase,
        "tags": list(lesson.tags),
        "summary": known.lesson.summary,
        "ref": known.lesson.ref,
        "status": _status(known),
        "held_because": known.held,
        "source": known.source or "file",
        "event_type": known.event_type,
        "story_key": known.story_key,
        "session_id": known.session_id,
        **{name: getattr(known, name) for name in _COUNTS},
    }


def _status(state: LessonRow) -> str:
    """Say where a lesson stands: ``retired``, ``superseded``, ``quarantined``, ``pinned`` or ``live``."""
    if state.retired_at:
        return "retired"
    if state.superseded_by:
        return "superseded"
    if state.is_quarantined:
        return "quarantined"
    return "pinned" if state.pinned_at else "live"
