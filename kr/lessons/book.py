"""The operations on one project's lessons, over requests of any shape; the faces of kr call these."""

from collections.abc import Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kr.errors import InvalidRequest, KrError, SourceFailure, StoreError
from kr.freshness import to_text
from kr.lessons.choose import COLUMNS, earning, is_injectable, matching, of_phase, state_of, to_review, view
from kr.lessons.counts import LessonCounts, row_of
from kr.lessons.file import (
    LOCK_TIMEOUT,
    Appended,
    AppendFailed,
    LessonsFile,
    LessonsUnreadable,
    waiting_recordings,
)
from kr.lessons.line import QUARANTINED, Lesson, cleaned, columns, parse_file
from kr.log import Logger
from kr.store.lessons import LessonMark, LessonState
from kr.store.store import Store
from kr.values import PHASES, NamedTuple

if TYPE_CHECKING:
    # What records loads the tables and the stemmer: listing needs neither.
    from kr.contracts.lessons import RecordEnvelope
    from kr.lessons.distill.distill import Told as Worded
    from kr.lessons.distill.material import Writer
    from kr.lessons.distill.remedies import Remedy
    from kr.lessons.returned import Finding, Limits
    from kr.settings import Settings

logger = Logger(__name__)

_SHOWN_BAD_LINES = 20


class Imported(NamedTuple):
    """What became of the lines of imported files."""

    imported: int
    duplicates: int
    refused: int
    total: int


class UnknownLessonError(KrError):
    """No lesson has this id, or several begin with it."""

    code = "unknown_lesson"
    http_status = 404


