"""Everything that only SQLite needs: pragmas, opening modes, the file lock, its errors."""

import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from kr.store.lock import exclusive

if TYPE_CHECKING:
    from _typeshed import StrPath

log = logging.getLogger(__name__)

FIRST_RELEASED = 12
"""Number of the initial migration: the numbers below it belong to states that were never released."""
SCHEMA_VERSION = 12
"""Number of the newest migration; ``PRAGMA user_version`` of an up-to-date SQLite file."""

_JOURNAL_SIZE_LIMIT = 16 * 1024 * 1024
_NETWORK_FILE_SYSTEMS = frozenset({"9p", "afs", "ceph", "cifs", "fuse.sshfs", "nfs", "nfs4", "smb3", "smbfs"})

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_NO_ROOM = frozenset({sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN})
_NOT_WRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
_KINDS: dict[int, type[StoreError]] = (
    dict.fromkeys(_BUSY, StoreBusy)
    | dict.fromkeys((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB), StoreCorrupt)
    | dict.fromkeys((*_NOT_WRITABLE, sqlite3.SQLITE_FULL), StoreUnwritable)
)


_NO_TEXT = "Could not decode to UTF-8"
"""How Python's message begins where a damaged page holds a text."""


def unreleased(path: str) -> str:
    """Say of a database from before ``FIRST_RELEASED`` how what it holds goes on."""
    return (
        f"{path}: was made by an unreleased kr; export it with that one "
        "(`kr export-yaml --output DIR`) and take it in with this one (`kr import-yaml DIR`)"
    )


class Connection(sqlite3.Connection):
    """A connection, and what is kept with it; ``identity`` is of its file (``SqliteFile.identity``).

    ``is_transient``: of a file told to be immutable, for one snapshot. ``is_read_write``: it may write, ``is_writing``: made ready for that.
    """

    is_transient = False
    is_read_write = False
    is_writing = False
    identity: tuple[int, int] | None = None

    def end(self) -> None:
        """Roll back what is open of a transaction. A failure of that must not hide why it is ended."""
        if self.in_transaction:
            try:
                self.rollback()
            except sqlite3.Error as exc:
                log.debug("a transaction is left as it is: %s", exc)

    def close(self) -> None:
        """Close; a transaction ends at once: SQLite keeps its lock for as long as a traceback holds a cursor."""
        with suppress(sqlite3.ProgrammingError):  # it is closed already
            self.end()
        super().close()


class OutdatedError(Exception):
    """The database is older than the newest migration. ``connection`` is to be closed under the lock."""

    def __init__(self, connection: Connection) -> None:
        super().__init__("outdated")
        self.connection = connection


