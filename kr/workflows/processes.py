"""Runs the commands of steps, each in a process group of its own, with bounded output (rule 9).

A command ends with its runner, also with one that was killed: beside it a shell waits for the end of a pipe that the
runner holds open, and then kills the group. So nothing of a killed run goes on while its step is run again.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kr.text import one_line
from kr.workflows.state import Finished, Job, Target

OUTPUT_VARIABLE = "KR_OUTPUT"
KEPT = 16 * 1024
"""Bytes that are kept of each stream: the last ones."""

_STREAMS = ("stdout", "stderr")
# exec: a list of arguments names a program, never one of the shell's own words (eval, echo, exit).
_GUARDED = (
    "exec 3<&0 </dev/null; (read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 & exec 3<&-; "
    '(exec "$@"); code=$?; kill -KILL $!; exit $code'
)
_GRACE_SECONDS = 2.5


@dataclass(slots=True)
class Command:
    """The command of a job; paths are relative to ``folder``."""

    job: Job
    folder: Path
    environ: Mapping[str, str]
    _process: "subprocess.Popen[bytes] | None" = None

    def run(self) -> Finished:
        """Run it to its end. One that can't be started, or takes too long, has failed."""
        job = self.job
        with tempfile.TemporaryDirectory(prefix="kr-step-") as name:
            record = Path(name)
            try:
                process = self._process = self._spawn(record)
            except (OSError, ValueError) as error:  # a ValueError: a NUL in an argument
                reason = error.strerror if isinstance(error, OSError) else None
                where = f" in {job.cwd}" if job.cwd else ""
                details = f"The command can't be started{where}: {reason or error}."
                return Finished(job.target, is_success=False, details=details)
            with process:
                try:
                    code = process.wait(job.timeout_seconds)
                except subprocess.TimeoutExpired:
                    stop_all([self])
                    return replace(_finished(job.target, record, None), details=took_too_long(job))
            return _finished(job.target, record, code)

    def _spawn(self, record: Path) -> "subprocess.Popen[bytes]":
        job = self.job
        is_shell = isinstance(job.command, str)
        arguments = ("/bin/sh", "-e", "-c", job.command) if is_shell else job.command
        output = record / "output"
        output.touch()
        with (record / "stdout").open("ab") as stdout, (record / "stderr").open("ab") as stderr:
            return subprocess.Popen(  # noqa: S603 - running what a template says is what this is for
                ["/bin/sh", "-c", _GUARDED, "kr", *map(str, arguments or ())],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                cwd=self.folder / (job.cwd or ""),
                env={**self.environ, **job.env, OUTPUT_VARIABLE: str(output)},
                start_new_session=True,
            )

    def signal(self, number: int) -> bool:
        """Send a signal to its whole process group; False where nothing of it is left."""
        try:
            if self._process is not None:
                os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return self._process is not None

    def has_ended(self) -> bool:
        """Tell whether its process has ended."""
        return self._process is None or self._process.poll() is not None


def stop_all(commands: Sequence[Command]) -> None:
    """End commands that still run, with all they started: politely, and a moment later for good."""
    left = [command for command in commands if not command.has_ended() and command.signal(signal.SIGTERM)]
    deadline = time.monotonic() + _GRACE_SECONDS
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [command for command in left if not command.has_ended() or command.signal(0)]
    for command in left:
        command.signal(signal.SIGKILL)


def took_too_long(job: Job) -> str:
    """Say why a job was ended."""
    return f"It took longer than {job.timeout_seconds:g} s and was ended."


def _finished(target: Target, record: Path, code: int | None) -> Finished:
    """Make what came of a command out of its record: what it said, and what it handed over."""
    result: dict[str, Any] = {"exit_code": code}
    for name in _STREAMS:
        result[name] = _tail(record / name).decode(errors="replace").rstrip("\r\n")
    said, complained = (_last_line(result[name]) for name in _STREAMS)
    if code != 0:
        details = f"Exit status {code}. {complained or said}".rstrip()
        return Finished(target, is_success=False, details=details, result=result)
    try:
        if outputs := _handed_over(record / "output"):
            result["outputs"] = outputs
    except ValueError as error:
        return Finished(target, is_success=False, details=str(error), result=result)
    return Finished(target, is_success=True, details=said or complained or "Exit status 0.", result=result)


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - KEPT, 0))
        return file.read(KEPT)


def _last_line(text: str) -> str:
    return one_line(next((line for line in reversed(text.splitlines()) if line.strip()), ""))


def _handed_over(path: Path) -> dict[str, str]:
    """Read ``name=value`` lines. Raises ``ValueError`` with what is allowed."""
    found = {}
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines, 1):  # a value may hold U+2028
        name, sign, value = line.partition("=")
        if not line.strip():
            continue
        if not sign or not name.isidentifier() or not name.isascii():
            problem = f"must be name=value, not {one_line(line, 80)}"
            raise ValueError(f"${OUTPUT_VARIABLE}, line {number}: {problem}")
        found[name] = value
    return found
