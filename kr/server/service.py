"""Runs the operations of ``kr.app``, which are synchronous, for an event loop: bounded, and to be broken off.

Every operation runs in a worker thread with a ``Cancellation`` of its own. When the task that waits for it is
cancelled, because a client said so or is gone, the work ends and gives back leases and reservations before the
task goes on.
"""

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from contextvars import ContextVar
from functools import cached_property
from typing import Generic, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from kr.app import App
from kr.cancellation import Cancellation, check
from kr.errors import Overloaded

T = TypeVar("T")
Tell = Callable[[str], Awaitable[None]]
"""Takes what is being done, in one line."""

MOST_WAITING = 128
_PATIENCE = 1.0
"""Seconds that a client may take to hear of the progress: one that doesn't listen holds up nobody for longer."""

_TELL: ContextVar[Tell | None] = ContextVar("kr_tell", default=None)


class RequestProgress:
    """Tells the client of the request at work, if it wants to know; see ``kr.research.chain.Progress``."""

    def asking(self, source: str) -> None:
        """``source`` is being asked."""
        self._tell(f"asking {source}")

    def waiting(self) -> None:
        """Another agent researches the same."""
        self._tell("waiting for another agent that researches the same")

    def done(self) -> None:
        """Nothing is said of an end: the answer, or the next step, says it."""

    @staticmethod
    def _tell(what: str) -> None:
        tell = _TELL.get()
        if tell is not None:
            check()
            with suppress(CancelledError):  # nobody waits any more: the work hears of it at its next wait
                anyio.from_thread.run(_tell_in_time, tell, what)


async def _tell_in_time(tell: Tell, what: str) -> None:
    with anyio.move_on_after(_PATIENCE):
        await tell(what)


class Service:
    """One ``App``, whose store threads may share, and the workers that use it."""

    def __init__(self, app: App, *, workers: int) -> None:
        """``workers`` operations run at the same time; others wait."""
        self.app = app
        self._workers = workers

    @cached_property
    def _limiter(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(self._workers)

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(self._workers)

    async def run(self, work: Callable[[], T], *, tell: Tell | None = None) -> T:
        """Do ``work`` in a worker thread; what it raises is raised here. ``tell`` hears of its progress.

        Raises ``Overloaded`` where too much waits: an MCP call outlives the HTTP request that brought it, so how
        many requests are at work doesn't bound it.
        """
        if self._limiter.statistics().tasks_waiting >= MOST_WAITING:
            raise Overloaded(f"{MOST_WAITING} calls wait for a worker already; try again")
        job = _Job(work)
        told = _TELL.set(tell)
        try:
            async with self._limiter:
                return await self._work(job)
        finally:
            _TELL.reset(told)

    async def _work(self, job: "_Job[T]") -> T:
        try:
            return await anyio.to_thread.run_sync(job.run, limiter=self._threads, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            job.cancellation.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(job.wait)
            raise


class _Job(Generic[T]):
    """Work that a thread does, unless it is cancelled before it began."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.cancellation = Cancellation()
        self._work = work
        self._ended = threading.Event()
        self._begun = threading.Lock()

    def run(self) -> T:
        self._begun.acquire(blocking=False)
        try:
            return self.cancellation.run(self._work)
        finally:
            self._ended.set()

    def wait(self) -> None:
        """Return once a cancelled job has given back what it held."""
        if not self._begun.acquire(blocking=False):
            self._ended.wait()
