"""What a database file is, and whether it is sound: read, never changed (SPEC 6.5)."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew
from kr.store.hashing import digest
from kr.store.schema import DERIVED, metadata
from kr.store.sqlite import SCHEMA_VERSION, SqliteFile

State = Literal["absent", "current", "older", "newer", "foreign", "corrupt", "unreadable"]

VIEWS = (
    "hit_rate_by_day",
    "hit_rate_by_framework",
    "lessons_by_phase",
    "next_evictions",
    "reports",
    "source_reliability",
    "spending_by_story",
)
"""The public views (SPEC 5)."""

TRIGGERS = (
    "archived_entries_delete",
    "archived_entries_edited",
    "archived_entries_update",
    "documents_delete",
    "documents_insert",
    "entries_delete",
    "entries_edited",
    "entries_insert",
    "entries_reworded",
    "entries_update",
    "lessons_delete",
    "lessons_insert",
    "lessons_update",
)
"""What keeps the keys, and what is searched, right, whoever writes."""

_TIMEOUT = 10.0
_MOST_PROBLEMS = 20
_FEW_TABLES = 4
"""From so many tables of ours on, a database that lacks the index is ours all the same."""
_INDEX_PROBLEMS = ("missing from index", "wrong # of entries in index", "non-unique entry in index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What stands at the database's path.

    ``absent`` is also an empty file. ``version`` is the number of its newest migration, where one can be
    read. ``message`` says what is wrong, and is None for ``absent``, ``current`` and ``older``.
    """

    state: State
    version: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What an examination found. ``is_mendable``: ``Upkeep.mend`` puts every problem right, in place."""

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
    is_ours = len(names & metadata.tables.keys()) >= _FEW_TABLES if lacking else True
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
        yield from _changed_texts(connection)


def _changed_texts(connection: sqlite3.Connection) -> Iterator[str]:
    with suppress(sqlite3.OperationalError):  # a column is missing, as was told
        for sha256, text in connection.execute("SELECT sha256, text FROM report_texts"):
            if digest(str(text)) != sha256:
                yield f"report_texts: the text {str(sha256)[:12]} is not the one that was written"


def _missing(connection: sqlite3.Connection) -> Iterator[str]:
    indexes = {str(index.name) for table in metadata.tables.values() for index in table.indexes}
    wanted = {
        "table": set(metadata.tables),
        "index": indexes,
        "trigger": set(TRIGGERS),
        "view": set(VIEWS),
    }
    taken = {row[0] for row in connection.execute("SELECT lower(name) FROM sqlite_master")}
    for kind, names in wanted.items():
        for name in sorted(names - _names(connection, kind)):
            # Under a name that something has, in any case of its letters, nothing can be created.
            yield f"{kind} {name} is {'damaged' if name in taken else 'missing'}"
    for name, table in metadata.tables.items():
        present = {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
        if present:
            for column in sorted({column.name for column in table.columns} - present):
                yield f"table {name} has no column {column}"


def _names(connection: sqlite3.Connection, kind: str) -> set[str]:
    # SQLite's names have no case.
    rows = connection.execute("SELECT lower(name) FROM sqlite_master WHERE type = ?", (kind,))
    return {row[0] for row in rows}
