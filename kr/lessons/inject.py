"""LI-1 to LI-4 of seed 000: the lessons of a phase, for the agent that is about to start."""

import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

from kr.contracts.envelopes import Envelope, Problem
from kr.contracts.lessons import InjectedLesson, InjectResults
from kr.contracts.requests import LessonsInjectRequest
from kr.freshness import to_text
from kr.lessons.choose import Need, block, choose, is_judged, of_phase, state_of
from kr.lessons.counts import NOTHING_KNOWN, LessonCounts, session_name
from kr.lessons.file import LessonsFile, LessonsUnreadable, waiting_recordings
from kr.lessons.line import Lesson
from kr.log import Logger
from kr.store.lessons import LessonState
from kr.store.requests import RequestRow
from kr.store.store import Store
from kr.text.counting import counted

logger = Logger(__name__)

READ_ERROR = "Failed to read _lessons-learned.md: {detail}"
NONE_FOUND = "No lessons found for phase '{phase}'"
MODE = "lessons-inject"
UNKNOWN_SOURCE = "file"
"""The source of a line that people or other tools wrote."""


def inject(
    request: LessonsInjectRequest,
    *,
    lessons_file: Path,
    budget: int,
    store: Store | None,
    now: datetime,
) -> Envelope:
    """Answer a valid request: ``success``, ``empty`` or ``failure`` (``file_read_error``).

    At most ``budget`` lessons: those that fit the request's framework, query and files first, then by worth and date.
    ``store`` knows what became of them, and keeps what was injected and the request, unless it is a dry run;
    ``None``, or a database that can't serve, changes nothing else of the answer.
    """
    began = time.monotonic()
    file = LessonsFile(lessons_file)
    counts = None if store is None else LessonCounts(store, file)
    try:
        answer, chosen, judged = _chosen(request, file, budget, counts)
    except LessonsUnreadable as error:
        problem = Problem(type=error.code, message=READ_ERROR.format(detail=error))
        answer, chosen, judged = _answered(request, "failure", None, problem), [], []
    if counts is not None and not request.lessons_inject.dry_run:
        asked = request.lessons_inject
        row = RequestRow(
            id=uuid.uuid4().hex,
            at=to_text(now),
            mode=MODE,
            status=answer.status,
            story_key=request.story_key,
            session_id=session_name(request.session_id),
            framework=asked.framework or None,
            duration_ms=round((time.monotonic() - began) * 1000),
        )
        counts.note_injection(row, asked.phase, chosen, judged)
    return answer


def _chosen(
    request: LessonsInjectRequest, file: LessonsFile, budget: int, counts: LessonCounts | None
) -> tuple[Envelope, list[Lesson], list[Lesson]]:
    """Answer, and return the lessons that are given, and those of them that were judged just now."""
    asked = request.lessons_inject
    parsed = file.read({asked.phase})
    if parsed.unread:
        passed = counted(parsed.unread, "line is no lesson", "lines are no lessons")
        logger.warning("%s: %s; passed over", file.path, passed)
    # What a recorder could not append yet is given as if it stood at the file's end.
    waiting = [one.lesson for *_, told in waiting_recordings(file.path.parent) for one in told]
    found = of_phase([*parsed.lessons, *waiting], asked.phase)
    if not found:
        logger.info(NONE_FOUND.format(phase=asked.phase))
    known = counts.known(asked.phase) if counts and found else NOTHING_KNOWN
    need = Need(phase=asked.phase, framework=asked.framework, query=asked.query, files=asked.files)
    chosen = choose(found, budget, need, known.states, known.harmless)
    results = InjectResults(
        phase=asked.phase,
        total_lessons_found=parsed.total + len(waiting),
        phase_filtered_count=len(found),
        injected_count=len(chosen),
        injection_block=block(asked.phase, chosen) if chosen else "",
        lessons=[_attributed(lesson, state_of(lesson, known.states)) for lesson in chosen],
    )
    judged = [
        lesson
        for lesson in chosen
        if lesson.id not in known.harmless and is_judged(lesson, state_of(lesson, known.states))
    ]
    return _answered(request, "success" if chosen else "empty", results.plain()), chosen, judged


def _answered(
    request: LessonsInjectRequest, status: str, results: dict[str, Any] | None, *problems: Problem
) -> Envelope:
    return Envelope(
        status=status,
        story_key=request.story_key,
        mode=request.mode,
        session_id=request.session_id,
        results=results,
        errors=list(problems),
    )


def _attributed(lesson: Lesson, state: LessonState) -> InjectedLesson:
    return InjectedLesson(
        id=lesson.id,
        summary=lesson.summary,
        ref=lesson.ref,
        tags=list(lesson.tags),
        date=lesson.date,
        source=state.source or UNKNOWN_SOURCE,
        story_key=state.story_key,
        session_id=state.session_id,
    )
