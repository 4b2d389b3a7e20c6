"""What people do with lessons: list, search, add, edit, retire, pin, approve, import."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from kr.errors import KrError, UnknownEntry
from kr.guard import safe
from kr.lessons.file import COUNTS, LessonsFile, LessonsFileError, judged, make_row, read_bytes, view
from kr.lessons.line import KEPT_COLUMNS, format_line, lesson_keywords, parse_lines, read_words
from kr.store import lessons as lesson_rows
from kr.store.engine import LESSONS
from kr.store.lessons import LessonMark, LessonRow
from kr.text import beginning, columns, search_words
from kr.times import to_text


class Lessons:
    """The lessons of a project, for people. What can't be done with the file raises ``LessonsFileError``."""

    def __init__(self, file: LessonsFile, *, clock: Callable[[], datetime]) -> None:
        self._file = file
        self._clock = clock

    def lessons(
        self, *, phase: str | None = None, query: str = "", limit: int = 1000
    ) -> list[dict[str, Any]]:
        """List lessons, newest first, or the best matches of a query; with what the database knows of them."""
        words = [beginning(word) for word in search_words(query)]
        rows = [it for it in reversed(self._rows()) if phase in {None, *it.lesson.tags} and not it.gone_at]
        if query.strip():
            rows = [row for row in rows if _shared(row, words)]
        rows.sort(key=lambda row: (_shared(row, words), row.lesson.date), reverse=True)
        return [view(row) for row in rows[:limit]]

    def show(self, lesson_id: str) -> dict[str, Any]:
        """Show one lesson. Raises ``UnknownEntry``."""
        return view(self._one(lesson_id))

    def quarantined(self) -> list[dict[str, Any]]:
        """List the lessons that wait for a person: in the database alone, or written into the file by hand."""
        return [view(row) for row in self._rows() if row.status == "quarantined"]

    def refresh(self) -> None:
        """Bring the database's table to what the file holds; see ``LessonsFile.refresh``."""
        self._file.refresh(self._clock())

    def mark(self, lesson_id: str, mark: LessonMark, *, is_set: bool = True) -> dict[str, Any]:
        """Retire, pin or approve a lesson, or take that back; who approves or pins a retired one brings it back.

        A recorded lesson that was in quarantine goes into the file when it is approved. Raises ``UnknownEntry`` and store errors.
        """
        row, now = self._one(lesson_id), to_text(self._clock())
        with self._file.lock(), self._file.store.write(scope=LESSONS) as tx:
            lesson_rows.add(tx, [row], lesson_keywords)
            lesson_rows.mark(tx, row.id, mark, now if is_set else None)
            if is_set and mark != "retired_at":
                lesson_rows.mark(tx, row.id, "retired_at", None)
            if is_set and mark == "approved_at" and row.gone_at:
                self._file.write([row.lesson])
                lesson_rows.bring_back(tx, [row.id])
            return view(lesson_rows.states(tx, [row.id])[row.id])

    def add(
        self, symptom: str, fix: str, *, phase: str, tags: Sequence[str], ref: str | None, by_person: bool
    ) -> dict[str, Any]:
        """Append a lesson in somebody's own words; what no person wrote may have to wait for one.

        Raises ``KrError`` for words that are no lesson's, or that a lesson says already.
        """
        row = self._row((phase, *tags), symptom, fix, ref, by_person=by_person)
        if not self._file.append([row], now=self._clock())[0]:
            raise KrError(f"a lesson says this already: {row.lesson.summary}")
        return self.show(row.id)

    def edit(
        self, lesson_id: str, symptom: str, fix: str | None = None, *, by_person: bool
    ) -> dict[str, Any]:
        """Word a lesson anew: a line of its own at the end of the file, which takes the place of the old one, its marks and its counts.

        Without ``fix`` the symptom is the whole lesson. Raises ``UnknownEntry``, and ``KrError`` for a text that is no lesson's.
        """
        old = self._one(lesson_id)
        row = self._row(old.lesson.tags, symptom, fix, old.lesson.ref, by_person=by_person)
        if row.held:
            raise KrError(f"the new words would be quarantined: {row.held}")
        with self._file.lock(), self._file.store.write(scope=LESSONS) as tx:
            if newer := old.superseded_by or next(iter(lesson_rows.states(tx, [row.id])), None):
                raise KrError(f"it was worded so already: {newer}")
            kept = {name: getattr(old, name) for name in (*COUNTS, "pinned_at", "retired_at")}
            self._file.write([row.lesson])
            lesson_rows.add(tx, [old, replace(row, **kept)], lesson_keywords)
            lesson_rows.supersede(tx, old.id, row.id)
        return self.show(row.id)

    def import_files(self, files: Sequence[Path]) -> dict[str, int]:
        """Append the lessons of other files that are not known yet, and count; none where one file can't be read."""
        rows: list[LessonRow] = []
        refused, now = 0, self._clock()
        for path in files:
            if not path.exists():
                raise LessonsFileError(f"{path}: No such file or directory")
            parsed = parse_lines(read_bytes(path.resolve()))
            origin: dict[str, Any] = {"recorded_at": to_text(now), "source": "file"}
            made = [make_row(it.tags, it.summary, it.ref, day=it.date, **origin) for it in parsed.lessons]
            rows += filter(None, made)
            refused += parsed.unread + made.count(None)
        fresh, total = self._file.append(rows, now=now)
        held = sum(row.held is not None for row in fresh)
        return {
            "imported": len(fresh) - held,
            "duplicates": len(rows) - len(fresh),
            "quarantined": held,
            "refused": refused,
            "total": total,
        }

    def _row(
        self, tags: Sequence[str], symptom: str, fix: str | None, ref: str | None, *, by_person: bool
    ) -> LessonRow:
        """Make a lesson of somebody's words; nobody need read what a person wrote."""
        summary = safe(symptom) if fix is None else read_words({"symptom": symptom, "fix": fix})["summary"]
        now = to_text(self._clock())
        source, approved_at = ("person", now) if by_person else ("agent", None)
        row = make_row(tags, summary, ref, recorded_at=now, source=source, approved_at=approved_at)
        if row is None or columns(row.lesson.summary) > KEPT_COLUMNS:
            raise KrError(f"a lesson is one line of 1 to {KEPT_COLUMNS} columns")
        return row

    def _rows(self) -> list[LessonRow]:
        """Return the recorded lessons that are not in the file as they wait, and those of the file, in its order and each once."""
        self.refresh()
        lessons = {lesson.id: lesson for lesson in self._file.read().lessons}
        states = self._file.states([*lessons.values()])
        unknown = judged([lesson for id_, lesson in lessons.items() if id_ not in states])
        known = states | {row.id: row for row in unknown}
        return [*self._file.look(lesson_rows.quarantined).values(), *(known[id_] for id_ in lessons)]

    def _one(self, lesson_id: str) -> LessonRow:
        found = [row for row in self._rows() if lesson_id and row.id.startswith(lesson_id)]
        if len(found) != 1:
            what = "several lessons have an id that begins with" if found else "no lesson has the id"
            raise UnknownEntry(f'{what} "{lesson_id}"; kr lessons list shows them')
        return found[0]


def _shared(row: LessonRow, words: Sequence[str]) -> int:
    line = format_line(row.lesson).casefold()
    return sum(word in line for word in words)
