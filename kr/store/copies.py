"""Copies of a database: backups while others write, and bringing one back (SPEC 6.5).

Copies are made by SQLite's backup API on one snapshot, in a hidden folder, and take their name only when
they are whole and checked. A backup is brought back through SQLite too, as one transaction of the live
file: exchanging the file would pull the write-ahead log from under processes that have it open. Only what
SQLite can't open is moved aside.
"""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from kr.store.soundness import Health, Look, examine, look, repair, sqlite_file
from kr.store.sqlite import SCHEMA_VERSION, SqliteFile, network_file_system

_STAGED = ".kr-copy-"
_WAIT_SECONDS = 60.0
COMPANIONS = ("-wal", "-shm", "-journal")


class Care:
    """Looking after one database from outside of its transactions. Each operation raises a ``StoreError``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def look(self) -> Look:
        """Tell what stands in the database's place."""
        return look(self._path)

    def examine(self) -> Health:
        """Examine a database of ours: its pages, references, tables and texts."""
        return examine(self._path)

    def network_file_system(self, mounts: Path) -> str | None:
        """Name the type of the network file system that the database is on; None for a local one."""
        return network_file_system(self._path.parent, mounts)

    def files(self) -> list[Path]:
        """Name what is written besides its folder, which comes first: whether it is there is not asked."""
        beside = (self._path.with_name(self._path.name + end) for end in ("", "-wal", "-shm", ".lock"))
        return [self._path.parent, *beside]

    def backup(self, target: Path | None, moment: str) -> Path:
        """Copy the database while others write: to a new file, or one with the moment in its name beside it."""
        if target is None or target.is_dir():
            folder = self._path.parent if target is None else target
            stem = f"{self._path.stem}-{moment}"
            names = [f"{stem}.db", *(f"{stem}-{number}.db" for number in range(2, 100))]
            target = next((folder / name for name in names if not (folder / name).exists()), None)
            if target is None:
                raise StoreError(f"{folder}: no name for a backup is free; name a file")
        return backup(self._path, target)

    def restore(self, source: Path, moment: str) -> Path | None:
        """Put a backup in the database's place, and return where the present one is kept, the moment in its name.

        The backup is checked first, and upgraded if it is older. Raises a ``StoreError``; the database is then as it was.
        """
        path = self._path
        _check_source(path, source)
        file = sqlite_file(path, timeout=_WAIT_SECONDS)
        file.make_folder()
        with _staged_source(source, path.parent) as copy, file.exclusive():
            present = look(path, is_locked=True)
            if present.state == "foreign":
                raise StoreError(f"{present.message}; nothing was changed")
            kept = None if present.state == "absent" else _keep(path, moment)
            if path.exists() and present.state != "absent":
                _write_over(file, copy)
            else:
                _replace(copy, path)
        return kept

    def upgrade_copies(self) -> list[Path]:
        """Name the copies that upgrades made, sorted."""
        return sorted(self._path.parent.glob(f"{self._path.name}.schema-*.bak*"))

    def keep_before_repair(self) -> Path:
        """Back the database up before it is repaired."""
        return _numbered(self._path, "repair.bak", lambda target: backup(self._path, target))

    def move_aside(self, moment: str) -> Path:
        """Rename a database that can't be used, with its write-ahead log."""
        with sqlite_file(self._path, timeout=_WAIT_SECONDS).exclusive():
            return move_aside(self._path, f"{moment}.damaged")


def backup(path: Path, target: Path, *, is_locked: bool = False) -> Path:
    """Copy the database to ``target``, which must not exist, and return it. Others may write meanwhile.

    Raises a ``StoreError``; nothing is left then, and no folder is made: a mistyped one may be meant.
    """
    if sqlite_file(path).identity() is not None and not target.parent.is_dir():
        raise StoreUnwritable(f"{target.parent}: there is no such folder; make it, or name another file")
    with _staged(sqlite_file(path), target.parent, is_locked=is_locked) as copy:
        _publish(copy, target)
    return target


def keep_before_upgrade(path: Path, version: int) -> Path:
    """Back a database up before it is migrated; the caller holds the lock. Returns the backup's path."""
    return _numbered(path, f"schema-{version}.bak", lambda target: backup(path, target, is_locked=True))


def move_aside(path: Path, name: str) -> Path:
    """Rename what can't be used as a database, with its write-ahead log. The caller holds the lock."""

    def move(target: Path) -> Path:
        for suffix in COMPANIONS:
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
        return path.rename(target)

    return _numbered(path, name, move)


def _keep(path: Path, name: str) -> Path:
    try:
        return _numbered(path, f"{name}.bak", lambda target: backup(path, target, is_locked=True))
    except StoreCorrupt:
        return move_aside(path, f"{name}.damaged")


def _check_source(path: Path, source: Path) -> None:
    if not source.is_file():
        raise StoreError(f"{source}: there is no such backup")
    if path.exists() and path.samefile(source):
        raise StoreError(f"{source}: is the database itself")


