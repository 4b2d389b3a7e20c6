"""What a lesson is worth: whether its failure came back, with and without the lesson given (SPEC 4.2)."""

from typing import Literal

from kr.store.rows import LessonState

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
