"""The store: transactions on the database, and the folder of reports beside it."""

import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, cast
from urllib.parse import quote, unquote, urlsplit

from kr.errors import StoreBusy, StoreConflict, StoreError
from kr.extras import how_to_install
from kr.store import sqlite
from kr.store.files import ReportFiles, make_base
from kr.store.sql import OF_FOLDER
from kr.store.sqlite import SqliteDatabase, translated

T = TypeVar("T")

INDEX = "index"
"""The scope of writes that add, remove or rewrite entries: each counts all of them."""
LESSONS = "lessons"
ALONE: str | None = None
"""The scope of writes whose rows alone, or whose one statement, keep others out."""

_TRIES = 6


class Row(Protocol):
    """A row whose columns are had by name and by number."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def keys(self) -> list[str]: ...


class Connection(Protocol):
    """What a transaction needs of a connection of either database."""

    dialect: str
    for_update: str
    skip_locked: str
    """Ends of a query: lock its rows; lock them, and pass over those that others have locked."""
    next_number: str
    """What gives the next time, as ``next_time``: ``:number``, in microseconds since 1970, where nobody was given a later one."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, statement: str, parameters: Mapping[str, Any] = ..., /) -> Any: ...
    def executemany(self, statement: str, rows: Sequence[Mapping[str, Any]], /) -> Any: ...
    def send(self, statement: str, parameters: Mapping[str, Any], /) -> None: ...
    def lock(self, scope: str) -> None: ...
    def next_time(self, wanted: str) -> str: ...


