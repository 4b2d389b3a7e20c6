"""Cells that a hand-made statement left in a form which queries and other tools can't read (SPEC 5).

kr itself reads them leniently: tags that are no JSON as words parted by commas, a time that is none as no time.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime

import sqlalchemy as sa

from kr.freshness import parse_time
from kr.store import times
from kr.store.lists import texts_of
from kr.store.schema import archived_entries, entries

SIGN = "cell: "
"""What the problems that ``mend_cells`` puts right begin with."""

Told = Mapping[tuple[bool, str], Mapping[str, str | None]]
"""Times by column, of rows by whether they are live, and id: what the exports tell."""

_STAND_INS = {
    "created": ("researched_at", "last_accessed"),
    "last_accessed": ("researched_at", "created"),
    "archived_at": ("last_accessed", "researched_at", "created"),
}
"""Which times stand in for one that can't be read."""

_NEVER = "1970-01-01T00:00:00.000000Z"
_TABLES = ((entries, ("created", "last_accessed")), (archived_entries, tuple(_STAND_INS)))


def damaged_cells(connection: sqlite3.Connection) -> Iterator[str]:
    """Say which cells can't be read."""
    for table, moments in _TABLES:
        columns = ", ".join(("id", "tags", *moments))
        rows = connection.execute(f"SELECT {columns} FROM {table.name} ORDER BY rowid")
        for entry_id, tags, *values in rows:
            if not _is_array(tags):
                yield f"{SIGN}{table.name}, {entry_id}: tags is no JSON array"
            for name, value in zip(moments, values, strict=True):
                if _time(value) is None:
                    yield f"{SIGN}{table.name}, {entry_id}: {name} is no time"


def mend_cells(connection: sa.Connection, told: Told) -> int:
    """Write tags as kr reads them, and for a time what is told of it, or the nearest one that is known.

    Returns how many rows changed.
    """
    changed = 0
    for table, moments in _TABLES:
        key = table.c.id if table is entries else table.c.archive_id
        for row in connection.execute(sa.select(table)).mappings().all():
            known = told.get((table is entries, row["id"]), {})
            values = {name: _stand_in(row, name, known) for name in moments if _time(row[name]) is None}
            if not _is_array(row["tags"]):
                values["tags"] = json.dumps(texts_of(str(row["tags"])), ensure_ascii=False)
            if values:
                connection.execute(sa.update(table).where(key == row[key.name]).values(**values))
                changed += 1
    return changed


def _stand_in(row: sa.RowMapping, name: str, told: Mapping[str, str | None]) -> str:
    found = map(_time, (told.get(name), *(row[other] for other in _STAND_INS[name])))
    return next((times.to_text(moment) for moment in found if moment is not None), _NEVER)


def _is_array(cell: object) -> bool:
    try:
        return isinstance(cell, str) and isinstance(json.loads(cell), list)
    except (ValueError, RecursionError):
        return False


def _time(cell: object) -> datetime | None:
    return parse_time(cell) if isinstance(cell, str) else None
