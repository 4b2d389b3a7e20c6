"""Runs an instance: asks the state machine what is to be done, saves, does it, and tells the machine (rule 9).

The state is on the disk before anything is done that it speaks of. Whatever kills the runner, what the file calls
completed is done and is never done again.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from kr.cancellation import Cancellation, Cancelled
from kr.errors import KrError
from kr.times import to_text
from kr.workflows.files import write_state
from kr.workflows.machine import handle
from kr.workflows.processes import (
    Command,
    forget,
    may_still_run,
    recover,
    spawn,
    stop_all,
    took_too_long,
)
from kr.workflows.state import Begin, Event, Finished, Instance, Job, Spawned

logger = logging.getLogger(__name__)

OnChange = Callable[[Instance], None]
Perform = Callable[[Job, Instance], Finished]
"""Does one of kr's own operations for a job. Raises ``KrError``."""
Work = Command | Cancellation
"""What ends a job before its time: a command's process, or the cancellation of an operation."""

_GRACE_SECONDS = 2.5


class Runner:
    """Runs one instance at a time; the caller holds ``only_runner`` of its file."""

    def __init__(
        self,
        path: Path,
        *,
        environ: Mapping[str, str],
        clock: Callable[[], datetime],
        perform: Perform,
        on_change: OnChange,
    ) -> None:
        self._path = path
        self._environ = environ
        self._clock = clock
        self._perform = perform
        self._on_change = on_change
        self._running: dict[object, Work] = {}
        self._threads: list[threading.Thread] = []
        self._settled: list[str] = []
        self._ended: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()

    def run(self, instance: Instance, event: Event) -> Instance:
        """Take an event, and all that follow from it, until the instance ends or waits. Raises ``WorkflowError``."""
        recovered = _recover(instance)
        self._settled = [run.record for _, run in instance.runs() if run.record is not None]
        if isinstance(event, Begin):
            event = replace(event, recovered=recovered)
        try:
            return self._loop(instance, event)
        finally:
            self._stop()

    def _stop(self) -> None:
        """End what still runs: commands with all they started; operations, so that they give back what they hold."""
        commands = [work for work in self._running.values() if isinstance(work, Command)]
        for work in self._running.values():
            if isinstance(work, Cancellation):
                work.cancel()
        stop_all(commands)
        deadline = time.monotonic() + _GRACE_SECONDS
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))
        for command in commands:
            command.discard()

    def _loop(self, instance: Instance, event: Event) -> Instance:
        events: list[Event] = [event]
        while events or self._running:
            events = events or self._next()
            started: list[tuple[Job, Work]] = []
            while events:
                instance, events = self._take(instance, events, started)
            write_state(self._path, instance)
            while self._settled:
                forget(self._settled.pop())
            self._on_change(instance)
            is_alone = len(self._running) == 1
            for job, work in started:
                if is_alone:  # in the main thread a signal ends it as any other of kr's work
                    events.append(self._do(job, work, instance))
                    del self._running[job.target]
                else:
                    self._do_beside(job, work, instance)
        return instance

    def _take(
        self, instance: Instance, events: list[Event], started: list[tuple[Job, Work]]
    ) -> tuple[Instance, list[Event]]:
        """Take events, and prepare the jobs they ask for; those that can't even start are further events."""
        for event in events:
            self._settle(instance, event)
        transition = handle(instance, *events, now=self._now())
        spawned: list[Event] = []
        further: list[Event] = []
        for job in transition.jobs:
            work = self._prepare(job)
            if isinstance(work, Finished):
                further.append(work)
                continue
            if isinstance(work, Command):
                spawned.append(Spawned(job.target, work.name, str(work.record)))
            self._running[job.target] = work
            started.append((job, work))
        return handle(transition.instance, *spawned, now=self._now()).instance, further

    def _settle(self, instance: Instance, event: Event) -> None:
        """Note the record of a command that has ended: it is of no more use once its end is saved."""
        run = instance.run_of(event.target) if isinstance(event, Finished) else None
        if run is not None and run.record is not None:
            self._settled.append(run.record)

    def _prepare(self, job: Job) -> Work | Finished:
        """Give what is to be done; ``Finished`` where it can't even be started."""
        if job.operation is not None:
            return Cancellation()
        try:
            return spawn(job, folder=self._path.parent, environ=self._environ)
        except (OSError, ValueError) as error:  # a ValueError: a NUL in an argument
            reason = error.strerror if isinstance(error, OSError) else None
            where = f" in {job.cwd}" if job.cwd else ""
            details = f"The command can't be started{where}: {reason or error}."
            return Finished(job.target, is_success=False, details=details)

    def _do(self, job: Job, work: Work, instance: Instance) -> Finished:
        if isinstance(work, Command):
            return work.run()
        try:
            with _cancelled_after(job.timeout_seconds, work):
                return work.run(lambda: self._perform(job, instance))
        except Cancelled:
            return Finished(job.target, is_success=False, details=took_too_long(job))
        except KrError as error:
            return Finished(job.target, is_success=False, details=str(error))

    def _do_beside(self, job: Job, work: Work, instance: Instance) -> None:
        def do() -> None:
            try:
                self._ended.put(self._do(job, work, instance))
            except BaseException as error:  # noqa: BLE001 - raised again where the run is waited for
                self._ended.put(error)

        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._threads.append(threading.Thread(target=do, name="kr-step", daemon=True))
        self._threads[-1].start()

    def _next(self) -> list[Event]:
        """Wait until something has ended; give all that has, so that many short commands share one writing."""
        found: list[Event] = []
        while not found or not self._ended.empty():
            ended = self._ended.get()
            if isinstance(ended, BaseException):
                raise ended
            if isinstance(ended, Finished):
                del self._running[ended.target]
            found.append(ended)
        return found

    def _now(self) -> str:
        return to_text(self._clock())


@contextmanager
def _cancelled_after(seconds: float | None, work: Cancellation) -> Iterator[None]:
    timer = None if seconds is None else threading.Timer(seconds, work.cancel)
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


def _recover(instance: Instance) -> tuple[Finished, ...]:
    """Settle the commands that a killed runner left behind, before any of them is run again."""
    found = []
    for target, run in instance.runs():
        if run.process is None:
            continue
        ended = recover(target, run.process, run.record)
        if ended is not None and run.status == "running":
            told = f"Interrupted: kr was stopped, and the command went on to its end. {ended.details}"
            found.append(replace(ended, details=told))
        elif ended is None and may_still_run(run.process):
            logger.warning("%s: its command may still be running from before", run.name)
    return tuple(found)