class LessonBook:
    """The lessons of a project. ``store`` should not wait long: a busy database must not hinder anybody."""

    def __init__(
        self,
        lessons_file: Path,
        *,
        project_root: Path,
        limits: "Callable[[], Limits]",
        store: Store,
        clock: Callable[[], datetime],
        lock_timeout: float = LOCK_TIMEOUT,
        phases: Sequence[str] = PHASES,
        writer: "Writer | None" = None,
    ) -> None:
        self.path = lessons_file
        self._file = LessonsFile(lessons_file, lock_timeout=lock_timeout)
        self._root = project_root
        self._limits = limits
        self._store = store
        self._clock = clock
        self._lock_timeout = lock_timeout
        self._phases = phases
        self._writer = writer

    def record_document(self, data: bytes) -> "RecordEnvelope":
        """Record from a request document: any bytes in, an envelope out; nothing is raised for bad input."""
        from kr.tree import read_document

        try:
            document = read_document(data)
        except InvalidRequest as error:
            return _refused(error.read, error)
        for warning in document.warnings:
            logger.warning("%s", warning)
        return self.record(document.data)

    def record(self, data: Mapping[str, Any]) -> "RecordEnvelope":
        """Record from plain data (seed 003). Invalid data is ``skipped``, with a warning."""
        from kr.contracts.lessons import parse_record
        from kr.lessons.record import record

        try:
            parsed = parse_record(data, phases=self._phases)
        except InvalidRequest as error:
            return _refused(data, error)
        for warning in parsed.warnings:
            logger.warning("%s", warning)
        return record(
            parsed.request,
            lessons_file=self.path,
            project_root=self._root,
            limits=self._limits(),
            store=self._store,
            now=self._clock(),
            lock_timeout=self._lock_timeout,
            remedies=own_remedies(self.path.parent),
            writer=self._writer,
        )

    def shown_events(self, phase: str, agent_return: Mapping[str, Any]) -> Sequence[str]:
        """Tell which events a return shows by itself, when nobody declared one."""
        from kr.lessons.returned import read_return, shown

        return shown(phase, read_return(agent_return), self._limits())

    def lessons(
        self, *, phase: str | None = None, query: str = "", limit: int = 1000
    ) -> list[dict[str, Any]]:
        """List lessons, newest first, or the best matches of a query; with what the database knows of them.

        Raises ``LessonsUnreadable``.
        """
        self.reconcile()
        found = self._read(phase)
        if query.strip():
            chosen = matching(found, limit, query=query)
        else:
            chosen = sorted(found, key=lambda lesson: (lesson.date, lesson.position), reverse=True)[:limit]
        states = self._states(chosen)
        return [view(lesson, state_of(lesson, states)) for lesson in chosen]

    def review(self) -> dict[str, list[Any]]:
        """List what a person should look at: the quarantined, the contradicting, the never useful (SPEC 4.2)."""
        self.reconcile()
        found = self._read(None)
        return to_review(found, self._states(found))

    def injectable(self) -> set[str]:
        """Return the ids of the lessons that an agent may see: of those that are retired, replaced or in quarantine none."""
        found = self._readable()
        states = self._states(found)
        return {lesson.id for lesson in found if is_injectable(lesson, state_of(lesson, states))}

    def earning(self) -> dict[str, Any]:
        """Tell which lessons earn their place: how many there are of each worth, and the five of most recurrences."""
        found = self._readable()
        states = self._states(found)
        return earning([view(lesson, state_of(lesson, states)) for lesson in found])

    def _readable(self) -> list[Lesson]:
        """Read all lessons; of a file that can't be read none, which is told."""
        try:
            return self._read(None)
        except LessonsUnreadable as error:
            logger.warning("%s", error)
            return []

    def mark(self, lesson_id: str, mark: LessonMark, *, is_set: bool = True) -> dict[str, Any]:
        """Retire, pin or approve a lesson, or take that back; who approves a retired one brings it back.

        Raises ``UnknownLessonError`` and store errors.
        """
        lesson = self._one(lesson_id)
        at = to_text(self._clock()) if is_set else None
        with self._store.write() as unit:
            unit.lessons.add([row_of(lesson)])
            unit.lessons.mark(lesson.id, mark, at)
            if mark == "approved_at" and is_set:
                unit.lessons.mark(lesson.id, "retired_at", None)
            state = unit.lessons.states([lesson.id])[lesson.id]
        return view(lesson, state)

    def add(
        self, phase: str, summary: str, *, tags: Sequence[str] = (), ref: str | None = None
    ) -> dict[str, Any]:
        """Append a lesson that a person writes, under the rules of recording: one line, no secrets, nothing told twice.

        Raises ``AppendFailed``, and ``KrError`` for a text that is no lesson's, or that a lesson of the phase tells already.
        """
        from kr.lessons.duplicates import duplicates

        new = self._written((phase, *tags), summary, ref)
        appended = self._append(lambda present: [] if any(duplicates(new, present)) else [new], {phase})
        if not appended.lessons:
            known = next(duplicates(new, self._read(phase)), new)
            raise KrError(f"lesson {known.id} tells this already: {known.summary}")
        return self._approved(new)

    def edit(self, lesson_id: str, summary: str) -> dict[str, Any]:
        """Word a lesson anew: a line of its own at the end of the file, which takes the place of the old one.

        Raises ``UnknownLessonError``, ``AppendFailed``, and ``KrError`` for a text that is no lesson's.
        """
        old = self._one(lesson_id)
        new = self._written(old.tags, summary, old.ref)
        self._append(lambda present: [] if any(new.id == lesson.id for lesson in present) else [new])
        return self._approved(new, old)

    def _written(self, tags: Sequence[str], summary: str, ref: str | None) -> Lesson:
        from kr.guard import mask_secrets

        today = self._clock().astimezone(UTC).date().isoformat()
        kept = tuple(tag for tag in tags if tag != QUARANTINED)
        new = cleaned(Lesson(today, kept, mask_secrets(summary), mask_secrets(ref or "")))
        if new is None or columns(new.summary) > COLUMNS:
            raise KrError(f"a lesson is one line of 1 to {COLUMNS} columns")
        return new

    def _approved(self, new: Lesson, old: Lesson | None = None) -> dict[str, Any]:
        """Keep that a person wrote a lesson, and which other one it replaces."""
        with self._store.write() as unit:
            unit.lessons.add([row_of(new, source="person")])
            if old is not None:
                unit.lessons.add([row_of(old)])
                if new.id != old.id:
                    unit.lessons.mark(old.id, "superseded_by", new.id)
            unit.lessons.mark(new.id, "approved_at", to_text(self._clock()))
            state = unit.lessons.states([new.id])[new.id]
        return view(self._one(new.id), state)

    def _append(
        self, choose: Callable[[Sequence[Lesson]], Sequence[Lesson]], tags: Container[str] | None = None
    ) -> Appended:
        """Append as ``LessonsFile.append`` does; ``AppendFailed`` names the file."""
        try:
            return self._file.append(choose, tags)
        except AppendFailed as error:
            raise AppendFailed(f"{self.path}: {error}") from error

    def _read(self, phase: str | None) -> list[Lesson]:
        try:
            parsed = self._file.read(None if phase is None else {phase})
        except LessonsUnreadable as error:
            raise LessonsUnreadable(f"{self.path}: {error}") from error
        found = list({lesson.id: lesson for lesson in parsed.lessons}.values())
        return found if phase is None else of_phase(found, phase)

    def _one(self, lesson_id: str) -> Lesson:
        found = (
            [lesson for lesson in self._read(None) if lesson.id.startswith(lesson_id)] if lesson_id else []
        )
        if len(found) != 1:
            what = "several lessons have an id that begins with" if found else "no lesson has the id"
            raise UnknownLessonError(f'{what} "{lesson_id}"; kr lessons list shows them')
        return found[0]

    def take_in(self, files: Sequence[Path]) -> Imported:
        """Append the lessons of other files that are not told yet; of none where one can't be read.

        Raises ``LessonsUnreadable`` and ``AppendFailed``.
        """
        lessons: list[Lesson] = []
        refused = 0
        for path in files:
            text = _text_of(path)
            parsed = parse_file(text)
            clean = [_mask_secrets(lesson) for lesson in parsed.lessons]
            lessons += [lesson for lesson in clean if lesson is not None]
            refused += parsed.unread + clean.count(None)
            _tell_bad_lines(path, text)
        appended = self._append(lambda present: _new_ones(lessons, present))
        nobodys = (lesson for lesson in appended.lessons if not set(lesson.tags) & set(self._phases))
        for phase in sorted({lesson.phase for lesson in nobodys}):
            logger.warning(
                "phase %r is none of %s: nobody gets its lessons; add it to lessons_phases in kr.yaml",
                phase,
                ", ".join(self._phases),
            )
        duplicates = len(lessons) - len(appended.lessons)
        return Imported(len(appended.lessons), duplicates, refused, appended.total)

    def reconcile(self) -> None:
        """Bring the database's table to what the file holds (SPEC 4.2). Never raises for the database's sake."""
        now = self._clock()
        if next(iter(waiting_recordings(self.path.parent)), None):
            from kr.lessons.record import append_waiting

            append_waiting(self._file, self._store, now)
        LessonCounts(self._store, self._file).reconcile(now)

    def _states(self, lessons: Sequence[Lesson]) -> dict[str, LessonState]:
        try:
            if not lessons or not self._store.exists():
                return {}
            with self._store.read() as unit:
                return unit.lessons.states([lesson.id for lesson in lessons])
        except StoreError as error:
            logger.warning("%s", error)
            return {}


