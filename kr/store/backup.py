"""A database seen from outside: what stands in its place, whether it is sound, copies of it, and how one comes back.

What looks at a SQLite file holds the write lock, where this user may lock at all: then nobody writes, checkpoints or closes meanwhile,
and the file can be read without changing a byte of it.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Boolean, Table

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreForeign, StoreTooNew, StoreUnwritable
from kr.store import SCHEMA_KEY, SCHEMA_VERSION, entries, lookup, schema
from kr.store.engine import OF_FOLDER, Store, Transaction, insert_into
from kr.store.files import file_lock
from kr.store.sqlite import Connection, connect, identity, lock_path, read_mode, require_ours, translated
from kr.text import digest

State = Literal["absent", "current", "older", "newer", "foreign", "corrupt", "unreadable"]

NOT_OURS = "is not kr's: drop it with sqlite3, unless you made it"
"""How a sentence of ``check`` ends that is about something sound, which only its owner can judge."""
_WAIT_SECONDS = 60.0
_MOST_PROBLEMS = 20
_PAGE = 500
_OBJECTS = (
    "SELECT type, lower(name) FROM sqlite_master WHERE sql IS NOT NULL "
    r"AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'entry\_search\_%' ESCAPE '\'"
)
_STATES: dict[type[StoreError], State] = {
    StoreCorrupt: "corrupt",
    StoreTooNew: "newer",
    StoreForeign: "foreign",
}


@dataclass(frozen=True, slots=True)
class Inspection:
    """What stands at a database's path; an empty file counts as ``absent``.

    ``version`` is the number of its newest migration, ``problem`` a sentence about what is wrong, or None.
    """

    state: State
    version: int | None = None
    problem: str | None = None


def inspect(store: Store) -> Inspection:
    """Tell what a store's database is. Raises ``StoreBusy``."""
    try:
        if store.is_shared:
            return Inspection("current", SCHEMA_VERSION) if store.exists() else Inspection("absent")
        with _locked(store.path):
            return _inspect(store.path)
    except StoreBusy:
        raise
    except StoreError as error:
        return _unusable(error)


def _inspect(path: Path) -> Inspection:
    if identity(path) is None:
        return Inspection("absent")
    with _opened(path) as connection:
        version = require_ours(path, connection)
        names = {name for kind, name in connection.execute(_OBJECTS) if kind == "table"}
    if not names:
        return Inspection("absent")
    if lacking := sorted({"entries", "archived_entries"} - names):
        raise StoreCorrupt(f"{path}: has no table {' nor '.join(lacking)}")
    return Inspection("current" if version == SCHEMA_VERSION else "older", version)


def _unusable(error: StoreError) -> Inspection:
    state = _STATES.get(type(error), "unreadable")
    return Inspection(state, problem=error.problem if state == "corrupt" else str(error))


def check(store: Store) -> list[str]:
    """Say what is wrong inside a store's database, in at most 20 sentences; of PostgreSQL's its texts and the search index.

    Raises a ``StoreError``.
    """
    if not store.is_shared:
        with _locked(store.path):
            return _check(store.path)
    with store.read() as tx:
        lacking = "SELECT 1 FROM entries WHERE id NOT IN (SELECT entry_id FROM entry_search) LIMIT 1"
        problems = ["entry_search: not every entry is in the search index"] if tx.row(lacking) else []
        wrong = (
            "SELECT sha256 FROM report_texts WHERE encode(sha256(convert_to(text, 'UTF8')), 'hex') <> sha256"
        )
        return [*problems, *map(_wrong_text, tx.column(f"{wrong} LIMIT {_MOST_PROBLEMS}"))]


def _check(path: Path) -> list[str]:
    with _opened(path) as connection:
        try:
            return list(islice(_problems(connection), _MOST_PROBLEMS))
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            return [str(error)]


def _problems(connection: Connection) -> Iterator[str]:
    for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})"):
        if line != "ok":
            yield str(line)
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"{table}: row {row} refers to a row of {parent} that is not there"
    # What it lacks, and what it holds that is not kr's: a trigger, a table or a view may do anything.
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        schema.make(new)
        ours, found = set(new.execute(_OBJECTS)), set(map(tuple, connection.execute(_OBJECTS)))
    yield from (f"{kind} {name} {NOT_OURS}" for kind, name in sorted(found - ours) if kind != "index")
    if missing := sorted(ours - found):
        yield from (f"{kind} {name} is missing" for kind, name in missing)
        return
    lacking = (
        "SELECT id FROM entries WHERE id NOT IN "
        "(SELECT entry_id FROM search_rows WHERE row IN (SELECT rowid FROM entry_search)) LIMIT 1"
    )
    if connection.execute(lacking).fetchone():
        yield "search_rows: not every entry is in the search index"
    for key, text in connection.execute("SELECT sha256, text FROM report_texts"):
        if digest(str(text)) != key:
            yield _wrong_text(key)


def _wrong_text(sha256: object) -> str:
    return f"report_texts: the text {str(sha256)[:12]} is not the one that was written"


def backup(path: Path, target: Path | None, moment: str) -> Path:
    """Copy a database to a new file; into a folder (None: its own) under a name with the ``moment`` in it.

    Nothing is overwritten, and no folder is made. Returns the file. Raises a ``StoreError``.
    """
    if identity(path) is None:
        raise StoreError(f"{path}: there is no database")
    with _locked(path):
        return _backup(path, target, moment)


