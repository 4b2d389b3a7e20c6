"""What a lesson is worth, where it stands, and what of the lessons a person should look at (SPEC 4.1, 4.2)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from kr.lessons.line import QUARANTINED, Lesson
from kr.store.lessons import LessonState

SUNK_AFTER = 10
"""Given so often without coming back, a lesson makes room for younger ones."""

_TRIED = 3
_UNHEEDED = 1 / 3

Worth = Literal["new", "helps", "unheeded", "idle"]
"""``helps``: the failure came back only, or mostly, where the lesson was not given. ``unheeded``: it comes back although
the lesson is given. ``idle``: given ten times, and it never came back. ``new``: nothing is proven yet."""


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
    return "idle" if is_sunk(state) else "new"


def is_sunk(state: LessonState) -> bool:
    """Tell a lesson that was given ten times and whose failure never came back."""
    return state.injected >= SUNK_AFTER and state.recurred == 0


def rank(state: LessonState) -> int:
    """Rank beside equal lessons: one whose failure came back rises, one that is sunk goes below the younger ones."""
    return 1 if state.recurred else -1 if is_sunk(state) else 0


_MOST = 5


def is_injectable(lesson: Lesson, state: LessonState) -> bool:
    """Tell whether a lesson may go into an agent's prompt: not retired, replaced or in quarantine."""
    if state.retired_at or state.superseded_by:
        return False
    return state.approved_at is not None or not is_quarantined(lesson, state)


def is_quarantined(lesson: Lesson, state: LessonState) -> bool:
    """Tell a lesson that nobody approved and that names what an agent must not just do (SPEC 4.1).

    A line that people or other tools wrote may name a command; it must not read as an order to its reader.
    """
    if QUARANTINED in lesson.tags or state.source in {"table", "person"}:
        return QUARANTINED in lesson.tags
    from kr.lessons.distill.trust import is_hostile

    return is_hostile(f"{lesson.summary} {lesson.ref or ''}")


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
    from kr.lessons.duplicates import contradicting

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
