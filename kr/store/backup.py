"""A SQLite database seen from outside: what stands in its place, whether it is sound, copies, and how one comes back.

Each operation holds the write lock, where this user may lock at all: then nobody writes, checkpoints or closes meanwhile,
and the file can be read without changing a byte of it.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from kr.store import entries, migrate, search
from kr.store.engine import Store, Transaction
from kr.store.lock import file_lock
from kr.store.sql import SCHEMA_VERSION
from kr.store.sqlite import (
    Connection,
    connect,
    identity,
    lock_path,
    open_existing,
    require_ours,
    translated,
    user_version,
)
from kr.text import digest

State = Literal["absent", "current", "older", "newer", "foreign", "corrupt", "unreadable"]

NOT_OURS = "is not kr's: drop it with sqlite3, unless you made it"
"""How a sentence of ``check`` ends that is about something sound, which only its owner can judge."""
_WAIT_SECONDS = 60.0
_MOST_PROBLEMS = 20
_COMPANIONS = ("-wal", "-shm", "-journal")
_OBJECTS = (
    "SELECT type, lower(name) FROM sqlite_master WHERE sql IS NOT NULL "
    r"AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'entry\_search\_%' ESCAPE '\'"
)
_LACKS_ENTRIES = "search_rows: not every entry is in the search index"
_UNINDEXED = (
    "SELECT id FROM entries WHERE id NOT IN "
    "(SELECT entry_id FROM search_rows WHERE row IN (SELECT rowid FROM entry_search)) LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Inspection:
    """What stands at a database's path; an empty file counts as ``absent``.

    ``version`` is the number of its newest migration, ``problem`` a sentence about what is wrong, or None.
    """

    state: State
    version: int | None = None
    problem: str | None = None


def inspect(path: Path, *, is_locked: bool = False) -> Inspection:
    """Tell what stands at a path; ``is_locked``: the caller holds the write lock. Raises ``StoreBusy``."""
    try:
        if identity(path) is None:
            return Inspection("absent")
        with _reading(path, is_locked=is_locked) as connection:
            return _judge(path, connection)
    except StoreCorrupt as error:
        return Inspection("corrupt", problem=error.problem)
    except StoreBusy:
        raise
    except StoreError as error:
        return Inspection("unreadable", problem=str(error))


def inspect_store(store: Store) -> Inspection:
    """Tell what a store's database is. Raises ``StoreBusy``."""
    if not store.is_shared:
        return inspect(store.path)
    try:
        return Inspection("current", SCHEMA_VERSION) if store.exists() else Inspection("absent")
    except StoreTooNew as error:
        return Inspection("newer", problem=str(error))
    except StoreBusy:
        raise
    except StoreError as error:
        return Inspection("unreadable", problem=str(error))


def check_store(store: Store) -> list[str]:
    """Say what is wrong inside a store's database, as ``check``; of PostgreSQL's its texts and the search index."""
    if not store.is_shared:
        return check(store.path)
    with store.read() as tx:
        lacking = "SELECT 1 FROM entries WHERE id NOT IN (SELECT entry_id FROM entry_search) LIMIT 1"
        problems = [_LACKS_ENTRIES] if tx.row(lacking) else []
        hashes = [row[0] for row in tx.rows("SELECT sha256 FROM report_texts ORDER BY sha256")]
        texts = ((it, tx.value("SELECT text FROM report_texts WHERE sha256 = :it", it=it)) for it in hashes)
        return [*problems, *islice(_wrong_texts(texts), _MOST_PROBLEMS)]


def check(path: Path, *, is_locked: bool = False) -> list[str]:
    """Say what is wrong inside a database of kr, in at most 20 sentences. Raises a ``StoreError``."""
    with _reading(path, is_locked=is_locked) as connection:
        try:
            return list(islice(_problems(connection), _MOST_PROBLEMS))
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            return [str(error)]


def backup(path: Path, target: Path | None, moment: str, *, is_locked: bool = False) -> Path:
    """Copy a database to a new file; into a folder (None: its own) under a name with the ``moment`` in it.

    Nothing is overwritten, and no folder is made. Returns the file. Raises a ``StoreError``.
    """
    if identity(path) is None:
        raise StoreError(f"{path}: there is no database")
    folder = path.parent if target is None else target
    if target is None or target.is_dir():
        target = _free_name(folder, f"{path.stem}-{moment}", ".db")
    if not target.parent.is_dir():
        raise StoreUnwritable(f"{target.parent}: there is no such folder; make it, or name another file")
    with _staged(target.parent) as copy, _reading(path, is_locked=is_locked) as connection:
        _copy(connection, copy, mode=path.stat().st_mode)
        _publish(copy, target)
    return target


def restore(path: Path, source: Path, moment: str) -> Path | None:
    """Put a backup in a database's place; return where the present one is kept, None where there was none.

    The backup is checked first. Others may have the database open: they go on with the restored one. Raises a ``StoreError``.
    """
    _require_backup(path, source)
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(lock_path(path), timeout=_WAIT_SECONDS):
        present = inspect(path, is_locked=True)
        if present.state == "foreign":
            raise StoreError(f"{present.problem}; nothing was changed")
        if present.state in {"absent", "corrupt"}:
            kept = None if present.state == "absent" else _move_aside(path, moment)
            with _staged(path.parent) as copy, _reading(source, is_locked=True) as connection:
                _copy(connection, copy, mode=source.stat().st_mode)
                _drop_companions(path)
                copy.replace(path)
            return kept
        kept = backup(path, None, moment, is_locked=True)
        _write_over(path, source)
        return kept


