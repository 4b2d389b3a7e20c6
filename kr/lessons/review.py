"""What people do with lessons: list, search, add, edit, retire, pin, approve, import; and what lessons are worth."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from kr.errors import KrError
from kr.guard import find_flagged, safe
from kr.lessons.book import Candidate, LessonBook, Recorded, held_because, judged_rows, row_of
from kr.lessons.file import AppendFailed, LessonsFile, LessonsUnreadable
from kr.lessons.inject import SUNK_AFTER, rank_fits, without_secrets
from kr.lessons.line import (
    FIX_COLUMNS,
    KEPT_COLUMNS,
    Lesson,
    ParsedLines,
    format_line,
    make_lesson,
)
from kr.lessons.record import keep_words
from kr.store import lessons as lesson_rows
from kr.store.engine import LESSONS
from kr.store.lessons import LessonMark, LessonState
from kr.text import columns
from kr.times import to_text

logger = logging.getLogger(__name__)

_SHOWN_BAD_LINES = 20
_NO_STORY = "0-0"
_TRIED = 3
_UNHEEDED = 1 / 3
_COUNTS = ("injected", "sessions", "recurred", "recurred_after_injection", "last_recurred_at")

Worth = Literal["new", "helps", "unheeded", "idle"]
"""``helps``: the failure came back only, or mostly, where the lesson was not given. ``unheeded``: it comes back although
the lesson is given. ``idle``: given ten times, and it never came back. ``new``: nothing is proven yet."""


class UnknownLessonError(KrError):
    """No lesson has this id, or several begin with it."""

    code = "unknown_lesson"
    http_status = 404


class Lessons:
    """The lessons of a project, for people. The store should not wait long: a busy database must not hinder anybody."""

    def __init__(self, book: LessonBook, *, clock: Callable[[], datetime]) -> None:
        self._book = book
        self._clock = clock

    def lessons(
        self, *, phase: str | None = None, query: str = "", limit: int = 1000
    ) -> list[dict[str, Any]]:
        """List lessons, newest first, or the best matches of a query; with what the database knows of them.

        Raises ``LessonsUnreadable``.
        """
        self.refresh()
        found = [lesson for lesson in self._read() if phase is None or phase in lesson.tags]
        if query.strip():
            chosen = rank_fits(found, query)[:limit]
        else:
            chosen = sorted(found, key=lambda lesson: (lesson.date, lesson.position), reverse=True)[:limit]
        return self._views(chosen)

    def show(self, lesson_id: str) -> dict[str, Any]:
        """Show one lesson. Raises ``UnknownLessonError``."""
        self.refresh()
        return self._views([self._one(lesson_id)])[0]

    def quarantined(self) -> list[dict[str, Any]]:
        """List the lessons that wait for a person: in the database alone, or written into the file by hand."""
        self.refresh()
        views = self._views([*self._book.quarantined(), *self._read()])
        return [lesson for lesson in views if lesson["status"] == "quarantined"]

    def injectable(self) -> set[str]:
        """Return the ids of the lessons that an agent may see."""
        with self._book.store.read() as tx:
            return lesson_rows.injectable(tx)

    def refresh(self) -> None:
        """Bring the database's table to what the file holds. Never raises for the database's sake."""
        self._book.refresh(self._clock())

    def waits(self, lesson_id: str) -> bool:
        """Whether a lesson was held back, and nobody has approved it yet. Raises ``UnknownLessonError``."""
        lesson = self._one(lesson_id)
        state = self._book.states([lesson]).get(lesson.id)
        return state is not None and state.is_quarantined

    def mark(self, lesson_id: str, mark: LessonMark, *, is_set: bool = True) -> dict[str, Any]:
        """Retire, pin or approve a lesson, or take that back; who approves or pins a retired one brings it back.

        A recorded lesson that was in quarantine goes into the file when it is approved. Raises ``UnknownLessonError``,
        ``AppendFailed`` and store errors.
        """
        lesson = self._one(lesson_id)
        now = to_text(self._clock())
        with self._book.file.lock(), self._book.store.write(scope=LESSONS) as tx:
            if lesson.position >= 0:
                lesson_rows.add(tx, judged_rows([lesson]))
            lesson_rows.mark(tx, lesson.id, mark, now if is_set else None)
            if mark != "retired_at" and is_set:
                lesson_rows.mark(tx, lesson.id, "retired_at", None)
            if mark == "approved_at" and is_set and lesson.position < 0:
                self._book.file.append([lesson])
                self._book.sync(tx, self._clock())
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

        Raises ``AppendFailed``, and ``KrError`` for words that are no lesson's, or that a lesson says already.
        """
        candidate = self._candidate((phase, *tags), _worded(symptom, fix), ref, by_person=by_person)
        if not self._append([candidate]).fresh:
            raise KrError(f"a lesson says this already: {candidate.lesson.summary}")
        return self._added(candidate, by_person=by_person)

    def edit(
        self, lesson_id: str, symptom: str, fix: str | None = None, *, by_person: bool
    ) -> dict[str, Any]:
        """Word a lesson anew: a line of its own at the end of the file, which takes the place of the old one, its pin and its counts.

        Without ``fix`` the symptom is the whole lesson. Raises ``UnknownLessonError``, ``AppendFailed``, and ``KrError`` for a text that is no lesson's.
        """
        old = self._one(lesson_id)
        state = self._book.states([old]).get(old.id)
        if state is not None and state.superseded_by:
            raise KrError(f"it was worded anew already: {state.superseded_by}")
        summary = safe(symptom) if fix is None else _worded(symptom, fix)
        candidate = self._candidate(old.tags, summary, old.ref, by_person=by_person)
        if candidate.held:
            raise KrError(f"the new words would be quarantined: {candidate.held}")
        new = candidate.lesson
        with self._book.file.lock(), self._book.store.write(scope=LESSONS) as tx:
            self._book.sync(tx, self._clock())
            if new.id not in lesson_rows.states(tx, [new.id]):
                self._book.file.append([new])
                lesson_rows.add(tx, [replace(row_of(new), source=candidate.source)])
            if new.id != old.id:
                lesson_rows.mark(tx, old.id, "superseded_by", new.id)
                lesson_rows.move_counts(tx, old.id, new.id)
            self._book.sync(tx, self._clock())
        return self._added(candidate, by_person=by_person)

    def import_files(self, files: Sequence[Path]) -> dict[str, int]:
        """Append the lessons of other files that are not known yet, and count; none where one file can't be read.

        Raises ``LessonsUnreadable`` and ``AppendFailed``.
        """
        parsed = [_parsed(path) for path in files]
        lessons = [lesson for lines in parsed for lesson in lines.lessons]
        candidates = list(filter(None, _imported(lessons)))
        refused = sum(len(lines.unread) for lines in parsed) + len(lessons) - len(candidates)
        done = self._append(candidates)
        new = [candidate.lesson for candidate in done.fresh]
        waiting = sum(candidate.held is not None for candidate in done.fresh)
        return {
            "imported": len(new) - waiting,
            "duplicates": len(candidates) - len(new),
            "quarantined": waiting,
            "refused": refused,
            "total": done.total,
        }

    def _append(self, candidates: Sequence[Candidate]) -> Recorded:
        try:
            return self._book.append(candidates, story_key=_NO_STORY, session_id="", now=self._clock())
        except AppendFailed as error:
            raise AppendFailed(f"{self._book.file.path}: {error}") from error

    def _candidate(self, tags: Sequence[str], summary: str, ref: str | None, *, by_person: bool) -> Candidate:
        day = self._clock().astimezone(UTC).date().isoformat()
        lesson = make_lesson(day, tuple(map(safe, tags)), summary, safe(ref or ""))
        if lesson is None or columns(lesson.summary) > KEPT_COLUMNS:
            raise KrError(f"a lesson is one line of 1 to {KEPT_COLUMNS} columns")
        held = None if by_person else held_because(lesson.summary, lesson.ref)
        return Candidate(None, lesson, "person" if by_person else "agent", held)

    def _added(self, candidate: Candidate, *, by_person: bool) -> dict[str, Any]:
        lesson = candidate.lesson
        if by_person:
            # Nobody need read what a person wrote.
            with self._book.store.write(scope=LESSONS) as tx:
                lesson_rows.mark(tx, lesson.id, "approved_at", to_text(self._clock()))
        return self.show(lesson.id)

    def _views(self, lessons: Sequence[Lesson]) -> list[dict[str, Any]]:
        states = self._book.states(lessons)
        return [view(lesson, states.get(lesson.id)) for lesson in lessons]

    def _read(self) -> list[Lesson]:
        try:
            parsed = self._book.file.read()
        except LessonsUnreadable as error:
            raise LessonsUnreadable(f"{self._book.file.path}: {error}") from error
        return list({lesson.id: lesson for lesson in parsed.lessons}.values())

    def _one(self, lesson_id: str) -> Lesson:
        everything = [*self._book.quarantined(), *self._read()] if lesson_id else []
        found = [lesson for lesson in everything if lesson.id.startswith(lesson_id)]
        if len(found) != 1:
            what = "several lessons have an id that begins with" if found else "no lesson has the id"
            raise UnknownLessonError(f'{what} "{lesson_id}"; kr lessons list shows them')
        return found[0]


