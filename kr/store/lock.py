"""The lock that writers queue at, and who holds a lease or a reservation.

SQLite's busy handler starves writers, and stock SQLite can corrupt a database whose writers and checkpointers overlap: flock on a file
beside it, around every transaction, checkpoint and close, prevents both. Opening the database itself for it would drop SQLite's locks.
Whether a holder lives is the kernel's to say, where it is a process of this machine.
"""

import os
import threading
import time
import uuid
from functools import cache
from typing import TYPE_CHECKING

from kr.errors import StoreBusy, StoreError, StoreUnwritable

if TYPE_CHECKING:
    from _typeshed import StrPath


def make_owner(work: str | None = None, *, pid: int | None = None) -> str:
    """Name a process (None: this one), and within it one piece of ``work``: ``machine/pid/start/unique``."""
    return f"{_this_process(os.getpid()) if pid is None else _process(pid)}/{work or uuid.uuid4().hex}"


def _process(pid: int) -> str:
    return f"{_machine()}/{pid}/{_start(pid)}"


_this_process = cache(_process)
"""Of this process alone: another one's number may be given to somebody else."""


def living_pid(owner: str) -> int | None:
    """Return the number of an owner's process that certainly lives: None also where its start is not known."""
    parts = owner.split("/")
    return int(parts[1]) if is_alive(owner) and parts[2] else None


def is_alive(owner: str) -> bool | None:
    """Whether an owner's process lives; None when it can't be known from here (another machine, a foreign text)."""
    parts = owner.split("/")
    if len(parts) != 4 or parts[0] != _machine() or not parts[1].isdecimal():
        return None
    pid = int(parts[1])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # it is another user's
    # The number may have been given to another process since; a zombie is dead, its parent just hasn't looked.
    return _start(pid) == parts[2] and _stat(pid)[:1] != ["Z"]


def _machine() -> str:
    """Name the machine, and the process number space within it: a container has one of its own."""
    try:
        space = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        space = ""
    return f"{os.uname().nodename}~{space}".replace("/", "_")


def _start(pid: int) -> str:
    return "".join(_stat(pid)[19:20])


def _stat(pid: int) -> list[str]:
    """Return the fields of a process behind its name: the state first, the 20th is when it started."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return []
    # The name in brackets may hold blanks and brackets itself.
    return text.rpartition(")")[2].split()


class exclusive:  # noqa: N801 - a context manager, named as the functions that make one are
    """Hold the lock against other processes and threads; not reentrant. A killed holder's is free at once.

    Raises ``StoreBusy`` after ``timeout`` seconds in the kernel's queue, ``StoreUnwritable`` where no lock file can be made.
    """

    def __init__(self, path: "StrPath", *, timeout: float) -> None:
        self._path = path
        self._timeout = timeout

    def __enter__(self) -> None:
        self._lock = _acquire(self._path, time.monotonic() + self._timeout, self._timeout)

    def __exit__(self, *_: object) -> None:
        try:
            # Unlocked by name, so that a descriptor inherited through fork doesn't keep it.
            _flock(self._lock, unlock=True)
        finally:
            os.close(self._lock)


def _acquire(path: "StrPath", deadline: float, timeout: float) -> int:
    while True:
        lock = _open(path)
        try:
            if not _try(lock, path):
                _wait(lock, path, deadline, timeout)
            if _is_still(lock, path):
                return lock
        except BaseException:  # also what a signal's handler raised: a lock that leaks here stays held
            os.close(lock)
            raise
        # Somebody removed the file while we waited; others lock the new one.
        os.close(lock)


def _open(path: "StrPath") -> int:
    flags = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, os.O_RDWR | flags, 0o666)
    except PermissionError as denied:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            problem = f"{os.path.dirname(path)}: {denied.strerror}: {os.path.basename(path)} can't be made in this folder"
            raise StoreUnwritable(problem) from denied
        except OSError as exc:
            raise StoreUnwritable(f"{path}: can't be opened: {exc.strerror}") from exc
    except OSError as exc:
        raise StoreUnwritable(f"{path}: can't be created: {exc.strerror}") from exc


def _is_still(lock: int, path: "StrPath") -> bool:
    try:
        return os.path.samestat(os.fstat(lock), os.stat(path))
    except FileNotFoundError:
        return False


def _flock(lock: int, *, wait: bool = True, unlock: bool = False) -> None:
    import fcntl

    fcntl.flock(lock, fcntl.LOCK_UN if unlock else fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _try(lock: int, path: "StrPath") -> bool:
    try:
        _flock(lock, wait=False)
    except BlockingIOError:
        return False
    except OSError as exc:
        raise StoreError(f"{path}: this file system has no locks: {exc.strerror}") from exc
    return True


class _Waiter(threading.Thread):
    """Blocks in flock, which has no timeout, for a caller who may give up; polling is not fair.

    It has a duplicate of the caller's descriptor: one lock, held until both are closed.
    """

    def __init__(self, lock: int) -> None:
        super().__init__(name="kr-lock", daemon=True)
        self.error: OSError | None = None
        self._lock = os.dup(lock)
        self._settled = threading.Event()

    def start(self) -> None:
        """Start waiting. Raises ``RuntimeError`` where no more threads are to be had."""
        try:
            super().start()
        except RuntimeError:
            os.close(self._lock)
            raise

    def run(self) -> None:
        try:
            _flock(self._lock)
        except OSError as exc:
            self.error = exc
        finally:
            os.close(self._lock)
            self._settled.set()

    def settled(self, timeout: float) -> bool:
        return self._settled.wait(max(timeout, 0.0))


def _wait(lock: int, path: "StrPath", deadline: float, timeout: float) -> None:
    held = StoreBusy(f"{path}: another process has held the lock for more than {timeout:g} s")
    if not timeout:  # a waiter that nobody waits for would take the lock for a moment when it is free
        raise held
    try:
        waiter = _Waiter(lock)
        waiter.start()
    except (OSError, RuntimeError) as exc:  # no more descriptors, or threads
        raise StoreBusy(f"{path}: can't wait for the lock: {exc}") from exc
    if not waiter.settled(deadline - time.monotonic()):
        raise held
    waiter.join()
    if waiter.error is not None:
        raise StoreError(f"{path}: can't be locked: {waiter.error.strerror}") from waiter.error
