"""A quick look at the names in the database, for the shell's completion: the standard library alone.

A key press must not wait for imports, nor for a lock, and creates nothing.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

_WAIT_SECONDS = 0.2
_MOST = 200


def frameworks(path: Path) -> list[str]:
    """Return the frameworks of live entries, as they were written."""
    return _names(path, "SELECT DISTINCT framework FROM entries ORDER BY framework LIMIT ?")


def entry_ids(path: Path) -> list[str]:
    """Return the ids of live entries, the last used ones first."""
    return _names(path, "SELECT id FROM entries ORDER BY last_accessed DESC LIMIT ?")


def archived_ids(path: Path) -> list[str]:
    """Return the ids of archived entries, the last archived ones first."""
    return _names(path, "SELECT id FROM archived_entries GROUP BY id ORDER BY max(archive_id) DESC LIMIT ?")


def archived_frameworks(path: Path) -> list[str]:
    """Return the frameworks of archived entries, as they were written."""
    return _names(path, "SELECT DISTINCT framework FROM archived_entries ORDER BY framework LIMIT ?")


def revisions(path: Path, entry_id: str) -> list[str]:
    """Return the numbers of an entry's earlier texts, the last first."""
    query = "SELECT revision FROM revisions WHERE entry_id = ? ORDER BY revision DESC LIMIT ?"
    return _names(path, query, entry_id)


def _names(path: Path, query: str, *parameters: str) -> list[str]:
    if not path.is_file():
        return []
    # A closed database is read as it is: mode=ro alone would leave a write-ahead log behind.
    closed = not path.with_name(path.name + "-wal").exists()
    address = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if closed else ''}"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS)) as connection:
            return [str(name) for (name,) in connection.execute(query, (*parameters, _MOST))]
    except sqlite3.Error:
        # No database, a busy or a broken one: there is nothing to offer, and nobody to tell.
        return []
