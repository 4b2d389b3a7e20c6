"""The store: transactions on the database, and the folder of reports beside it.

Statements are SQL text that SQLite and PostgreSQL both run, with named parameters, ``:name``.
"""

import json
import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, unquote

from kr.errors import ReportUnwritable, StoreConflict, StoreError, how_to_install
from kr.store import sqlite
from kr.store.files import ReportFiles, publish
from kr.store.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from kr.store import postgresql

log = logging.getLogger(__name__)

T = TypeVar("T")
Row = dict[str, Any]
"""A row by the names of its columns."""

INDEX = "index"
"""The scope of writes that add, remove or rewrite entries: each counts all of them."""
LESSONS = "lessons"
OF_FOLDER = "folder"
"""What the keys of facts about a folder begin with; see ``Store.folder_key``."""

_TRIES = 6


def insert_into(table: str, names: Iterable[str]) -> str:
    """Return the statement that inserts a row, each column a parameter of its name."""
    names = [*names]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"


def named(name: str, values: Iterable[object]) -> tuple[str, dict[str, Any]]:
    """Return the right side of ``IN`` for a list of values, and its parameters: ``(:id0, :id1)``."""
    parameters = {f"{name}{number}": value for number, value in enumerate(values)}
    return f"({', '.join(f':{key}' for key in parameters) or 'NULL'})", parameters


def json_list(values: Sequence[object]) -> str:
    """Return a list as a column holds it."""
    return json.dumps(list(values), ensure_ascii=False)


def texts_of(text: str | None) -> tuple[str, ...]:
    """Read a column that holds a list of texts; what is no list of texts is empty."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return ()
    return tuple(str(item) for item in found) if isinstance(found, list) else ()


class Transaction:
    """What happens in one transaction happens together, or not at all. Not to be used after its block."""

    def __init__(self, connection: "sqlite.Connection | postgresql.Connection", store: "Store") -> None:
        self.connection = connection
        self.store = store
        self.files = store.files
        self.is_postgresql = connection.dialect == "postgresql"
        self.staged: list[tuple[Path, Path]] = []
        """Report files that are written and get their names once this is committed."""

    def execute(self, statement: str, **parameters: Any) -> int:
        """Run a statement; return how many rows it changed."""
        changed: int = self.connection.execute(statement, parameters).rowcount
        return changed

    def insert(self, table: str, row: Row, *key: str) -> None:
        """Write a row, by the names of its columns, as a new one or over the one that has its ``key``. A tuple becomes a list in JSON."""
        statement = insert_into(table, row)
        if key:
            changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key)
            statement = f"{statement} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
        values = {name: json_list(it) if isinstance(it, tuple) else it for name, it in row.items()}
        self.execute(statement, **values)

    def execute_many(self, statement: str, rows: list[dict[str, Any]]) -> None:
        """Run a statement once for each row of parameters."""
        self.connection.executemany(statement, rows)

    def rows(self, statement: str, **parameters: Any) -> list[Row]:
        """Return the rows of a query. Each of its columns has a name of its own."""
        cursor = self.connection.execute(statement, parameters)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def column(self, statement: str, **parameters: Any) -> list[Any]:
        """Return the first column of a query's rows."""
        return [row[0] for row in self.connection.execute(statement, parameters)]

    def row(self, statement: str, **parameters: Any) -> Row | None:
        return next(iter(self.rows(statement, **parameters)), None)

    def value(self, statement: str, **parameters: Any) -> Any:
        """Return the first column of the first row; None where there is no row."""
        return next(iter(self.column(statement, **parameters)), None)

    def lock(self, scope: str) -> None:
        """Wait for other transactions that locked a scope, and keep them out until this one ends."""
        if self.is_postgresql:  # who writes to SQLite has the lock of the file
            self.rows("SELECT pg_advisory_xact_lock(hashtextextended(:scope, 27506))", scope=scope)

    def write_report(self, path: str, text: str) -> None:
        """Have a report file written once this is committed. Raises ``ReportUnwritable`` at once where that will not do."""
        self.staged.append(self.files.stage(path, text))

    def fact(self, key: str) -> str | None:
        """Return a single fact about the knowledge base (table ``meta``)."""
        found: str | None = self.value("SELECT value FROM meta WHERE key = :key", key=key)
        return found

    def note(self, key: str, value: str) -> None:
        self.insert("meta", {"key": key, "value": value}, "key")


