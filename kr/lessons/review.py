"""What people look through and decide: which lessons are in quarantine, contradict each other, or never help (SPEC 4.2)."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from kr.lessons.choose import is_quarantined
from kr.lessons.duplicates import contradicting
from kr.lessons.line import Lesson
from kr.lessons.worth import Worth, worth
from kr.store.rows import LessonState

_MOST = 5


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


def earning(views: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Count lessons by their worth, and name the five of each kind whose failures came back most."""
    live = [lesson for lesson in views if lesson["status"] in {"live", "pinned"}]
    kinds: tuple[Worth, ...] = get_args(Worth)
    most = sorted(live, key=lambda lesson: (-lesson["recurred"], lesson["line"]))
    shown = ("id", "summary", "injected", "recurred", "recurred_after_injection")
    return {
        "by_worth": {kind: sum(lesson["worth"] == kind for lesson in live) for kind in kinds},
        "quarantined": sum(lesson["status"] == "quarantined" for lesson in views),
        **{
            kind: [{key: lesson[key] for key in shown} for lesson in most if lesson["worth"] == kind][:_MOST]
            for kind in ("helps", "unheeded")
        },
    }
