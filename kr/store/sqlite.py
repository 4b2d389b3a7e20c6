"""One SQLite file: how it is opened, read, written and closed, and what its errors mean.

Reads see one snapshot and take no lock. Writes, and closing (the last connection to close makes a checkpoint), hold a lock file: see
``kr.store.files``. Waiting is done here in small steps rather than in SQLite, so that a signal is obeyed at once.
"""

import logging
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreForeign, StoreTooNew, StoreUnwritable
from kr.store import APPLICATION_ID, SCHEMA_VERSION
from kr.store.files import file_lock, make_base

log = logging.getLogger(__name__)

T = TypeVar("T")

_STEP = 0.05
"""Seconds that SQLite itself waits for another connection before we look at signals and the clock."""
_CLOSE_TIMEOUT = 0.2
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NO_ROOM = {sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN}
"""How SQLite reports a disk that is too full for its shared memory."""
_AS_IT_STANDS = "ro&immutable=1"
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


class Connection(sqlite3.Connection):
    dialect = "sqlite"
    identity: tuple[int, int] | None = None
    """Device and inode of the file that it has open."""


class SqliteDatabase:
    """A database that threads and processes share. It is made at the first use; connections are kept until ``close``."""

    def __init__(self, path: Path, knowledge_base: Path, *, timeout: float) -> None:
        """``timeout`` is in seconds: how long to wait for other writers."""
        self.path = path
        self.location = str(path)
        self._knowledge_base = knowledge_base
        self._timeout = timeout
        self._idle: list[Connection] = []
        # Also at exit: an interpreter that merely ends would close, and checkpoint, without the lock.
        weakref.finalize(self, _close, path, self._idle)

    def exists(self) -> bool:
        return identity(self.path) is not None

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Read without a lock. What the block tries to write is an error."""
        with translated(self.path):
            self._make()
            with self._kept() as connection:
                connection.execute("PRAGMA query_only = ON")
                until(time.monotonic() + self._timeout, lambda: connection.execute("BEGIN"))
                yield connection

    @contextmanager
    def transaction(self, timeout: float | None) -> Iterator[Connection]:
        """Wait for all other writers; rolled back unless the block commits."""
        seconds = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        with translated(self.path):
            self._make()
            with file_lock(lock_path(self.path), timeout=seconds), self._kept() as connection:
                connection.execute("PRAGMA query_only = OFF")
                until(deadline, lambda: connection.execute("BEGIN IMMEDIATE"))
                yield connection

    def close(self) -> None:
        _close(self.path, self._idle)

    def _make(self) -> None:
        """Make the database, or bring it to the newest migration, where that is due; a connection that is open shows that it is not."""
        present = identity(self.path)
        if present and any(it.identity == present for it in self._idle):
            return
        if present:
            connection, deadline = connect(self.path), time.monotonic() + self._timeout
            version = until(deadline, lambda: require_ours(self.path, connection))
            if version == SCHEMA_VERSION:
                refuse_triggers(self.path, connection)
                self._idle.append(_set_up(connection))
                return
            connection.close()
        self._upgrade()

    def _upgrade(self) -> None:
        """Any number of processes may do so at once."""
        from kr.store import schema  # heavy

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise StoreUnwritable(f"{self.path.parent}: can't be created: {exc.strerror}") from exc
        with (
            file_lock(lock_path(self.path), timeout=self._timeout),
            closing(connect(self.path, "rwc")) as connection,
        ):
            deadline = time.monotonic() + self._timeout
            version = until(deadline, lambda: require_ours(self.path, connection))
            if version < SCHEMA_VERSION:
                refuse_triggers(self.path, connection)
                # A change of the journal mode does not wait for others by itself.
                until(deadline, lambda: connection.execute("PRAGMA journal_mode = WAL"))
                schema.make(connection, version)
        if self.path.parent == self._knowledge_base:
            make_base(self.path.parent)

    @contextmanager
    def _kept(self) -> Iterator[Connection]:
        """Take a connection that was kept, or open one; keep it afterwards. One of a file that was exchanged is closed."""
        present = identity(self.path)
        while (connection := pop(self._idle)) and connection.identity != present:
            connection.close()
        connection = connection or _set_up(connect(self.path))
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.rollback()
            self._idle.append(connection)


def lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells this file from another; None where there is none, or an empty one. Raises ``StoreCorrupt`` for a directory."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise StoreUnwritable(f"{path}: can't be reached: {exc.strerror}") from exc
    if path.is_dir():
        how = "move it away, or name another place (--kb)"
        raise StoreCorrupt(f"{path}: is a folder, so no database", how)
    return (status.st_dev, status.st_ino) if status.st_size else None


def connect(path: Path, mode: str = "") -> Connection:
    """Open a file in a mode of SQLite's URIs. Without one: to write, or where this user may not, to read it as it stands."""
    if not mode:
        may_write = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        connection = connect(path, "rw" if may_write else read_mode(path))
        try:
            connection.execute("PRAGMA user_version")
        except sqlite3.OperationalError as exc:
            # A full disk has no room for what SQLite shares in memory: what is there is read as it stands.
            if _code(exc) != sqlite3.SQLITE_FULL or _has_changes(path):
                raise
            connection.close()
            return connect(path, _AS_IT_STANDS)
        return connection
    found = identity(path)
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=_STEP,
        isolation_level=None,
        check_same_thread=False,
        factory=Connection,
    )
    connection.identity = found
    return connection


