"""One transaction on one SQLite connection: how to speak in it (SQL text with named parameters), and what it looks at.

What a hit doesn't look at is imported when it is asked for.
"""

from __future__ import annotations  # a hit does not evaluate seventeen types

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kr.errors import StoreError, StoreUnwritable
from kr.freshness import ARCHIVE_AFTER_DAYS
from kr.values import NamedTuple

if TYPE_CHECKING:
    from kr.store.archive import Archive
    from kr.store.counts import Counts
    from kr.store.entries import Entries
    from kr.store.lessons import Lessons
    from kr.store.lookup import Lookup
    from kr.store.quarantine import Quarantine
    from kr.store.reports import ReportFiles, Revisions
    from kr.store.requests import Ledger, Offers, Ratings, Requests, Wordings
    from kr.store.search import Search
    from kr.store.shared_state import Circuits, Leases, Libraries, Workflows


Parameters = Mapping[str, Any]


class Session:
    """A transaction that somebody else began, and ends. Don't use it afterwards."""

    def __init__(self, connection: sqlite3.Connection, *, is_read_only: bool = False) -> None:
        self._connection = connection
        # SQLite's own switch (PRAGMA query_only) has every statement compiled anew.
        self._is_read_only = is_read_only

    def execute(self, statement: str, parameters: Parameters | None = None, /, **named: Any) -> int:
        """Run a statement; return how many rows it changed. In a read it is ``StoreUnwritable``."""
        self._require_write()
        return self._cursor(statement, parameters, named).rowcount

    def execute_many(self, statement: str, rows: Sequence[Parameters]) -> None:
        """Run a statement once for each row of parameters; see ``execute``."""
        self._require_write()
        self._connection.executemany(statement, rows)

    def rows(
        self, statement: str, parameters: Parameters | None = None, /, **named: Any
    ) -> list[sqlite3.Row]:
        """Return the rows of a query; each gives its columns by name."""
        return self._cursor(statement, parameters, named).fetchall()

    def each(self, statement: str, /, **named: Any) -> Iterator[sqlite3.Row]:
        """Give the rows of a query one by one, as they are read."""
        cursor = self._cursor(statement, None, named)
        try:
            yield from cursor
        finally:
            cursor.close()  # a statement that is left in the middle would hold its lock

    def row(
        self, statement: str, parameters: Parameters | None = None, /, **named: Any
    ) -> sqlite3.Row | None:
        cursor = self._cursor(statement, parameters, named)
        try:
            found: sqlite3.Row | None = cursor.fetchone()
        finally:
            cursor.close()
        return found

    def value(self, statement: str, parameters: Parameters | None = None, /, **named: Any) -> Any:
        found = self.row(statement, parameters, **named)
        return None if found is None else found[0]

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what the block did, and no more, when it fails."""
        self._connection.execute("SAVEPOINT step")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO step")
            raise
        self._connection.execute("RELEASE step")

    @property
    def is_open(self) -> bool:
        """Whether the transaction still stands: some failures make SQLite give it up by itself."""
        return self._connection.in_transaction

    def _require_write(self) -> None:
        if self._is_read_only:
            raise StoreUnwritable("nothing is written in a snapshot")

    def _cursor(
        self, statement: str, parameters: Parameters | None, named: Mapping[str, Any]
    ) -> sqlite3.Cursor:
        cursor = self._connection.cursor()
        cursor.row_factory = sqlite3.Row
        return cursor.execute(statement, named if parameters is None else parameters)


def insert_into(table: str, names: Sequence[str]) -> str:
    """Write the statement that inserts a row with these columns, each a parameter of its name."""
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"


def upsert_into(table: str, names: Sequence[str], key: str) -> str:
    """Write the statement that inserts a row with these columns, or sets them in the one that has its key (one column, or several parted by commas)."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key.split(", "))
    return f"{insert_into(table, names)} ON CONFLICT ({key}) DO UPDATE SET {changes}"


def update_of(table: str, names: Sequence[str], where: str) -> str:
    """Write the statement that sets these columns, each to the parameter of its name."""
    return f"UPDATE {table} SET {', '.join(f'{name} = :{name}' for name in names)} WHERE {where}"


