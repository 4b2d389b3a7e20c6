"""The store: transactions on the database, and the folder of reports beside it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from kr.errors import StoreError
from kr.store.files import ReportFiles
from kr.store.sqlite import SqliteDatabase, identity

Row = sqlite3.Row


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is archived: entries beyond ``max_entries``, and those not accessed for more than ``archive_after_days``."""

    max_entries: int = 200
    archive_after_days: int = 60


class Transaction:
    """What happens in one transaction happens together, or not at all. Not to be used after its block.

    Statements are SQL text with named parameters, ``:name``.
    """

    def __init__(self, connection: sqlite3.Connection, files: ReportFiles, capacity: Capacity) -> None:
        self.connection = connection
        self.files = files
        self.capacity = capacity
        self.after_commit: list[Callable[[], None]] = []
        """Steps that run once a write is committed, with the lock still held."""

    def execute(self, statement: str, **parameters: Any) -> int:
        """Run a statement; return how many rows it changed."""
        return self.connection.execute(statement, parameters).rowcount

    def execute_many(self, statement: str, rows: list[dict[str, Any]]) -> None:
        """Run a statement once for each row of parameters."""
        self.connection.executemany(statement, rows)

    def rows(self, statement: str, **parameters: Any) -> list[Row]:
        """Return the rows of a query; each gives its columns by name."""
        return self.connection.execute(statement, parameters).fetchall()

    def row(self, statement: str, **parameters: Any) -> Row | None:
        return next(iter(self.rows(statement, **parameters)), None)

    def value(self, statement: str, **parameters: Any) -> Any:
        """Return the first column of the first row; None where there is no row."""
        found = self.row(statement, **parameters)
        return None if found is None else found[0]

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
        self.capacity = Capacity(max_entries, archive_after_days)
        self._url = database_url
        self._timeout = timeout
        self._opened: SqliteDatabase | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The database file. Raises ``StoreError`` for a URL that names none."""
        return database_path(self._url, self.folder)

    def exists(self) -> bool:
        """Tell whether there is a database, without making one."""
        return identity(self.path) is not None

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a snapshot. Waits for no writer; the database is made where it is absent."""
        with self._database.snapshot() as connection:
            yield Transaction(connection, self.files, self.capacity)

    @contextmanager
    def look(self) -> Iterator[Transaction]:
        """Open a snapshot as ``read``, but make no database: where there is none, everything is empty."""
        if self.exists():
            with self.read() as tx:
                yield tx
            return
        from kr.store import migrate  # heavy

        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            migrate.create(connection)
            yield Transaction(connection, self.files, self.capacity)

    @contextmanager
    def write(self, *, timeout: float | None = None) -> Iterator[Transaction]:
        """Open a transaction that other writers wait for; rolled back unless the block ends normally.

        No network and no slow work belongs in it. Raises ``StoreBusy`` after ``timeout`` seconds.
        """
        after_commit: list[Callable[[], None]] = []
        with self._database.transaction(after_commit, timeout) as connection:
            tx = Transaction(connection, self.files, self.capacity)
            tx.after_commit = after_commit
            yield tx

    def close(self) -> None:
        """Close the database; it opens again when used again."""
        if self._opened is not None:
            self._opened.close()

    @property
    def _database(self) -> SqliteDatabase:
        if self._opened is None:
            self._opened = SqliteDatabase(self.path, upgrade=_upgrade, timeout=self._timeout)
        return self._opened


def _upgrade(path: Path, timeout: float) -> None:
    from kr.store import migrate  # heavy

    migrate.upgrade(path, timeout)


def database_path(database_url: str | None, knowledge_base: Path | str) -> Path:
    """Return the SQLite file that a URL names, else ``kr.db`` in the knowledge base.

    Another scheme, a host, or a database in memory raises ``StoreError`` (a password in the URL is not repeated).
    """
    if database_url is None:
        own = Path(knowledge_base, "kr.db")
        if own.is_symlink():  # a repository may bring it
            raise StoreError(
                f"{own}: is a symbolic link, and is not followed; KR_DATABASE_URL names a database elsewhere"
            )
        return own
    scheme, _, rest = database_url.partition("://")
    if scheme not in {"sqlite", "sqlite+pysqlite"}:
        raise StoreError(
            f"KR_DATABASE_URL: scheme {scheme[:32]!r} is not supported; use sqlite:///path/to/kr.db"
        )
    parts = urlsplit("//" + rest)
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or parts.query or path in {"", ":memory:"}:
        raise StoreError(
            "KR_DATABASE_URL: name one file, as in sqlite:///path/to/kr.db or sqlite:////absolute/kr.db"
        )
    return Path(path)
