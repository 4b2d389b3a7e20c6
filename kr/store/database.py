"""Transactions on one database: reads without a lock on one snapshot, writes one after another.

Engines are made on first use, one for reading (``BEGIN``) and one for writing (``BEGIN IMMEDIATE``), else
every read would take the write lock. Connections are kept until ``close``, which closes them under the file
lock, since the last one to close makes a checkpoint. After a fork the child starts anew.
"""

import logging
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from kr.errors import KrError, StoreError
from kr.store import upgrade
from kr.store.schema import SCHEMA_VERSION
from kr.store.sqlite import OutdatedError, SqliteFile

log = logging.getLogger(__name__)

_CLOSE_TIMEOUT = 5.0


class Transaction:
    """A write that is under way. Steps outside the database join it here; they run with the lock held."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.compensations: list[Callable[[sa.Connection], None]] = []
        """Run newest first when the transaction fails, with a connection that shows what is committed."""
        self.afterwards: list[Callable[[], None]] = []
        """Run once it is committed."""

    def require_alive(self) -> None:
        """Raise ``StoreError`` when the database rolled the whole transaction back by itself."""
        if not getattr(self.connection.connection.dbapi_connection, "in_transaction", True):
            raise StoreError("the database gave up the transaction")


class Database:
    """A SQLite database that several threads and processes share. Opens nothing until it is used."""

    def __init__(
        self, path: Path, *, timeout: float = 60.0, read_report: upgrade.ReadReport | None = None
    ) -> None:
        """Name the file. ``timeout`` is in seconds; ``read_report``: see ``kr.store.upgrade.run``."""
        self.path = path
        self._read_report = read_report
        self._file = SqliteFile(path, schema_version=SCHEMA_VERSION, timeout=timeout)
        self._engines = _Engines(self._file)
        self._mutex = threading.RLock()
        self._writing = threading.local()
        # Runs at exit too: an interpreter that merely ends would close, and checkpoint, without the lock.
        self._finalizer = weakref.finalize(self, _close, self._engines, self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a snapshot. Takes no lock; a write in it fails."""
        with self._translated():
            self._settle()
            connection = self._connect(self._engines.reading)
            try:
                with connection.begin():
                    yield connection
            finally:
                if self._engines.is_transient(connection):
                    connection.invalidate()
                connection.close()

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Wait for the lock and open a transaction; rolled back unless the block ends normally."""
        if self.is_writing:
            raise RuntimeError("a write inside a write of the same thread would wait for itself")
        try:
            self._writing.now = True
            with self._locked(), self._translated():
                connection = self._connect(self._engines.writing, is_locked=True)
                with connection:
                    yield from self._transaction(connection)
        finally:
            self._writing.now = False

    @contextmanager
    def migrating(self) -> Iterator[sa.Connection]:
        """Hold the lock and a transaction in which migrations may run; creates the file when absent."""
        self._file.make_folder()
        with self._file.exclusive(), self._translated(), self._migration() as connection:
            yield connection

    @property
    def is_writing(self) -> bool:
        """Whether this thread is inside ``write``."""
        return getattr(self._writing, "now", False)

    def close(self) -> None:
        """Close every connection, under the lock. The database may be used again afterwards."""
        with self._mutex:
            _close(self._engines, self._file)

    def _transaction(self, connection: sa.Connection) -> Iterator[Transaction]:
        transaction = Transaction(connection)
        try:
            with connection.begin():
                # A newer kr may have upgraded the file since it was opened.
                version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
                self._file.require_current(version)
                yield transaction
        except BaseException:
            self._compensate(transaction)
            raise
        for step in transaction.afterwards:
            step()

    def _compensate(self, transaction: Transaction) -> None:
        """Undo what joined a transaction that failed.

        An interrupt may have left the writing connection anyhow: in the middle of a commit, of a rollback.
        """
        if not transaction.compensations:
            return
        try:
            driver = transaction.connection.connection.dbapi_connection
            if driver is not None:
                driver.rollback()
            with self._connect(self._engines.reading, is_locked=True) as seen:
                for compensate in reversed(transaction.compensations):
                    self._try(compensate, seen)
        except (KrError, SQLAlchemyError, sqlite3.Error) as exc:
            self._leave_for_later(exc)

    def _try(self, compensate: Callable[[sa.Connection], None], seen: sa.Connection) -> None:
        try:
            compensate(seen)
        except (KrError, SQLAlchemyError) as exc:
            self._leave_for_later(exc)

    def _leave_for_later(self, exc: Exception) -> None:
        # Whoever uses the report next reads from its undo name what is to be done.
        log.warning("%s: a write that failed is left to be put right later: %s", self.path, exc)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        while True:
            self._settle()
            with self._file.exclusive():
                # While this one waited, another may have put a backup in the file's place.
                if self._engines.is_of(self._file.identity(), os.getpid()):
                    yield
                    return

    def _settle(self) -> None:
        """Make sure that there is a database, and that the open connections are of the file at its path."""
        with self._mutex:
            identity = self._file.identity()
            if self._engines.is_of(identity, os.getpid()):
                return
            if self._engines.forget_after_fork(os.getpid()):
                log.debug("%s: opened anew after a fork", self.path)
            _close(self._engines, self._file)
            if identity is None:
                self._upgrade(None)
            self._engines.open(self._file.identity(), os.getpid())

    def _connect(self, engine: Callable[[], sa.Engine], *, is_locked: bool = False) -> sa.Connection:
        try:
            return engine().connect()
        except OutdatedError as outdated:
            if is_locked:
                outdated.connection.close()
                with self._migration() as connection:
                    self._bring_up(connection)
            else:
                self._upgrade(outdated.connection)
        return engine().connect()

    def _upgrade(self, old: sqlite3.Connection | None) -> None:
        self._file.make_folder()
        try:
            with self._file.exclusive(), self._translated():
                if old is not None:
                    old.close()
                with self._migration() as connection:
                    self._bring_up(connection)
        finally:
            if old is not None:
                old.close()

    def _bring_up(self, connection: sa.Connection) -> None:
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        if self._file.require_current(version):
            return
        if version:
            from kr.store.copies import keep_before_upgrade

            kept = keep_before_upgrade(self.path, version)
            log.info("%s: backed up to %s before the upgrade", self.path, kept.name)
        upgrade.run(connection, read_report=self._read_report)

    @contextmanager
    def _migration(self) -> Iterator[sa.Connection]:
        engine = _engine(self._file.open_for_migration, "BEGIN IMMEDIATE")
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Let kr's errors pass and turn SQLAlchemy's into them, naming the file."""
        try:
            with self._file.translated():
                yield
        except KrError:
            raise
        except DBAPIError as exc:
            if isinstance(exc.orig, sqlite3.Error):
                raise self._file.error(exc.orig) from exc
            raise StoreError(f"{self.path}: {exc}") from exc
        except SQLAlchemyError as exc:
            raise StoreError(f"{self.path}: {exc}") from exc


