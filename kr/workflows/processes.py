"""Runs the commands of steps, each in a process group of its own, with bounded output (SPEC 9).

A command waits at a gate until its process stands in the state file: ``spawn`` starts a shell that waits for a line,
``Command.run`` gives it that line. A runner that is killed before leaves a gate that closes, and no command that
nobody knows of; one that is killed later leaves a process that the next run finds and ends (``end_leftover``).
"""

import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kr.store.owners import living_pid, make_owner
from kr.text.characters import one_line
from kr.workflows.events import Finished, Job

OUTPUT_VARIABLE = "KR_OUTPUT"
KEPT = 16 * 1024
"""Bytes that are kept of each stream: the last ones."""

_GATE = 'read -r _ || exit 125; exec "$@" </dev/null'
_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_OUTPUT_LIMIT = 1024 * 1024


def spawn(job: Job, *, folder: Path, environ: Mapping[str, str]) -> "Command":
    """Start a command's process, which waits for ``Command.run``. Raises ``OSError``."""
    if isinstance(job.command, str):
        arguments: Sequence[str] = ("/bin/sh", "-e", "-c", job.command)
    else:
        arguments = job.command or ()
    handle, name = tempfile.mkstemp(prefix="kr-output-")
    os.close(handle)
    try:
        process = subprocess.Popen(  # noqa: S603 - running what a template says is what this is for
            ["/bin/sh", "-c", _GATE, "kr", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder if job.cwd is None else folder / job.cwd,
            env={**environ, **job.env, OUTPUT_VARIABLE: name},
            start_new_session=True,
        )
    except BaseException:
        Path(name).unlink()
        raise
    return Command(job, process, Path(name))


class Command:
    """A command's process and what it says."""

    def __init__(self, job: Job, process: "subprocess.Popen[bytes]", output: Path) -> None:
        self.job = job
        self.name = make_owner(process.pid)
        self._process = process
        self._output = output
        self._mutex = threading.Lock()
        self._is_reaped = False
        self._is_let_go = False

    def run(self) -> Finished:
        """Let it run, and wait for its end."""
        process = self._process
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("a command needs its pipes")
        self._is_let_go = True
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(b"\n")
            process.stdin.flush()
        streams = _Streams({"stdout": process.stdout, "stderr": process.stderr})
        try:
            is_late = self._follow(streams)
            return self._finished(streams, is_late=is_late)
        finally:
            streams.close()
            self._output.unlink(missing_ok=True)

    def stop(self, number: int) -> None:
        """Send a signal to its whole process group."""
        with self._mutex:
            if not self._is_reaped:  # a number that was freed may be somebody else's
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)

    def has_ended(self) -> bool:
        """Tell whether its process has ended."""
        with self._mutex:
            self._is_reaped = self._process.poll() is not None
            return self._is_reaped

    def discard(self) -> None:
        """Let go of a command that was ended; one that never ran leaves its gate."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_SECONDS)
        if not self._is_let_go:
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()
            self._output.unlink(missing_ok=True)

    def _follow(self, streams: "_Streams") -> bool:
        """Read until it ends; True when it ran out of time."""
        timeout = self.job.timeout_seconds
        deadline = None if timeout is None else time.monotonic() + timeout
        is_late = False
        while not self.has_ended():
            streams.read(_LOOK_SECONDS)
            if deadline is not None and time.monotonic() > deadline:
                self.stop(signal.SIGKILL if is_late else signal.SIGTERM)
                is_late, deadline = True, time.monotonic() + _GRACE_SECONDS
        streams.read_what_is_there()
        return is_late

    def _finished(self, streams: "_Streams", *, is_late: bool) -> Finished:
        code = None if is_late else self._process.returncode
        result: dict[str, Any] = {"exit_code": code}
        for name in ("stdout", "stderr"):
            text, cut = streams.text(name)
            result[name] = text
            if cut:
                result[f"{name}_cut"] = cut
        if is_late:
            return self._ended(f"It took longer than {self.job.timeout_seconds:g} s and was ended.", result)
        if code != 0:
            how = f"Ended by signal {-code}." if code and code < 0 else f"Exit status {code}."
            said = one_line(_last_line(result["stderr"]) or _last_line(result["stdout"]))
            return self._ended(f"{how} {said}".rstrip(), result)
        try:
            outputs = _handed_over(self._output)
        except ValueError as error:
            return self._ended(str(error), result)
        details = one_line(_last_line(result["stdout"]) or _last_line(result["stderr"])) or "Exit status 0."
        return Finished(self.job.target, is_success=True, details=details, result=result, outputs=outputs)

    def _ended(self, details: str, result: dict[str, Any]) -> Finished:
        return Finished(self.job.target, is_success=False, details=details, result=result)


def stop_all(commands: Sequence[Command]) -> None:
    """End commands that still run: politely, and a moment later for good."""
    for command in commands:
        command.stop(signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS / 2
    while time.monotonic() < deadline and not all(command.has_ended() for command in commands):
        time.sleep(0.02)
    for command in commands:
        command.stop(signal.SIGKILL)
        command.discard()


def end_leftover(name: str) -> bool | None:
    """End a command that a killed runner left behind, with its process group; False where it has ended.

    None: it can't be known from here whether it still runs (another machine, or a system without ``/proc``).
    """
    from kr.store.owners import is_alive

    pid = living_pid(name)
    if pid is None:
        return None if is_alive(name) is not False else False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    deadline = time.monotonic() + _GRACE_SECONDS
    while living_pid(name) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    return True


@dataclass(slots=True)
class _Tail:
    kept: bytearray
    seen: int = 0

    def add(self, data: bytes) -> None:
        self.seen += len(data)
        self.kept += data
        if len(self.kept) > KEPT:
            del self.kept[:-KEPT]


class _Streams:
    """Reads both streams as they come, and keeps the end of each."""

    def __init__(self, pipes: Mapping[str, IO[bytes]]) -> None:
        self._selector = selectors.DefaultSelector()
        self._tails = {name: _Tail(bytearray()) for name in pipes}
        self._pipes = pipes
        for name, pipe in pipes.items():
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, name)

    def read(self, seconds: float) -> bool:
        """Read what there is, waiting for it at most this long; False when there was nothing."""
        if not self._selector.get_map():  # both have ended: only the process's end is awaited
            time.sleep(min(seconds, 0.01))
            return False
        ready = self._selector.select(seconds)
        for key, _ in ready:
            data = os.read(key.fd, 65536)
            if data:
                self._tails[key.data].add(data)
            else:
                self._selector.unregister(key.fileobj)
        return bool(ready)

    def read_what_is_there(self) -> None:
        """Read on to the end, or to where a process that the command left in the background says nothing."""
        seen = -1
        while self._selector.get_map() and seen != (seen := sum(tail.seen for tail in self._tails.values())):
            self.read(0)

    def text(self, name: str) -> tuple[str, int]:
        """Give what was kept, without the line breaks at its end, and how many bytes before it were not."""
        tail = self._tails[name]
        return bytes(tail.kept).decode(errors="replace").rstrip("\r\n"), tail.seen - len(tail.kept)

    def close(self) -> None:
        self._selector.close()
        for pipe in self._pipes.values():
            pipe.close()


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _handed_over(path: Path) -> dict[str, str]:
    """Read ``name=value`` lines. Raises ``ValueError`` with what is allowed."""
    with path.open("rb") as file:
        data = file.read(_OUTPUT_LIMIT + 1)
    if len(data) > _OUTPUT_LIMIT:
        raise ValueError(f"${OUTPUT_VARIABLE} holds more than {_OUTPUT_LIMIT} bytes")
    found = {}
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        name, sign, value = line.partition("=")
        if not line.strip():
            continue
        if not sign or not name.isidentifier() or not name.isascii():
            raise ValueError(
                f"${OUTPUT_VARIABLE}, line {number}: must be name=value, not {one_line(line, 80)}"
            )
        found[name] = value
    return found