class Store:
    """The knowledge base: database and report files, shared by threads and processes; opened, and made, at the first use.

    Every failure of the database is a ``StoreError``; of a report file, ``ReportUnwritable``.
    """

    def __init__(
        self,
        database_url: str | None,
        knowledge_base: Path | str,
        *,
        max_entries: int = 200,
        archive_after_days: int = 60,
        timeout: float = 60.0,
    ) -> None:
        """Name the database (None: ``kr.db`` in the knowledge base) and its capacity; wait ``timeout`` seconds for others."""
        self.folder = Path(knowledge_base)
        self.files = ReportFiles(self.folder)
        self.max_entries = max_entries
        self.archive_after_days = archive_after_days
        self.url = database_url
        """As it was given: it may hold a password."""
        self.is_shared = (database_url or "").startswith("postgresql")
        """Whether the database is PostgreSQL's, so that other machines may have folders of their own before it."""
        self._timeout = timeout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The SQLite file that the URL names, else ``kr.db`` in the knowledge base.

        Raises ``StoreError`` for a URL that names no file (a password in it is not repeated), and for a link that a repository brought.
        """
        if self.is_shared:
            tools = (
                "pg_dump --format=custom --file=kr.dump DATABASE backs it up, and pg_restore brings it back"
            )
            raise StoreError(f"{self.location}: is no file; {tools}")
        if self.url is None:
            own = self.folder / "kr.db"
            if os.path.islink(own):  # unlike pathlib's, of what can't be reached it is none
                why = "is a symbolic link, and is not followed; KR_DATABASE_URL names a database elsewhere"
                raise StoreError(f"{own}: {why}")
            return own
        scheme, _, path = self.url.partition(":///")
        if scheme not in {"sqlite", "sqlite+pysqlite"} or path in {"", ":memory:"} or "?" in path:
            raise StoreError(
                "KR_DATABASE_URL: name one file, as in sqlite:///path/to/kr.db or sqlite:////absolute/kr.db, or a "
                "PostgreSQL (postgresql+psycopg://…)"
            )
        return Path(unquote(path))

    @property
    def location(self) -> str:
        """Where the database is, without a password."""
        return self._database.location

    def folder_key(self, name: str) -> str:
        """Return the key in ``meta`` of a fact about this folder: with PostgreSQL each machine has a folder of its own."""
        machine = f" {os.uname().nodename} {self.folder.resolve()}" if self.is_shared else ""
        return f"{OF_FOLDER}{machine} {name}"

    def exists(self) -> bool:
        """Tell whether there is a database, without making one."""
        return self._database.exists()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a snapshot. Waits for no writer. No database is made: where there is none, everything is empty."""
        if self.exists():
            with self._database.snapshot() as connection:
                yield Transaction(connection, self)
            return
        from kr.store import schema  # heavy

        memory = sqlite3.connect(":memory:", isolation_level=None, factory=sqlite.Connection)
        with closing(memory) as connection:
            schema.make(connection)
            connection.execute("PRAGMA query_only = ON")
            yield Transaction(connection, self)

    @contextmanager
    def write(self, *, timeout: float | None = None, scope: str | None = INDEX) -> Iterator[Transaction]:
        """Open a transaction that other writers wait for; rolled back unless the block ends normally.

        On PostgreSQL those of the same ``scope`` wait for each other. No network and no slow work belongs in it. Raises ``StoreBusy``
        after ``timeout`` seconds, and ``StoreConflict``. ``change`` is the way to write; a block by itself is for what must not be done
        twice, as to append to a file, and for lessons, whose rows no other scope changes.
        """
        with self._database.transaction(timeout) as connection:
            tx = Transaction(connection, self)
            if scope is not None:
                tx.lock(scope)
            try:
                yield tx
                connection.commit()
                for staged, target in tx.staged:
                    try:
                        publish(staged, target)
                    except ReportUnwritable as exc:  # the next one who reads the report does it
                        log.warning("%s; its text is in the database", exc)
            finally:
                for staged, _ in tx.staged:
                    with suppress(OSError):
                        staged.unlink(missing_ok=True)

    def change(
        self, action: Callable[[Transaction], T], *, timeout: float | None = None, scope: str | None = INDEX
    ) -> T:
        """Run ``action`` in a write, again where PostgreSQL ended it for another's sake: some times, then ``StoreConflict``."""
        turn = 0
        while True:
            try:
                with self.write(timeout=timeout, scope=scope) as tx:
                    return action(tx)
            except StoreConflict:
                turn += 1
                if turn == _TRIES:
                    raise
                time.sleep(random.uniform(0.0, 0.02 * 2**turn))  # noqa: S311 - not for secrets

    def close(self) -> None:
        """Close the database; it opens again when used again."""
        if "_database" in self.__dict__:
            self._database.close()

    @cached_property
    def _database(self) -> "SqliteDatabase | postgresql.PostgresqlDatabase":
        if not self.is_shared:
            return SqliteDatabase(self.path, self.folder, timeout=self._timeout)
        try:
            from kr.store.postgresql import PostgresqlDatabase  # heavy
        except ImportError as exc:
            why = "KR_DATABASE_URL names PostgreSQL, and the package psycopg is not installed"
            raise StoreError(why, f"this installs it: {how_to_install('postgresql')}") from exc
        return PostgresqlDatabase(self.url or "", timeout=self._timeout)


def store_of(database: str, folder: Path) -> Store:
    """Return the store of a database that is named by its URL, or as a file. Raises ``StoreError``."""
    is_url = "://" in database
    return Store(database if is_url else f"sqlite:///{quote(database)}", folder)
