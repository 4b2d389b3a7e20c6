"""Runs the commands of steps, each in a process group of its own, with bounded output (rule 9).

A command waits at a gate until its process stands in the state file: ``spawn`` starts a shell that waits for a line,
``Command.run`` gives it that line. A runner that is killed before leaves a gate that closes, and no command that
nobody knows of. One that is killed later leaves a command that goes on: what it says and how it ends go to files in a
folder of its own, its *record*, so that one that came to its end is not run again (``recover``).
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kr.text import one_line
from kr.workflows.state import Finished, Job, Target

OUTPUT_VARIABLE = "KR_OUTPUT"
KEPT = 16 * 1024
"""Bytes that are kept of each stream: the last ones."""

_RECORD = "kr-step-"
_STREAMS = ("stdout", "stderr")
# A trap that does something is not passed on to the command, as an ignored signal would be.
# exec: a list of arguments names a program, never one of the shell's own words (eval, echo, exit).
_GATE = (
    'read -r _ || exit 125; trap : TERM; r=$1; shift; (exec "$@") </dev/null; c=$?; echo $c >"$r"; exit $c'
)
_GRACE_SECONDS = 5.0
_OUTPUT_LIMIT = 1024 * 1024


def spawn(job: Job, *, folder: Path, environ: Mapping[str, str]) -> "Command":
    """Start a command's process, which waits for ``Command.run``. Raises ``OSError``."""
    if isinstance(job.command, str):
        arguments: Sequence[str] = ("/bin/sh", "-e", "-c", job.command)
    else:
        arguments = job.command or ()
    record = Path(tempfile.mkdtemp(prefix=_RECORD))
    output = record / "output"
    output.touch()
    try:
        with (record / "stdout").open("ab") as stdout, (record / "stderr").open("ab") as stderr:
            process = subprocess.Popen(  # noqa: S603 - running what a template says is what this is for
                ["/bin/sh", "-c", _GATE, "kr", str(record / "status"), *arguments],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                cwd=folder if job.cwd is None else folder / job.cwd,
                env={**environ, **job.env, **job.values, OUTPUT_VARIABLE: str(output)},
                start_new_session=True,
            )
    except BaseException:
        shutil.rmtree(record, ignore_errors=True)
        raise
    return Command(job, process, record)