class SqliteFile:
    """One database file, its lock, and how to open it. Opens nothing by itself."""

    def __init__(self, path: "StrPath", *, schema_version: int, timeout: float) -> None:
        self.path = os.fspath(path)
        self.schema_version = schema_version
        self.timeout = timeout

    def exclusive(self, timeout: float | None = None) -> exclusive:
        return exclusive(f"{self.path}.lock", timeout=self.timeout if timeout is None else timeout)

    def identity(self) -> tuple[int, int] | None:
        """Return what tells this file from another, or None when there is none with content. Raises ``StoreCorrupt`` for a directory."""
        try:
            status = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise StoreUnwritable(f"{self.path}: can't be reached: {exc.strerror}") from exc
        if not stat.S_ISREG(status.st_mode):
            raise StoreCorrupt(f"{self.path}: is no file, so no database")
        if status.st_size == 1:  # SQLite takes it for an empty one, and would write over it
            raise StoreCorrupt(f"{self.path}: file is not a database")
        return (status.st_dev, status.st_ino) if status.st_size else None

    def make_ready_for_writing(self, connection: Connection) -> None:
        """Let a connection that was opened for reading write. Call with the lock held."""
        if not connection.is_writing:
            with suppress(sqlite3.OperationalError):  # a reader of a restored copy may be in the way
                _use_wal(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_SIZE_LIMIT}")
            connection.is_writing = True

    def open_for_reading(self, *, any_version: bool = False) -> Connection:
        """Open an up-to-date database (or of ``any_version``), read-only where nothing may be written; raises ``OutdatedError``."""
        for mode in ("rw", "ro"):
            with (
                suppress(sqlite3.OperationalError),
                self.translated(but=_NOT_WRITABLE | {sqlite3.SQLITE_FULL}),
            ):
                return self._opened(mode, any_version=any_version)
        with self.translated():
            wal = f"{self.path}-wal"
            if os.path.isfile(wal) and os.path.getsize(wal):
                told = f"changes wait in {os.path.basename(wal)}, and nothing may be written here"
                raise StoreUnwritable(f"{self.path}: {told}")
            return self._opened("ro&immutable=1", any_version=any_version)

    def open_untouched(self) -> Connection:
        """Open a database of any version so that not a byte of it, nor of its write-ahead log, changes.

        An ordinary connection writes at its close what a killed process left in the log. SQLite may make its scratch file (``-shm``) again.
        """
        return self._connect("ro" if self.has_log() else "ro&immutable=1")

    def has_log(self) -> bool:
        """Tell whether a write-ahead log stands beside the file: somebody has it open, or was killed."""
        return os.path.exists(f"{self.path}-wal")

    @contextmanager
    def inspecting(self, *, is_locked: bool = False) -> Iterator[Connection]:
        """Open a database of any version to read all of it, and close it under the lock (``is_locked``: held), where one can be had."""
        connection = self.open_for_reading(any_version=True)
        try:
            with self.translated():
                yield connection
        finally:
            with ExitStack() as held:
                if not is_locked:
                    with suppress(StoreError):
                        held.enter_context(self.exclusive(min(self.timeout, 5.0)))
                connection.close()

    def make_folder(self) -> None:
        folder = os.path.dirname(self.path) or "."
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as exc:
            raise StoreUnwritable(f"{folder}: can't be created: {exc.strerror}") from exc

    def open_for_migration(self) -> Connection:
        """Open the database, creating it when absent, in WAL mode. Call with the lock held."""
        self._warn_of_network()
        with self.translated():
            connection = self._connect("rwc")
            try:
                self._refuse_strangers(connection)
                _until(time.monotonic() + self.timeout, lambda: _use_wal(connection))
            except BaseException:
                connection.close()
                raise
            # A migration that builds a table anew must not take along what refers to it.
            connection.execute("PRAGMA foreign_keys = OFF")
            return connection

    def version(self, connection: sqlite3.Connection) -> int:
        """Return ``user_version``: the number of the migration that the database is at, 0 when new."""
        return int(connection.execute("PRAGMA user_version").fetchone()[0])

    def require_current(self, version: int) -> bool:
        """Return whether a version is ours; an older one is False, a newer one raises ``StoreTooNew``."""
        if version > self.schema_version:
            raise StoreTooNew(
                f"{self.path}: written by a newer kr (schema {version}, this one knows {self.schema_version})"
            )
        return version == self.schema_version

    def translated(self, *, but: frozenset[int] = frozenset()) -> "_Translation":
        """Turn SQLite's errors into kr's, save those whose primary code is in ``but``."""
        return _Translation(self, but)

    def error(self, exc: sqlite3.Error) -> StoreError:
        kind = _KINDS.get(_code(exc), StoreError)
        if kind is StoreError and str(exc).startswith(_NO_TEXT):
            kind = StoreCorrupt
        is_full = _code(exc) == sqlite3.SQLITE_FULL or (kind is StoreUnwritable and not self._has_room())
        return kind(f"{self.path}: {'the disk is full' if is_full else exc}")

    def _has_room(self) -> bool:
        try:
            return os.statvfs(os.path.dirname(self.path) or ".").f_bavail > 0
        except OSError:  # no folder: SQLite's own words tell more
            return True

    def _connect(self, mode: str) -> Connection:
        identity = self.identity()  # a directory is told from a file that may not be opened
        # A working directory that is gone is no matter to an absolute path.
        path = self.path if os.path.isabs(self.path) else os.path.join(os.getcwd(), self.path)
        connection = sqlite3.connect(
            f"file:{_quoted(path)}?mode={mode}",
            uri=True,
            timeout=self.timeout,  # busy_timeout
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
        )
        assert isinstance(connection, Connection)  # noqa: S101 - for the type checker: the factory's class
        connection.identity = identity
        return connection

    def _opened(self, mode: str, *, any_version: bool = False) -> Connection:
        connection = self._connect(mode)
        try:
            version = self.version(connection)
            is_current = any_version or self.require_current(version)
        except BaseException:
            connection.close()
            raise
        connection.is_read_write, connection.is_transient = mode == "rw", "immutable" in mode
        if not is_current:
            raise OutdatedError(connection)
        return connection

    def _refuse_strangers(self, connection: Connection) -> None:
        if self.version(connection) == 0:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            if tables:
                raise StoreError(
                    f"{self.path}: is another program's database (it has a table {tables[0][0]!r})"
                )

    def _warn_of_network(self) -> None:
        kind = network_file_system(os.path.dirname(self.path) or ".")
        if kind is not None:
            log.warning("%s: on a network file system (%s) SQLite may corrupt the database", self.path, kind)


class _Translation:
    """A block whose errors of SQLite leave it as kr's. No generator: a hit enters two."""

    def __init__(self, file: SqliteFile, but: frozenset[int]) -> None:
        self._file = file
        self._but = but

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if isinstance(exc, sqlite3.Error) and _code(exc) not in self._but:
            raise self._file.error(exc) from exc
        if isinstance(exc, UnicodeDecodeError):  # a damaged text, or SQLite's own message when it quotes one
            raise StoreCorrupt(f"{self._file.path}: a text in it is no UTF-8") from exc


def _use_wal(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode = WAL")


def _until(deadline: float, step: Callable[[], None]) -> None:
    """Repeat a step while SQLite is busy: a change of the journal mode knows no busy handler."""
    while True:
        try:
            step()
        except sqlite3.OperationalError as exc:
            if _code(exc) not in _BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _quoted(path: str) -> str:
    """Write a path into a URI; all else may stand in it as it is (https://www.sqlite.org/uri.html, 3.1)."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def network_file_system(folder: "StrPath", mounts: "StrPath" = "/proc/self/mounts") -> str | None:
    """Return the type of the network file system a folder is on; None for a local one, or where none tells."""
    try:
        with open(mounts, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    best = ("", "")
    resolved = os.path.realpath(folder)
    for line in lines:
        _, point, kind, *_ = [*line.split(" "), "", ""]
        mounted = point.replace("\\040", " ").rstrip("/")
        if f"{resolved}/".startswith(f"{mounted}/"):
            # Of several mounts on one point the last one counts.
            best = max((point, kind), best, key=lambda found: len(found[0]))
    return best[1] if best[1] in _NETWORK_FILE_SYSTEMS else None


def _code(exc: sqlite3.Error) -> int:
    """Return the primary result code; 0 where the driver itself objected.

    Where the disk has no room for its shared memory, SQLite speaks of an I/O error.
    """
    code = int(getattr(exc, "sqlite_errorcode", 0))
    return sqlite3.SQLITE_FULL if code in _NO_ROOM else code & 0xFF
