"""What lessons are worth, and what a person should look at (SPEC 4.2). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from kr.lessons.index import held_because
from kr.lessons.inject import SUNK_AFTER, Task, rank_fits, without_secrets
from kr.lessons.line import Lesson
from kr.store.lessons import LessonState

_TRIED = 3
_UNHEEDED = 1 / 3
_MOST_NAMED = 5
_COUNTS = ("injected", "sessions", "recurred", "recurred_after_injection", "last_recurred_at")

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
    return "idle" if state.injected >= SUNK_AFTER and not state.recurred else "new"


def status(state: LessonState, held: str | None) -> str:
    """Say where a lesson stands: ``retired``, ``superseded``, ``quarantined``, ``pinned`` or ``live``."""
    if state.retired_at:
        return "retired"
    if state.superseded_by:
        return "superseded"
    if held and not state.approved_at:
        return "quarantined"
    return "pinned" if state.pinned_at else "live"


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
        "line": lesson.position + 1,
        "status": status(known, held),
        "held_because": held,
        "source": known.source or "file",
        "event_type": known.event_type,
        "story_key": known.story_key,
        "session_id": known.session_id,
        **{name: getattr(known, name) for name in _COUNTS},
        "worth": worth(known),
    }


def matching(lessons: Sequence[Lesson], query: str) -> list[Lesson]:
    """Return the lessons that share a word with the query, the most relevant first."""
    return rank_fits(lessons, Task(phase="", query=query))


def to_review(lessons: Sequence[Lesson], states: Mapping[str, LessonState]) -> dict[str, list[Any]]:
    """Return the quarantined, and what is given without ever helping."""
    views = [view(lesson, states.get(lesson.id)) for lesson in lessons]
    live = [shown for shown in views if shown["status"] in {"live", "pinned"}]
    return {
        "quarantined": [shown for shown in views if shown["status"] == "quarantined"],
        "never_useful": [shown for shown in live if shown["worth"] in {"idle", "unheeded"}],
    }


def worth_counts(views: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Count lessons by their worth, and name the five of each kind whose failures came back most."""
    live = [lesson for lesson in views if lesson["status"] in {"live", "pinned"}]
    kinds: tuple[Worth, ...] = get_args(Worth)
    most = sorted(live, key=lambda lesson: (-lesson["recurred"], lesson["line"]))
    shown = ("id", "summary", "injected", "recurred", "recurred_after_injection")
    return {
        "by_worth": {kind: sum(lesson["worth"] == kind for lesson in live) for kind in kinds},
        "quarantined": sum(lesson["status"] == "quarantined" for lesson in views),
        **{
            kind: [{key: lesson[key] for key in shown} for lesson in most if lesson["worth"] == kind][
                :_MOST_NAMED
            ]
            for kind in ("helps", "unheeded")
        },
    }
