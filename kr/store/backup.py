"""Looking after a SQLite file from outside: what it is, whether it is sound, copies, repair.

Copies take their name once they are whole and checked. A backup is brought back as a transaction of the live file, because others
have that open; only what SQLite can't open is moved aside.
"""

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from kr.store import entries, search
from kr.store.engine import Store, Transaction
from kr.store.lock import file_lock
from kr.store.revisions import digest
from kr.store.sqlite import (
    SCHEMA_VERSION,
    Connection,
    identity,
    lock_path,
    open_existing,
    require_ours,
    translated,
    unused_name,
)

State = Literal["absent", "current", "older", "newer", "foreign", "corrupt", "unreadable"]

_TIMEOUT = 10.0
_WAIT_SECONDS = 60.0
_COMPANIONS = ("-wal", "-shm", "-journal")
_MOST_PROBLEMS = 20
_NETWORK_FILE_SYSTEMS = {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "nfs", "nfs4", "smb3", "smbfs"}


@dataclass(frozen=True, slots=True)
class Inspection:
    """What stands at the path; ``absent`` is also an empty file, ``version`` its newest migration. ``message`` says what is wrong."""

    state: State
    version: int | None = None
    message: str | None = None


def inspect(path: Path, *, is_locked: bool = False) -> Inspection:
    """Tell what stands in the database's place; ``is_locked``: the caller holds the lock. Raises ``StoreBusy``."""
    try:
        if identity(path) is None:
            return Inspection("absent")
        with _opened(path, is_locked=is_locked) as connection:
            version = require_ours(path, connection)
            if not version:
                return Inspection("absent")
            connection.execute("SELECT 1 FROM entries, archived_entries LIMIT 1").fetchone()
            return Inspection("current" if version == SCHEMA_VERSION else "older", version)
    except StoreCorrupt as error:
        return Inspection("corrupt", message=str(error))
    except StoreBusy:
        raise
    except StoreTooNew as error:
        return Inspection("newer", message=str(error))
    except StoreUnwritable as error:
        return Inspection("unreadable", message=str(error))
    except StoreError as error:
        is_damaged = "no such table" in str(error)
        return Inspection("corrupt" if is_damaged else "foreign", message=str(error))


def check(path: Path) -> list[str]:
    """Say what is wrong with a database that ``inspect`` calls current or older."""
    with _opened(path) as connection:
        try:
            return list(_problems(connection))[:_MOST_PROBLEMS]
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            return [str(error)]


def _problems(connection: Connection) -> Iterator[str]:
    for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})"):
        if line != "ok":
            yield str(line)
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"{table}: row {row} refers to a row of {parent} that is not there"
    indexed = connection.execute(
        "SELECT entry_id FROM search_rows JOIN entry_search ON entry_search.rowid = row"
    )
    if {row[0] for row in indexed} != {row[0] for row in connection.execute("SELECT id FROM entries")}:
        yield "entry_search: the search index and the entries differ"
    for sha256, text in connection.execute("SELECT sha256, text FROM report_texts"):
        if digest(str(text)) != sha256:
            yield f"report_texts: the text {str(sha256)[:12]} is not the one that was written"


def is_repairable(problems: list[str]) -> bool:
    """Tell whether ``repair`` puts these problems right: they lie in what is made from other tables."""
    return all("index" in problem or "search" in problem for problem in problems)


def repair(tx: Transaction) -> None:
    """Build all indexes anew."""
    tx.execute("REINDEX")
    search.refill(tx, entries.all(tx))


