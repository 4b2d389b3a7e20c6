"""The index of documentation: a SQLite file with full-text search for a package at a version, or for a folder.

It is made in one transaction: eight processes make it once, and one that is killed leaves nothing half. It is made anew when the files
that it was made of changed. Where the user's cache folder can't be written it is held in memory.
"""

import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kr.documents.text import Section

MAX_BYTES = 512 * 1024 * 1024
"""Of all indexes together; the least recently used go first."""

_FORMAT = 7
"""Of the files: another one is made anew."""

_WAIT = 120.0  # seconds for another process that makes the same index
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HUMPED = re.compile(r"\b[A-Za-z][a-z0-9]+[A-Z]\w*")
_TABLE = """
CREATE VIRTUAL TABLE passages USING fts5(
  name, words, signature, text, parts, place UNINDEXED, form UNINDEXED, is_secondary UNINDEXED,
  tokenize = 'porter unicode61 remove_diacritics 2'
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What an index is made of. It is made anew when the ``fingerprint`` differs, or a file changed since: ``changed_at``, in seconds."""

    key: str
    fingerprint: str
    changed_at: float = 0.0

    @property
    def file_name(self) -> str:
        plain = re.sub(r"[^A-Za-z0-9.@_-]+", "_", self.key)[:100]
        digest = hashlib.sha256(f"{_FORMAT}\0{self.key}".encode(errors="surrogateescape")).hexdigest()
        return f"{plain}-{digest[:20]}.db"


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the user's folder of indexes, ``$XDG_CACHE_HOME/kr/docs``; None for a user without a home."""
    cache = environ.get("XDG_CACHE_HOME", "")
    home = environ.get("HOME", "")
    if Path(cache).is_absolute():
        return Path(cache) / "kr" / "docs"
    return Path(home) / ".cache" / "kr" / "docs" if home else None


def open_index(
    origin: Origin, make: Callable[[], Iterable[Section]], folder: Path | None
) -> sqlite3.Connection:
    """Return a connection to the index, which is made of the sections of ``make`` where there is none, or an older one.

    The caller closes it. ``folder`` None, or one that can't be written, keeps it in memory.
    """
    if folder is not None:
        # A full disk or a folder of somebody else's: the answer matters more than the file.
        with suppress(OSError, sqlite3.OperationalError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                return _kept(origin, make, folder)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:  # torn by the disk
                (folder / origin.file_name).unlink()
                return _kept(origin, make, folder)
    connection = sqlite3.connect(":memory:")
    fill(connection, make())
    return connection


def _kept(origin: Origin, make: Callable[[], Iterable[Section]], folder: Path) -> sqlite3.Connection:
    """Return the index that the folder keeps. Using it makes it the most recently used."""
    path = folder / origin.file_name
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
    try:
        if not _is_new(connection, origin):
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            if not _is_new(connection, origin):  # nor made by another process while this one waited
                # It is as new as the moment in which the reading of its files began.
                made_at = max(time.time(), origin.changed_at)
                for name in ("about", "passages"):
                    connection.execute(f"DROP TABLE IF EXISTS {name}")
                connection.execute("CREATE TABLE about (made_at REAL NOT NULL, fingerprint TEXT NOT NULL)")
                connection.execute("INSERT INTO about VALUES (?, ?)", (made_at, origin.fingerprint))
                fill(connection, make())
            connection.execute("COMMIT")
            bound(folder, keep=path)
        with suppress(OSError):  # of another user's: it can be read all the same
            os.utime(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_new(connection: sqlite3.Connection, origin: Origin) -> bool:
    """Tell whether an index is there, as new as its files."""
    try:
        row = connection.execute("SELECT made_at, fingerprint FROM about").fetchone()
    except sqlite3.OperationalError:  # there is no such table
        return False
    return bool(row) and row[0] >= origin.changed_at and row[1] == origin.fingerprint


def bound(folder: Path, *, keep: Path | None = None, most: int = MAX_BYTES) -> None:
    """Remove the least recently used indexes until the others have at most ``most`` bytes."""
    held: list[tuple[float, int, Path]] = []
    for path in folder.glob("*.db"):
        with suppress(OSError):
            status = path.stat()
            held.append((status.st_mtime, status.st_size, path))
    size = sum(row[1] for row in held)
    for _, own, path in sorted(held):
        if size <= most:
            return
        if path != keep:
            with suppress(OSError):
                path.unlink()
                size -= own


def fill(connection: sqlite3.Connection, sections: Iterable[Section]) -> None:
    """Put sections into a database that has none."""
    connection.execute(_TABLE)
    connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(_row, sections))
    connection.execute("INSERT INTO passages (passages) VALUES ('optimize')")


def _row(one: Section) -> tuple[object, ...]:
    words = split_words(one.name)
    return one.name, words, one.signature, one.text, _parts(one), one.place, one.form, int(one.is_secondary)


def _parts(section: Section) -> str:
    """Return the words of the identifiers in a section that its text holds in one piece only: ``withoutEnlargement``."""
    held = _HUMPED.findall(f"{section.signature} {section.text}")
    return " ".join(split_words(one) for one in dict.fromkeys(held))


def split_words(name: str) -> str:
    """Return an identifier as its words: ``forbidExtraKeys`` and ``forbid_extra_keys`` are "forbid extra keys"."""
    return " ".join(re.sub(r"[\W_]+", " ", _CAMEL.sub(" ", name)).split())
