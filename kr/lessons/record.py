"""U5 of seed 003, steps 1 to 6: what an agent's return teaches, as lines at the end of the lessons file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kr.contracts.lessons import (
    ALL_DUPLICATES,
    APPEND_FAILED,
    NO_EVENTS,
    NOTHING_TOLD,
    RecordedEntry,
    RecordEnvelope,
    RecordProblem,
    RecordRequest,
    RecordResults,
    skip,
)
from kr.lessons.counts import LessonCounts, session_name
from kr.lessons.distill.material import Context, Writer, lesson_of
from kr.lessons.distill.remedies import Remedy
from kr.lessons.duplicates import duplicates, tells_the_same
from kr.lessons.file import (
    LESSONS_WAITING,
    LOCK_TIMEOUT,
    AppendBusy,
    AppendFailed,
    Candidate,
    LessonsFile,
    LessonsUnreadable,
    Waiting,
    take,
    waiting_recordings,
)
from kr.lessons.line import QUARANTINED, Lesson
from kr.lessons.returned import MOST_EVENTS, AgentReturn, Limits, detect, phase_tag, read_return
from kr.log import Logger
from kr.store.store import Store
from kr.text.counting import counted
from kr.values import EventType

logger = Logger(__name__)

CONFIRMATION = "[LESSONS] {recorded} entries appended to {name} (total: {total} entries)"


@dataclass(slots=True)
class _Choice:
    """What the file's present lessons leave of one return's candidates, chosen while nobody else can append."""

    story_key: str
    session_id: str
    candidates: Sequence[Candidate]
    fresh: list[Candidate] = field(default_factory=list)
    recurred: dict[str, Lesson] = field(default_factory=dict)
    """The lessons of the file whose failures came back, each once however often."""

    def choose(self, present: Sequence[Lesson]) -> list[Lesson]:
        self.fresh, self.recurred = [], {}
        for candidate in self.candidates:
            known = list(duplicates(candidate.lesson, present))
            self.recurred.update((lesson.id, lesson) for lesson in known)
            if not known and not any(duplicates(candidate.lesson, [other.lesson for other in self.fresh])):
                self.fresh.append(candidate)
        return [candidate.lesson for candidate in self.fresh]


class _Queue:
    """What is to be appended: a return's own candidates, and those of recorders that could not wait for their turn."""

    def __init__(self, file: LessonsFile, own: _Choice | None) -> None:
        self._file = file
        self._own = own
        self._waiting = Waiting(file.path.parent, LESSONS_WAITING)
        self._found = [
            (path, _Choice(story, session, told))
            for path, story, session, told in waiting_recordings(file.path.parent)
        ]
        self._taken: list[_Choice] = [] if own is None else [own]

    def append(self) -> int | None:
        """Append what the file lacks; return how many lessons it holds, None where nothing waits. Raises ``AppendFailed``."""
        choices = [*self._taken, *(choice for _, choice in self._found)]
        tags = {candidate.lesson.tags[0] for choice in choices for candidate in choice.candidates}
        if not tags:
            return None
        for candidate in choices[0].candidates:
            # What a comparison needs is loaded before anybody has to wait for it.
            tells_the_same(candidate.lesson.summary, "")
        try:
            return self._file.append(self._choose, tags).total
        except AppendFailed as error:
            others = [choice for choice in self._taken if choice is not self._own]
            if isinstance(error, AppendBusy) and self._own is not None:
                others.append(self._own)
            for choice in others:
                told = [[one.event, one.lesson._asdict(), one.source] for one in choice.candidates]
                identity = {"story_key": choice.story_key, "session_id": session_name(choice.session_id)}
                self._waiting.keep({**identity, "candidates": told})
            raise

    def _choose(self, present: Sequence[Lesson]) -> list[Lesson]:
        # A file is taken by whoever removes it.
        self._taken += [choice for path, choice in self._found if take(path)]
        chosen: list[Lesson] = []
        for choice in self._taken:
            chosen += choice.choose([*present, *chosen])
        return chosen

    def count(self, store: Store, now: datetime) -> None:
        """Keep where the lessons came from, and which came back."""
        for choice in self._taken:
            if choice.candidates:
                counts = LessonCounts(store, self._file)
                counts.note_recording(
                    choice.fresh,
                    tuple(choice.recurred.values()),
                    story_key=choice.story_key,
                    session_id=choice.session_id,
                    now=now,
                )


def append_waiting(file: LessonsFile, store: Store, now: datetime) -> None:
    """Append the lessons of recorders that could not wait for their turn."""
    queue = _Queue(file, None)
    try:
        if queue.append() is not None:
            queue.count(store, now)
    except AppendFailed as error:
        logger.warning("%s: %s", file.path, error)


