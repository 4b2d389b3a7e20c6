"""Reading a database without a trace: not a byte of it, nor of its write-ahead log, changes (``SqliteFile.open_untouched``)."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from kr.errors import StoreBusy, StoreError
from kr.store.session import Session
from kr.store.sqlite import SCHEMA_VERSION, SqliteFile

if TYPE_CHECKING:
    from pathlib import Path

    from kr.store.store import Store
    from kr.store.unit import Unit

T = TypeVar("T")

_TRIES = 5
_TIMEOUT = 10.0
_KEY_PRESS = 0.2
_MOST = 200


def read_only(store: "Store", work: "Callable[[Unit], T]") -> T | None:
    """Let ``work`` read one snapshot; None where there is no database. It may be called again.

    Raises a ``StoreError``, also for a database of an older kr: reading it would need an upgrade.
    """
    file = _file(store.path)
    for _ in range(_TRIES):
        before = _marks(file)
        if file.identity() is None:
            return None
        is_closed = not file.has_log()
        try:
            found = _read(file, work)
        except StoreError:
            # A half-written page of a database that somebody has opened meanwhile looks like damage.
            if not is_closed or _marks(file) == before:
                raise
            continue
        if not is_closed or _marks(file) == before:
            return found
    raise StoreBusy(f"{file.path}: other programs open and close it all the time; try again")


def _file(path: "Path", timeout: float = _TIMEOUT) -> SqliteFile:
    return SqliteFile(path, schema_version=SCHEMA_VERSION, timeout=timeout)


def _marks(file: SqliteFile) -> tuple[object, ...]:
    """What changes when somebody opens or writes the file."""
    try:
        status = os.stat(file.path)  # noqa: PTH116 - one call for all marks
    except OSError:
        return (file.has_log(),)
    return (file.has_log(), status.st_ino, status.st_size, status.st_mtime_ns)


def _read(file: SqliteFile, work: "Callable[[Unit], T]") -> T:
    from kr.store.unit import Unit

    with file.translated(), closing(file.open_untouched()) as connection:
        if not file.require_current(file.version(connection)):
            raise StoreError(f"{file.path}: is of an older kr, and this changes nothing; run `kr db upgrade`")
        connection.execute("BEGIN")
        return work(Unit(Session(connection)))


def frameworks(store: "Store") -> list[str]:
    """Return the frameworks of live entries, as they were written. For a key press, as all below."""
    return _names(store, "SELECT DISTINCT framework FROM entries ORDER BY framework LIMIT :most")


def entry_ids(store: "Store") -> list[str]:
    """Return the ids of live entries, the last used ones first."""
    return _names(store, "SELECT id FROM entries ORDER BY last_accessed DESC LIMIT :most")


def archived_ids(store: "Store") -> list[str]:
    """Return the ids of archived entries, the last archived ones first."""
    return _names(
        store, "SELECT id FROM archived_entries GROUP BY id ORDER BY max(archive_id) DESC LIMIT :most"
    )


def archived_frameworks(store: "Store") -> list[str]:
    """Return the frameworks of archived entries, as they were written."""
    return _names(store, "SELECT DISTINCT framework FROM archived_entries ORDER BY framework LIMIT :most")


def revisions(store: "Store", entry_id: str) -> list[str]:
    """Return the numbers of an entry's earlier texts, the last first."""
    query = "SELECT revision FROM revisions WHERE entry_id = :id ORDER BY revision DESC LIMIT :most"
    return _names(store, query, id=entry_id)


def _names(store: "Store", query: str, **parameters: str) -> list[str]:
    """Read what the shell completes: a key press must not wait for a lock, and creates nothing."""
    try:
        file = _file(store.path, _KEY_PRESS)
        if file.identity() is None:
            return []
        with closing(file.open_untouched()) as connection:
            return [str(row[0]) for row in Session(connection).rows(query, {**parameters, "most": _MOST})]
    except (sqlite3.Error, StoreError):
        # No database, a busy or a broken one: there is nothing to offer, and nobody to tell.
        return []