_encode = json.JSONEncoder(ensure_ascii=False).encode


def json_list(values: Sequence[object]) -> str:
    """Write a list as one parameter, or as a column holds it: ``IN (SELECT value FROM json_each(:name))`` reads it."""
    return _encode(values)


def texts_of(text: str | None) -> tuple[str, ...]:
    """Read a list leniently: what is no JSON is taken as words parted by commas; blank members go."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        found = [word.strip() for word in (text or "").split(",")]
    if not isinstance(found, list):
        found = [found]
    return tuple(member for member in (str(item) for item in found if item is not None) if member.strip())


class Part:
    """What speaks of one or a few tables, in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session


FIRST_IMPORT = "first_import"
"""The key of when the index beside an empty database was imported; see ``kr.transfer``."""

ARCHIVE_CHANGES = "archive_changes"
"""The key of how often archived rows left."""

_GET_FACT = "SELECT value FROM meta WHERE key = :key"
_PUT_FACT = upsert_into("meta", ("key", "value"), "key")


class Meta(Part):
    def get(self, key: str) -> str | None:
        found: str | None = self._session.value(_GET_FACT, key=key)
        return found

    def put(self, key: str, value: str) -> None:
        self._session.execute(_PUT_FACT, key=key, value=value)


class Guarding(NamedTuple):
    """What the capacity guard goes by: entries at most, and whole days without an access (SPEC 3.8)."""

    max_entries: int = 200
    archive_after_days: int = ARCHIVE_AFTER_DAYS


Kind = TypeVar("Kind")


class _Made(Generic[Kind]):
    """An attribute that is made when it is first looked at, of another one, by a class named ``module.Class``."""

    def __init__(self, place: str, *, of: str = "session") -> None:
        self._module, _, self._class = place.partition(".")
        self._of = of
        self._kind: Callable[[Any], Kind] | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, unit: UnitOfWork, owner: type) -> Kind:
        if self._kind is None:
            self._kind = getattr(import_module(f"kr.store.{self._module}"), self._class)
        made = unit.__dict__[self._name] = self._kind(unit.__dict__[self._of])
        return made


class UnitOfWork:
    """What happens through one unit happens together, or not at all. Don't use it after its block.

    ``folder`` is the knowledge base, whose report files stand beside the database.
    """

    def __init__(self, session: Session, folder: str, guarding: Guarding) -> None:
        self.session = session
        self.folder = folder
        self.guarding = guarding
        self.afterwards: list[Callable[[], None]] = []
        """Run once a write is committed, with the lock still held."""

    def require_alive(self) -> None:
        """Raise ``StoreError`` when the database rolled the whole transaction back by itself."""
        if not self.session.is_open:
            raise StoreError("the database gave up the transaction")

    archive: _Made[Archive] = _Made("archive.Archive")
    circuits: _Made[Circuits] = _Made("shared_state.Circuits")
    counts: _Made[Counts] = _Made("counts.Counts")
    entries: _Made[Entries] = _Made("entries.Entries")
    files: _Made[ReportFiles] = _Made("reports.ReportFiles", of="folder")
    leases: _Made[Leases] = _Made("shared_state.Leases")
    ledger: _Made[Ledger] = _Made("requests.Ledger")
    lessons: _Made[Lessons] = _Made("lessons.Lessons")
    libraries: _Made[Libraries] = _Made("shared_state.Libraries")
    meta: _Made[Meta] = _Made("session.Meta")
    lookup: _Made[Lookup] = _Made("lookup.Lookup")
    offers: _Made[Offers] = _Made("requests.Offers")
    quarantine: _Made[Quarantine] = _Made("quarantine.Quarantine")
    ratings: _Made[Ratings] = _Made("requests.Ratings")
    requests: _Made[Requests] = _Made("requests.Requests")
    revisions: _Made[Revisions] = _Made("reports.Revisions")
    search: _Made[Search] = _Made("search.Search")
    wordings: _Made[Wordings] = _Made("requests.Wordings")
    workflows: _Made[Workflows] = _Made("shared_state.Workflows")
