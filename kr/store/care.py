"""Looking after a database from outside: what it is, whether it is sound, copies, repair (SPEC 6.5).

What ought to be in it is read off a new one. Copies take their name once they are whole and checked. A backup is brought back as a
transaction of the live file, for others have that open; only what SQLite can't open is moved aside.
"""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from kr.naming import digest
from kr.store.database import Database, create_tables
from kr.store.entries import Entries
from kr.store.schema import SEARCH_SQLITE
from kr.store.search import Search
from kr.store.session import Session, insert_into
from kr.store.sqlite import FIRST_RELEASED, SCHEMA_VERSION, SqliteFile, network_file_system, unreleased

State = Literal["absent", "current", "older", "newer", "foreign", "corrupt", "unreadable"]

DERIVED = ("search_rows", "entry_search")
"""Tables that are made from others, and are made again where they are missing."""

_NOT_CARRIED = {*DERIVED, "alembic_version", "leases", "reservations"}
"""Those, and what is of no use to anybody once its time is over."""

_UNINDEXED = (
    "SELECT 1 FROM entries WHERE framework_key IS NOT NULL AND id NOT IN "
    "(SELECT entry_id FROM search_rows WHERE row IN (SELECT rowid FROM entry_search)) LIMIT 1"
)
_LEFT_OVER = (
    "SELECT 1 FROM search_rows WHERE entry_id NOT IN (SELECT id FROM entries) UNION ALL "
    "SELECT 1 FROM entry_search WHERE rowid NOT IN (SELECT row FROM search_rows) LIMIT 1"
)
_NEW_INDEX = ("DROP TABLE IF EXISTS entry_search", "DROP TABLE IF EXISTS search_rows", *SEARCH_SQLITE)
_TIMEOUT = 10.0
_STAGED = ".kr-copy-"
_WAIT_SECONDS = 60.0
_COMPANIONS = ("-wal", "-shm", "-journal")
_MOST_PROBLEMS = 20
_FEW_TABLES = 4
"""From so many tables of ours on, a database that lacks the index is ours all the same."""
_INDEX_PROBLEMS = ("missing from index", "wrong # of entries in index", "non-unique entry in index")

# SQLite's names have no case; FTS5 keeps its index in tables of its own.
_DEFINITIONS = (
    "SELECT type, lower(name) AS name, sql FROM sqlite_master WHERE sql IS NOT NULL "
    r"AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'entry\_search\_%' ESCAPE '\'"
)


class Look(NamedTuple):
    """What stands at the path; ``absent`` is also an empty file, ``version`` its newest migration. ``message`` says what is wrong."""

    state: State
    version: int | None = None
    message: str | None = None


class Health(NamedTuple):
    """What an examination found. ``is_mendable``: ``repair`` puts every problem right, in place."""

    problems: tuple[str, ...] = ()
    is_mendable: bool = False


