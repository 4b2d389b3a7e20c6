"""A child process that is stopped at each system call by which it changes files: killed there, or made to fail.

By ptrace, so that it needs no program and no privilege; on Linux for x86-64 alone. The child is a fork of this process.
"""

import ctypes
import os
import platform
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

How = Literal["kill", "tear", "fail"]
"""What happens at a point: killed before the call; killed when a write has written half; the call fails."""

_TRACEME, _PEEKUSER, _POKEUSER, _SYSCALL, _SETOPTIONS = 0, 3, 6, 24, 0x4200
_TRACESYSGOOD, _TRACECLONE, _EXITKILL = 0x1, 0x8, 0x100000
_WALL = 0x40000000
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_NUMBER, _RESULT = 8 * 15, 8 * 10
_ARGUMENTS = (8 * 14, 8 * 13, 8 * 12)
"""Where the registers stand in ``struct user``: orig_rax, rax; rdi, rsi, rdx."""
_NUMBERED = """
1 write, 18 pwrite64, 20 writev, 72 fcntl, 73 flock, 74 fsync, 75 fdatasync, 76 truncate, 77 ftruncate, 82 rename, 83 mkdir, 84 rmdir,
86 link, 87 unlink, 90 chmod, 91 fchmod, 257 openat, 258 mkdirat, 263 unlinkat, 264 renameat, 280 utimensat, 285 fallocate,
316 renameat2, 326 copy_file_range
"""
_CALLS = {int(number): name for number, name in map(str.split, _NUMBERED.split(","))}
_WRITES = {"write", "pwrite64"}
_SET_LOCK = {6, 7}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long] * 4
_libc.ptrace.restype = ctypes.c_long


@dataclass(slots=True)
class Trace:
    """What became of a child: its ``status`` (negative: the signal), and each point that it came to, by name."""

    status: int = 0
    points: list[str] = field(default_factory=list)


class CannotTrace(Exception):
    """This machine has no ptrace for us; the message says why."""


def trace(
    child: Callable[[], int],
    *,
    before: Callable[[], None] = lambda: None,
    at: int | None = None,
    how: How = "kill",
    error: int = 0,
) -> Trace:
    """Run ``child`` in a fork to its end, or until ``at`` (from 0) comes: what it returns is its exit status.

    ``before`` runs in the fork first, and is not looked at. ``error``: the errno of ``fail``. Points are the writes, syncs, renames,
    locks and so on of the process and its threads, not of programs that it starts. Raises ``CannotTrace``.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise CannotTrace(f"there is no tracer for {sys.platform} on {platform.machine()}")
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            before()
            if _libc.ptrace(_TRACEME, 0, 0, 0):
                os._exit(98)
            os.kill(os.getpid(), signal.SIGSTOP)
            status = child()
        except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
            traceback.print_exc()
        finally:
            os._exit(status)
    _, state = os.waitpid(pid, _WALL)
    if not os.WIFSTOPPED(state):
        raise CannotTrace("a process may not be traced here")
    return _Run(pid, at=at, how=how, error=error).follow()


class _Run:
    def __init__(self, pid: int, *, at: int | None, how: How, error: int) -> None:
        self.pid = pid
        self.at = at
        self.how = how
        self.error = error
        self.trace = Trace()
        self.inside: dict[int, bool] = {}
        """Of each thread whether it is within a call."""
        self.pending: dict[int, Literal["tear", "fail"]] = {}
        """Of each thread what is to happen when its call returns."""

    def follow(self) -> Trace:
        _ptrace(_SETOPTIONS, self.pid, _TRACESYSGOOD | _TRACECLONE | _EXITKILL)
        _ptrace(_SYSCALL, self.pid, 0)
        while True:
            thread, state = os.waitpid(-1, _WALL)
            if os.WIFSTOPPED(state):
                self._stopped(thread, os.WSTOPSIG(state))
            elif thread == self.pid:
                self.trace.status = os.waitstatus_to_exitcode(state)
                return self.trace

    def _stopped(self, thread: int, number: int) -> None:
        delivered = 0
        if number == _SYSCALL_STOP:
            self.inside[thread] = not self.inside.get(thread, False)
            if self.inside[thread]:
                self._enter(thread)
            else:
                self._leave(thread)
        elif number not in {signal.SIGTRAP, signal.SIGSTOP}:
            delivered = number
        _ptrace(_SYSCALL, thread, delivered, may_be_gone=True)

    def _enter(self, thread: int) -> None:
        name = _CALLS.get(_peek(thread, _NUMBER))
        if name is None or not _is_point(thread, name):
            return
        point = len(self.trace.points)
        self.trace.points.append(name)
        if point != self.at:
            return
        if self.how == "kill":
            self._kill()
        elif self.how == "fail":
            _ptrace(_POKEUSER, thread, -1, _NUMBER)
            self.pending[thread] = "fail"
        elif name in _WRITES and (size := _peek(thread, _ARGUMENTS[2])) > 1:
            _ptrace(_POKEUSER, thread, size // 2, _ARGUMENTS[2])
            self.pending[thread] = "tear"

    def _leave(self, thread: int) -> None:
        match self.pending.pop(thread, None):
            case "fail":
                _ptrace(_POKEUSER, thread, -self.error, _RESULT)
            case "tear":
                self._kill()

    def _kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _ptrace(request: int, thread: int, data: int, address: int = 0, *, may_be_gone: bool = False) -> int:
    ctypes.set_errno(0)
    result = int(_libc.ptrace(request, thread, address, data))
    number = ctypes.get_errno()
    if number and not may_be_gone:
        raise OSError(number, f"ptrace {request}: {os.strerror(number)}")
    return result


def _peek(thread: int, offset: int) -> int:
    return _ptrace(_PEEKUSER, thread, 0, offset)


def _is_point(thread: int, name: str) -> bool:
    """Whether a call changes a file or a lock: not one that only opens or asks."""
    if name == "fcntl":
        return _peek(thread, _ARGUMENTS[1]) in _SET_LOCK
    if name == "openat":
        return bool(_peek(thread, _ARGUMENTS[2]) & (os.O_CREAT | os.O_TRUNC))
    return True
