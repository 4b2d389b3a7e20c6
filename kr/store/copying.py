"""Moving a knowledge base from one database to another, from SQLite to PostgreSQL or back: all of it in one transaction, or nothing."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from sqlalchemy import Boolean, Table

from kr.errors import StoreError
from kr.store import entries, search
from kr.store.engine import Store, Transaction
from kr.store.schema import metadata
from kr.store.sql import OF_FOLDER, SCHEMA_KEY, insert_into

_PAGE = 500


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
        if kept := [row for row in rows if table.name != "meta" or _is_moved(str(row["key"]))]:
            yield kept


def _is_moved(key: str) -> bool:
    return key != SCHEMA_KEY and not key.startswith(OF_FOLDER)


def _digest(tx: Transaction, table: Table) -> str:
    digest = sha256()
    for page in _pages(tx, table):
        for row in page:
            digest.update(repr([*row.values()]).encode(errors="surrogatepass"))
    return digest.hexdigest()


def _restore_numbers(tx: Transaction) -> None:
    """Have PostgreSQL give out the numbers after those that were copied; SQLite does so by itself."""
    if tx.connection.dialect != "postgresql":
        return
    for table in metadata.sorted_tables:
        column = table.autoincrement_column
        if column is not None:
            sequence = f"pg_get_serial_sequence('{table.name}', '{column.name}')"
            tx.rows(f"SELECT setval({sequence}, max({column.name})) FROM {table.name} HAVING count(*) > 0")