class Care:
    """The operations on one database file. Each raises a ``StoreError``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = SqliteFile(path, schema_version=SCHEMA_VERSION, timeout=_TIMEOUT)

    def look(self, *, is_locked: bool = False) -> Look:
        """Tell what stands in the database's place; ``is_locked``: the caller holds the lock. Raises ``StoreBusy``."""
        try:
            if self._file.identity() is None:
                return Look(state="absent")
            with self._file.inspecting(is_locked=is_locked) as connection:
                return _judged(self._file, connection)
        except StoreCorrupt as error:
            return Look(state="corrupt", message=str(error))
        except StoreBusy:
            raise
        except StoreError as error:
            return Look(state="unreadable", message=str(error))

    def examine(self) -> Health:
        with self._file.inspecting() as connection:
            try:
                problems = list(_problems(connection))
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                problems = [str(error)]
        return Health(
            problems=tuple(dict.fromkeys(problems[:_MOST_PROBLEMS])),
            is_mendable=all(map(_is_mendable, problems)),
        )

    def network_file_system(self, mounts: Path) -> str | None:
        """Name the type of the network file system that the database is on; None for a local one."""
        return network_file_system(self._path.parent, mounts)

    def files(self) -> list[Path]:
        """Name what is written besides its folder, which comes first: whether it is there is not asked."""
        beside = (self._path.with_name(self._path.name + end) for end in ("", "-wal", "-shm", ".lock"))
        return [self._path.parent, *beside]

    def backup(self, target: Path | None, moment: str) -> Path:
        """Copy the database while others write: to a new file, or one with the moment in its name beside it. Makes no folder."""
        if target is None or target.is_dir():
            folder = self._path.parent if target is None else target
            stem = f"{self._path.stem}-{moment}"
            names = [f"{stem}.db", *(f"{stem}-{number}.db" for number in range(2, 100))]
            target = next((folder / name for name in names if not (folder / name).exists()), None)
            if target is None:
                raise StoreError(f"{folder}: no name for a backup is free; name a file")
        return self._backup(target)

    def restore(self, source: Path, moment: str) -> Path | None:
        """Put a checked backup in the database's place; return where the present one is kept, the moment in its name."""
        path = self._path
        if not source.is_file():
            raise StoreError(f"{source}: there is no such backup")
        if path.exists() and path.samefile(source):
            raise StoreError(f"{source}: is the database itself")
        self._file.make_folder()
        with _staged_source(source, path.parent) as copy, self._file.exclusive(_WAIT_SECONDS):
            present = self.look(is_locked=True)
            if present.state == "foreign":
                raise StoreError(f"{present.message}; nothing was changed")
            kept = None if present.state == "absent" else self._keep(moment)
            if path.exists() and present.state != "absent":
                _write_over(self._file, copy)
            else:
                _replace(copy, path)
        return kept

    def upgrade_copies(self) -> list[Path]:
        return sorted(self._path.parent.glob(f"{self._path.name}.schema-*.bak*"))

    def keep_before_repair(self) -> Path:
        return self._numbered("repair.bak", self._backup)

    def keep_before_upgrade(self, version: int) -> Path:
        """Back the database up before it is migrated; the caller holds the lock."""
        return self._numbered(f"schema-{version}.bak", lambda target: self._backup(target, is_locked=True))

    def move_aside(self, moment: str) -> Path:
        """Rename a database that can't be used, with its write-ahead log."""
        with self._file.exclusive(_WAIT_SECONDS):
            return self._move_aside(f"{moment}.damaged")

    def _keep(self, moment: str) -> Path:
        try:
            return self._numbered(f"{moment}.bak", lambda target: self._backup(target, is_locked=True))
        except StoreCorrupt:
            return self._move_aside(f"{moment}.damaged")

    def _move_aside(self, name: str) -> Path:
        def move(target: Path) -> Path:
            for suffix in _COMPANIONS:
                with suppress(FileNotFoundError):
                    self._beside(suffix).rename(target.with_name(target.name + suffix))
            return self._path.rename(target)

        return self._numbered(name, move)

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)

    def _backup(self, target: Path, *, is_locked: bool = False) -> Path:
        if self._file.identity() is None:
            raise StoreError(f"{self._path}: there is no database")
        if not target.parent.is_dir():
            raise StoreUnwritable(f"{target.parent}: there is no such folder; make it, or name another file")
        with _folder(target.parent) as own:
            copy = own / self._path.name
            with self._file.inspecting(is_locked=is_locked) as connection:
                _copy(connection, copy, self._path)
            _publish(copy, target)
        return target

    def _numbered(self, name: str, make: Callable[[Path], Path]) -> Path:
        """Make ``kr.db.NAME``, or ``kr.db.NAME.1`` and so on where that stands already."""
        for number in range(1000):
            target = self._beside(f".{name}" + (f".{number}" if number else ""))
            if not target.exists():
                return make(target)
        raise StoreUnwritable(
            f"{self._path.parent}: a thousand copies named {self._path.name}.{name} are enough; remove some"
        )


@contextmanager
def _staged_source(source: Path, folder: Path) -> Iterator[Path]:
    file = SqliteFile(source, schema_version=SCHEMA_VERSION, timeout=_TIMEOUT)
    with _folder(folder) as own:
        copy = own / "kr.db"
        with file.translated(), closing(file.open_untouched()) as connection:
            _copy(connection, copy, source)
        _check_copy(copy, source)
        yield copy


