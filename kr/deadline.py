"""The end of an exchange with a server, which nothing that the other side does puts off: a slow name, a dripping answer.

``Deadline`` counts what is left and breaks its open sockets off; ``bounded`` waits for work that can't be interrupted.
"""

import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kr.cancellation import broken_off
from kr.errors import SourceTimeout

T = TypeVar("T")


class Deadline:
    """The end of an exchange, ``seconds`` from now, and its open sockets, so that it can be broken off."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._children: list[Deadline] = []
        self._cancelled = False

    def remaining(self) -> float:
        left = 0.0 if self._cancelled else self._end - time.monotonic()
        if left <= 0:
            raise SourceTimeout("no answer in time")
        return left

    def within(self, seconds: float) -> "Deadline":
        """Make a deadline of at most ``seconds`` that is cancelled with this one."""
        child = Deadline(min(seconds, self.remaining()))
        with self._lock:
            self._children.append(child)
            child._cancelled = self._cancelled  # of its own class
        return child

    def watch(self, opened: socket.socket) -> None:
        with self._lock:
            self._sockets.add(opened)
            cancelled = self._cancelled
        if cancelled:
            _break_off(opened)

    def forget(self, opened: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(opened)

    def cancel(self) -> None:
        """Wake everybody who waits for a socket of this deadline; they end with a timeout."""
        with self._lock:
            self._cancelled = True
            sockets, children = tuple(self._sockets), tuple(self._children)
        for opened in sockets:
            _break_off(opened)
        for child in children:
            child.cancel()


def _break_off(opened: socket.socket) -> None:
    try:
        opened.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already


def bounded(work: Callable[[], T], deadline: Deadline) -> T:
    """Run ``work``, which can't be interrupted, in a daemon thread, and wait until the deadline. Raises what it raises."""
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((work(), None))
        except BaseException as error:  # noqa: BLE001  # raised again by who waits
            done.put((None, error))

    threading.Thread(target=run, name="kr-bounded", daemon=True).start()
    try:
        with broken_off(lambda: done.put((None, SourceTimeout("no answer in time")))):
            value, error = done.get(timeout=deadline.remaining())
    except queue.Empty:
        raise SourceTimeout("no answer in time") from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # an error was raised above
