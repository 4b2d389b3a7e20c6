"""Runs an instance: asks the state machine what is to be done, saves, does it, and tells the machine (rule 9).

The state is on the disk before anything is done that it speaks of. Whatever kills the runner, what the file calls
completed is done and is never done again.

Each command runs in a process group of its own, with bounded output. It ends with its runner, also with one that was
killed: beside it a shell waits for the end of a pipe that the runner holds open, and then kills the group.
"""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kr.cancellation import Cancellation, Cancelled, on_cancel
from kr.errors import KrError, StoreBusy, WorkflowError
from kr.store.files import file_lock, sync_folder, write_new
from kr.text import one_line, show_path
from kr.times import to_text
from kr.workflows.machine import handle
from kr.workflows.model import ENDED, Event, Finished, Instance, Job, Target, problems_of

OnChange = Callable[[Instance], None]
Perform = Callable[[Job, Instance], Finished]
"""Does one of kr's own operations for a job. Raises ``KrError``."""

KEPT = 16 * 1024
"""Bytes that are kept of each stream: the last ones."""

# exec: a list of arguments names a program, never one of the shell's own words (eval, echo, exit).
# trap: asked to end, the group's first process still waits for the command's own clean-up.
_GUARDED = (
    "trap : TERM; exec 3<&0 </dev/null; (trap '' TERM; read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 & exec 3<&-; "
    '(exec "$@"); code=$?; kill -KILL $!; exit $code'
)
_GRACE_SECONDS = 2.5


@dataclass(slots=True)
class Runner:
    """Runs one instance at a time; the caller holds ``only_runner`` of its file."""

    path: Path
    environ: Mapping[str, str]
    clock: Callable[[], datetime]
    perform: Perform
    on_change: OnChange
    _running: dict[Target, tuple[Cancellation, threading.Thread]] = field(default_factory=dict)
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
        work = Cancellation()

        def do() -> None:
            try:
                self._ended.put(self._do(job, work, instance))
            except BaseException as error:  # noqa: BLE001 - raised again where the run is waited for
                self._ended.put(error)

        thread = threading.Thread(target=do, name="kr-step", daemon=True)
        self._running[job.target] = work, thread
        thread.start()

    def _do(self, job: Job, work: Cancellation, instance: Instance) -> Finished:
        """Do a job within its timeout."""
        timer = threading.Timer(job.timeout_seconds or threading.TIMEOUT_MAX, work.cancel)
        timer.daemon = True
        timer.start()
        ended = Finished(job.target, is_success=False)
        try:
            if job.operation is None:
                ended = work.run(lambda: run_command(job, folder=self.path.parent, environ=self.environ))
            else:
                ended = work.run(lambda: self.perform(job, instance))
        except KrError as error:
            ended = replace(ended, details=str(error))
        except Cancelled:
            pass
        finally:
            timer.cancel()
        if work.event.is_set():
            details = f"It took longer than {job.timeout_seconds or 0:g} s and was ended."
            ended = replace(ended, is_success=False, details=details)
        return ended

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
        ending = [threading.Thread(target=work.cancel) for work, _ in self._running.values()]
        for thread in ending:
            thread.start()
        for thread in (*ending, *(thread for _, thread in self._running.values())):
            thread.join(2 * _GRACE_SECONDS)


def run_command(job: Job, *, folder: Path, environ: Mapping[str, str]) -> Finished:
    """Run a job's command to its end, in ``folder`` or below. One that can't be started has failed."""
    with tempfile.TemporaryDirectory(prefix="kr-step-") as name:
        record = Path(name)
        try:
            process = _spawn(job, record, folder, environ)
        except (OSError, ValueError) as error:  # a ValueError: a NUL in an argument
            reason = error.strerror if isinstance(error, OSError) else None
            where = f" in {job.cwd}" if job.cwd else ""
            details = f"The command can't be started{where}: {reason or error}."
            return Finished(job.target, is_success=False, details=details)
        with process, on_cancel(lambda: _end(process)):
            code = process.wait()
        return _finished(job.target, record, code)


def _spawn(job: Job, record: Path, folder: Path, environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    is_shell = isinstance(job.command, str)
    arguments = ("/bin/sh", "-e", "-c", job.command) if is_shell else job.command
    with (record / "stdout").open("ab") as stdout, (record / "stderr").open("ab") as stderr:
        return subprocess.Popen(  # noqa: S603 - running what a template says is what this is for
            ["/bin/sh", "-c", _GUARDED, "kr", *map(str, arguments or ())],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            cwd=folder / (job.cwd or ""),
            env={**environ, **job.env},
            start_new_session=True,
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a command with all it started: politely, and a moment later for good."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)


def _finished(target: Target, record: Path, code: int) -> Finished:
    """Make what came of a command out of its record."""
    result: dict[str, Any] = {"exit_code": code}
    for name in ("stdout", "stderr"):
        result[name] = _tail(record / name).decode(errors="replace").rstrip("\r\n")
    said, complained = _last_line(result["stdout"]), _last_line(result["stderr"])
    if code != 0:
        details = f"Exit status {code}. {complained or said}".rstrip()
        return Finished(target, is_success=False, details=details, result=result)
    return Finished(target, is_success=True, details=said or complained or "Exit status 0.", result=result)


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - KEPT, 0))
        return file.read(KEPT)


def _last_line(text: str) -> str:
    return one_line(next((line for line in reversed(text.splitlines()) if line.strip()), ""))


# --- the state


def read_state(path: Path) -> Instance:
    """Read an instance. Raises ``WorkflowError`` that names what is wrong, in broken JSON by line and column."""
    try:
        return Instance.model_validate_json(path.read_bytes())
    except FileNotFoundError as exc:
        raise WorkflowError(f"{path}: there is no such state file; kr workflow start makes one") from exc
    except OSError as exc:
        raise WorkflowError(f"{path}: can't be read: {exc.strerror}") from exc
    except ValidationError as exc:
        where, problem = problems_of(exc)[0]
        raise WorkflowError(": ".join(filter(None, (str(path), show_path(where), problem)))) from exc


def write_state(path: Path, instance: Instance) -> None:
    """Put the instance in the file's place in one step, synced. Raises ``WorkflowError``."""
    fresh = path.with_name(f".{path.name}.new")  # the runner alone writes it
    text = json.dumps(instance.model_dump(by_alias=True), ensure_ascii=False, indent=2)
    try:
        write_new(fresh, text.encode("utf-8", "replace") + b"\n")
        fresh.replace(path)
        sync_folder(path.parent)
    except OSError as exc:
        raise WorkflowError(f"{path}: can't be written: {exc.strerror}") from exc


@contextmanager
def only_runner(path: Path) -> Iterator[None]:
    """Be the one that changes a state file; a killed one's lock is free at once. Raises ``WorkflowError``."""
    try:
        with file_lock(path.with_name(f".{path.name}.lock"), timeout=0):
            yield
    except StoreBusy as exc:
        raise WorkflowError(f"{path}: another process runs this workflow") from exc


def make_room(path: Path) -> Path | None:
    """Move an ended instance out of the way of a new one, to a file of its ``workflow_id``; gives that file.

    Raises ``WorkflowError`` for one that has not ended, or that can't be read: nothing is overwritten.
    """
    if not path.exists():
        return None
    ended = read_state(path)
    if ended.status not in ENDED:
        how = "go on with it (kr workflow status says how), or name another file with --state"
        raise WorkflowError(f"{path}: {ended.workflow_id} is {ended.status} and has not ended; {how}")
    return path.rename(path.with_name(f"{ended.workflow_id}.json"))