def _check_copy(copy: Path, source: Path) -> None:
    care = Care(copy)
    found = care.look()
    if found.state == "newer":
        raise StoreTooNew((found.message or "").replace(str(copy), str(source)))
    if found.version is not None and found.version < FIRST_RELEASED:
        raise StoreError(f"{unreleased(str(source))}; nothing was changed")
    if found.state not in {"current", "older"}:
        raise StoreCorrupt(f"{source}: is no database of kr; nothing was changed")
    health = care.examine()
    if health.problems and not health.is_mendable:
        raise StoreCorrupt(f"{source}: is not sound ({health.problems[0]}); nothing was changed")
    with Database(copy, str(copy.parent)) as database:
        if found.state == "older":
            database.upgrade()
        elif health.problems:
            with database.write() as unit:
                repair(unit.session)
    with closing(sqlite3.connect(copy)) as connection:
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
        for suffix in _COMPANIONS:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        copy.replace(path)
    except OSError as exc:
        raise StoreUnwritable(f"{path}: can't be written: {exc.strerror}") from exc


def _judged(file: SqliteFile, connection: sqlite3.Connection) -> Look:
    version = file.version(connection)
    names = _names(connection, "table")
    if version == 0 and not names:
        return Look(state="absent")
    lacking = sorted({"entries", "archived_entries"} - names)
    is_ours = len(names & _names_of_a_new_one()) >= _FEW_TABLES if lacking else True
    if version == 0 or "alembic_version" not in names or not is_ours:
        listed = ", ".join(sorted(names)[:3])
        return Look(
            state="foreign", message=f"{file.path}: is another program's database (its tables: {listed})"
        )
    try:
        is_current = file.require_current(version)
    except StoreTooNew as error:
        return Look(state="newer", version=version, message=str(error))
    if version < FIRST_RELEASED:
        return Look(state="unreadable", version=version, message=unreleased(file.path))
    if lacking:
        return Look(
            state="corrupt", version=version, message=f"{file.path}: has no table {' nor '.join(lacking)}"
        )
    return Look(state="current" if is_current else "older", version=version)


def _is_mendable(problem: str) -> bool:
    is_missing = problem.endswith(" is missing") and problem.split(" ", 1)[0] in {"index", "view"}
    is_derived = problem.startswith(tuple(f"{name}: " for name in DERIVED)) or any(
        f"table {name}" in problem or f"main.{name}" in problem for name in DERIVED
    )
    has_no_text = "refers to a row of report_texts" in problem and "entries: row" in problem
    return is_missing or is_derived or has_no_text or any(sign in problem for sign in _INDEX_PROBLEMS)


def _problems(connection: sqlite3.Connection) -> Iterator[str]:
    """Say what is wrong; a damaged page may end this early with ``sqlite3.DatabaseError``."""
    for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})"):
        if line != "ok":
            yield str(line)
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"{table}: row {row} refers to a row of {parent} that is not there"
    if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
        yield from _missing(connection)
        yield from _unindexed(connection)
        yield from _changed_texts(connection)


def _unindexed(connection: sqlite3.Connection) -> Iterator[str]:
    with suppress(sqlite3.OperationalError):  # a table is missing, as was told
        if connection.execute(_UNINDEXED).fetchone():
            yield "search_rows: not every entry is in the search index"
        if connection.execute(_LEFT_OVER).fetchone():
            yield "search_rows: the search index holds an entry that is gone"


def _changed_texts(connection: sqlite3.Connection) -> Iterator[str]:
    with suppress(sqlite3.OperationalError):  # a column is missing, as was told
        for sha256, text in connection.execute("SELECT sha256, text FROM report_texts"):
            if digest(str(text)) != sha256:
                yield f"report_texts: the text {str(sha256)[:12]} is not the one that was written"


def _missing(connection: sqlite3.Connection) -> Iterator[str]:
    taken = {row[0] for row in connection.execute("SELECT lower(name) FROM sqlite_master")}
    present = {row[:2] for row in connection.execute(_DEFINITIONS)}
    with _a_new_one() as new:
        for kind, name, _ in sorted(new.execute(_DEFINITIONS)):
            if (kind, name) not in present:
                # Under a name that something has, in any case of its letters, nothing can be created.
                yield f"{kind} {name} is {'damaged' if name in taken else 'missing'}"
            elif kind == "table":
                for column in sorted({*_columns(new, name)} - {*_columns(connection, name)}):
                    yield f"table {name} has no column {column}"


