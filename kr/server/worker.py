"""Runs the operations of ``kr.app``, which block, for an event loop: bounded, and cancellable."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import anyio

from kr.app import App
from kr.cancellation import Cancellation, check
from kr.errors import Overloaded

T = TypeVar("T")
Notify = Callable[[str], Coroutine[Any, Any, None]]
"""Takes the step that begins, in one line."""

MAX_CALLS = 128
"""Calls that may be at work, or wait for a thread, at the same time."""

_NOTIFY: contextvars.ContextVar[Callable[[str], object] | None] = contextvars.ContextVar(
    "kr_notify", default=None
)


def notify_client(step: str) -> None:
    """Notify the client of the request at work of its step, if it wants to know; see ``kr.research.service.Progress``."""
    if step:
        check()
        if (notify := _NOTIFY.get()) is not None:
            notify(step)


class Workers:
    """One ``App``, and the threads that use it at the same time."""

    def __init__(self, app: App, *, workers: int, max_calls: int = MAX_CALLS) -> None:
        self.app = app
        self._max_calls = max_calls
        self._calls = 0
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="kr-worker")

    async def run(self, work: Callable[[], T], *, notify: Notify | None = None) -> T:
        """Do ``work`` in a thread; what it raises is raised here. ``notify`` gets its steps.

        When the caller is cancelled the work is too, and has given back leases and reservations before the caller goes on.
        Raises ``Overloaded`` where there are too many calls already.
        """
        if self._calls >= self._max_calls:
            raise Overloaded(f"{self._calls} requests are at work; try again")
        cancellation = Cancellation()
        context = contextvars.copy_context()
        if notify is not None:
            loop = asyncio.get_running_loop()
            context.run(_NOTIFY.set, lambda step: asyncio.run_coroutine_threadsafe(notify(step), loop))
        self._calls += 1
        job = self._threads.submit(context.run, cancellation.run, work)
        ended = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            cancellation.cancel()
            if not job.cancel():  # it runs already
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([ended])
                    ended.exception()  # nobody waits for it: else asyncio would log it
            raise
        finally:
            self._calls -= 1
