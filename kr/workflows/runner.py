"""Runs an instance: asks the state machine what is to be done, saves, does it, and tells the machine (SPEC 9).

The state is on the disk before anything is done that it speaks of. Whatever kills the runner, what the file calls
completed is done and is never done again.
"""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from kr.errors import KrError
from kr.store.times import to_text
from kr.workflows.files import write_state
from kr.workflows.machine import handle
from kr.workflows.processes import Command, forget, may_still_run, recover, spawn, stop_all
from kr.workflows.state import Begin, Event, Finished, Instance, Job, Spawned

logger = logging.getLogger(__name__)

OnChange = Callable[[Instance], None]


class Perform(Protocol):
    """Does one of kr's own operations for a job. Raises ``KrError``."""

    def __call__(self, job: Job, instance: Instance) -> Finished:
        """Give what came of it."""


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
        self._running: dict[object, Command | None] = {}
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
            commands = [command for command in self._running.values() if command is not None]
            stop_all(commands)
            for command in commands:
                command.discard()

    def _loop(self, instance: Instance, event: Event) -> Instance:
        events: deque[Event] = deque([event])
        while events or self._running:
            if not events:
                events.extend(self._next())
            started: list[tuple[Job, Command | None]] = []
            while events:
                instance = self._take(instance, events, started)
            write_state(self._path, instance)
            while self._settled:
                forget(self._settled.pop())
            self._on_change(instance)
            is_alone = len(self._running) == 1
            for job, command in started:
                if is_alone:  # in the main thread a signal ends it as any other of kr's work
                    events.append(self._do(job, command, instance))
                    del self._running[job.target]
                else:
                    self._do_beside(job, command, instance)
        return instance

    def _take(
        self, instance: Instance, events: deque[Event], started: list[tuple[Job, Command | None]]
    ) -> Instance:
        """Take the first event, and prepare the jobs it asks for; one that can't start is the next event."""
        event = events.popleft()
        self._settle(instance, event)
        transition = handle(instance, event, now=self._now())
        instance = transition.instance
        for job in transition.jobs:
            command, spawned = self._prepare(job)
            if isinstance(spawned, Spawned):
                instance = handle(instance, spawned, now=self._now()).instance
            if isinstance(spawned, Finished):
                events.append(spawned)
            else:
                self._running[job.target] = command
                started.append((job, command))
        return instance

    def _settle(self, instance: Instance, event: Event) -> None:
        """Note the record of a command that has ended: it is of no more use once its end is saved."""
        run = instance.run_of(event.target) if isinstance(event, Finished) else None
        if run is not None and run.record is not None:
            self._settled.append(run.record)

    def _prepare(self, job: Job) -> tuple[Command | None, Spawned | Finished | None]:
        if job.operation is not None:
            return None, None
        try:
            command = spawn(job, folder=self._path.parent, environ=self._environ)
        except (OSError, ValueError) as error:  # a ValueError: a NUL in an argument
            reason = error.strerror if isinstance(error, OSError) else None
            where = f" in {job.cwd}" if job.cwd else ""
            details = f"The command can't be started{where}: {reason or error}."
            return None, Finished(job.target, is_success=False, details=details)
        return command, Spawned(job.target, command.name, str(command.record))

    def _do(self, job: Job, command: Command | None, instance: Instance) -> Finished:
        if command is not None:
            return command.run()
        try:
            return self._perform(job, instance)
        except KrError as error:
            return Finished(job.target, is_success=False, details=str(error))

    def _do_beside(self, job: Job, command: Command | None, instance: Instance) -> None:
        def work() -> None:
            try:
                self._ended.put(self._do(job, command, instance))
            except BaseException as error:  # noqa: BLE001 - raised again where the run is waited for
                self._ended.put(error)

        threading.Thread(target=work, name="kr-step", daemon=True).start()

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