class _Engines:
    """The two engines, and which file and process they belong to."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._reading: sa.Engine | None = None
        self._writing: sa.Engine | None = None
        self._identity: tuple[int, int] | None = None
        self._pid = 0
        self._abandoned: list[sa.Engine] = []
        self._mutex = threading.Lock()

    def is_of(self, identity: tuple[int, int] | None, pid: int) -> bool:
        return identity is not None and identity == self._identity and pid == self._pid

    def open(self, identity: tuple[int, int] | None, pid: int) -> None:
        self._identity, self._pid = identity, pid

    def reading(self) -> sa.Engine:
        with self._mutex:
            if self._reading is None:
                self._reading = _engine(self._file.open_for_reading, "BEGIN")
            return self._reading

    def writing(self) -> sa.Engine:
        with self._mutex:
            if self._writing is None:
                self._writing = _engine(self._file.open_for_writing, "BEGIN IMMEDIATE")
            return self._writing

    def is_transient(self, connection: sa.Connection) -> bool:
        return bool(getattr(connection.connection.dbapi_connection, "is_transient", False))

    def forget_after_fork(self, pid: int) -> bool:
        """Drop a parent's connections without closing them: SQLite's are not fork-safe."""
        if self._pid in {0, pid}:
            return False
        for engine in (self._reading, self._writing):
            if engine is not None:
                self._abandoned.append(engine)
        self._reading = self._writing = self._identity = None
        return True

    @property
    def is_open(self) -> bool:
        return self._reading is not None or self._writing is not None

    def dispose(self) -> None:
        for engine in (self._reading, self._writing):
            if engine is not None:
                engine.dispose()
        self._reading = self._writing = self._identity = None


def _engine(connect: Callable[[], sqlite3.Connection], begin: str) -> sa.Engine:
    # No limit to kept connections: one too many would be closed on its return, outside the lock.
    engine = sa.create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=0)

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _close(engines: _Engines, file: SqliteFile) -> None:
    if engines.forget_after_fork(os.getpid()) or not engines.is_open:
        return
    try:
        with file.exclusive(min(file.timeout, _CLOSE_TIMEOUT)):
            engines.dispose()
    except StoreError as exc:
        # Where no lock can be had (a read-only folder, a writer that takes long) nothing is lost by closing.
        log.debug("%s: closed without the lock: %s", file.path, exc)
        engines.dispose()