def set_aside(path: Path, moment: str) -> Path:
    """Rename a database that can't be used, with its write-ahead log; return its new name."""
    with file_lock(lock_path(path), timeout=_WAIT_SECONDS):
        return _move_aside(path, moment)


def rebuild_indexes(tx: Transaction) -> None:
    """Make SQLite's indexes and the search index anew from the tables."""
    if tx.connection.dialect == "sqlite":
        tx.execute("REINDEX")
    search.refill(tx, entries.all(tx))


@contextmanager
def _reading(path: Path, *, is_locked: bool) -> Iterator[Connection]:
    """Open a database of any version so that nothing of it changes."""
    with ExitStack() as held:
        if not is_locked:
            with suppress(StoreUnwritable):  # a folder that nobody may write to
                held.enter_context(file_lock(lock_path(path), timeout=_WAIT_SECONDS))
        held.enter_context(translated(path))
        has_log = path.with_name(f"{path.name}-wal").exists()
        yield held.enter_context(closing(connect(path, "ro" if has_log else "ro&immutable=1")))


def _judge(path: Path, connection: Connection) -> Inspection:
    try:
        version = require_ours(path, connection)
    except StoreTooNew as error:
        return Inspection("newer", user_version(connection), str(error))
    except StoreError as error:
        return Inspection("foreign", problem=str(error))
    names = {name for kind, name in connection.execute(_OBJECTS) if kind == "table"}
    if not names:
        return Inspection("absent")
    if lacking := sorted({"entries", "archived_entries"} - names):
        return Inspection("corrupt", version, f"{path}: has no table {' nor '.join(lacking)}")
    return Inspection("current" if version == SCHEMA_VERSION else "older", version)


def _problems(connection: Connection) -> Iterator[str]:
    for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})"):
        if line != "ok":
            yield str(line)
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"{table}: row {row} refers to a row of {parent} that is not there"
    unlike = list(_unlike(connection))
    yield from unlike
    if any(line.endswith("is missing") for line in unlike):
        return
    if connection.execute(_UNINDEXED).fetchone():
        yield _LACKS_ENTRIES
    yield from _wrong_texts(connection.execute("SELECT sha256, text FROM report_texts"))


def _wrong_texts(texts: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    for sha256, text in texts:
        if digest(str(text)) != sha256:
            yield f"report_texts: the text {str(sha256)[:12]} is not the one that was written"


def _unlike(connection: Connection) -> Iterator[str]:
    """Say what a database lacks, and what it holds that is not kr's: a trigger, a table or a view may do anything."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        migrate.create(new)
        ours, found = set(new.execute(_OBJECTS)), set(map(tuple, connection.execute(_OBJECTS)))
    for kind, name in sorted(found - ours):
        if kind != "index":
            yield f"{kind} {name} {NOT_OURS}"
    for kind, name in sorted(ours - found):
        yield f"{kind} {name} is missing"


def _require_backup(path: Path, source: Path) -> None:
    """Raise a ``StoreError`` for what can't take a database's place."""
    if not source.is_file():
        raise StoreError(f"{source}: there is no such backup")
    if path.exists() and path.samefile(source):
        raise StoreError(f"{source}: is the database itself")
    found = inspect(source, is_locked=True)
    if found.state == "newer":
        raise StoreTooNew(str(found.problem))
    if found.state == "foreign":
        raise StoreError(f"{found.problem}; nothing was changed")
    if found.state not in {"current", "older"}:
        raise StoreCorrupt(found.problem or f"{source}: is no database of kr; nothing was changed")
    if problems := check(source, is_locked=True):
        raise StoreCorrupt(f"{source}: is not sound ({problems[0]}); nothing was changed")


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """Give a path for a copy in a hidden folder, which is gone when the block ends."""
    try:
        with tempfile.TemporaryDirectory(prefix=".kr-copy-", dir=folder) as own:
            yield Path(own) / "kr.db"
    except OSError as exc:
        raise StoreUnwritable(f"{folder}: nothing can be written here: {exc.strerror or exc}") from exc


def _copy(connection: Connection, copy: Path, *, mode: int) -> None:
    """Write a whole, sound copy to disk; as private as the original, and its owner may write it."""
    connection.execute("VACUUM INTO ?", (str(copy),))
    copy.chmod(mode & 0o777 | 0o600)
    with copy.open("rb") as file:
        os.fsync(file.fileno())


def _publish(copy: Path, target: Path) -> None:
    """Give a copy its name, in one step, unless something has it."""
    try:
        _link(copy, target)
    except FileExistsError as exc:
        why = f"{target}: exists already, and a backup never overwrites; name another file"
        raise StoreUnwritable(why) from exc


def _link(copy: Path, target: Path) -> None:
    try:
        target.hardlink_to(copy)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        target.touch(exist_ok=False)
        copy.replace(target)


def _write_over(path: Path, source: Path) -> None:
    """Write a backup over a live database as one transaction: renaming would leave others with a log of the old file."""
    with (
        translated(path),
        closing(open_existing(path, timeout=_WAIT_SECONDS)) as target,
        _reading(source, is_locked=True) as connection,
    ):
        connection.backup(target)


def _move_aside(path: Path, moment: str) -> Path:
    target = _free_name(path.parent, f"{path.name}.{moment}", ".damaged")
    for suffix in _COMPANIONS:
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return path.rename(target)


def _drop_companions(path: Path) -> None:
    for suffix in _COMPANIONS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _free_name(folder: Path, stem: str, end: str) -> Path:
    names = [f"{stem}{end}", *(f"{stem}-{number}{end}" for number in range(2, 1000))]
    target = next((folder / name for name in names if not (folder / name).exists()), None)
    if target is None:
        raise StoreError(f"{folder}: a thousand copies named {stem} are enough; remove some")
    return target