class Command:
    """A command's process and its record."""

    def __init__(self, job: Job, process: "subprocess.Popen[bytes]", record: Path) -> None:
        self.job = job
        self.name = process_name(process.pid)
        self.record = record
        self._process = process

    def run(self) -> Finished:
        """Let it run, and wait for its end. Its record stays until ``forget``."""
        self._open_gate(b"\n")
        try:
            code = self._process.wait(self.job.timeout_seconds)
        except subprocess.TimeoutExpired:
            stop_all([self])
            ended = _finished(self.job.target, self.record, None)
            return replace(ended, details=took_too_long(self.job))
        return _finished(self.job.target, self.record, code)

    def _open_gate(self, word: bytes) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError), self._process.stdin as gate:
                gate.write(word)

    def has_ended(self) -> bool:
        """Tell whether its process has ended."""
        return self._process.poll() is not None

    def signal(self, number: int) -> bool:
        """Send a signal to its whole process group; False where nothing of it is left."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def discard(self) -> None:
        """Let go of a command that was ended, and of its record: it did not come to its end."""
        self._open_gate(b"")
        shutil.rmtree(self.record, ignore_errors=True)


def _finished(target: Target, record: Path, code: int | None) -> Finished:
    """Make what came of a command out of its record."""
    result: dict[str, Any] = {"exit_code": code}
    for name in _STREAMS:
        tail = _tail(record / name)
        result[name] = tail.decode(errors="replace").rstrip("\r\n")
        if cut := (record / name).stat().st_size - len(tail):
            result[f"{name}_cut"] = cut
    if code != 0:
        said = one_line(_last_line(result["stderr"]) or _last_line(result["stdout"]))
        return Finished(
            target, is_success=False, details=f"Exit status {code}. {said}".rstrip(), result=result
        )
    try:
        outputs = _handed_over(record / "output")
    except ValueError as error:
        return Finished(target, is_success=False, details=str(error), result=result)
    details = one_line(_last_line(result["stdout"]) or _last_line(result["stderr"])) or "Exit status 0."
    return Finished(target, is_success=True, details=details, result=result, outputs=outputs)


def process_name(pid: int) -> str:
    """Name a process so that its number can't be mistaken for another's later: ``boot/pid/start``."""
    return f"{_boot()}/{pid}/{_started(pid)}"


def living_pid(process: str) -> int | None:
    """Return the number of a named process while it certainly lives; None also where the system has no ``/proc``."""
    boot, _, rest = process.partition("/")
    number, _, started = rest.partition("/")
    if boot != _boot() or not number.isdecimal() or not started:
        return None
    return int(number) if _started(int(number)) == started else None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return when a process started, in ticks since the boot; empty for a dead one or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # the name in brackets may hold blanks and brackets itself
    return "" if fields[:1] == ["Z"] else "".join(fields[19:20])


def took_too_long(job: Job) -> str:
    """Say why a job was ended."""
    return f"It took longer than {job.timeout_seconds:g} s and was ended."


def recover(target: Target, process: str, record: str | None) -> Finished | None:
    """Settle a command that a killed runner left behind: give what came of it, if it did what it should.

    One that still runs is ended with its process group; what it did is lost, as that of one that failed without
    anybody to hear of it. Then, and where its record is gone, None. The record stays until ``forget``: a runner
    that is killed in its turn must find it again.
    """
    try:
        if record is not None and (Path(record) / "status").read_text(encoding="ascii").strip() == "0":
            return _finished(target, Path(record), 0)
    except (OSError, ValueError):
        pass  # it has not ended, or its record is gone
    finally:
        _end(process)
    return None


def forget(record: str) -> None:
    """Remove the record of a command whose end stands in the state file."""
    if Path(record).name.startswith(_RECORD):  # a state file can be edited
        shutil.rmtree(record, ignore_errors=True)


def may_still_run(process: str) -> bool:
    """Tell whether a command of a killed runner may run on: one that can't be looked for from here."""
    if not Path("/proc/self/stat").exists():
        return True
    return living_pid(process) is not None


def _end(process: str) -> None:
    pid = living_pid(process)
    if pid is None:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    deadline = time.monotonic() + _GRACE_SECONDS
    while living_pid(process) is not None and time.monotonic() < deadline:
        time.sleep(0.01)


def stop_all(commands: Sequence[Command]) -> None:
    """End commands that still run, with all they started: politely, and a moment later for good."""
    left = [command for command in commands if not command.has_ended() and command.signal(signal.SIGTERM)]
    deadline = time.monotonic() + _GRACE_SECONDS / 2
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [command for command in left if not command.has_ended() or command.signal(0)]
    for command in left:
        command.signal(signal.SIGKILL)
    deadline = time.monotonic() + _GRACE_SECONDS
    while not all(command.has_ended() for command in left) and time.monotonic() < deadline:
        time.sleep(0.01)


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - KEPT, 0))
        return file.read(KEPT)


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _handed_over(path: Path) -> dict[str, str]:
    """Read ``name=value`` lines. Raises ``ValueError`` with what is allowed."""
    with path.open("rb") as file:
        data = file.read(_OUTPUT_LIMIT + 1)
    if len(data) > _OUTPUT_LIMIT:
        raise ValueError(f"${OUTPUT_VARIABLE} holds more than {_OUTPUT_LIMIT} bytes")
    found = {}
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):  # a value may hold U+2028
        name, sign, value = line.partition("=")
        if not line.strip():
            continue
        if not sign or not name.isidentifier() or not name.isascii():
            raise ValueError(
                f"${OUTPUT_VARIABLE}, line {number}: must be name=value, not {one_line(line, 80)}"
            )
        found[name] = value
    return found
