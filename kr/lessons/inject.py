"""LI-1 to LI-4 of seed 000: the lessons of a phase, for the agent that is about to start."""

import logging
import time
import uuid
from datetime import datetime
from pathlib import Path

from kr.contracts.envelopes import Envelope, Problem
from kr.contracts.lessons import InjectResults
from kr.contracts.requests import LessonsInjectRequest
from kr.lessons.catalog import Catalog, Injection
from kr.lessons.choose import block, distinct, most_relevant, newest, of_phase
from kr.lessons.file import LessonsFile, LessonsUnreadable
from kr.lessons.line import Lesson
from kr.store.store import Store
from kr.text.counting import counted

logger = logging.getLogger(__name__)

READ_ERROR = "Failed to read _lessons-learned.md: {detail}"
NONE_FOUND = "No lessons found for phase '{phase}'"


def inject(
    request: LessonsInjectRequest,
    *,
    lessons_file: Path,
    budget: int,
    store: Store | None,
    now: datetime,
    query: str = "",
    framework: str = "",
) -> Envelope:
    """Answer a valid request: ``success``, ``empty`` or ``failure`` (``file_read_error``).

    At most ``budget`` lessons, newest first, or the most relevant first when a query or a framework is given.
    ``store`` keeps what was injected and the request; ``None``, or a database that can't serve, changes
    nothing of the answer.
    """
    began = time.monotonic()
    phase = request.lessons_inject.phase
    file = LessonsFile(lessons_file)
    try:
        parsed = file.read({phase})
    except LessonsUnreadable as error:
        answer = _failed(request, error)
        chosen: list[Lesson] = []
    else:
        if parsed.unread:
            passed = counted(parsed.unread, "line is no lesson", "lines are no lessons")
            logger.warning("%s: %s; passed over", lessons_file, passed)
        found = of_phase(parsed.lessons, phase)
        chosen = _choose(found, budget, query, framework)
        if not found:
            logger.info(NONE_FOUND.format(phase=phase))
        answer = _answered(request, parsed.total, len(found), chosen)
    if store is not None:
        Catalog(store, file).note_injection(
            Injection(
                request_id=uuid.uuid4().hex,
                phase=phase,
                status=answer.status,
                story_key=request.story_key,
                session_id=request.session_id,
                framework=framework or None,
                topic=query or None,
                lessons=tuple(chosen),
                duration_ms=round((time.monotonic() - began) * 1000),
            ),
            now,
        )
    return answer


def _choose(lessons: list[Lesson], budget: int, query: str, framework: str) -> list[Lesson]:
    if query.strip() or framework.strip():
        return distinct(
            lambda count: most_relevant(lessons, count, query=query, framework=framework),
            budget,
            len(lessons),
        )
    return distinct(lambda count: newest(lessons, count), budget, len(lessons))


def _answered(request: LessonsInjectRequest, total: int, found: int, chosen: list[Lesson]) -> Envelope:
    phase = request.lessons_inject.phase
    return Envelope(
        status="success" if chosen else "empty",
        story_key=request.story_key,
        mode=request.mode,
        session_id=request.session_id,
        results=InjectResults(
            phase=phase,
            total_lessons_found=total,
            phase_filtered_count=found,
            injected_count=len(chosen),
            injection_block=block(phase, chosen) if chosen else "",
        ).model_dump(),
        errors=[],
    )


def _failed(request: LessonsInjectRequest, error: LessonsUnreadable) -> Envelope:
    return Envelope(
        status="failure",
        story_key=request.story_key,
        mode=request.mode,
        session_id=request.session_id,
        results=None,
        errors=[Problem(type=error.code, message=READ_ERROR.format(detail=error))],
    )
