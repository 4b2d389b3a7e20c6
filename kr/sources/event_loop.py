"""Runs asynchronous work for callers that are not asynchronous, within a deadline that nothing puts off.

The loop has a thread of its own: a signal may raise in the caller's thread at any moment without tearing the loop apart, and the
caller goes on at its deadline even when the loop does not come back.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

import anyio

from kr.cancellation import on_cancel
from kr.errors import SourceTimeout

T = TypeVar("T")

THREAD = "kr-network"
_STOPPING = 5.0
"""Seconds that the work may take to stop after its deadline or an interruption: a server process needs one or two to end."""


def run(work: Callable[[], Awaitable[T]], *, timeout: float) -> T:
    """Return what ``work`` returns within ``timeout`` seconds, and raise what it raises. Raises ``SourceTimeout``."""
    job = _Job(work, timeout)
    thread = threading.Thread(target=job.run, name=THREAD, daemon=True)
    try:
        thread.start()
        with on_cancel(job.awake.set):
            job.awake.wait(timeout + _STOPPING)
    finally:
        job.cancel()
        if thread.ident is not None:
            thread.join(_STOPPING)
    return job.result()


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a thread that nobody waits for once the caller is cancelled, not even at the program's end."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from now on nobody's cancellation ends it

    def target() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised again by who waits
            done.set_exception(error)

    threading.Thread(target=target, name=f"{THREAD}-blocking", daemon=True).start()
    return await asyncio.wrap_future(done)


class _Job(Generic[T]):
    """The work of one ``run``. ``awake`` is set when it has ended, or when nobody waits for it any more."""

    def __init__(self, work: Callable[[], Awaitable[T]], timeout: float) -> None:
        self.awake = threading.Event()
        self._work = work
        self._timeout = timeout
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scope: anyio.CancelScope | None = None
        self._done: Future[T] = Future()

    def run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  # the thread's end: the caller's thread raises it
            if not self._done.done():
                self._done.set_exception(error)
        finally:
            with self._lock:
                self._loop = None
            self.awake.set()

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, _context: None)  # it would print what is reported anyway
        with anyio.move_on_after(self._timeout) as scope:
            with self._lock:
                self._loop, self._scope = loop, scope
                if self._is_cancelled:
                    scope.cancel()
            self._done.set_result(await self._work())

    def cancel(self) -> None:
        """Have the work stopped, if it still runs."""
        with self._lock:
            self._is_cancelled = True
            if self._loop is not None and self._scope is not None:
                with suppress(RuntimeError):  # it has just closed
                    self._loop.call_soon_threadsafe(self._scope.cancel)

    def result(self) -> T:
        if self._done.done():
            return self._done.result()
        raise SourceTimeout(f"no answer within {self._timeout:.3g} s")
