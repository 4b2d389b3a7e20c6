"""The store: transactions on the database, and the folder of reports beside it."""

import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, unquote, urlsplit

from kr.errors import ReportUnwritable, StoreConflict, StoreError, how_to_install
from kr.store import sqlite
from kr.store.files import ReportFiles, make_base, publish
from kr.store.sql import OF_FOLDER, columns_of, insert_into, lock_key, upsert_into
from kr.store.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from kr.store import postgresql

log = logging.getLogger(__name__)

T = TypeVar("T")
Row = Any
"""A row whose columns are had by name and by number."""

INDEX = "index"
"""The scope of writes that add, remove or rewrite entries: each counts all of them."""
LESSONS = "lessons"
ALONE: str | None = None
"""The scope of writes whose rows alone, or whose one statement, keep others out."""

_TRIES = 6


class Transaction:
    """What happens in one transaction happens together, or not at all. Not to be used after its block.

    Statements are SQL text with named parameters, ``:name``.
    """

    def __init__(self, connection: "sqlite.Connection | postgresql.Connection", store: "Store") -> None:
        self.connection = connection
        self.store = store
        self.files = store.files
        self._staged: list[tuple[Path, Path]] = []

    def execute(self, statement: str, **parameters: Any) -> int:
        """Run a statement; return how many rows it changed."""
        changed: int = self.connection.execute(statement, parameters).rowcount
        return changed

    def insert(self, table: str, record: object, **more: Any) -> None:
        """Write a dataclass, and ``more`` columns, as a new row."""
        values = {**columns_of(record), **more}
        self.execute(insert_into(table, [*values]), **values)

    def upsert(self, table: str, record: object, *key: str, **more: Any) -> None:
        """Write a dataclass, and ``more`` columns, as a new row or over the one that has its ``key``."""
        values = {**columns_of(record), **more}
        self.execute(upsert_into(table, [*values], *key), **values)

    def execute_many(self, statement: str, rows: list[dict[str, Any]]) -> None:
        """Run a statement once for each row of parameters."""
        self.connection.executemany(statement, rows)

    def rows(self, statement: str, **parameters: Any) -> list[Row]:
        """Return the rows of a query; each gives its columns by name."""
        found: list[Row] = self.connection.execute(statement, parameters).fetchall()
        return found

    def lock(self, scope: str) -> None:
        """Wait for other transactions that locked a scope, and keep them out until this one ends."""
        if self.connection.dialect == "postgresql":  # who writes to SQLite has the lock of the file
            self.rows("SELECT pg_advisory_xact_lock(:key)", key=lock_key(scope))

    def row(self, statement: str, **parameters: Any) -> Row | None:
        return next(iter(self.rows(statement, **parameters)), None)

    def value(self, statement: str, **parameters: Any) -> Any:
        """Return the first column of the first row; None where there is no row."""
        found = self.row(statement, **parameters)
        return None if found is None else found[0]

    def write_report(self, path: str, text: str) -> None:
        """Have a report file written once this is committed. Raises ``ReportUnwritable`` at once where that will not do."""
        target = self.files.place(path)
        self._staged.append((self.files.stage(text), target))

    def publish(self) -> None:
        """Give the files that are written their names; what does not succeed is done by the next one who reads the report."""
        for staged, target in self._staged:
            try:
                publish(staged, target)
            except ReportUnwritable as exc:
                log.warning("%s; its text is in the database", exc)

    def discard(self) -> None:
        """Remove the files that were written and have no name."""
        for staged, _ in self._staged:
            with suppress(OSError):
                staged.unlink(missing_ok=True)

    def fact(self, key: str) -> str | None:
        """Return a single fact about the knowledge base (table ``meta``)."""
        found: str | None = self.value("SELECT value FROM meta WHERE key = :key", key=key)
        return found

    def note(self, key: str, value: str) -> None:
        self.execute(upsert_into("meta", ("key", "value"), "key"), key=key, value=value)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what the block did, and no more, when it fails."""
        self.connection.execute("SAVEPOINT step")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO step")
            raise
        self.connection.execute("RELEASE step")


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
        self._timeout = timeout
        self._opened: SqliteDatabase | postgresql.PostgresqlDatabase | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_shared(self) -> bool:
        """Whether the database is PostgreSQL's, so that other machines may have folders of their own before it."""
        return (self.url or "").startswith("postgresql")

    @property
    def path(self) -> Path:
        """The SQLite file that the URL names, else ``kr.db`` in the knowledge base.

        Raises ``StoreError`` for a URL that names no file (a password in it is not repeated), and for a link that a repository brought.
        """
        if self.is_shared:
            raise StoreError(
                f"{self.location}: is no file; PostgreSQL's own tools back it up (pg_dump --format=custom --file=kr.dump DATABASE) "
                "and bring it back (pg_restore)"
            )
        if self.url is None:
            own = self.folder / "kr.db"
            if os.path.islink(own):
                raise StoreError(
                    f"{own}: is a symbolic link, and is not followed; KR_DATABASE_URL names a database elsewhere"
                )
            return own
        scheme, _, rest = self.url.partition("://")
        parts = urlsplit("//" + rest)
        path = unquote(parts.path.removeprefix("/"))
        is_sqlite = scheme in {"sqlite", "sqlite+pysqlite"}
        if not is_sqlite or parts.netloc or parts.query or path in {"", ":memory:"}:
            raise StoreError(
                "KR_DATABASE_URL: name one file, as in sqlite:///path/to/kr.db or sqlite:////absolute/kr.db, or a "
                "PostgreSQL (postgresql+psycopg://…)"
            )
        return Path(path)

    @property
    def location(self) -> str:
        """Where the database is, without a password."""
        return self._database.location

    def folder_key(self, name: str) -> str:
        """Return the key in ``meta`` of a fact about this folder: before PostgreSQL each machine has a folder of its own."""
        return f"{OF_FOLDER}{self.files.own_id() if self.is_shared else ''} {name}"

    def exists(self) -> bool:
        """Tell whether there is a database, without making one."""
        return self._database.exists()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a snapshot. Waits for no writer; the database is made where it is absent."""
        with self._database.snapshot() as connection:
            yield Transaction(connection, self)

    @contextmanager
    def read_if_exists(self) -> Iterator[Transaction]:
        """Open a snapshot as ``read``, but make no database: where there is none, everything is empty."""
        if self.exists():
            with self.read() as tx:
                yield tx
            return
        from kr.store import migrate  # heavy

        memory = sqlite3.connect(":memory:", isolation_level=None, factory=sqlite.Connection)
        with closing(memory) as connection:
            connection.row_factory = sqlite3.Row
            migrate.create(connection)
            yield Transaction(connection, self)

    @contextmanager
    def write(self, *, timeout: float | None = None, scope: str | None = INDEX) -> Iterator[Transaction]:
        """Open a transaction that other writers wait for; rolled back unless the block ends normally.

        On PostgreSQL those of the same ``scope`` wait for each other. No network and no slow work belongs in it. Raises ``StoreBusy``
        after ``timeout`` seconds, and ``StoreConflict``. ``change`` is the way to write; a block by itself is for what must not be done
        twice, as to append to a file, and for lessons, whose rows no other scope changes.
        """
        with self._database.transaction(timeout, scope) as connection:
            tx = Transaction(connection, self)
            try:
                yield tx
                connection.commit()
                tx.publish()
            finally:
                tx.discard()

    def change(
        self,
        action: Callable[[Transaction], T],
        *,
        timeout: float | None = None,
        scope: str | None = INDEX,
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
        if self._opened is not None:
            self._opened.close()

    @property
    def _database(self) -> "SqliteDatabase | postgresql.PostgresqlDatabase":
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> "SqliteDatabase | postgresql.PostgresqlDatabase":
        if not self.is_shared:
            return SqliteDatabase(self.path, upgrade=self._upgrade, timeout=self._timeout)
        try:
            from kr.store.postgresql import PostgresqlDatabase  # heavy
        except ImportError as exc:
            why = "KR_DATABASE_URL names PostgreSQL, and the package psycopg is not installed"
            raise StoreError(why, f"this installs it: {how_to_install('postgresql')}") from exc
        return PostgresqlDatabase(self.url or "", timeout=self._timeout)

    def _upgrade(self, path: Path, timeout: float) -> None:
        from kr.store import migrate  # heavy

        migrate.upgrade(path, timeout)
        if path.parent == self.folder:
            make_base(self.folder)


def store_of(database: str, folder: Path) -> Store:
    """Return the store of a database that is named by its URL, or as a file. Raises ``StoreError``."""
    is_url = "://" in database
    return Store(database if is_url else f"sqlite:///{quote(database)}", folder)