@contextmanager
def _a_new_one() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_tables(connection)
        yield connection


def _names_of_a_new_one() -> set[str]:
    with _a_new_one() as new:
        return _names(new, "table")


def _names(connection: sqlite3.Connection, kind: str) -> set[str]:
    return {row[1] for row in connection.execute(_DEFINITIONS) if row[0] == kind}


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    return {row[1]: row[2] for row in connection.execute(f'PRAGMA table_info("{table}")')}


def repair(session: Session) -> list[str]:
    """Create the indexes and views that are missing, build all indexes anew; return what was put right. The caller commits."""
    present = {(row["type"], row["name"]) for row in session.rows(_DEFINITIONS)}
    made = []
    with _a_new_one() as new:
        for kind, name, statement in new.execute(_DEFINITIONS):
            if kind != "table" and (kind, name) not in present:
                session.execute(statement)
                made.append(f"{kind} {name}")
    session.execute("REINDEX")
    for table in ("entries", "archived_entries"):
        session.execute(
            f"UPDATE {table} SET sha256 = NULL WHERE sha256 NOT IN (SELECT sha256 FROM report_texts)"
        )
    for statement in _NEW_INDEX:
        session.execute(statement)
    Search(session).refill(Entries(session).all())
    return made


def rescue(damaged: Path, session: Session) -> dict[str, int]:
    """Copy every readable row that fits, and is not there; return how many by table. The caller commits."""
    found: dict[str, int] = {}
    # Nothing of it may be readable as a database: reports and exports are what is left then. Moved aside, it is
    # nobody else's: a lock would only leave its file behind.
    file = SqliteFile(damaged, schema_version=SCHEMA_VERSION, timeout=_TIMEOUT)
    with suppress(StoreError), _a_new_one() as new, file.inspecting(is_locked=True) as source:
        source.text_factory = lambda text: text.decode(errors="replace")
        for kind, table, _ in new.execute(_DEFINITIONS):
            if kind == "table" and table not in _NOT_CARRIED:
                found[table] = _carry(source, session, table, new)
    Search(session).refill(Entries(session).all())
    return found


def _carry(source: sqlite3.Connection, session: Session, table: str, new: sqlite3.Connection) -> int:
    types = _columns(new, table)
    references = [row[3] for row in new.execute(f"PRAGMA foreign_key_list({table})")]
    carried = 0
    for row in _readable(source, table, types):
        insert = insert_into(table, [*row]).replace("INSERT", "INSERT OR IGNORE", 1)
        # What it refers to may be lost; where it need not refer to anything, it then does not.
        for fitting in (row, {**row, **dict.fromkeys(references)}) if _fits(table, row, types) else ():
            with suppress(sqlite3.IntegrityError):
                carried += session.execute(insert, fitting)
                break
    return carried


def _readable(source: sqlite3.Connection, table: str, types: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Read from the front and from the back: a broken page ends a walk."""
    with suppress(sqlite3.DatabaseError, UnicodeDecodeError):
        wanted = [name for name in _columns(source, table) if name in types]
        listed = ", ".join(f'"{name}"' for name in wanted)
        for order in ("ASC", "DESC") if wanted else ():
            with suppress(sqlite3.DatabaseError, UnicodeDecodeError):
                for row in source.execute(f"SELECT {listed} FROM {table} NOT INDEXED ORDER BY rowid {order}"):
                    yield dict(zip(wanted, row, strict=True))


def _fits(table: str, row: dict[str, Any], types: dict[str, str]) -> bool:
    """Whether a row can be what kr or a person wrote: flipped bits make others."""
    kinds = {"TEXT": str, "INTEGER": int, "BOOLEAN": int}
    told = ((value, kinds.get(types[name], object)) for name, value in row.items() if value is not None)
    if not all(isinstance(value, kind) for value, kind in told):
        return False
    return table != "report_texts" or (isinstance(row["text"], str) and digest(row["text"]) == row["sha256"])
