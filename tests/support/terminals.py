"""Programs at a terminal of their own: what they show, and what they make of keys."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.program import Project, request


class Terminal:
    """The other side of a pseudo-terminal. ``shown`` is all that was read so far."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self.shown = b""
        self.status = -1
        """The program's exit status, once the block is left."""

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._leader, keys.encode())

    def wait_for(self, text: str, *, timeout: float = 60) -> str:
        """Read until a text shows, and return what showed since the last time; fails when it never does."""
        begun, give_up = len(self.shown), time.monotonic() + timeout
        while text.encode() not in self.shown[begun:]:
            if time.monotonic() > give_up or not self._read(give_up):
                raise AssertionError(
                    f"{text!r} did not show in {self.shown[begun:].decode(errors='replace')}"
                )
        return self.shown[begun:].decode(errors="replace")

    def settle(self, seconds: float = 0.3) -> None:
        """Read until nothing new shows for a while."""
        while self._read(time.monotonic() + seconds):
            pass

    def read_all(self) -> str:
        """Read until the program has gone, and return all that it showed."""
        while self._read(time.monotonic() + 60):
            pass
        return self.shown.decode(errors="replace")

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._leader], [], [], max(until - time.monotonic(), 0))
        try:
            chunk = os.read(self._leader, 65536) if ready else b""
        except OSError:  # how a pseudo-terminal says that the other side has gone
            return False
        self.shown += chunk
        return bool(chunk)


@contextmanager
def at_terminal(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], *, columns: int = 80
) -> Iterator[Terminal]:
    """Start a program in a session whose terminal is ours; it is ended when the block is left."""
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no thread holds a lock it needs
    )
    os.close(follower)
    terminal = Terminal(leader)
    try:
        yield terminal
    finally:
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        os.close(leader)
        process.terminate()
        terminal.status = process.wait(60)


def seen(project: Project, *arguments: str, more: Mapping[str, str], columns: int = 80) -> str:
    """Run the program and return what its terminal shows. ``request.yaml`` lies in the project's folder."""
    (project.root / "request.yaml").write_text(json.dumps(request()))
    command = [sys.executable, "-m", "kr", *arguments]
    with at_terminal(command, project.root, project.environ(**more), columns=columns) as terminal:
        return terminal.read_all()