def record(
    request: RecordRequest,
    *,
    lessons_file: Path,
    project_root: Path,
    limits: Limits,
    store: Store | None,
    now: datetime,
    lock_timeout: float = LOCK_TIMEOUT,
    remedies: tuple[Remedy, ...] = (),
    writer: Writer | None = None,
) -> RecordEnvelope:
    """Answer a valid request: ``recorded``, ``skipped`` or ``failure`` (``append_write_failed``).

    The file is the authority: ``store``, when there is one that can serve, keeps the lessons' origin and
    which of them recurred. ``lock_timeout`` is how many seconds to queue behind other writers, ``remedies`` the
    users' own rows, ``writer`` a model that words lessons.
    """
    returned = read_return(request.agent_return)
    detected = detect(request.event_type, request.phase, returned, limits)
    if not detected:
        return skip({"session_id": request.session_id, "story_key": request.story_key}, NO_EVENTS)
    if len(detected) > MOST_EVENTS:
        logger.warning("%d events detected; the first %d are recorded", len(detected), MOST_EVENTS)
    context = Context(
        code_paths=request.code_paths,
        framework=request.framework_context,
        additional=request.additional_context,
        project_root=str(project_root),
        remedies=remedies,
        writer=writer,
        quotes_tools=limits.quotes_tools,
    )
    candidates = _distilled(request, detected[:MOST_EVENTS], returned, context, now)
    choice = _Choice(request.story_key, request.session_id, candidates)
    file = LessonsFile(lessons_file, lock_timeout=lock_timeout)
    shown = _shown(lessons_file, project_root)
    queue = _Queue(file, choice)
    try:
        total = queue.append()
    except AppendFailed as error:
        logger.warning("%s: %s", lessons_file, error)
        return _failed(request, len(detected), shown, error)
    if store is not None:
        queue.count(store, now)
    return _answer(request, choice, len(detected), shown, _count(file) if total is None else total)


def _answer(request: RecordRequest, choice: _Choice, detected: int, shown: str, total: int) -> RecordEnvelope:
    entries = [_entry(candidate) for candidate in choice.fresh]
    if held := sum(entry.quarantined for entry in entries):
        logger.warning(
            "%s: a command, an address, advice, an order, or words of a tool that nobody read; kr lessons review",
            counted(held, "lesson is quarantined", "lessons are quarantined"),
        )
    return RecordEnvelope(
        status="recorded" if entries else "skipped",
        session_id=request.session_id,
        story_key=request.story_key,
        results=RecordResults(
            events_detected=detected,
            entries_recorded=len(entries),
            entries_skipped=detected - len(entries),
            recorded_entries=entries,
            file_path=shown,
            total_entries_in_file=total,
            message=None if entries else ALL_DUPLICATES if choice.candidates else NOTHING_TOLD,
        ),
    )


def confirmation(envelope: RecordEnvelope) -> str | None:
    """Return the line that tells people what was written (seed 003, step 5.6c), for standard error."""
    results = envelope.results
    if envelope.status != "recorded":
        return None
    return CONFIRMATION.format(
        recorded=results.entries_recorded,
        name=results.file_path.rpartition("/")[2],
        total=results.total_entries_in_file,
    )


def _distilled(
    request: RecordRequest,
    events: Sequence[EventType],
    returned: AgentReturn,
    context: Context,
    now: datetime,
) -> list[Candidate]:
    date = now.astimezone(UTC).date().isoformat()
    found: list[Candidate] = []
    for event in events:
        phase = phase_tag(event, request.phase)
        # Each phase's next agent gets the best text there is; only within one phase must lessons differ.
        used = [other.lesson.summary for other in found if phase in other.lesson.tags]
        worded = lesson_of(event, phase, returned, context, date=date, used=used)
        if worded is None:
            logger.warning("%s: the agent's return tells nothing that a lesson could be made of", event)
        else:
            found.append(Candidate(event, worded.lesson, worded.source))
    return found


def _entry(candidate: Candidate) -> RecordedEntry:
    lesson = candidate.lesson
    return RecordedEntry(
        date=lesson.date,
        phase=lesson.tags[0],
        event_type=candidate.event,
        summary=lesson.summary,
        ref=lesson.ref,
        quarantined=QUARANTINED in lesson.tags,
    )


def _failed(request: RecordRequest, detected: int, shown: str, error: AppendFailed) -> RecordEnvelope:
    later = "; it waits, and the next recording appends it" if isinstance(error, AppendBusy) else ""
    return RecordEnvelope(
        status="failure",
        session_id=request.session_id,
        story_key=request.story_key,
        results=RecordResults(events_detected=detected, file_path=shown),
        errors=[RecordProblem(type=error.code, file_path=shown, message=f"{APPEND_FAILED}: {error}{later}")],
    )


def _count(file: LessonsFile) -> int:
    try:
        return file.read(()).total
    except LessonsUnreadable as error:
        logger.warning("%s: %s", file.path, error)
        return 0


def _shown(path: Path, project_root: Path) -> str:
    """Name the file relative to the project, or whole when it lies outside of it."""
    return (path.relative_to(project_root) if path.is_relative_to(project_root) else path).as_posix()