def _backup(path: Path, target: Path | None, moment: str) -> Path:
    if target is None or target.is_dir():
        target = _free_name(target or path.parent, f"{path.stem}-{moment}", ".db")
    if not target.parent.is_dir():
        raise StoreUnwritable(f"{target.parent}: there is no such folder; make it, or name another file")
    if target.exists():
        why = f"{target}: exists already, and a backup never overwrites; name another file"
        raise StoreUnwritable(why)
    copy = target.with_name(f".kr-copy-{target.name}")
    try:
        copy.unlink(missing_ok=True)
        with _opened(path) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))
        copy.chmod(path.stat().st_mode & 0o777 | 0o600)
        with copy.open("rb") as file:
            os.fsync(file.fileno())
        copy.replace(target)
    except OSError as exc:
        raise StoreUnwritable(f"{target}: can't be written: {exc.strerror}") from exc
    finally:
        with suppress(OSError):
            copy.unlink(missing_ok=True)
    return target


def restore(path: Path, source: Path, moment: str) -> Path | None:
    """Put a backup in a database's place; return where the present one is kept, None where there was none.

    The backup is checked first. Others may have the database open: they go on with the restored one. Raises a ``StoreError``.
    """
    _require_backup(path, source)
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(lock_path(path), timeout=_WAIT_SECONDS):
        kept = _make_room(path, moment)
        path.touch(source.stat().st_mode & 0o777 | 0o600)
        with translated(path), closing(connect(path)) as target, _opened(source) as connection:
            target.execute("PRAGMA journal_mode = WAL")
            # One transaction: a new file would leave others with the log of the old one.
            connection.backup(target)
        return kept


def _require_backup(path: Path, source: Path) -> None:
    """Raise a ``StoreError`` for what can't take a database's place."""
    if not source.is_file():
        raise StoreError(f"{source}: there is no such backup")
    if path.exists() and path.samefile(source):
        raise StoreError(f"{source}: is the database itself")
    try:
        problem = "is no database of kr" if _inspect(source).state == "absent" else ""
        if not problem and (found := _check(source)):
            problem = f"is not sound ({found[0]})"
    except StoreCorrupt as error:
        problem = error.problem.removeprefix(f"{source}: ")
    if problem:
        raise StoreCorrupt(f"{source}: {problem}; nothing was changed")


def _make_room(path: Path, moment: str) -> Path | None:
    """Keep the present database: as a backup, or as it is where it is corrupt. Raises ``StoreForeign``."""
    try:
        return None if _inspect(path).state == "absent" else _backup(path, None, moment)
    except StoreCorrupt:
        return _move_aside(path, moment)


def set_aside(path: Path, moment: str) -> Path:
    """Rename a database that can't be used, with its write-ahead log; return its new name."""
    with file_lock(lock_path(path), timeout=_WAIT_SECONDS):
        return _move_aside(path, moment)


def _move_aside(path: Path, moment: str) -> Path:
    target = _free_name(path.parent, f"{path.name}.{moment}", ".damaged")
    for suffix in ("-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return path.rename(target)


def _free_name(folder: Path, stem: str, end: str) -> Path:
    names = (f"{stem}{end}" if number == 1 else f"{stem}-{number}{end}" for number in count(1))
    return next(folder / name for name in names if not (folder / name).exists())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the write lock of a database that is there, where this user may."""
    with ExitStack() as held:
        if path.is_file():
            with suppress(StoreUnwritable):  # a folder that nobody may write to
                held.enter_context(file_lock(lock_path(path), timeout=_WAIT_SECONDS))
        yield


@contextmanager
def _opened(path: Path) -> Iterator[Connection]:
    """Open a database of any version so that nothing of it changes."""
    with translated(path), closing(connect(path, read_mode(path))) as connection:
        yield connection


def rebuild_indexes(tx: Transaction) -> None:
    """Make SQLite's indexes and the search index anew from the tables."""
    if not tx.is_postgresql:
        tx.execute("REINDEX")
    lookup.refill(tx, entries.all(tx))


def copy(source: Store, target: Store) -> dict[str, int]:
    """Copy everything into an empty database, of either kind; return how many rows each table holds.

    Report files stay where they are: kr writes them as it answers. Raises ``StoreError`` where there is nothing to copy, or the target
    holds something.
    """
    if source.location == target.location:
        raise StoreError(f"{source.location}: is the database itself")
    if not source.exists():
        raise StoreError(f"{source.location}: there is no database to copy")
    rows: dict[str, int] = {}
    with source.read() as old, target.write() as new:
        for table in schema.metadata.sorted_tables:
            if any(_pages(new, table)):
                raise StoreError(f"{target.location}: is not empty ({table.name}); copy into a new database")
            name = str(table.name)  # SQLAlchemy's is a kind of text that YAML doesn't know
            rows[name] = 0
            for page in _pages(old, table):
                new.execute_many(insert_into(name, page[0]), page)
                rows[name] += len(page)
            column = table.autoincrement_column
            if new.is_postgresql and column is not None:  # SQLite goes on with the next number by itself
                sequence = f"pg_get_serial_sequence('{name}', '{column.name}')"
                new.rows(f"SELECT setval({sequence}, max({column.name})) FROM {name} HAVING count(*) > 0")
        lookup.refill(new, entries.all(new))
    return rows


def _pages(tx: Transaction, table: Table) -> Iterator[list[dict[str, Any]]]:
    """Give the rows of a table, some hundred at a time; of ``meta`` what is no fact about a database or folder."""
    names = table.columns.keys()
    is_truth = {it.name for it in table.columns if isinstance(it.type, Boolean)}
    found = tx.connection.execute(f"SELECT {', '.join(names)} FROM {table.name}")
    while page := found.fetchmany(_PAGE):
        rows = [dict(zip(names, row, strict=True)) for row in page]
        if table.name == "meta":
            rows = [it for it in rows if not str(it["key"]).startswith((SCHEMA_KEY, OF_FOLDER))]
        for row in rows:
            row |= {name: bool(row[name]) for name in is_truth}
        if rows:
            yield rows
