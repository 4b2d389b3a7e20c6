"""A PostgreSQL database: how it is reached, read and written, and what its errors mean.

Reads see one snapshot. A write waits for others of its scope alone (``Transaction.lock``). Nothing is set for a whole session, so that a
pooler may stand in between. This module and psycopg are imported only where ``KR_DATABASE_URL`` names PostgreSQL.
"""

import logging
import re
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import FloatLoader

from kr.errors import StoreBusy, StoreConflict, StoreError, StoreTooNew, StoreUnwritable
from kr.store import SCHEMA_KEY, SCHEMA_VERSION
from kr.store.sqlite import pop

MOST_CONNECTIONS = 16
"""How many connections a process opens at most; who needs one more waits."""

_CONNECT = {
    "connect_timeout": 10,
    "application_name": "kr",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""What the URL may say otherwise. A server that is gone is noticed within half a minute."""
_IDLE_SECONDS = 60
"""After which the server ends the transaction of a process that stopped in the middle of it."""
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")
_KINDS: tuple[tuple[type[psycopg.Error], type[StoreError]], ...] = (
    (errors.SerializationFailure, StoreConflict),
    (errors.DeadlockDetected, StoreConflict),
    (errors.LockNotAvailable, StoreBusy),
    (errors.QueryCanceled, StoreBusy),
    (errors.TooManyConnections, StoreBusy),
    (errors.CannotConnectNow, StoreBusy),
    (errors.ReadOnlySqlTransaction, StoreUnwritable),
    (errors.InsufficientPrivilege, StoreUnwritable),
    (errors.InsufficientResources, StoreUnwritable),
)

# What it warns of when a connection is lost is raised as well.
logging.getLogger("psycopg").setLevel(logging.ERROR)


class Connection:
    """A connection that is used as SQLite's: parameters are ``:name``, errors are kr's."""

    dialect = "postgresql"

    def __init__(self, raw: psycopg.Connection, location: str) -> None:
        self.raw = raw
        self._location = location

    @property
    def in_transaction(self) -> bool:
        status = self.raw.info.transaction_status
        return status in {psycopg.pq.TransactionStatus.INTRANS, psycopg.pq.TransactionStatus.INERROR}

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> psycopg.Cursor:
        with translated(self._location):
            return self.raw.execute(_written(statement), _kept(parameters or {}))

    def executemany(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        with translated(self._location):
            self.raw.cursor().executemany(_written(statement), [_kept(row) for row in rows])

    def commit(self) -> None:
        if self.execute("COMMIT").statusmessage != "COMMIT":
            raise StoreError(f"{self._location}: the transaction had failed, and was rolled back")


class PostgresqlDatabase:
    """A database that threads, processes and machines share. Its tables are made at the first use; connections are kept until ``close``."""

    def __init__(self, url: str, *, timeout: float) -> None:
        """``timeout`` is in seconds: how long to wait for other writers. Raises ``StoreError`` for a URL that is none."""
        self._parameters = _parsed(url)
        self._timeout = timeout
        self.location = _location(self._parameters)
        self._idle: list[Connection] = []
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._is_made = False
        weakref.finalize(self, _close, self._idle)

    def exists(self) -> bool:
        """Tell whether kr's tables are there, and in the form that this kr knows."""
        if not self._is_made:
            with closing(self._open()) as own, translated(self.location):
                if any(row[0] for row in own.execute("SELECT to_regclass('meta')::text")):
                    self._is_made = self._version(own) == SCHEMA_VERSION
                    return True
        return self._is_made

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Read one state of the database. What the block tries to write is an error."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._begun(self._timeout, begin) as connection:
            yield connection

    @contextmanager
    def transaction(self, timeout: float | None) -> Iterator[Connection]:
        """Write; rolled back unless the block commits. Locks are waited for until the timeout."""
        seconds = self._timeout if timeout is None else timeout
        limits = (
            f"SELECT set_config('lock_timeout', '{max(1, int(seconds * 1000))}', true), "
            f"set_config('idle_in_transaction_session_timeout', '{_IDLE_SECONDS}s', true)"
        )
        with self._begun(seconds, f"BEGIN; {limits}") as connection:
            yield connection

    def close(self) -> None:
        _close(self._idle)

    def _open(self) -> psycopg.Connection:
        with translated(self.location):
            raw = psycopg.connect(**self._parameters, autocommit=True)
        raw.adapters.register_loader("numeric", FloatLoader)
        return raw

    def _make(self) -> None:
        """Make the tables, or bring them up to date, where that is due."""
        if self.exists() and self._is_made:
            return
        from kr.store import schema  # heavy

        with translated(self.location), closing(psycopg.connect(**self._parameters)) as own:
            schema.make_postgresql(own, self.location)
        self._is_made = True

    def _version(self, raw: psycopg.Connection) -> int:
        """Return the number of the newest migration. Raises ``StoreTooNew``, or ``StoreError`` for a table of another program."""
        found = raw.execute(f"SELECT value FROM meta WHERE key = '{SCHEMA_KEY}'").fetchone()
        if found is None:
            why = "the table meta is another program's; give kr a database or a schema of its own"
            raise StoreError(f"{self.location}: {why}")
        if int(found[0]) > SCHEMA_VERSION:
            why = f"written by a newer kr (schema {found[0]}, this one knows {SCHEMA_VERSION})"
            raise StoreTooNew(f"{self.location}: {why}")
        return int(found[0])

    @contextmanager
    def _begun(self, timeout: float, statements: str) -> Iterator[Connection]:
        """Take a connection that was kept, or open one, and begin; keep it afterwards, if it is sound."""
        if not self._free.acquire(timeout=timeout):
            why = f"all {MOST_CONNECTIONS} connections of this process have been in use for {timeout:g} s"
            raise StoreBusy(f"{self.location}: {why}")
        try:
            self._make()
            connection = self._begin(statements)
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    with translated(self.location):
                        connection.raw.rollback()
                if connection.raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                    self._idle.append(connection)
                else:
                    connection.raw.close()
        finally:
            self._free.release()

    def _begin(self, statements: str) -> Connection:
        """Begin a transaction in one exchange. A connection that was cut while it lay idle is exchanged."""
        while kept := pop(self._idle):
            with suppress(psycopg.OperationalError):
                kept.raw.execute(statements, prepare=False)
                return kept
            kept.raw.close()
        connection = Connection(self._open(), self.location)
        with translated(self.location):
            connection.raw.execute(statements, prepare=False)
        return connection


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Turn psycopg's errors into kr's. The messages of a server hold no password."""
    try:
        yield
    except psycopg.Error as exc:
        kind = next((mine for theirs, mine in _KINDS if isinstance(exc, theirs)), StoreError)
        if "too many c" in str(exc) or "connection slots are reserved" in str(exc):
            kind = StoreBusy
        raise kind(f"{location}: {' '.join(str(exc).split())[:300]}") from exc


def _parsed(url: str) -> dict[str, Any]:
    """Read a URL. What may be a piece of a password is repeated nowhere: not by libpq, and not as the name of a host."""
    found: dict[str, Any] = {}
    with suppress(psycopg.Error):
        found = {**_CONNECT, **conninfo_to_dict(url.replace("+psycopg", "", 1))}
    is_split = "@" in f"{found.get('host')}{found.get('dbname')}"
    ports = str(found.get("port", 5432)).split(",")
    if not found or is_split or not all(it.isdigit() for it in ports):
        raise StoreError(
            "KR_DATABASE_URL: write postgresql+psycopg://user:password@host:5432/database, and a special character of "
            "name or password by its code (%40 for @)"
        )
    return found


def _location(parameters: Mapping[str, Any]) -> str:
    user = f"{parameters['user']}@" if "user" in parameters else ""
    port = f":{parameters['port']}" if "port" in parameters else ""
    return f"postgresql://{user}{parameters.get('host', 'localhost')}{port}/{parameters.get('dbname', '')}"


@lru_cache(maxsize=512)
def _written(statement: str) -> str:
    """Write ``:name`` as psycopg has it."""
    return _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))


def _kept(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as PostgreSQL takes them: no text of its holds a NUL."""
    return {
        name: value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value
        for name, value in parameters.items()
    }


def _close(idle: list[Connection]) -> None:
    while connection := pop(idle):
        connection.raw.close()