class Database(Protocol):
    """SQLite's file or PostgreSQL's database."""

    @property
    def location(self) -> str: ...
    def exists(self) -> bool: ...
    def snapshot(self) -> AbstractContextManager[Connection]: ...
    def transaction(
        self, after_commit: list[Callable[[], None]], timeout: float | None, scope: str | None
    ) -> AbstractContextManager[Connection]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is archived: entries beyond ``max_entries``, and those not accessed for more than ``archive_after_days``."""

    max_entries: int = 200
    archive_after_days: int = 60


class Transaction:
    """What happens in one transaction happens together, or not at all. Not to be used after its block.

    Statements are SQL text with named parameters, ``:name``.
    """

    def __init__(self, connection: Connection, files: ReportFiles, capacity: Capacity) -> None:
        self.connection = connection
        self.files = files
        self.capacity = capacity
        self.after_commit: list[Callable[[], None]] = []
        """Steps that run once a write is committed, with the lock still held."""

    def execute(self, statement: str, **parameters: Any) -> int:
        """Run a statement; return how many rows it changed."""
        changed: int = self.connection.execute(statement, parameters).rowcount
        return changed

    def send(self, statement: str, **parameters: Any) -> None:
        """Run a statement whose result nobody needs: on PostgreSQL with the next one, or with the commit, which raise its error."""
        self.connection.send(statement, parameters)

    def execute_many(self, statement: str, rows: list[dict[str, Any]]) -> None:
        """Run a statement once for each row of parameters."""
        self.connection.executemany(statement, rows)

    def rows(self, statement: str, **parameters: Any) -> list[Row]:
        """Return the rows of a query; each gives its columns by name."""
        found: list[Row] = self.connection.execute(statement, parameters).fetchall()
        return found

    def lock(self, scope: str) -> None:
        """Wait for other transactions that locked a scope, and keep them out until this one ends."""
        self.connection.lock(scope)

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


class _Job:
    """An action that waits for a transaction."""

    def __init__(self, action: Callable[[Transaction], object]) -> None:
        self._action = action
        self.is_done = threading.Event()
        self.result: object = None
        self.error: BaseException | None = StoreBusy("other threads have written for too long")
        """Until it was run."""

    def run(self, tx: Transaction, path: Path) -> None:
        try:
            with translated(path), tx.savepoint():
                self.result, self.error = self._action(tx), None
        except Exception as error:  # noqa: BLE001 - raised where the action came from
            self.error = error


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
        self.url = database_url
        """As it was given: it may hold a password."""
        self._timeout = timeout
        self._opened: Database | None = None
        self._turn = threading.Lock()
        self._jobs: deque[_Job] = deque()

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
        """The database file. Raises ``StoreError`` for a URL that names none."""
        if self.is_shared:
            raise StoreError(
                f"{self.location}: is no file; PostgreSQL's own tools back it up (pg_dump --format=custom --file=kr.dump DATABASE) "
                "and bring it back (pg_restore)"
            )
        return database_path(self.url, self.folder)

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
            yield Transaction(connection, self.files, self.capacity)

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
            yield Transaction(connection, self.files, self.capacity)

    @contextmanager
    def write(self, *, timeout: float | None = None, scope: str | None = INDEX) -> Iterator[Transaction]:
        """Open a transaction that other writers wait for; rolled back unless the block ends normally.

        On PostgreSQL those of the same ``scope`` wait for each other. No network and no slow work belongs in it. Raises ``StoreBusy``
        after ``timeout`` seconds, and ``StoreConflict``. ``change`` is the way to write; a block by itself is for what must not be done
        twice, as to append to a file, and for lessons, whose rows no other scope changes.
        """
        after_commit: list[Callable[[], None]] = []
        with self._database.transaction(after_commit, timeout, scope) as connection:
            tx = Transaction(connection, self.files, self.capacity)
            tx.after_commit = after_commit
            yield tx

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

    def write_together(
        self, action: Callable[[Transaction], T], *, timeout: float, scope: str | None = INDEX
    ) -> T:
        """Run a short action, in SQLite within a transaction that it shares with those of other threads that wait as well.

        Raises what the action raises, which then wrote nothing, and ``StoreBusy`` after ``timeout`` seconds.
        """
        if self.is_shared:
            return self.change(action, timeout=timeout, scope=scope)
        deadline, job = time.monotonic() + timeout, _Job(action)
        self._jobs.append(job)
        try:
            if self._turn.acquire(timeout=timeout):
                try:
                    if not job.is_done.is_set():
                        self._run_jobs(max(deadline - time.monotonic(), 0.0))
                finally:
                    self._turn.release()
        finally:
            with suppress(ValueError):
                self._jobs.remove(job)  # nobody has taken it
                job.is_done.set()
        job.is_done.wait()
        if job.error is not None:
            raise job.error
        return cast("T", job.result)

    def _run_jobs(self, timeout: float) -> None:
        taken: list[_Job] = []
        try:
            with self.write(timeout=timeout) as tx, suppress(IndexError):  # no more of them
                while True:
                    taken.append(self._jobs.popleft())
                    taken[-1].run(tx, self.path)
        except BaseException as error:
            is_theirs = isinstance(error, Exception)  # an interrupt is this thread's alone
            for job in taken:
                job.error = (
                    error if is_theirs else StoreBusy("the thread that wrote for others was interrupted")
                )
            raise
        finally:
            for job in taken:
                job.is_done.set()

    def close(self) -> None:
        """Close the database; it opens again when used again."""
        if self._opened is not None:
            self._opened.close()

    @property
    def _database(self) -> Database:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> Database:
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


def _is_link(path: Path) -> bool:
    with suppress(OSError):  # a name that is too long, a folder that may not be entered: its opening says so
        return path.is_symlink()
    return False


def store_of(database: str, folder: Path) -> Store:
    """Return the store of a database that is named by its URL, or as a file. Raises ``StoreError``."""
    is_url = "://" in database
    return Store(database if is_url else f"sqlite:///{quote(database)}", folder)


def database_path(database_url: str | None, knowledge_base: Path | str) -> Path:
    """Return the SQLite file that a URL names, else ``kr.db`` in the knowledge base.

    Another scheme, a host, or a database in memory raises ``StoreError`` (a password in the URL is not repeated).
    """
    if database_url is None:
        own = Path(knowledge_base, "kr.db")
        if _is_link(own):  # a repository may bring it
            raise StoreError(
                f"{own}: is a symbolic link, and is not followed; KR_DATABASE_URL names a database elsewhere"
            )
        return own
    scheme, _, rest = database_url.partition("://")
    if scheme not in {"sqlite", "sqlite+pysqlite"}:
        raise StoreError(
            f"KR_DATABASE_URL: scheme {scheme[:32]!r} names no database file; that is sqlite:///path/to/kr.db"
        )
    parts = urlsplit("//" + rest)
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or parts.query or path in {"", ":memory:"}:
        raise StoreError(
            "KR_DATABASE_URL: name one file, as in sqlite:///path/to/kr.db or sqlite:////absolute/kr.db"
        )
    return Path(path)