def _set_up(connection: Connection) -> Connection:
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_size_limit = 16777216")
    return connection


def read_mode(path: Path) -> str:
    """Return the mode in which nothing of a database changes: without a log beside it, what waits for the next checkpoint."""
    return "ro" if path.with_name(f"{path.name}-wal").exists() else _AS_IT_STANDS


def _has_changes(path: Path) -> bool:
    log_file = path.with_name(f"{path.name}-wal")
    return log_file.exists() and log_file.stat().st_size > 0


def require_ours(path: Path, connection: sqlite3.Connection) -> int:
    """Return the number of the migration that a database is at, 0 for an empty one.

    Raises ``StoreTooNew`` for a newer kr's, ``StoreForeign`` for one of another program, or of a kr from before the first release.
    """
    # Asked in this order: another process may be making all of it at this moment.
    is_empty = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    found = int(connection.execute("PRAGMA application_id").fetchone()[0])
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found != APPLICATION_ID and not is_empty:
        raise StoreForeign(
            f"{path}: is another program's database, or of a kr that was never released: export it with that one "
            "(`kr export-yaml --output DIR`) and import it with this one (`kr import-yaml DIR`)"
        )
    if version > SCHEMA_VERSION:
        why = f"written by a newer kr (schema {version}, this one knows {SCHEMA_VERSION})"
        raise StoreTooNew(f"{path}: {why}")
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
            if _code(exc) not in _BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into kr's."""
    try:
        yield
    except sqlite3.Error as exc:
        kind = _KINDS.get(_code(exc), StoreError)
        if "Could not decode to UTF-8" in str(exc):  # a damaged page
            kind = StoreCorrupt
        raise kind(f"{path}: {exc}", _NEXT.get(kind, "")) from exc
    except UnicodeDecodeError as exc:
        raise StoreCorrupt(f"{path}: a text in it is no UTF-8", _NEXT[StoreCorrupt]) from exc


def _code(exc: sqlite3.Error) -> int:
    code = int(getattr(exc, "sqlite_errorcode", 0))
    return sqlite3.SQLITE_FULL if code in _NO_ROOM else code & 0xFF


def pop(idle: list[T]) -> T | None:
    """Take a connection that is not in use."""
    try:
        return idle.pop()
    except IndexError:  # another thread took it
        return None


def _close(path: Path, idle: list[Connection]) -> None:
    if not idle:
        return
    try:
        with file_lock(lock_path(path), timeout=_CLOSE_TIMEOUT):
            while connection := pop(idle):
                connection.close()
    except StoreError as exc:
        # Whoever holds the lock has the database open, so that closing here makes no checkpoint.
        log.debug("%s: closed without the lock: %s", path, exc)
        while connection := pop(idle):
            connection.close()
