"""The index of documentation: a SQLite file with full-text search for a package at a version, or for a folder.

It is made under a lock in a temporary file and moved to its place: eight processes make it once, and one that is killed leaves nothing
half. It is made anew when the files that it was made of changed. Where the user's cache folder can't be written it is held in memory.
"""

import fcntl
import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kr.documents.text import Section

MAX_BYTES = 512 * 1024 * 1024
"""Of all indexes together; the least recently used go first."""

_FORMAT = 6
"""Of the files: another one is made anew."""

_WAIT = 120.0  # seconds for another process that makes the same index
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HUMPED = re.compile(r"\b[A-Za-z][a-z0-9]+[A-Z]\w*")
_CREATE = """
CREATE TABLE about (made_at REAL NOT NULL, fingerprint TEXT NOT NULL, count INTEGER NOT NULL);
CREATE VIRTUAL TABLE passages USING fts5(
  name, words, signature, text, parts, place UNINDEXED, form UNINDEXED, is_secondary UNINDEXED,
  tokenize = 'porter unicode61 remove_diacritics 2'
);
"""
_INSERT = """
INSERT INTO passages (name, words, signature, text, parts, place, form, is_secondary) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
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
            return _kept(origin, make, folder)
    connection = sqlite3.connect(":memory:")
    fill(connection, make(), origin)
    return connection


def _kept(origin: Origin, make: Callable[[], Iterable[Section]], folder: Path) -> sqlite3.Connection:
    path = folder / origin.file_name
    found = _opened(path, origin)
    if found is not None:
        return found
    _remove_abandoned(folder)
    with _lock(path.with_suffix(".lock"), wait=_WAIT):
        found = _opened(path, origin)  # made by another process while this one waited
        if found is not None:
            return found
        temporary = path.with_suffix(".tmp")
        temporary.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(temporary)) as connection:
                connection.executescript(
                    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 8192;"
                )
                fill(connection, make(), origin)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    bound(folder, keep=path)
    made = _opened(path, origin)
    if made is None:
        raise OSError(f"{path.name} went away")
    return made


def _opened(path: Path, origin: Origin) -> sqlite3.Connection | None:
    """Open an index that is there, whole and as new as its files; else None. Using it makes it the most recently used."""
    if not path.is_file():
        return None
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        made_at, fingerprint = connection.execute("SELECT made_at, fingerprint FROM about").fetchone()
    except (sqlite3.DatabaseError, TypeError):  # torn by the disk: made anew
        made_at, fingerprint = -1.0, ""
    if made_at < origin.changed_at or fingerprint != origin.fingerprint:
        connection.close()
        return None
    with suppress(OSError):  # of another user's: it can be read all the same
        os.utime(path)
    return connection


@contextmanager
def _lock(path: Path, *, wait: float) -> Iterator[None]:
    """Hold a lock that ends with its process. Raises ``TimeoutError`` where another one holds it for longer than ``wait`` seconds."""
    end = time.monotonic() + wait
    with path.open("wb") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise TimeoutError(path.name) from None
                time.sleep(0.05)
        yield


def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of killed processes: those whose lock nobody holds."""
    for temporary in folder.glob("*.tmp"):
        with suppress(OSError), _lock(temporary.with_suffix(".lock"), wait=0):
            temporary.unlink()


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
                path.with_suffix(".lock").unlink(missing_ok=True)
                size -= own


def fill(connection: sqlite3.Connection, sections: Iterable[Section], origin: Origin) -> None:
    """Put sections into an empty database. It is as new as its files, and as the moment in which their reading began."""
    made_at = max(time.time(), origin.changed_at)
    connection.executescript(_CREATE)
    connection.executemany(_INSERT, map(_row, sections))
    connection.execute("INSERT INTO about SELECT ?, ?, count(*) FROM passages", (made_at, origin.fingerprint))
    connection.execute("INSERT INTO passages (passages) VALUES ('optimize')")
    connection.commit()


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
