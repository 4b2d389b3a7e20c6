"""Rescues what can be read of a damaged database into a new one (SPEC 6.5). The damaged file stays."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kr.errors import StoreError
from kr.store.hashing import digest
from kr.store.inspection import sqlite_file
from kr.store.schema import DERIVED, entries, metadata, report_texts, revisions

_NOT_CARRIED = DERIVED | {"leases", "reservations"}
"""Made from other tables, or of no use to anybody once their time is over."""


def salvage(damaged: Path, connection: sa.Connection) -> dict[str, int]:
    """Copy every readable row that fits into the database of ``connection``; rows that are there stay.

    Returns how many rows came over, by table. The caller commits.
    """
    counted: dict[str, int] = {}
    try:
        # Moved aside, it is nobody else's: a lock would only leave its file behind.
        with sqlite_file(damaged).inspecting(is_locked=True) as source:
            source.text_factory = lambda text: text.decode(errors="replace")
            for table in metadata.sorted_tables:
                if table.name not in _NOT_CARRIED:
                    counted[table.name] = _carry(source, connection, table)
    except StoreError:
        # Nothing of it can be read as a database: reports and exports are what is left.
        return counted
    return counted


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
    """Whether a row can be what kr or a person wrote: flipped bits make others."""
    for column in table.columns:
        value = row.get(column.name)
        if isinstance(column.type, sa.Text) and not isinstance(value, str | None):
            return False
        if isinstance(column.type, sa.Integer | sa.Boolean) and not isinstance(value, int | None):
            return False
    if table is report_texts:
        return isinstance(row["text"], str) and digest(row["text"]) == row["sha256"]
    if table is revisions:
        known = sa.select(report_texts.c.sha256).where(report_texts.c.sha256 == row["sha256"])
        return connection.execute(known).first() is not None
    return True
