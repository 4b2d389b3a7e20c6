"""Breaking off work that runs in a thread of a server: what Ctrl-C is to a process of its own.

``Cancellation.run`` does the work; whatever waits below it asks here: ``check`` after a wait, ``sleep`` in place of ``time.sleep``,
``on_cancel`` around what only another thread can wake. Without a cancellation, as on the command line, they cost nothing.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Cancelled(BaseException):
    """Nobody waits for the answer any more. Like KeyboardInterrupt it is no Exception: only clean-up catches it."""


class Cancellation:
    """One piece of work that may be broken off, from any thread."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._lock = threading.Lock()
        self._wakers: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Have the work end with ``Cancelled`` at its next wait. May be said twice, or after its end."""
        with self._lock:
            self.event.set()
            wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    def run(self, work: Callable[[], T]) -> T:
        token = _CURRENT.set(self)
        try:
            check()
            return work()
        finally:
            _CURRENT.reset(token)

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Have ``cancel`` call ``wake`` while the block runs. Raises ``Cancelled`` where it was said before."""
        with self._lock:
            check()
            self._wakers.append(wake)
        try:
            yield
        finally:
            with self._lock, suppress(ValueError):
                self._wakers.remove(wake)


_CURRENT: ContextVar[Cancellation | None] = ContextVar("kr_cancellation", default=None)


def check() -> None:
    sleep(0)


def sleep(seconds: float) -> None:
    current = _CURRENT.get()
    if current is None:
        time.sleep(seconds)
    elif current.event.wait(seconds):
        raise Cancelled


def on_cancel(wake: Callable[[], None]) -> AbstractContextManager[None]:
    """Have ``wake`` called, in another thread, when this thread's work is cancelled within the block."""
    current = _CURRENT.get()
    return nullcontext() if current is None else current.waking(wake)