@contextmanager
def _staged(file: SqliteFile, folder: Path, *, is_locked: bool = False) -> Iterator[Path]:
    if file.identity() is None:
        raise StoreError(f"{file.path}: there is no database")
    with _folder(folder) as own:
        copy = own / Path(file.path).name
        with file.inspecting(is_locked=is_locked) as connection:
            _copy(connection, copy, Path(file.path))
        yield copy


@contextmanager
def _staged_source(source: Path, folder: Path) -> Iterator[Path]:
    """Copy a backup next to the database, check it there, and bring it to this kr's schema."""
    with _folder(folder) as own:
        copy = own / "kr.db"
        wal = source.with_name(source.name + "-wal")
        # A closed backup is read without a trace; one with a log needs SQLite to read both.
        mode = "ro" if wal.is_file() and wal.stat().st_size else "ro&immutable=1"
        address = f"file:{quote(str(source.absolute()))}?mode={mode}"
        file = sqlite_file(source)
        with file.translated(), closing(sqlite3.connect(address, uri=True)) as connection:
            _copy(connection, copy, source)
        _check_copy(copy, source)
        yield copy


def _check_copy(copy: Path, source: Path) -> None:
    found = look(copy)
    if found.state == "newer":
        raise StoreTooNew((found.message or "").replace(str(copy), str(source)))
    if found.state not in {"current", "older"}:
        raise StoreCorrupt(f"{source}: is no database of kr; nothing was changed")
    from kr.store.database import Database

    health = examine(copy)
    if health.problems and not health.is_mendable:
        raise StoreCorrupt(f"{source}: is not sound ({health.problems[0]}); nothing was changed")
    with Database(copy, str(copy.parent)) as database:
        if found.state == "older":
            database.upgrade()
        elif health.problems:
            with database.write() as unit:
                repair(unit.session)
    with sqlite_file(copy).translated(), closing(sqlite3.connect(copy)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_STAGED, dir=parent) as own:
            yield Path(own)
    except OSError as exc:
        raise StoreUnwritable(f"{parent}: nothing can be written here: {exc.strerror or exc}") from exc


def _copy(source: sqlite3.Connection, target: Path, shown: Path) -> None:
    """Copy into a new file of one piece, and check the copy."""
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        _bounded_backup(source, copy, shown)
        copy.execute("PRAGMA journal_mode = DELETE")
        found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreCorrupt(f"{shown}: the copy is not sound ({found}); see `kr db check`")
    if shown.exists():
        # As private as the original; a write-protected backup must not become a database that nobody may write.
        target.chmod(shown.stat().st_mode & 0o777 | 0o600)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _bounded_backup(source: sqlite3.Connection, target: sqlite3.Connection, shown: Path) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS

    def watch(_status: int, remaining: int, _total: int) -> None:
        if remaining and time.monotonic() > deadline:
            raise StoreBusy(f"{shown}: another program has held it for more than {_WAIT_SECONDS:g} s")

    source.backup(target, progress=watch)


def _publish(copy: Path, target: Path) -> None:
    """Give a whole copy its name, unless that is taken."""
    try:
        target.touch(exist_ok=False)  # the name is ours
        copy.replace(target)
    except FileExistsError as exc:
        raise StoreUnwritable(
            f"{target}: exists already, and a backup never overwrites; name another file"
        ) from exc
    except OSError as exc:
        raise StoreUnwritable(f"{target}: can't be written: {exc.strerror}") from exc


def _numbered(path: Path, name: str, make: Callable[[Path], Path]) -> Path:
    """Make ``kr.db.NAME``, or ``kr.db.NAME.1`` and so on where that stands already."""
    for number in range(1000):
        target = path.with_name(f"{path.name}.{name}" + (f".{number}" if number else ""))
        if not target.exists():
            return make(target)
    raise StoreUnwritable(
        f"{path.parent}: a thousand copies named {path.name}.{name} are enough; remove some"
    )


def _write_over(file: SqliteFile, copy: Path) -> None:
    with file.translated(), closing(file.open_for_reading(any_version=True)) as target:
        size = target.execute("PRAGMA page_size").fetchone()[0]
        with closing(sqlite3.connect(copy, isolation_level=None)) as source:
            if source.execute("PRAGMA page_size").fetchone()[0] != size:
                source.execute(f"PRAGMA page_size = {size}")
                source.execute("VACUUM")
            _bounded_backup(source, target, Path(file.path))
        if target.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
            raise StoreError(f"{file.path}: was not restored")


def _replace(copy: Path, path: Path) -> None:
    """Put a file where none is: what is left of a write-ahead log there belongs to nothing."""
    try:
        for suffix in COMPANIONS:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        copy.replace(path)
    except OSError as exc:
        raise StoreUnwritable(f"{path}: can't be written: {exc.strerror}") from exc
