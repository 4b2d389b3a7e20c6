"""Reading a database without a trace: not a byte of it, nor of its write-ahead log, changes.

An ordinary connection writes at its close what a killed process left in the log. Here SQLite may not write:
a closed database is read as it is, one with a log read-only. Beside a log SQLite may make its scratch file
(``-shm``) again, which holds no data.
"""

import os
import sqlite3
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from kr.errors import StoreBusy, StoreError
from kr.store.inspection import sqlite_file
from kr.store.sqlite import SqliteFile
from kr.store.store import Store
from kr.store.unit import Unit

T = TypeVar("T")

_TRIES = 5


def peek(store: Store, work: Callable[[Unit], T]) -> T | None:
    """Let ``work`` read one snapshot; None where there is no database. It may be called again.

    Raises a ``StoreError``, also for a database of an older kr: reading it would need an upgrade.
    """
    file = sqlite_file(store.path)
    for _ in range(_TRIES):
        before = _marks(file)
        if file.identity() is None:
            return None
        is_closed = not file.path.with_name(file.path.name + "-wal").exists()
        try:
            found = _read(file, work, "ro&immutable=1" if is_closed else "ro")
        except StoreError:
            # A half-written page of a database that somebody has opened meanwhile looks like damage.
            if not is_closed or _marks(file) == before:
                raise
            continue
        if not is_closed or _marks(file) == before:
            return found
    raise StoreBusy(f"{file.path}: other programs open and close it all the time; try again")


def _marks(file: SqliteFile) -> tuple[object, ...]:
    """What changes when somebody opens or writes the file."""
    wal = file.path.with_name(file.path.name + "-wal")
    try:
        status = os.stat(file.path)  # noqa: PTH116 - one call for all marks
    except OSError:
        return (wal.exists(),)
    return (wal.exists(), status.st_ino, status.st_size, status.st_mtime_ns)


def _read(file: SqliteFile, work: Callable[[Unit], T], mode: str) -> T:
    address = f"file:{quote(str(file.path.absolute()))}?mode={mode}"
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(address, uri=True, timeout=file.timeout),
        poolclass=NullPool,
    )
    with file.translated():
        try:
            with engine.connect() as connection:
                _require_current(file, connection)
                return work(Unit(connection))
        except DBAPIError as exc:
            if isinstance(exc.orig, sqlite3.Error):
                raise file.error(exc.orig) from exc
            raise StoreError(f"{file.path}: {exc}") from exc


def _require_current(file: SqliteFile, connection: sa.Connection) -> None:
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if not file.require_current(version):
        raise StoreError(f"{file.path}: is of an older kr, and this changes nothing; run `kr db upgrade`")
