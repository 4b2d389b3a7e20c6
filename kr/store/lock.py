"""A lock between processes: flock on a file of its own, with a timeout.

Every writer of a SQLite database queues here: SQLite's own busy handler starves writers, and releases of SQLite before 3.51.3 can
corrupt a database when a commit and a checkpoint overlap (sqlite.org/wal.html#walresetbug). The lock file is never the database itself,
because closing that would drop SQLite's own locks. The lock of a killed process is free at once.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kr.errors import StoreBusy, StoreError, StoreUnwritable


@contextmanager
def file_lock(path: Path, *, timeout: float) -> Iterator[None]:
    """Hold the lock against other processes and threads. Not reentrant.

    Raises ``StoreBusy`` after ``timeout`` seconds, ``StoreUnwritable`` where no lock file can be made. A signal is obeyed while waiting.
    """
    descriptor = _acquire(path, time.monotonic() + timeout, timeout)
    try:
        yield
    finally:
        # Unlocked by name: a child process that inherited the descriptor does not keep the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _acquire(path: Path, deadline: float, timeout: float) -> int:
    while True:
        descriptor = _open(path)
        try:
            is_held = _try(descriptor, path) or _wait(descriptor, deadline - time.monotonic())
            if is_held and _is_at(path, descriptor):
                return descriptor
        except BaseException:  # also what a signal handler raised
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not is_held:
            why = f"{path}: another process has held the lock for more than {timeout:g} s"
            raise StoreBusy(why, "try again once it has ended")
        # Somebody removed the file while we waited: others lock the new one.


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as exc:
        raise StoreUnwritable(f"{path}: the lock file can't be made: {exc.strerror}") from exc


def _try(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as exc:
        raise StoreError(f"{path}: this file system has no locks: {exc.strerror}") from exc
    return True


def _wait(descriptor: int, seconds: float) -> bool:
    """Wait in the kernel's queue, which is fair; polling is not. flock has no timeout, so a thread of its own waits in it.

    The thread holds a duplicate of the descriptor. When nobody waits for it any more, closing that gives the lock back.
    """
    if seconds <= 0:
        return False
    duplicate = os.dup(descriptor)
    is_acquired = threading.Event()

    def wait() -> None:
        try:
            fcntl.flock(duplicate, fcntl.LOCK_EX)
            is_acquired.set()
        finally:
            os.close(duplicate)

    try:
        threading.Thread(target=wait, name="kr-lock", daemon=True).start()
    except RuntimeError as exc:
        os.close(duplicate)
        raise StoreBusy(f"no thread can wait for the lock: {exc}") from exc
    return is_acquired.wait(seconds)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
