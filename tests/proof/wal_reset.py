"""SQLite's WAL-reset bug, made to happen: a checkpoint stands still between two of its instructions while another connection commits.

A connection that begins a checkpoint has read where the write-ahead log ends. If another one begins the log anew just then, what it
writes counts as moved into the database already, and is lost (sqlite.org/wal.html#walresetbug; SQLite 3.7.0 to 3.51.2). ``python -m
tests.proof.wal_reset`` stops the checkpoint later and later, until the database is corrupt, and does the same at that place with kr's
lock around both. See docs/reliability.md.
"""

import os
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

from kr.errors import StoreBusy
from kr.store.files import file_lock
from tests.support.tracer import (
    ARGUMENTS,
    DETACH,
    EXITKILL,
    NUMBER,
    SETOPTIONS,
    STEP,
    SYSCALL,
    TRACEME,
    TRACESYSGOOD,
    WALL,
    CannotTrace,
    peek,
    ptrace,
    trace,
)

_FCNTL, _SETLK, _WRITE_LOCK = 72, 6, 1
_CHECKPOINT_BYTE = 121
"""Where in the shared memory a checkpoint is locked."""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


def put(connection: sqlite3.Connection, first: int, many: int) -> None:
    for number in range(first, first + many):
        connection.execute("INSERT INTO texts VALUES (?, ?)", (number, f"text {number} " * 200))


def checkpoint_in_fork(path: Path, ready: int, *, has_lock: bool) -> int:
    """Start a process that makes a checkpoint once it is let go; return its id."""
    pid = os.fork()
    if pid == 0:
        try:
            with opened(path) as connection:
                connection.execute("SELECT count(*) FROM texts").fetchone()
                with file_lock(path.with_suffix(".lock"), timeout=5) if has_lock else nullcontext():
                    os.write(ready, b"x")
                    ptrace(TRACEME, 0, 0)
                    os.kill(os.getpid(), signal.SIGSTOP)
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        finally:
            os._exit(0)
    return pid


def stop(pid: int, steps: int) -> None:
    """Let a checkpoint go until it has its lock, and so many instructions further. Raises ``CannotTrace``."""
    os.waitpid(pid, WALL)
    ptrace(SETOPTIONS, pid, TRACESYSGOOD | EXITKILL)
    is_inside = False
    while True:
        ptrace(SYSCALL, pid, 0)
        _, state = os.waitpid(pid, WALL)
        if not os.WIFSTOPPED(state):
            raise CannotTrace("the checkpoint took no lock that we know")
        is_inside = not is_inside
        if (
            not is_inside
            and peek(pid, NUMBER) == _FCNTL
            and peek(pid, ARGUMENTS[1]) == _SETLK
            and locks_checkpoint(pid)
        ):
            break
    for _ in range(steps):
        ptrace(STEP, pid, 0)
        _, state = os.waitpid(pid, WALL)
        if not os.WIFSTOPPED(state):
            raise CannotTrace("the checkpoint ended before")


def locks_checkpoint(pid: int) -> bool:
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(peek(pid, ARGUMENTS[2]))
        lock = memory.read(16)
    kind, start = int.from_bytes(lock[:2], sys.byteorder), int.from_bytes(lock[8:16], sys.byteorder)
    return (kind, start) == (_WRITE_LOCK, _CHECKPOINT_BYTE)


def meet(folder: Path, steps: int, *, has_lock: bool) -> tuple[bool, bool]:
    """Commit beside a checkpoint that stands still after so many ``steps``; return whether that was let, and whether all is well."""
    path = folder / f"{steps}-{has_lock}.db"
    with opened(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT UNIQUE)")
    waits, ready = os.pipe()
    pid = checkpoint_in_fork(path, ready, has_lock=has_lock)
    os.read(waits, 1)
    with opened(path) as connection:
        put(connection, 0, 60)
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()  # all of the log is in the database
        stop(pid, steps)
        is_let = False
        with (
            suppress(StoreBusy),
            file_lock(path.with_suffix(".lock"), timeout=0) if has_lock else nullcontext(),
        ):
            put(connection, 100, 3)
            is_let = True
        ptrace(DETACH, pid, 0)
        os.waitpid(pid, 0)
        put(connection, 200, 20)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    for file in (waits, ready):
        os.close(file)
    with suppress(sqlite3.DatabaseError), opened(path) as connection:
        is_sound = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        count = connection.execute("SELECT count(*) FROM texts").fetchone()[0]
        return is_let, is_sound and count == 80 + 3 * is_let
    return is_let, False


def find(folder: Path, steps: range) -> int | None:
    """Return after how many instructions a commit beside a checkpoint corrupts the database; None: it never does."""
    return next((number for number in steps if not meet(folder, number, has_lock=False)[1]), None)


def main() -> int:
    try:
        trace(lambda: 0)
        with tempfile.TemporaryDirectory(prefix="kr-") as place:
            found = find(Path(place), range(0, 3000, 20))
            if found is None:
                sys.stdout.write(f"SQLite {sqlite3.sqlite_version}: it can't be made to happen here\n")
                return 0
            is_let, is_well = meet(Path(place), found, has_lock=True)
    except CannotTrace as error:
        sys.stdout.write(f"skipped: {error}\n")
        return 0
    sys.stdout.write(
        f"SQLite {sqlite3.sqlite_version}: corrupt where a commit meets a checkpoint {found} instructions after its lock; "
        f"with kr's lock the commit {'came between' if is_let else 'has to wait'}, and the database is {'sound' if is_well else 'corrupt'}\n"
    )
    return int(is_let or not is_well)


if __name__ == "__main__":
    sys.exit(main())
