"""Moving a knowledge base from one database to another, from SQLite to PostgreSQL or back.

Rows go over in the order of their keys, some hundred in a transaction. What was interrupted goes on where it stood; at the end both
sides are compared, row by row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Boolean, Table

from kr.errors import StoreError
from kr.store import entries, meta, search
from kr.store.engine import Store, Transaction
from kr.store.schema import metadata
from kr.store.sql import OF_FOLDER, SCHEMA_KEY, insert_into

_PAGE = 500
_MARK = "copied_from"
"""The key of what a copy that is not yet complete comes from."""

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Copied:
    """How many rows each table holds, the same on both sides. ``resumed``: an earlier copy was gone on with."""

    rows: dict[str, int]
    resumed: bool


def copy(source: Store, target: Store, tell: Callable[[str, int], None]) -> Copied:
    """Copy everything into an empty database; ``tell`` is given a table and how many of its rows are over there.

    Report files stay where they are: kr writes them as it answers. Raises ``StoreError`` where there is nothing to copy, where the
    target holds something else, or where the two differ in the end.
    """
    if source.location == target.location:
        raise StoreError(f"{source.location}: is the database itself")
    if not source.exists():
        raise StoreError(f"{source.location}: there is no database to copy")
    resumed = _begin(source, target)
    with source.read() as old:
        for table in metadata.sorted_tables:
            _copy(old, target, table, tell)
        with target.write() as tx:
            _restore_numbers(tx)
            search.refill(tx, entries.all(tx))
        with target.read() as new:
            rows = {str(table.name): _compared(old, new, table) for table in metadata.sorted_tables}
    with target.write() as tx:
        meta.remove(tx, _MARK)
    return Copied(rows, resumed)


def _begin(source: Store, target: Store) -> bool:
    """Note what is copied here; return whether that was under way. The tables are made where they are absent."""
    with target.write() as tx:
        mark = meta.get(tx, _MARK)
        if mark not in {None, source.location}:
            raise StoreError(f"{target.location}: holds a part of {mark}; go on with that, or empty it")
        held = [it.name for it in metadata.sorted_tables if it.name != "meta" and _holds(tx, it)]
        if mark is None and held:
            raise StoreError(f"{target.location}: is not empty ({held[0]}); copy into a new database")
        meta.put(tx, _MARK, source.location)
    return mark is not None


def _holds(tx: Transaction, table: Table) -> bool:
    return tx.row(f"SELECT 1 FROM {table.name} LIMIT 1") is not None


def _copy(old: Transaction, target: Store, table: Table, tell: Callable[[str, int], None]) -> None:
    keys = [it.name for it in table.primary_key]
    backwards = ", ".join(f"{key} DESC" for key in keys)
    with target.read() as tx:
        is_there = f"SELECT {', '.join(keys)} FROM {table.name} ORDER BY {backwards} LIMIT 1"
        last = None if table.name == "meta" else tx.row(is_there)
        number = int(tx.value(f"SELECT count(*) FROM {table.name}"))
    after = None if last is None else {key: last[key] for key in keys}
    statement = insert_into(table.name, [it.name for it in table.columns])
    if table.name == "meta":
        statement += " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    for page in _pages(old, table, after):
        with target.write() as tx:
            tx.execute_many(statement, page)
        number += len(page)
        tell(table.name, number)


def _pages(tx: Transaction, table: Table, after: Values | None = None) -> Iterator[list[Values]]:
    """Give the rows of a table in the order of its keys, from ``after`` a key on."""
    keys, names = [it.name for it in table.primary_key], [it.name for it in table.columns]
    is_truth = {it.name for it in table.columns if isinstance(it.type, Boolean)}
    listed = ", ".join(keys)
    while True:
        where = "" if after is None else f"WHERE ({listed}) > ({', '.join(f':{key}' for key in keys)})"
        statement = f"SELECT {', '.join(names)} FROM {table.name} {where} ORDER BY {listed} LIMIT {_PAGE}"
        found = tx.rows(statement, **(after or {}))
        if not found:
            return
        rows = [{name: bool(row[name]) if name in is_truth else row[name] for name in names} for row in found]
        after = {key: rows[-1][key] for key in keys}
        if kept := [row for row in rows if table.name != "meta" or _is_moved(str(row["key"]))]:
            yield kept


def _is_moved(key: str) -> bool:
    """Tell whether a fact belongs to the knowledge base, and not to one database or folder."""
    return key not in {SCHEMA_KEY, _MARK} and not key.startswith(OF_FOLDER)


def _restore_numbers(tx: Transaction) -> None:
    """Have PostgreSQL give out the numbers after those that were copied; SQLite does so by itself."""
    if tx.connection.dialect != "postgresql":
        return
    for table in metadata.sorted_tables:
        column = table.autoincrement_column
        if column is not None:
            sequence = f"pg_get_serial_sequence('{table.name}', '{column.name}')"
            tx.rows(f"SELECT setval({sequence}, max({column.name})) FROM {table.name} HAVING count(*) > 0")


def _compared(old: Transaction, new: Transaction, table: Table) -> int:
    """Return how many rows a table has. Raises ``StoreError`` where the two sides differ."""
    (number, digest), other = _summed(old, table), _summed(new, table)
    if (number, digest) != other:
        raise StoreError(
            f"{table.name}: {number} rows were to be copied and {other[0]} are there, or some differ: who used either database "
            "meanwhile? Empty the new one, and copy again"
        )
    return number


def _summed(tx: Transaction, table: Table) -> tuple[int, str]:
    number, digest = 0, sha256()
    for page in _pages(tx, table):
        number += len(page)
        for row in page:
            digest.update(repr([*row.values()]).encode(errors="surrogatepass"))
    return number, digest.hexdigest()