def _worded(symptom: str, fix: str) -> str:
    """Join both halves of a lesson. Raises ``KrError`` for an empty one, or a fix that is too long."""
    if (taken := columns(" ".join(fix.split()))) > FIX_COLUMNS:
        raise KrError(f"the fix is too long: {taken} columns, at most {FIX_COLUMNS}")
    if not symptom.strip() or not fix.strip():
        raise KrError("a lesson has a symptom and a fix")
    return keep_words(symptom, fix)


def _parsed(path: Path) -> ParsedLines:
    if not path.exists():
        raise LessonsUnreadable(f"{path}: can't be read: No such file or directory")
    try:
        parsed = LessonsFile(path.resolve()).read()
    except LessonsUnreadable as error:
        raise LessonsUnreadable(f"{path}: can't be read: {error}") from error
    if parsed.unread:
        lines = ", ".join(map(str, parsed.unread[:_SHOWN_BAD_LINES]))
        more = len(parsed.unread) - _SHOWN_BAD_LINES
        logger.warning(
            "%s:%s%s: no lesson; not imported", path, lines, f" and {more} more" if more > 0 else ""
        )
    return parsed


def _imported(lessons: Sequence[Lesson]) -> list[Candidate | None]:
    """Make candidates of the lines of a file, without secrets; ``None`` where nothing of one is left."""
    odd = find_flagged([format_line(lesson) for lesson in lessons])
    return [_imported_one(lesson, is_odd=at in odd) for at, lesson in enumerate(lessons)]


