"""The end that a whole invocation must keep (SPEC 3.5)."""

import time
from collections.abc import Callable

_SHARE_KEPT = 0.05
_MOST_KEPT = 5.0


class OverallDeadline:
    """Counts down from ``seconds``, in monotonic time.

    A small share is kept back for writing the report, so that the answer is out before the caller's own
    clock runs down.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._kept = min(seconds * _SHARE_KEPT, _MOST_KEPT)

    def remaining(self) -> float:
        """Seconds left for asking sources; never negative."""
        return max(0.0, self._end - self._kept - self._clock())

    def allows(self, timeout: float) -> float:
        """Seconds that a call may take which would like ``timeout``."""
        return min(timeout, self.remaining())
