"""Puts a database right in place, or rescues what can be read of it into a new one (SPEC 6.5)."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kr.errors import StoreError
from kr.store import upgrade
from kr.store.hashing import digest
from kr.store.inspection import sqlite_file
from kr.store.schema import (
    DERIVED,
    archived_entries,
    entries,
    entry_terms,
    entry_vectors,
    metadata,
    report_texts,
)
from kr.store.search import Search
from kr.text.counting import counted

_KINDS = ("index", "trigger", "view")
_NOT_CARRIED = DERIVED | {"leases", "reservations"}
"""Made from other tables, or of no use to anybody once their time is over."""


def repair(connection: sa.Connection) -> list[str]:
    """Create what is missing of them as the migrations do, build the indexes anew.

    Returns what was put right, as ``index entries_path`` or ``2 rows``. The caller commits.
    """
    present = {(kind, name.lower()) for kind, name in _definitions(connection)}
    made = []
    for (kind, name), statement in _definitions_of_a_new_one().items():
        if (kind, name) not in present:
            connection.exec_driver_sql(statement)
            made.append(f"{kind} {name}")
    connection.exec_driver_sql("REINDEX")
    for table in (entries, archived_entries):
        unknown = table.c.sha256.not_in(sa.select(report_texts.c.sha256))
        connection.execute(sa.update(table).where(unknown).values(sha256=None))
    made += _drop_derived_of_gone(connection)
    Search(connection).refill()
    return made


def _drop_derived_of_gone(connection: sa.Connection) -> list[str]:
    """Drop what was made of entries that somebody deleted by plain SQL, where no reference is followed."""
    made = []
    for table in (entry_terms, entry_vectors):
        gone = sa.delete(table).where(table.c.entry_id.not_in(sa.select(entries.c.id)))
        if dropped := connection.execute(gone).rowcount:
            made.append(f"{counted(dropped, 'row')} of {table.name}")
    return made


def _definitions_of_a_new_one() -> dict[tuple[str, str], str]:
    """The migrations are the one place that says what a view is."""
    engine = sa.create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            upgrade.run(connection)
            return _definitions(connection)
    finally:
        engine.dispose()


def _definitions(connection: sa.Connection) -> dict[tuple[str, str], str]:
    rows = connection.exec_driver_sql(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"
    )
    return {(kind, name): statement for kind, name, statement in rows if kind in _KINDS}


def rescue(damaged: Path, connection: sa.Connection) -> dict[str, int]:
    """Copy every readable row that fits into the database of ``connection``; rows that are there stay.

    Returns how many rows came over, by table. The caller commits.
    """
    found: dict[str, int] = {}
    try:
        # Moved aside, it is nobody else's: a lock would only leave its file behind.
        with sqlite_file(damaged).inspecting(is_locked=True) as source:
            source.text_factory = lambda text: text.decode(errors="replace")
            for table in metadata.sorted_tables:
                if table.name not in _NOT_CARRIED:
                    found[table.name] = _carry(source, connection, table)
    except StoreError:
        # Nothing of it can be read as a database: reports and exports are what is left.
        return found
    return found


def _carry(source: sqlite3.Connection, connection: sa.Connection, table: sa.Table) -> int:
    carried = 0
    insert = sa.insert(table).prefix_with("OR IGNORE")
    for row in _readable(source, table):
        if _fits(connection, table, row):
            carried += connection.execute(insert.values(**row)).rowcount
    return carried


def _readable(source: sqlite3.Connection, table: sa.Table) -> Iterator[dict[str, Any]]:
    """Read from the front and from the back: a broken page ends a walk."""
    columns = [row[1] for row in _read(source, f"PRAGMA table_info({table.name})")]
    wanted = [column.name for column in table.columns if column.name in columns]
    if not wanted:
        return
    listed = ", ".join(f'"{name}"' for name in wanted)
    for order in ("ASC", "DESC"):
        query = f'SELECT {listed} FROM "{table.name}" NOT INDEXED ORDER BY rowid {order}'
        for row in _read(source, query):
            found = dict(zip(wanted, row, strict=True))
            yield found | {"keys_version": None} if table is entries else found


def _read(source: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    with suppress(sqlite3.DatabaseError, UnicodeDecodeError):
        yield from source.execute(query)


def _fits(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> bool:
    """Whether a row can be what kr or a person wrote: flipped bits make others. What it refers to must be there."""
    for column in table.columns:
        value = row.get(column.name)
        if isinstance(column.type, sa.Text) and not isinstance(value, str | None):
            return False
        if isinstance(column.type, sa.Integer | sa.Boolean) and not isinstance(value, int | None):
            return False
    if table is report_texts:
        return isinstance(row["text"], str) and digest(row["text"]) == row["sha256"]
    for column in table.columns:
        for key in column.foreign_keys:
            known = sa.select(key.column).where(key.column == row.get(column.name))
            if row.get(column.name) is not None and connection.execute(known).first() is None:
                if not column.nullable:
                    return False
                row[column.name] = None
    return True