def _imported_one(lesson: Lesson, *, is_odd: bool) -> Candidate | None:
    clean: Callable[[str], str] = safe if is_odd else str
    tags = tuple(map(clean, lesson.tags))
    made = make_lesson(lesson.date, tags, clean(lesson.summary), clean(lesson.ref or ""))
    held = held_because(made.summary, made.ref) if made and is_odd else None
    return Candidate(None, made, "file", held) if made else None


def worth(state: LessonState) -> Worth:
    """Judge a lesson by its counts.

    Given to n sessions, a failure that came back k times although it was given is unheeded from a third of n on (and from
    the second time on); below that the lesson helps where the failure is known to come back without it.
    """
    without = state.recurred - state.recurred_after_injection
    given = max(state.sessions, state.recurred_after_injection)
    if state.recurred_after_injection > 1 and state.recurred_after_injection >= given * _UNHEEDED:
        return "unheeded"
    if without > 0 and given >= _TRIED:
        return "helps"
    return "idle" if state.injected >= SUNK_AFTER and not state.recurred else "new"


def view(lesson: Lesson, state: LessonState | None) -> dict[str, Any]:
    """Show a lesson with what became of it."""
    known = state or LessonState(id=lesson.id)
    held = known.held if state else held_because(lesson.summary, lesson.ref)
    shown = without_secrets(lesson, state)
    return {
        "id": lesson.id,
        "date": lesson.date,
        "phase": lesson.phase,
        "tags": list(lesson.tags),
        "summary": shown.summary,
        "ref": shown.ref,
        "status": _status(known, held),
        "held_because": held,
        "source": known.source or "file",
        "event_type": known.event_type,
        "story_key": known.story_key,
        "session_id": known.session_id,
        **{name: getattr(known, name) for name in _COUNTS},
        "worth": worth(known),
    }


def _status(state: LessonState, held: str | None) -> str:
    """Say where a lesson stands: ``retired``, ``superseded``, ``quarantined``, ``pinned`` or ``live``."""
    if state.retired_at:
        return "retired"
    if state.superseded_by:
        return "superseded"
    if held and not state.approved_at:
        return "quarantined"
    return "pinned" if state.pinned_at else "live"
