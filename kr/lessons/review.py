"""What people look through and decide: which lessons are in quarantine, contradict each other, or never help (SPEC 4.2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from kr.lessons.choose import is_quarantined
from kr.lessons.duplicates import contradicting
from kr.lessons.line import Lesson
from kr.lessons.worth import worth
from kr.store.rows import LessonState


def state_of(lesson: Lesson, states: Mapping[str, LessonState]) -> LessonState:
    """Return what is known of a lesson; of one that the database does not know, nothing."""
    return states.get(lesson.id) or LessonState(id=lesson.id)


def status(lesson: Lesson, state: LessonState) -> str:
    """Say where a lesson stands: ``retired``, ``superseded``, ``quarantined``, ``pinned`` or ``live``."""
    if state.retired_at:
        return "retired"
    if state.superseded_by:
        return "superseded"
    if not state.approved_at and is_quarantined(lesson, state):
        return "quarantined"
    return "pinned" if state.pinned_at else "live"


def view(lesson: Lesson, state: LessonState) -> dict[str, Any]:
    """Show a lesson with what became of it."""
    return {
        "id": lesson.id,
        "date": lesson.date,
        "phase": lesson.phase,
        "tags": list(lesson.tags),
        "summary": lesson.summary,
        "ref": lesson.ref,
        "line": lesson.position + 1,
        "status": status(lesson, state),
        "source": state.source or "file",
        "event_type": state.event_type,
        "story_key": state.story_key,
        "session_id": state.session_id,
        "injected": state.injected,
        "sessions": state.sessions,
        "recurred": state.recurred,
        "recurred_after_injection": state.recurred_after_injection,
        "last_recurred_at": state.last_recurred_at,
        "worth": worth(state),
    }


def to_review(lessons: Sequence[Lesson], states: Mapping[str, LessonState]) -> dict[str, list[Any]]:
    """Return the quarantined, the pairs that contradict each other, and what is given without ever helping."""
    live = [lesson for lesson in lessons if status(lesson, state_of(lesson, states)) in {"live", "pinned"}]
    views = {lesson.id: view(lesson, state_of(lesson, states)) for lesson in lessons}
    return {
        "quarantined": [
            views[lesson.id]
            for lesson in lessons
            if status(lesson, state_of(lesson, states)) == "quarantined"
        ],
        "contradicting": [[views[one.id], views[other.id]] for one, other in contradicting(live)],
        "never_useful": [
            views[lesson.id] for lesson in live if worth(state_of(lesson, states)) in {"idle", "unheeded"}
        ],
    }
