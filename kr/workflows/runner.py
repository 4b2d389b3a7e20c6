"""Runs an instance: asks the state machine what is to be done, saves, does it, and tells the machine (rule 9).

The state is on the disk before anything is done that it speaks of. Whatever kills the runner, what the file calls
completed is done and is never done again.
"""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kr.cancellation import Cancellation, Cancelled
from kr.errors import KrError
from kr.times import to_text
from kr.workflows.files import write_state
from kr.workflows.machine import handle
from kr.workflows.processes import Command, stop_all, took_too_long
from kr.workflows.state import Event, Finished, Instance, Job, Target

OnChange = Callable[[Instance], None]
Perform = Callable[[Job, Instance], Finished]
"""Does one of kr's own operations for a job. Raises ``KrError``."""

_GRACE_SECONDS = 2.5


@dataclass(slots=True)
class Runner:
    """Runs one instance at a time; the caller holds ``only_runner`` of its file."""

    path: Path
    environ: Mapping[str, str]
    clock: Callable[[], datetime]
    perform: Perform
    on_change: OnChange
    _running: dict[Target, tuple[Command | Cancellation, threading.Thread]] = field(default_factory=dict)
    _ended: "queue.SimpleQueue[Finished | BaseException]" = field(default_factory=queue.SimpleQueue)

    def run(self, instance: Instance, event: Event) -> Instance:
        """Take an event, and all that follow from it, until the instance ends or waits. Raises ``WorkflowError``."""
        events = [event]
        try:
            while True:
                instance, jobs = handle(instance, *events, now=to_text(self.clock()))
                write_state(self.path, instance)
                self.on_change(instance)
                for job in jobs:
                    self._start(job, instance)
                if not self._running:
                    return instance
                events = self._next()
        finally:
            self._stop()

    def _start(self, job: Job, instance: Instance) -> None:
        """Do a job in a thread of its own, which hands over its end, or what it raises."""
        work: Command | Cancellation = Cancellation()
        if job.operation is None:
            work = Command(job, folder=self.path.parent, environ=self.environ)

        def do() -> None:
            try:
                ended = work.run() if isinstance(work, Command) else self._operate(job, work, instance)
                self._ended.put(ended)
            except BaseException as error:  # noqa: BLE001 - raised again where the run is waited for
                self._ended.put(error)

        thread = threading.Thread(target=do, name="kr-step", daemon=True)
        self._running[job.target] = work, thread
        thread.start()

    def _operate(self, job: Job, work: Cancellation, instance: Instance) -> Finished:
        """Do one of kr's own operations, within its timeout."""
        timer = threading.Timer(job.timeout_seconds or threading.TIMEOUT_MAX, work.cancel)
        timer.daemon = True
        timer.start()
        try:
            return work.run(lambda: self.perform(job, instance))
        except Cancelled:
            return Finished(job.target, is_success=False, details=took_too_long(job))
        except KrError as error:
            return Finished(job.target, is_success=False, details=str(error))
        finally:
            timer.cancel()

    def _next(self) -> list[Event]:
        """Wait until something has ended; give all that has, so that many short commands share one writing."""
        found: list[Event] = []
        while not found or not self._ended.empty():
            ended = self._ended.get()
            if isinstance(ended, BaseException):
                raise ended
            del self._running[ended.target]
            found.append(ended)
        return found

    def _stop(self) -> None:
        """End what still runs: commands with all they started; operations, so that they give back what they hold."""
        for work, _ in self._running.values():
            if isinstance(work, Cancellation):
                work.cancel()
        stop_all([work for work, _ in self._running.values() if isinstance(work, Command)])
        deadline = time.monotonic() + _GRACE_SECONDS
        for _, thread in self._running.values():
            thread.join(max(deadline - time.monotonic(), 0))
