"""What a database file is, whether it is sound, and what puts it right (SPEC 6.5).

What ought to be in it is read off a new one.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew
from kr.naming import digest
from kr.store.database import create_tables
from kr.store.search import Search
from kr.store.session import Session, insert_into
from kr.store.sqlite import SCHEMA_VERSION, SqliteFile
from kr.text.counting import counted

State = Literal["absent", "current", "older", "newer", "foreign", "corrupt", "unreadable"]

DERIVED = ("documents", "entry_count", "entry_terms", "entry_vectors", "report_files")
"""Tables that are made from others, and are made again where they are missing."""

_NOT_CARRIED = {*DERIVED, "document_search", "alembic_version", "leases", "reservations"}
"""Those, and what is of no use to anybody once its time is over."""

_IS_MISCOUNTED = "SELECT 1 WHERE (SELECT count(*) FROM entries) IS NOT (SELECT entries FROM entry_count)"
_TIMEOUT = 10.0
_MOST_PROBLEMS = 20
_FEW_TABLES = 4
"""From so many tables of ours on, a database that lacks the index is ours all the same."""
_INDEX_PROBLEMS = ("missing from index", "wrong # of entries in index", "non-unique entry in index")

# SQLite's names have no case; FTS5 keeps its index in tables of its own.
_DEFINITIONS = (
    "SELECT type, lower(name) AS name, sql FROM sqlite_master WHERE sql IS NOT NULL "
    r"AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'document\_search\_%' ESCAPE '\'"
)


class Look(NamedTuple):
    """What stands at the database's path.

    ``absent`` is also an empty file. ``version`` is the number of its newest migration, where one can be
    read. ``message`` says what is wrong, and is None for ``absent``, ``current`` and ``older``.
    """

    state: State
    version: int | None = None
    message: str | None = None


class Health(NamedTuple):
    """What an examination found. ``is_mendable``: ``repair`` puts every problem right, in place."""

    problems: tuple[str, ...] = ()
    is_mendable: bool = False


def sqlite_file(path: Path, *, timeout: float = _TIMEOUT) -> SqliteFile:
    """Name a database file of this kr's schema."""
    return SqliteFile(path, schema_version=SCHEMA_VERSION, timeout=timeout)


def look(path: Path, *, is_locked: bool = False) -> Look:
    """Tell what stands at ``path``; ``is_locked``: the caller holds the lock.

    Raises ``StoreBusy`` when another program keeps the database locked.
    """
    file = sqlite_file(path)
    try:
        if file.identity() is None:
            return Look(state="absent")
        with file.inspecting(is_locked=is_locked) as connection:
            return _judged(file, connection)
    except StoreCorrupt as error:
        return Look(state="corrupt", message=str(error))
    except StoreBusy:
        raise
    except StoreError as error:
        return Look(state="unreadable", message=str(error))


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
    if lacking:
        return Look(
            state="corrupt", version=version, message=f"{file.path}: has no table {' nor '.join(lacking)}"
        )
    return Look(state="current" if is_current else "older", version=version)


def examine(path: Path) -> Health:
    """Examine a database of ours: its pages, references, tables and texts. Raises ``StoreError``."""
    with sqlite_file(path).inspecting() as connection:
        try:
            problems = list(_problems(connection))
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            problems = [str(error)]
    return Health(
        problems=tuple(dict.fromkeys(problems[:_MOST_PROBLEMS])),
        is_mendable=all(map(_is_mendable, problems)),
    )


def _is_mendable(problem: str) -> bool:
    is_missing = problem.endswith(" is missing") and problem.split(" ", 1)[0] in {"index", "trigger", "view"}
    is_derived = problem.startswith(tuple(f"{name}: " for name in DERIVED))
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
        yield from _miscounted(connection)
        yield from _changed_texts(connection)


def _miscounted(connection: sqlite3.Connection) -> Iterator[str]:
    with suppress(sqlite3.OperationalError):  # a table is missing, as was told
        if connection.execute(_IS_MISCOUNTED).fetchone():
            yield "entry_count: is not the number of entries"


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
    """Return a table's columns with their types."""
    return {row[1]: row[2] for row in connection.execute(f'PRAGMA table_info("{table}")')}


def repair(session: Session) -> list[str]:
    """Create the indexes, triggers and views that are missing, build the indexes and what is derived anew.

    Returns what was put right, as ``index entries_path`` or ``2 rows``. The caller commits.
    """
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
    for table in ("entry_terms", "entry_vectors"):  # somebody deleted entries where no reference is followed
        gone = session.execute(f"DELETE FROM {table} WHERE entry_id NOT IN (SELECT id FROM entries)")
        if gone:
            made.append(f"{counted(gone, 'row')} of {table}")
    Search(session).refill()
    return made


def rescue(damaged: Path, session: Session) -> dict[str, int]:
    """Copy every readable row that fits into the database of ``session``; rows that are there stay.

    Returns how many rows came over, by table. The caller commits.
    """
    found: dict[str, int] = {}
    # Nothing of it may be readable as a database: reports and exports are what is left then. Moved aside, it is
    # nobody else's: a lock would only leave its file behind.
    with suppress(StoreError), _a_new_one() as new, sqlite_file(damaged).inspecting(is_locked=True) as source:
        source.text_factory = lambda text: text.decode(errors="replace")
        for kind, table, _ in new.execute(_DEFINITIONS):
            if kind == "table" and table not in _NOT_CARRIED:
                found[table] = _carry(source, session, table, new)
    return found


def _carry(source: sqlite3.Connection, session: Session, table: str, new: sqlite3.Connection) -> int:
    types = _columns(new, table)
    required = {row[1] for row in new.execute(f"PRAGMA table_info({table})") if row[3]}
    references = new.execute(f"PRAGMA foreign_key_list({table})").fetchall()
    carried = 0
    for row in _readable(source, table, types):
        if _fits(table, row, types) and _refers(session, row, references, required):
            insert = insert_into(table, [*row]).replace("INSERT", "INSERT OR IGNORE", 1)
            carried += session.execute(insert, row)
    return carried


def _readable(source: sqlite3.Connection, table: str, types: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Read from the front and from the back: a broken page ends a walk."""
    with suppress(sqlite3.DatabaseError, UnicodeDecodeError):
        wanted = [name for name in _columns(source, table) if name in types and name != "keys_version"]
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


def _refers(session: Session, row: dict[str, Any], references: list[Any], required: set[str]) -> bool:
    """Whether what a row refers to is there; where it need not refer to anything, it then does not."""
    for reference in references:
        parent, column, key = reference[2:5]
        known = f"SELECT 1 FROM {parent} WHERE {key} = :value"
        if row.get(column) is not None and session.row(known, value=row[column]) is None:
            if column in required:
                return False
            row[column] = None
    return True
