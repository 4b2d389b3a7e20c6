"""The lock that writers queue at: flock on a file of its own beside the database.

SQLite's busy handler polls and starves writers, and stock SQLite can corrupt a database whose writers and
checkpointers overlap; a file lock around every transaction, checkpoint and close prevents both. The
database file itself is never opened for this: closing it would drop SQLite's own POSIX locks.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kr.errors import StoreBusy, StoreError, StoreUnwritable

if TYPE_CHECKING:
    from _typeshed import StrPath


@contextmanager
def exclusive(path: "StrPath", *, timeout: float) -> Iterator[None]:
    """Hold the lock: against other processes and other threads of this one; not reentrant.

    Waits in the kernel's queue for at most ``timeout`` seconds, then raises ``StoreBusy``. A lock file that
    can't be made raises ``StoreUnwritable``. A killed holder's lock is free at once.
    """
    lock = _acquire(path, time.monotonic() + timeout, timeout)
    try:
        yield
    finally:
        try:
            # Unlocked by name, so that a descriptor inherited through fork doesn't keep it.
            _flock(lock, unlock=True)
        finally:
            os.close(lock)


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
    """Blocks in flock for a caller who may give up: flock has no timeout, and polling is not fair.

    It blocks on a duplicate of the caller's descriptor. Both are one lock, held until both are closed, so that
    whoever gives up only closes its own.
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
