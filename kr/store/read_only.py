"""Reading a database without a trace: not a byte of it, nor of its write-ahead log, changes (``SqliteFile.open_untouched``)."""

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeVar

from kr.errors import StoreBusy, StoreError
from kr.store.session import Session
from kr.store.sqlite import SCHEMA_VERSION, SqliteFile

if TYPE_CHECKING:
    from kr.store.unit import Unit

T = TypeVar("T")

_TRIES = 5
_TIMEOUT = 10.0
_KEY_PRESS = 0.2
_MOST = 200


def read_only(path: Path, work: "Callable[[Unit], T]") -> T | None:
    """Let ``work`` read one snapshot; None where there is no database. It may be called again.

    Raises a ``StoreError``, also for a database of an older kr: reading it would need an upgrade.
    """
    file = _file(path)
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


def _file(path: Path, timeout: float = _TIMEOUT) -> SqliteFile:
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


def complete(path: Path, what: Completed, **parameters: str) -> list[str]:
    """Read what the shell completes: a key press must not wait for a lock, and creates nothing.

    Ids come the last used, archived or replaced first; frameworks as they were written. ``revisions`` are those of
    ``entry_id``.
    """
    try:
        file = _file(path, _KEY_PRESS)
        if file.identity() is None:
            return []
        with closing(file.open_untouched()) as connection:
            rows = Session(connection).rows(_COMPLETED[what], {**parameters, "most": _MOST})
            return [str(row[0]) for row in rows]
    except (sqlite3.Error, StoreError):
        # No database, a busy or a broken one: there is nothing to offer, and nobody to tell.
        return []