def network_file_system(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """Return the type of the network file system a folder is on, where SQLite may corrupt a database; None for a local one."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    best = ("", "")
    for line in lines:
        _, point, kind, *_ = [*line.split(" "), "", ""]
        mounted = point.replace("\\040", " ").rstrip("/")
        if f"{folder.resolve()}/".startswith(f"{mounted}/") and len(point) >= len(best[0]):
            best = (point, kind)  # of several mounts on one point the last one counts
    return best[1] if best[1] in _NETWORK_FILE_SYSTEMS else None


def backup(path: Path, target: Path | None, moment: str) -> Path:
    """Copy a database while others write: to a new file, or one with the moment in its name beside it, or in a folder."""
    if target is None or target.is_dir():
        folder = path.parent if target is None else target
        names = (f"{path.stem}-{moment}{number}.db" for number in ("", *(f"-{it}" for it in range(2, 100))))
        target = next((folder / name for name in names if not (folder / name).exists()), None)
        if target is None:
            raise StoreError(f"{path.parent}: no name for a backup is free; name a file")
    return _backup(path, target)


def restore(path: Path, source: Path, moment: str) -> Path | None:
    """Put a checked backup in the database's place; return where the present one is kept, the moment in its name."""
    if not source.is_file():
        raise StoreError(f"{source}: there is no such backup")
    if path.exists() and path.samefile(source):
        raise StoreError(f"{source}: is the database itself")
    with _temporary_folder(path.parent) as own:
        copy = own / "kr.db"
        with _opened(source, is_locked=True) as connection:
            _copy(connection, copy, source)
        _check_copy(copy, source)
        with file_lock(lock_path(path), timeout=_WAIT_SECONDS):
            present = inspect(path, is_locked=True)
            if present.state == "foreign":
                raise StoreError(f"{present.message}; nothing was changed")
            kept = None if present.state == "absent" else _keep(path, moment)
            if present.state != "absent" and path.exists():
                _write_over(path, copy)
            else:
                _remove_companions(path)
                copy.replace(path)
    return kept


def keep_before_repair(path: Path) -> Path:
    return _backup(path, unused_name(path, "repair.bak"))


def upgrade_copies(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.schema-*.bak*"))


def move_aside(path: Path, moment: str) -> Path:
    """Rename a database that can't be used, with its write-ahead log."""
    with file_lock(lock_path(path), timeout=_WAIT_SECONDS):
        return _move_aside(path, moment)


def _move_aside(path: Path, moment: str) -> Path:
    target = unused_name(path, f"{moment}.damaged")
    for suffix in _COMPANIONS:
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return path.rename(target)


def _keep(path: Path, moment: str) -> Path:
    try:
        return _backup(path, unused_name(path, f"{moment}.bak"), is_locked=True)
    except StoreCorrupt:
        return _move_aside(path, moment)


def _backup(path: Path, target: Path, *, is_locked: bool = False) -> Path:
    if identity(path) is None:
        raise StoreError(f"{path}: there is no database")
    if not target.parent.is_dir():
        raise StoreUnwritable(f"{target.parent}: there is no such folder; make it, or name another file")
    with _temporary_folder(target.parent) as own:
        copy = own / path.name
        with _opened(path, is_locked=is_locked) as connection:
            _copy(connection, copy, path)
        try:
            target.touch(exist_ok=False)  # the name is ours
            copy.replace(target)
        except FileExistsError as exc:
            raise StoreUnwritable(
                f"{target}: exists already, and a backup never overwrites; name another file"
            ) from exc
    return target


@contextmanager
def _opened(path: Path, *, is_locked: bool = False) -> Iterator[Connection]:
    """Open a database of any version to read it, and close it under the lock (``is_locked``: held), where one can be had."""
    with translated(path):
        connection = open_existing(path, timeout=_TIMEOUT)
        try:
            yield connection
        finally:
            try:
                with nullcontext() if is_locked else file_lock(lock_path(path), timeout=1.0):
                    connection.close()
            except StoreError:
                connection.close()


def _check_copy(copy: Path, source: Path) -> None:
    found = inspect(copy)
    if found.state == "newer":
        raise StoreTooNew((found.message or "").replace(str(copy), str(source)))
    if found.state not in {"current", "older"}:
        raise StoreCorrupt(f"{source}: is no database of kr; nothing was changed")
    problems = check(copy)
    if not is_repairable(problems):
        raise StoreCorrupt(f"{source}: is not sound ({problems[0]}); nothing was changed")
    with Store(f"sqlite:///{copy}", copy.parent) as store, store.write() as tx:  # which brings it up to date
        if problems:
            repair(tx)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".kr-copy-", dir=parent) as own:
            yield Path(own)
    except OSError as exc:
        raise StoreUnwritable(f"{parent}: nothing can be written here: {exc.strerror or exc}") from exc


def _copy(source: sqlite3.Connection, target: Path, shown: Path) -> None:
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        _bounded_backup(source, copy, shown)
        copy.execute("PRAGMA journal_mode = DELETE")
        found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreCorrupt(f"{shown}: the copy is not sound ({found}); see `kr db check`")
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


def _write_over(path: Path, copy: Path) -> None:
    with translated(path), closing(open_existing(path, timeout=_TIMEOUT)) as target:
        size = target.execute("PRAGMA page_size").fetchone()[0]
        with closing(sqlite3.connect(copy, isolation_level=None)) as source:
            if source.execute("PRAGMA page_size").fetchone()[0] != size:
                source.execute(f"PRAGMA page_size = {size}")
                source.execute("VACUUM")
            _bounded_backup(source, target, path)


def _remove_companions(path: Path) -> None:
    """Remove what is left of a write-ahead log where no database is: it belongs to nothing."""
    for suffix in _COMPANIONS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
