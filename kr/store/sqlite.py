"""One SQLite file: how it is opened, read, written and closed, and what its errors mean.

Reads see one snapshot and take no lock. Writes, and closing (the last connection to close makes a checkpoint), hold a lock file: see
``kr.store.lock``. Waiting is done here in small steps rather than in SQLite, so that a signal is obeyed at once.
"""

import logging
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreForeign, StoreTooNew, StoreUnwritable
from kr.store.lock import file_lock
from kr.store.sql import SCHEMA_VERSION

log = logging.getLogger(__name__)

T = TypeVar("T")

APPLICATION_ID = 0x6B72
"""``kr`` in ASCII, kept in ``PRAGMA application_id``: it tells our databases from other programs'."""

_STEP = 0.05
"""Seconds that SQLite itself waits for another connection before we look at signals and the clock."""
_CLOSE_TIMEOUT = 0.2
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NO_ROOM = {sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN}
"""How SQLite reports a disk that is too full for its shared memory."""
_KINDS: dict[int, type[StoreError]] = {
    **dict.fromkeys(_BUSY, StoreBusy),
    **dict.fromkeys((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB), StoreCorrupt),
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM), StoreUnwritable),
    sqlite3.SQLITE_FULL: StoreUnwritable,
}

_NEXT: dict[type[StoreError], str] = {
    StoreBusy: "another program holds it: try again once that has ended",
    StoreCorrupt: "`kr doctor` says what can be done",
    StoreUnwritable: "`kr doctor` says what this user may not do; --kb names another place",
}
"""What to do about each kind, behind SQLite's own words."""

Identity = tuple[int, int]
"""Device and inode of a file."""


class Connection(sqlite3.Connection):
    dialect = "sqlite"
    identity: Identity | None = None
    """Of the file that it has open."""


class SqliteDatabase:
    """A database that threads and processes share. It is made at the first use; connections are kept until ``close``."""

    def __init__(self, path: Path, *, upgrade: Callable[[Path, float], None], timeout: float) -> None:
        """``upgrade`` makes the tables or brings them up to date; ``timeout`` is in seconds: how long to wait for other writers."""
        self.path = path
        self.timeout = timeout
        self._upgrade = upgrade
        self._turn = threading.Lock()
        self._readers: list[Connection] = []
        self._writers: list[Connection] = []
        # Also at exit: an interpreter that merely ends would close, and checkpoint, without the lock.
        weakref.finalize(self, _close_all, path, self._readers, self._writers)

    @property
    def location(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        return identity(self.path) is not None

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Read without a lock. What the block tries to write is an error."""
        with translated(self.path):
            self._make()
            with self._kept(self._readers, self._open_reader) as connection:
                self._begin(connection, "BEGIN", time.monotonic() + self.timeout)
                yield connection

    @contextmanager
    def transaction(
        self,
        timeout: float | None,
        scope: str | None,  # noqa: ARG002
    ) -> Iterator[Connection]:
        """Wait for other writers, whatever the ``scope``; rolled back unless the block commits."""
        seconds = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        with translated(self.path):
            self._make()
            with self._locked(seconds), self._kept(self._writers, self._open_writer) as connection:
                self._begin(connection, "BEGIN IMMEDIATE", deadline)
                yield connection

    def close(self) -> None:
        _close_all(self.path, self._readers, self._writers)

    @contextmanager
    def _locked(self, seconds: float) -> Iterator[None]:
        """Hold the lock file; threads queue before it, so that one of each process waits there."""
        deadline = time.monotonic() + seconds
        if not self._turn.acquire(timeout=seconds):
            raise StoreBusy(f"{self.path}: other threads have written for more than {seconds:g} s")
        try:
            with file_lock(lock_path(self.path), timeout=max(deadline - time.monotonic(), 0.0)):
                yield
        finally:
            self._turn.release()

    def _make(self) -> None:
        """Make the database, or bring it to the newest migration, where that is due; a connection that is open shows that it is not."""
        present = identity(self.path)
        if present and any(it.identity == present for it in (*self._readers, *self._writers)):
            return
        if present:
            reader = self._open_reader()
            if require_ours(self.path, reader) == SCHEMA_VERSION:
                refuse_triggers(self.path, reader)
                self._readers.append(reader)
                return
            reader.close()
        self._upgrade(self.path, self.timeout)

    @contextmanager
    def _kept(self, idle: list[Connection], opened: Callable[[], Connection]) -> Iterator[Connection]:
        """Take a connection that was kept, or open one; keep it afterwards. One of a file that was exchanged is closed."""
        present = identity(self.path)
        connection = pop(idle) or opened()
        while connection.identity != present:
            connection.close()
            connection = pop(idle) or opened()
            present = connection.identity
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.rollback()
            idle.append(connection)

    def _open_reader(self) -> Connection:
        connection = open_existing(self.path, timeout=self.timeout)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _open_writer(self) -> Connection:
        connection = connect(self.path, "rw")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        return connection

    def _begin(self, connection: Connection, statement: str, deadline: float) -> None:
        """Begin, waiting for programs that don't know the lock. The version is read each time: a newer kr may have come."""

        def begin() -> int:
            connection.execute(statement)
            return require_ours(self.path, connection)

        if until(deadline, begin) != SCHEMA_VERSION:
            raise StoreError(f"{self.path}: was replaced by an older kr's while it was open; try again")


def lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def identity(path: Path) -> Identity | None:
    """Return what tells this file from another; None where there is none, or an empty one. Raises ``StoreCorrupt`` for a directory."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise StoreUnwritable(f"{path}: can't be reached: {exc.strerror}") from exc
    if path.is_dir():
        raise StoreCorrupt(
            f"{path}: is a folder, so no database", "move it away, or name another place (--kb)"
        )
    return (status.st_dev, status.st_ino) if status.st_size else None


def connect(path: Path, mode: str) -> Connection:
    """Open a file in a mode of SQLite's URIs: ``rw``, ``rwc``, ``ro``, ``ro&immutable=1``."""
    found = identity(path)
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=_STEP,
        isolation_level=None,
        check_same_thread=False,
        factory=Connection,
    )
    connection.row_factory = sqlite3.Row
    connection.identity = found
    return connection


