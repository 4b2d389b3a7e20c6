"""Runs the operations of ``kr.app``, which are synchronous, for an event loop: bounded, and to be broken off.

Every operation runs in a worker thread with a ``Cancellation`` of its own. When the task that waits for it is
cancelled, because a client said so or is gone, the work ends and gives back leases and reservations before the
task goes on.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread

from kr.app import App
from kr.cancellation import Cancellation, Cancelled
from kr.errors import Overloaded

T = TypeVar("T")
Tell = Callable[[str], Awaitable[None]]
"""Takes what is being done, in one line."""

MOST_WAITING = 128
_BUFFERED = 64
_TELL: ContextVar[Callable[[str], None] | None] = ContextVar("kr_tell", default=None)


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
            tell(what)


class Service:
    """One ``App``, whose store threads may share, and the workers that use it."""

    def __init__(self, app: App, *, workers: int) -> None:
        """``workers`` operations run at the same time; others wait."""
        self.app = app
        self._workers = workers

    @cached_property
    def _limiter(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(self._workers)

    async def run(self, work: Callable[[], T], *, tell: Tell | None = None) -> T:
        """Do ``work`` in a worker thread; what it raises is raised here. ``tell`` hears of its progress.

        Raises ``Overloaded`` where too much waits: an MCP call outlives the HTTP request that brought it, so how
        many requests are at work doesn't bound it.
        """
        if self._limiter.statistics().tasks_waiting >= MOST_WAITING:
            raise Overloaded(f"{MOST_WAITING} calls wait for a worker already; try again")
        cancellation = Cancellation()
        done: list[T] = []
        failed: list[Exception] = []

        def in_thread() -> None:
            try:
                done.append(cancellation.run(work))
            except Cancelled:
                return  # the task that waits was cancelled itself
            except Exception as error:  # noqa: BLE001 - raised again by the task, outside of its groups
                failed.append(error)

        async def break_off() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                cancellation.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(break_off)
            async with _telling(tell):
                await anyio.to_thread.run_sync(in_thread, limiter=self._limiter)
            group.cancel_scope.cancel()
        if failed:
            raise failed[0]
        if not done:  # broken off: the task was cancelled while the worker held it
            await anyio.lowlevel.checkpoint_if_cancelled()
        return done[0]


@asynccontextmanager
async def _telling(tell: Tell | None) -> AsyncIterator[None]:
    """Carry what the worker started in the block says to ``tell``; a client that doesn't listen holds up nobody."""
    if tell is None:
        yield
        return
    send, receive = anyio.create_memory_object_stream[str](_BUFFERED)

    def put(what: str) -> None:
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError):
            send.send_nowait(what)

    async def carry() -> None:
        async with receive:
            async for what in receive:
                await tell(what)

    token = _TELL.set(lambda what: anyio.from_thread.run_sync(put, what))
    try:
        async with anyio.create_task_group() as group, send:
            group.start_soon(carry)
            yield
    finally:
        _TELL.reset(token)
