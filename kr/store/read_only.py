"""Reading a database without a trace: not a byte of it, nor of its write-ahead log, changes (``SqliteFile.open_untouched``)."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeVar

from kr.errors import StoreError
from kr.store.session import Session
from kr.store.sqlite import SCHEMA_VERSION, SqliteFile

if TYPE_CHECKING:
    from kr.store.unit import Unit

T = TypeVar("T")

_TIMEOUT = 10.0
_KEY_PRESS = 0.2
_MOST = 200


def read_only(path: str, work: "Callable[[Unit], T]") -> T | None:
    """Let ``work`` read one snapshot; None where there is no database.

    Raises a ``StoreError``, also for a database of an older kr: reading it would need an upgrade.
    """
    from kr.store.unit import Unit

    file = SqliteFile(path, schema_version=SCHEMA_VERSION, timeout=_TIMEOUT)
    if file.identity() is None:
        return None
    with file.translated(), closing(file.open_untouched()) as connection:
        if not file.require_current(file.version(connection)):
            raise StoreError(f"{path}: is of an older kr, and this changes nothing; run `kr db upgrade`")
        connection.execute("BEGIN")
        return work(Unit(Session(connection, is_read_only=True)))


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
    """Read what the shell completes: a key press must not wait for a lock, and creates nothing.

    Ids come the last used, archived or replaced first; frameworks as they were written. ``revisions`` are those of
    ``entry_id``.
    """
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