def _text_of(path: Path) -> str:
    if not path.exists():
        raise LessonsUnreadable(f"{path}: can't be read: No such file or directory")
    try:
        return LessonsFile(path).text()
    except LessonsUnreadable as error:
        raise LessonsUnreadable(f"{path}: can't be read: {error}") from error


def _mask_secrets(lesson: Lesson) -> Lesson | None:
    from kr.guard import mask_secrets

    return cleaned(
        lesson._replace(
            summary=mask_secrets(lesson.summary), ref=mask_secrets(lesson.ref) if lesson.ref else None
        )
    )


def _new_ones(lessons: Sequence[Lesson], present: Sequence[Lesson]) -> list[Lesson]:
    from kr.lessons.duplicates import Told

    told = Told(present)
    new: list[Lesson] = []
    for lesson in lessons:
        if not told.tells(lesson):
            told.add(lesson)
            new.append(lesson)
    return new


def _tell_bad_lines(path: Path, text: str) -> None:
    lines = enumerate(text.removeprefix("\ufeff").split("\n"), start=1)
    bad = [str(number) for number, line in lines if parse_file(line).unread]
    if bad:
        more = f" and {len(bad) - _SHOWN_BAD_LINES} more" if len(bad) > _SHOWN_BAD_LINES else ""
        logger.warning("%s:%s%s: no lesson; not imported", path, ", ".join(bad[:_SHOWN_BAD_LINES]), more)


def _refused(data: Mapping[str, Any], error: InvalidRequest) -> "RecordEnvelope":
    from kr.contracts.lessons import skip
    from kr.guard import mask_secrets

    problems = [f"{field.field}: {mask_secrets(field.message)}" for field in error.fields]
    for problem in problems:
        logger.warning("nothing is recorded: %s", problem)
    story = data.get("story_key")
    echoed = {**data, "story_key": mask_secrets(story)} if isinstance(story, str) else data
    return skip(echoed, f"Recording skipped: {'; '.join(problems)}")


NAME = "remedies.yaml"


def own_remedies(folder: Path) -> "tuple[Remedy, ...]":
    """Read the rows beside the lessons file; what is wrong is told with its file and row, and costs only itself."""
    path = folder / NAME
    if not path.exists():
        return ()
    import yaml

    from kr.lessons.distill.remedies import read_rows

    try:
        rows, problems = read_rows(yaml.safe_load(path.read_bytes()))
    except (OSError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        logger.warning("%s: no YAML: %s; its remedies are not used", path, " ".join(str(error).split()))
        return ()
    for problem in problems:
        logger.warning("%s: %s; passed over", path, problem)
    return rows


def lesson_writer(settings: "Settings", environ: Mapping[str, str], *, timeout: float) -> "Writer | None":
    """Return what asks the model, with ``timeout`` seconds for each lesson; any doubt falls back to the rules' line.

    ``None``, with a warning, when no endpoint is configured.
    """
    # Only where a model is configured.
    from kr.lessons.distill.material import DoubtError, prompts, read_lesson, scrubbed
    from kr.sources.model_server import LanguageModel

    llm = settings.knowledge_research.llm
    if llm.base_url is None or llm.model is None:
        logger.warning("lessons_distiller: llm needs knowledge_research.llm.base_url and llm.model")
        return None
    model = LanguageModel(
        base_url=llm.base_url,
        model=llm.model,
        api_key=llm.key_of(environ),
        api_key_env=llm.api_key_env,
    )

    def write(finding: "Finding", told: "Worded | None", limit: int) -> "Worded | None":
        seen = scrubbed(finding)
        try:
            reply = model.write(*prompts(seen, told, limit), timeout=timeout)
            return read_lesson(reply, seen, told, limit)
        except SourceFailure as error:
            logger.warning("the lesson is worded by the rules: %s", error.reason)
        except DoubtError as error:
            logger.warning("the lesson is worded by the rules; the model's answer is passed over: %s", error)
        return told

    return write
