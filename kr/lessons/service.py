"""The operations on one project's lessons, over requests of any shape; the interfaces of kr call these."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kr.contracts.lessons import parse_record
from kr.envelopes import RecordEnvelope, skip
from kr.errors import InvalidRequest, KrError
from kr.freshness import to_text
from kr.guard import clean, mask_secrets
from kr.lessons import review
from kr.lessons.events import EventLimits, evident, read_return
from kr.lessons.file import LOCK_TIMEOUT, AppendFailed, LessonsFile, LessonsUnreadable
from kr.lessons.index import LessonIndex, Origin, held_because, judged_rows, lesson_of, row_of
from kr.lessons.line import FIX_COLUMNS, KEPT_COLUMNS, Lesson, make_lesson
from kr.lessons.record import Candidate, Recorded, append_new, record
from kr.lessons.remedies import read_own
from kr.lessons.words import keep_words
from kr.store import lessons as lesson_rows
from kr.store.engine import Store
from kr.store.lessons import LessonMark
from kr.text.characters import columns
from kr.values import PHASES

logger = logging.getLogger(__name__)

OWN_REMEDIES = "remedies.yaml"
_SHOWN_BAD_LINES = 20
_NO_STORY = "0-0"


@dataclass(frozen=True, slots=True)
class ImportedLessons:
    """What became of the lines of imported files."""

    imported: int
    duplicates: int
    quarantined: int
    refused: int
    total: int


class UnknownLessonError(KrError):
    """No lesson has this id, or several begin with it."""

    code = "unknown_lesson"
    http_status = 404


class LessonService:
    """The lessons of a project. ``store`` should not wait long: a busy database must not hinder anybody."""

    def __init__(
        self,
        lessons_file: Path,
        *,
        project_root: Path,
        limits: Callable[[], EventLimits],
        store: Store,
        clock: Callable[[], datetime],
        lock_timeout: float = LOCK_TIMEOUT,
        phases: Sequence[str] = PHASES,
    ) -> None:
        self.path = lessons_file
        self._file = LessonsFile(lessons_file, lock_timeout=lock_timeout)
        self._index = LessonIndex(store, self._file)
        self._root = project_root
        self._limits = limits
        self._store = store
        self._clock = clock
        self._phases = phases

    def record_document(self, data: bytes) -> RecordEnvelope:
        """Record from a request document: any bytes in, an envelope out; nothing is raised for bad input."""
        from kr.tree import read_document

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
            parsed = parse_record(data, phases=self._phases)
        except InvalidRequest as error:
            return _refused(data, error)
        for warning in parsed.warnings:
            logger.warning("%s", warning)
        remedies = self.path.parent / OWN_REMEDIES
        own, problems = read_own(remedies)
        for problem in problems:
            logger.warning("%s: %s; passed over", remedies, problem)
        return record(
            parsed.request,
            index=self._index,
            project_root=self._root,
            limits=self._limits(),
            now=self._clock(),
            own=own,
        )

    def evident_events(self, phase: str, agent_return: Mapping[str, Any]) -> Sequence[str]:
        """Tell which events a return shows by itself, when nobody declared one."""
        return evident(phase, read_return(agent_return), self._limits())

    def lessons(
        self, *, phase: str | None = None, query: str = "", limit: int = 1000
    ) -> list[dict[str, Any]]:
        """List lessons, newest first, or the best matches of a query; with what the database knows of them.

        Raises ``LessonsUnreadable``.
        """
        self.refresh()
        found = self._read(phase)
        if query.strip():
            chosen = review.matching(found, query)[:limit]
        else:
            chosen = sorted(found, key=lambda lesson: (lesson.date, lesson.position), reverse=True)[:limit]
        states = self._index.states(chosen)
        return [review.view(lesson, states.get(lesson.id)) for lesson in chosen]

    def show(self, lesson_id: str) -> dict[str, Any]:
        """Show one lesson. Raises ``UnknownLessonError``."""
        self.refresh()
        lesson = self._one(lesson_id)
        return review.view(lesson, self._index.states([lesson]).get(lesson.id))

    def review(self) -> dict[str, list[Any]]:
        """List what a person should look at: the quarantined, and what is given without ever helping (SPEC 4.2)."""
        self.refresh()
        found = [*self._quarantined(), *self._read(None)]
        return review.to_review(found, self._index.states(found))

    def injectable(self) -> set[str]:
        """Return the ids of the lessons that an agent may see."""
        with self._store.read() as tx:
            return lesson_rows.injectable(tx)

    def worth_counts(self) -> dict[str, Any]:
        """Count lessons by what they are worth, and name the five of most recurrences."""
        try:
            found = self._read(None)
        except LessonsUnreadable as error:
            logger.warning("%s", error)
            found = []
        found = [*self._quarantined(), *found]
        states = self._index.states(found)
        return review.worth_counts([review.view(lesson, states.get(lesson.id)) for lesson in found])

    def refresh(self) -> None:
        """Bring the database's table to what the file holds. Never raises for the database's sake."""
        self._index.refresh(self._clock())

    def waits(self, lesson_id: str) -> bool:
        """Whether a lesson was held back, and nobody has approved it yet. Raises ``UnknownLessonError``."""
        lesson = self._one(lesson_id)
        state = self._index.states([lesson]).get(lesson.id)
        return state is not None and state.is_quarantined

    def mark(self, lesson_id: str, mark: LessonMark, *, is_set: bool = True) -> dict[str, Any]:
        """Retire, pin or approve a lesson, or take that back; who approves a retired one brings it back.

        A recorded lesson that was in quarantine goes into the file when it is approved. Raises ``UnknownLessonError``,
        ``AppendFailed`` and store errors.
        """
        lesson = self._one(lesson_id)
        now = to_text(self._clock())
        with self._file.lock(), self._store.write() as tx:
            if lesson.position >= 0:
                lesson_rows.add(tx, judged_rows([lesson]), {})
            lesson_rows.mark(tx, lesson.id, mark, now if is_set else None)
            if mark == "approved_at" and is_set:
                lesson_rows.mark(tx, lesson.id, "retired_at", None)
                if lesson.position < 0:
                    self._file.append([lesson])
                    self._index.sync(tx, self._clock())
            state = lesson_rows.states(tx, [lesson.id])[lesson.id]
        return review.view(lesson, state)

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
        if (taken := columns(" ".join(fix.split()))) > FIX_COLUMNS:
            raise KrError(f"the fix is too long: {taken} columns, at most {FIX_COLUMNS}")
        if not symptom.strip() or not fix.strip():
            raise KrError("a lesson has a symptom and a fix")
        summary = keep_words(symptom, fix)
        candidate = self._candidate((phase, *tags), summary, ref, by_person=by_person)
        recorded = self._append([candidate])
        if not recorded.fresh:
            raise KrError(f"a lesson says this already: {candidate.lesson.summary}")
        return self._added(candidate, by_person=by_person)

    def edit(self, lesson_id: str, summary: str, *, by_person: bool) -> dict[str, Any]:
        """Word a lesson anew: a line of its own at the end of the file, which takes the place of the old one.

        Raises ``UnknownLessonError``, ``AppendFailed``, and ``KrError`` for a text that is no lesson's.
        """
        old = self._one(lesson_id)
        state = self._index.states([old]).get(old.id)
        if state is not None and state.superseded_by:
            raise KrError(f"it was worded anew already: {state.superseded_by}")
        candidate = self._candidate(old.tags, mask_secrets(clean(summary)), old.ref, by_person=by_person)
        if candidate.held:
            raise KrError(f"the new words would be quarantined: {candidate.held}")
        new = candidate.lesson
        with self._file.lock(), self._store.write() as tx:
            self._index.sync(tx, self._clock())
            if new.id not in lesson_rows.states(tx, [new.id]):
                self._file.append([new])
                self._index.add(tx, [row_of(new, Origin(source=candidate.source))])
            if new.id != old.id:
                lesson_rows.mark(tx, old.id, "superseded_by", new.id)
            self._index.sync(tx, self._clock())
        return self._added(candidate, by_person=by_person)

    def _append(self, candidates: Sequence[Candidate]) -> Recorded:
        try:
            return append_new(self._index, candidates, story_key=_NO_STORY, session_id="", now=self._clock())
        except AppendFailed as error:
            raise AppendFailed(f"{self.path}: {error}") from error

    def _candidate(self, tags: Sequence[str], summary: str, ref: str | None, *, by_person: bool) -> Candidate:
        day = self._clock().astimezone(UTC).date().isoformat()
        lesson = make_lesson(
            day, tuple(mask_secrets(clean(tag)) for tag in tags), summary, mask_secrets(clean(ref or ""))
        )
        if lesson is None or columns(lesson.summary) > KEPT_COLUMNS:
            raise KrError(f"a lesson is one line of 1 to {KEPT_COLUMNS} columns")
        held = None if by_person else held_because(lesson.summary, lesson.ref)
        return Candidate(None, lesson, "person" if by_person else "agent", held)

    def _added(self, candidate: Candidate, *, by_person: bool) -> dict[str, Any]:
        lesson = candidate.lesson
        if by_person:
            # Nobody need read what a person wrote.
            with self._store.write() as tx:
                lesson_rows.mark(tx, lesson.id, "approved_at", to_text(self._clock()))
        return self.show(lesson.id)

    def import_files(self, files: Sequence[Path]) -> ImportedLessons:
        """Append the lessons of other files that are not known yet; of none where one can't be read.

        Raises ``LessonsUnreadable`` and ``AppendFailed``.
        """
        candidates: list[Candidate] = []
        refused = 0
        for path in files:
            parsed = _parsed(path)
            refused += len(parsed.unread)
            for lesson in parsed.lessons:
                clean_one = make_lesson(
                    lesson.date,
                    tuple(mask_secrets(clean(tag)) for tag in lesson.tags),
                    mask_secrets(clean(lesson.summary)),
                    mask_secrets(clean(lesson.ref or "")),
                )
                if clean_one is None:
                    refused += 1
                    continue
                held = held_because(clean_one.summary, clean_one.ref)
                candidates.append(Candidate(None, clean_one, "file", held))
        done = self._append(candidates)
        new = [candidate.lesson for candidate in done.fresh]
        self._warn_of_phases(new)
        waiting = sum(candidate.held is not None for candidate in done.fresh)
        return ImportedLessons(len(new) - waiting, len(candidates) - len(new), waiting, refused, done.total)

    def _warn_of_phases(self, lessons: Sequence[Lesson]) -> None:
        for phase in sorted({one.phase for one in lessons if not set(one.tags) & set(self._phases)}):
            allowed = ", ".join(self._phases)
            logger.warning("phase %r is none of %s: add it to phases in kr.yaml", phase, allowed)

    def _read(self, phase: str | None) -> list[Lesson]:
        try:
            parsed = self._file.read()
        except LessonsUnreadable as error:
            raise LessonsUnreadable(f"{self.path}: {error}") from error
        found = {lesson.id: lesson for lesson in parsed.lessons}.values()
        return [lesson for lesson in found if phase is None or phase in lesson.tags]

    def _quarantined(self) -> list[Lesson]:
        if not self._store.exists():
            return []
        with self._store.read() as tx:
            return [lesson_of(row) for row in lesson_rows.quarantined(tx)]

    def _one(self, lesson_id: str) -> Lesson:
        everything = [*self._quarantined(), *self._read(None)] if lesson_id else []
        found = [lesson for lesson in everything if lesson.id.startswith(lesson_id)]
        if len(found) != 1:
            what = "several lessons have an id that begins with" if found else "no lesson has the id"
            raise UnknownLessonError(f'{what} "{lesson_id}"; kr lessons list shows them')
        return found[0]


def _parsed(path: Path) -> Any:
    if not path.exists():
        raise LessonsUnreadable(f"{path}: can't be read: No such file or directory")
    try:
        parsed = LessonsFile(path).read()
    except LessonsUnreadable as error:
        raise LessonsUnreadable(f"{path}: can't be read: {error}") from error
    if parsed.unread:
        lines = ", ".join(str(position + 1) for position in parsed.unread[:_SHOWN_BAD_LINES])
        more = len(parsed.unread) - _SHOWN_BAD_LINES
        logger.warning(
            "%s:%s%s: no lesson; not imported", path, lines, f" and {more} more" if more > 0 else ""
        )
    return parsed


def _refused(data: Mapping[str, Any], error: InvalidRequest) -> RecordEnvelope:
    problems = [f"{field.field}: {mask_secrets(field.message)}" for field in error.fields]
    for problem in problems:
        logger.warning("nothing is recorded: %s", problem)
    story = data.get("story_key")
    echoed = {**data, "story_key": mask_secrets(story)} if isinstance(story, str) else data
    return skip(echoed, f"Recording skipped: {'; '.join(problems)}")
