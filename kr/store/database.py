"""Transactions on one database: reads without a lock on one snapshot, writes one after another; and its making.

Connections are kept until ``close``, which closes them under the file lock, since the last one to close makes a
checkpoint. ``read_only`` reads without a trace: not a byte of the database, nor of its write-ahead log, changes.
"""

import logging
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from kr.errors import StoreError
from kr.store.session import Guarding, Session, UnitOfWork
from kr.store.sqlite import (
    FIRST_RELEASED,
    SCHEMA_VERSION,
    Connection,
    OutdatedError,
    SqliteFile,
    unreleased,
)

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import StrPath


log = logging.getLogger(__name__)

_CLOSE_TIMEOUT = 5.0
_GUARDING = Guarding()


class Database:
    """A SQLite database that several threads and processes share. Opens nothing until it is used."""

    def __init__(
        self, path: "StrPath", folder: str, *, guarding: Guarding = _GUARDING, timeout: float = 60.0
    ) -> None:
        """Name the file and the folder of its reports. ``timeout`` is in seconds."""
        self.folder = folder
        self.guarding = guarding
        self._file = SqliteFile(path, schema_version=SCHEMA_VERSION, timeout=timeout)
        self._kept = _Kept(self._file)
        self._mutex = threading.RLock()
        self._writing = threading.local()
        # Runs at exit too: an interpreter that merely ends would close, and checkpoint, without the lock.
        self._finalizer = weakref.finalize(self, self._kept.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def read(self) -> Iterator[UnitOfWork]:
        """Open a snapshot. Takes no lock; a write in it fails."""
        with self._file.translated():
            self._settle()
            connection = self._kept.take() or self._opened()
            try:
                connection.execute("BEGIN")
                yield UnitOfWork(Session(connection, is_read_only=True), self.folder, self.guarding)
            finally:
                self._give_back(connection)

    @contextmanager
    def write(self) -> Iterator[UnitOfWork]:
        """Wait for the lock and open a transaction; rolled back unless the block ends normally."""
        if self.is_writing:
            raise RuntimeError("a write inside a write of the same thread would wait for itself")
        try:
            self._writing.now = True
            with self._locked(), self._file.translated():
                connection = self._kept.take(to_write=True) or self._opened(is_locked=True)
                try:
                    self._file.make_ready_for_writing(connection)
                    connection.execute("BEGIN IMMEDIATE")
                    # A newer kr may have upgraded the file since it was opened.
                    self._file.require_current(self._file.version(connection))
                    unit = UnitOfWork(Session(connection), self.folder, self.guarding)
                    yield unit
                    connection.execute("COMMIT")
                    for step in unit.afterwards:
                        step()
                finally:
                    self._give_back(connection)
        finally:
            self._writing.now = False

    def upgrade(self) -> None:
        """Make the database where it is absent, and bring it to the newest version; an older one is backed up first."""
        self._upgrade(None)

    @property
    def is_writing(self) -> bool:
        return getattr(self._writing, "now", False)

    def close(self) -> None:
        with self._mutex:
            self._kept.close()

    def _give_back(self, connection: Connection) -> None:
        """Keep a connection for the next one; what an interrupt left in a transaction is closed."""
        try:
            connection.end()
        except BaseException:
            connection.close()
            raise
        is_usable = not connection.is_transient and not connection.in_transaction
        if not is_usable or not self._kept.give_back(connection):
            connection.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        while True:
            self._settle()
            with self._file.exclusive():
                # While this one waited, another may have put a backup in the file's place.
                if self._kept.is_of(self._file.identity()):
                    yield
                    return

    def _settle(self) -> None:
        """Make sure that there is a database, and that the open connections are of the file at its path."""
        with self._mutex:
            identity = self._file.identity()
            if self._kept.is_of(identity):
                return
            self._kept.close()
            if identity is None:
                self._upgrade(None)
            self._kept.open(self._file.identity())

    def _opened(self, *, is_locked: bool = False) -> Connection:
        try:
            return self._file.open_for_reading()
        except OutdatedError as outdated:
            if is_locked:
                outdated.connection.close()
                self._bring_up()
            else:
                self._upgrade(outdated.connection)
        return self._file.open_for_reading()

    def _upgrade(self, old: Connection | None) -> None:
        self._file.make_folder()
        try:
            with self._file.exclusive(), self._file.translated():
                if old is not None:
                    old.close()
                self._bring_up()
        finally:
            if old is not None:
                old.close()

    def _bring_up(self) -> None:
        """Make or upgrade it, where nobody else has by now. Call with the lock held."""
        with closing(self._file.open_for_migration()) as connection:
            version = self._file.version(connection)
            if self._file.require_current(version):
                return
            if not version:
                create_tables(connection)
                return
            if version < FIRST_RELEASED:
                raise StoreError(unreleased(self._file.path))
            from pathlib import Path

            from kr.store.backup import backup

            kept = backup(Path(self._file.path), None, f"schema-{version}", is_locked=True)
            log.info("%s: backed up to %s before the upgrade", self._file.path, kept.name)
            migrate(connection)


class _Kept:
    """The connections that nobody uses just now, all of one file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._identity: tuple[int, int] | None = None
        self._idle: list[Connection] = []
        self._mutex = threading.Lock()

    def is_of(self, identity: tuple[int, int] | None) -> bool:
        return identity is not None and identity == self._identity

    def open(self, identity: tuple[int, int] | None) -> None:
        self._identity = identity

    def take(self, *, to_write: bool = False) -> Connection | None:
        with self._mutex:
            fitting = (found for found in reversed(self._idle) if found.is_read_write or not to_write)
            connection = next(fitting, None)
            if connection is not None:
                self._idle.remove(connection)
            return connection

    def give_back(self, connection: Connection) -> bool:
        """Keep a connection, unless the file was closed or exchanged meanwhile."""
        with self._mutex:
            is_ours = self.is_of(connection.identity)
            if is_ours:
                self._idle.append(connection)
            return is_ours

    def close(self) -> None:
        self._identity = None
        if not self._idle:
            return
        try:
            with self._file.exclusive(min(self._file.timeout, _CLOSE_TIMEOUT)):
                self._close_all()
        except StoreError as exc:
            # Where no lock can be had (a read-only folder, a writer that takes long) nothing is lost by closing.
            log.debug("%s: closed without the lock: %s", self._file.path, exc)
            self._close_all()

    def _close_all(self) -> None:
        while self._idle:
            self._idle.pop().close()


def create_tables(connection: sqlite3.Connection) -> None:
    """Make every table of the newest version in an empty database, in one transaction. The caller holds the lock."""
    from kr.store.schema import sqlite_statements

    statements = [
        *sqlite_statements(),
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
        f"INSERT INTO alembic_version VALUES ('{SCHEMA_VERSION:04d}')",
        f"PRAGMA user_version = {SCHEMA_VERSION}",
    ]
    connection.execute("BEGIN IMMEDIATE")
    for statement in statements:
        connection.execute(statement)
    connection.execute("COMMIT")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a database to the newest migration, in one transaction. The caller holds the lock, and closes."""
    import sqlalchemy as sa
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(_ini())
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=sa.StaticPool)
    sa.event.listen(engine, "begin", lambda begun: begun.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as begun:
            config.attributes["connection"] = begun
            command.upgrade(config, "head")
    except CommandError as exc:
        raise StoreError(f"the database can't be upgraded: {exc}") from exc
    except sa.exc.DBAPIError as exc:
        raise exc.orig or exc from exc


def _ini() -> "Path":
    """``alembic.ini`` with ``migrations/`` beside it: in the installed package, or at the root of the source."""
    from pathlib import Path

    package = Path(__file__).parents[1]
    for folder in (package, package.parent):
        if (folder / "alembic.ini").is_file() and (folder / "migrations").is_dir():
            return folder / "alembic.ini"
    raise StoreError(f"kr is installed without its migrations (looked in {package} and {package.parent})")


T = TypeVar("T")

_TIMEOUT = 10.0
_KEY_PRESS = 0.2
_MOST = 200


def read_only(path: str, folder: str, work: Callable[[UnitOfWork], T]) -> T | None:
    """Let ``work`` read one snapshot; None where there is no database. Raises a ``StoreError``, also for an older kr's."""
    file = SqliteFile(path, schema_version=SCHEMA_VERSION, timeout=_TIMEOUT)
    if file.identity() is None:
        return None
    with file.translated(), closing(file.open_untouched()) as connection:
        if not file.require_current(file.version(connection)):
            raise StoreError(f"{path}: is of an older kr, and this changes nothing; run `kr db upgrade`")
        connection.execute("BEGIN")
        return work(UnitOfWork(Session(connection, is_read_only=True), folder, _GUARDING))


Completed = Literal["frameworks", "entry ids", "archived ids", "archived frameworks", "revisions"]
_COMPLETED: Mapping[Completed, str] = MappingProxyType(
    {
        "frameworks": "SELECT DISTINCT framework FROM entries ORDER BY framework LIMIT :most",
        "entry ids": "SELECT id FROM entries ORDER BY last_accessed DESC LIMIT :most",
        "archived ids": "SELECT id FROM archived_entries GROUP BY id ORDER BY max(archive_id) DESC LIMIT :most",
        "archived frameworks": "SELECT DISTINCT framework FROM archived_entries ORDER BY framework LIMIT :most",
        "revisions": "SELECT revision FROM revisions WHERE entry_id = :entry_id ORDER BY revision DESC LIMIT :most",
    }
)


def complete(path: str, what: Completed, **parameters: str) -> list[str]:
    """Read what the shell completes, ids used last first: a key press must not wait for a lock, and creates nothing."""
    try:
        file = SqliteFile(path, schema_version=SCHEMA_VERSION, timeout=_KEY_PRESS)
        if file.identity() is None:
            return []
        with closing(file.open_untouched()) as connection:
            rows = Session(connection).rows(_COMPLETED[what], {**parameters, "most": _MOST})
            return [str(row[0]) for row in rows]
    except (sqlite3.Error, StoreError):
        # No database, a busy or a broken one: there is nothing to offer, and nobody to tell.
        return []