def open_existing(path: Path, *, timeout: float) -> Connection:
    """Open a database to read it, also where nothing can be written: then as it stands, if no change waits in its log."""
    deadline = time.monotonic() + timeout
    connection = connect(path, "rw")
    try:
        until(deadline, lambda: user_version(connection))
    except sqlite3.OperationalError as exc:
        connection.close()
        log_file = path.with_name(f"{path.name}-wal")
        has_changes = log_file.exists() and log_file.stat().st_size > 0
        if has_changes or _KINDS.get(primary_code(exc)) is not StoreUnwritable:
            raise
    except BaseException:
        connection.close()
        raise
    else:
        return connection
    return connect(path, "ro&immutable=1")


def user_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def require_ours(path: Path, connection: sqlite3.Connection) -> int:
    """Return the number of the migration that a database is at, 0 for an empty one.

    Raises ``StoreTooNew`` for a newer kr's, ``StoreForeign`` for one of another program, or of a kr from before the first release.
    """
    # Asked in this order: another process may be making all of it at this moment.
    is_empty = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    found = int(connection.execute("PRAGMA application_id").fetchone()[0])
    version = user_version(connection)
    if found != APPLICATION_ID and not is_empty:
        raise StoreForeign(
            f"{path}: is another program's database, or of a kr that was never released: export it with that one "
            "(`kr export-yaml --output DIR`) and import it with this one (`kr import-yaml DIR`)"
        )
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"{path}: written by a newer kr (schema {version}, this one knows {SCHEMA_VERSION})"
        )
    return version


def refuse_triggers(path: Path, connection: sqlite3.Connection) -> None:
    """Raise ``StoreError`` for a database that changes more than it is told to: kr has no triggers, and a repository may bring them."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchone()
    if found is not None:
        raise StoreError(
            f"{path}: has a trigger that is not kr's ({found[0]})",
            "move the file away, or drop the trigger with sqlite3 if the database is yours",
        )


def until(deadline: float, step: Callable[[], T]) -> T:
    """Repeat a step while another connection holds the database, until ``deadline`` (``time.monotonic``)."""
    while True:
        try:
            return step()
        except sqlite3.OperationalError as exc:
            if primary_code(exc) not in _BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into kr's."""
    try:
        yield
    except sqlite3.Error as exc:
        kind = _KINDS.get(primary_code(exc), StoreError)
        if "Could not decode to UTF-8" in str(exc):  # a damaged page
            kind = StoreCorrupt
        if primary_code(exc) == sqlite3.SQLITE_FULL:
            raise kind(f"{path}: the disk is full") from exc
        raise kind(f"{path}: {exc}", _NEXT.get(kind, "")) from exc
    except UnicodeDecodeError as exc:
        raise StoreCorrupt(f"{path}: a text in it is no UTF-8", _NEXT[StoreCorrupt]) from exc


def primary_code(exc: sqlite3.Error) -> int:
    code = int(getattr(exc, "sqlite_errorcode", 0))
    return sqlite3.SQLITE_FULL if code in _NO_ROOM else code & 0xFF


def pop(idle: list[T]) -> T | None:
    """Take a connection that is not in use."""
    try:
        return idle.pop()
    except IndexError:  # another thread took it
        return None


def _close_all(path: Path, *idle: list[Connection]) -> None:
    if not any(idle):
        return
    try:
        with file_lock(lock_path(path), timeout=_CLOSE_TIMEOUT):
            _close(*idle)
    except StoreError as exc:
        # Whoever holds the lock has the database open, so that closing here makes no checkpoint.
        log.debug("%s: closed without the lock: %s", path, exc)
        _close(*idle)


def _close(*idle: list[Connection]) -> None:
    for connections in idle:
        while connection := pop(connections):
            connection.close()
