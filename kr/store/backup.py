"""A SQLite database seen from outside: what stands in its place, whether it is sound, copies, and how one comes back.

Each operation holds the write lock, where this user may lock at all: then nobody writes, checkpoints or closes meanwhile,
and the file can be read without changing a byte of it. ``copy`` moves a knowledge base to another database, of either kind.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Boolean, Table

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreForeign, StoreTooNew, StoreUnwritable
from kr.store import entries, migrate, search
from kr.store.engine import Store, Transaction
from kr.store.lock import file_lock
from kr.store.schema import metadata
from kr.store.sql import OF_FOLDER, SCHEMA_KEY, SCHEMA_VERSION, insert_into
from kr.store.sqlite import (
    Connection,
    connect,
    identity,
    lock_path,
    open_existing,
    require_ours,
    translated,
)
from kr.text import digest

State = Literal["absent", "current", "older", "newer", "foreign", "corrupt", "unreadable"]

NOT_OURS = "is not kr's: drop it with sqlite3, unless you made it"
"""How a sentence of ``check`` ends that is about something sound, which only its owner can judge."""
_WAIT_SECONDS = 60.0
_MOST_PROBLEMS = 20
_PAGE = 500
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
    except StoreError as error:
        return _unusable(error)


def inspect_store(store: Store) -> Inspection:
    """Tell what a store's database is. Raises ``StoreBusy``."""
    if not store.is_shared:
        return inspect(store.path)
    try:
        return Inspection("current", SCHEMA_VERSION) if store.exists() else Inspection("absent")
    except StoreError as error:
        return _unusable(error)


def _unusable(error: StoreError) -> Inspection:
    match error:
        case StoreBusy():
            raise error
        case StoreCorrupt():
            return Inspection("corrupt", problem=error.problem)
        case StoreTooNew():
            return Inspection("newer", problem=str(error))
        case StoreForeign():
            return Inspection("foreign", problem=str(error))
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
    if target.exists():
        why = f"{target}: exists already, and a backup never overwrites; name another file"
        raise StoreUnwritable(why)
    copy = target.with_name(f".kr-copy-{target.name}")
    try:
        copy.unlink(missing_ok=True)
        with _reading(path, is_locked=is_locked) as connection:
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
        present = inspect(path, is_locked=True)
        if present.state == "foreign":
            raise StoreError(f"{present.problem}; nothing was changed")
        kept = None
        if present.state == "corrupt":
            kept = _move_aside(path, moment)
        elif present.state != "absent":
            kept = backup(path, None, moment, is_locked=True)
        path.touch(source.stat().st_mode & 0o777 | 0o600)
        with (
            translated(path),
            closing(open_existing(path, timeout=_WAIT_SECONDS)) as target,
            _reading(source, is_locked=True) as connection,
        ):
            target.execute("PRAGMA journal_mode = WAL")
            connection.backup(
                target
            )  # one transaction: a new file would leave others with the log of the old one
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
    version = require_ours(path, connection)
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
    for key, text in texts:
        if digest(str(text)) != key:
            yield f"report_texts: the text {str(key)[:12]} is not the one that was written"


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
    if found.state not in {"current", "older"}:
        kinds = {"newer": StoreTooNew, "foreign": StoreForeign}
        why = found.problem or f"{source}: is no database of kr"
        raise kinds.get(found.state, StoreCorrupt)(f"{why}; nothing was changed")
    if problems := check(source, is_locked=True):
        raise StoreCorrupt(f"{source}: is not sound ({problems[0]}); nothing was changed")


def _move_aside(path: Path, moment: str) -> Path:
    target = _free_name(path.parent, f"{path.name}.{moment}", ".damaged")
    for suffix in _COMPANIONS:
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return path.rename(target)


def _free_name(folder: Path, stem: str, end: str) -> Path:
    names = (f"{stem}{end}" if number == 1 else f"{stem}-{number}{end}" for number in count(1))
    return next(folder / name for name in names if not (folder / name).exists())


def copy(source: Store, target: Store, tell: Callable[[str, int], None]) -> dict[str, int]:
    """Copy everything into an empty database, and compare; ``tell`` is given a table and how many of its rows are over there.

    Returns how many rows each table holds. Report files stay where they are: kr writes them as it answers. Raises ``StoreError``
    where there is nothing to copy, or the target holds something.
    """
    if source.location == target.location:
        raise StoreError(f"{source.location}: is the database itself")
    if not source.exists():
        raise StoreError(f"{source.location}: there is no database to copy")
    rows: dict[str, int] = {}
    with source.read() as old, target.write() as new:
        for table in metadata.sorted_tables:
            name = str(table.name)
            if any(_pages(new, table)):
                raise StoreError(f"{target.location}: is not empty ({table.name}); copy into a new database")
            rows[name] = 0
            for page in _pages(old, table):
                new.execute_many(insert_into(table.name, table.columns.keys()), page)
                rows[name] += len(page)
                tell(name, rows[name])
            if _digest(old, table) != _digest(new, table):
                raise StoreError(f"{table.name}: its rows are not the same in {target.location}")
        _restore_numbers(new)
        search.refill(new, entries.all(new))
    return rows


def _pages(tx: Transaction, table: Table) -> Iterator[list[dict[str, Any]]]:
    """Give the rows of a table in the order of its keys, some hundred at a time; of ``meta`` what is no fact about a database or folder."""
    keys, names = table.primary_key.columns.keys(), table.columns.keys()
    is_truth = {it.name for it in table.columns if isinstance(it.type, Boolean)}
    listed, where, after = ", ".join(keys), "", dict[str, Any]()
    while found := tx.rows(
        f"SELECT {', '.join(names)} FROM {table.name} {where} ORDER BY {listed} LIMIT {_PAGE}", **after
    ):
        rows = [{name: bool(row[name]) if name in is_truth else row[name] for name in names} for row in found]
        where = f"WHERE ({listed}) > ({', '.join(f':{key}' for key in keys)})"
        after = {key: rows[-1][key] for key in keys}
        if table.name == "meta":
            rows = [it for it in rows if not str(it["key"]).startswith((SCHEMA_KEY, OF_FOLDER))]
        if rows:
            yield rows


def _digest(tx: Transaction, table: Table) -> str:
    found = sha256()
    for page in _pages(tx, table):
        for row in page:
            found.update(repr([*row.values()]).encode(errors="surrogatepass"))
    return found.hexdigest()


def _restore_numbers(tx: Transaction) -> None:
    """Have PostgreSQL give out the numbers after those that were copied; SQLite does so by itself."""
    if tx.connection.dialect != "postgresql":
        return
    for table in metadata.sorted_tables:
        column = table.autoincrement_column
        if column is not None:
            sequence = f"pg_get_serial_sequence('{table.name}', '{column.name}')"
            tx.rows(f"SELECT setval({sequence}, max({column.name})) FROM {table.name} HAVING count(*) > 0")
