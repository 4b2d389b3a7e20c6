"""The store as the rest of kr sees it: transactions over the tables, and the report files beside them.

A run of research sees it through a ``Shelf``: helpful, and never in the way (SPEC 3.9, error rows 3, 4 and 14).
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Self, TypeVar

from kr.errors import ReportUnwritable, StoreBusy, StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from kr.freshness import ARCHIVE_AFTER_DAYS
from kr.models import Entry

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import StrPath

    from kr.store.archive import Archived, Guarded
    from kr.store.database import Completed, Database
    from kr.store.saving import Draft, Restored, Saved
    from kr.store.session import UnitOfWork


log = logging.getLogger(__name__)

T = TypeVar("T")


class Store:
    """The knowledge base: database and report files, shared by threads and processes; opened, and imported, at the first use.

    Every failure of the database is a ``StoreError``; of a report file, ``ReportUnwritable``.
    """

    def __init__(
        self,
        database_url: str | None,
        knowledge_base: "StrPath",
        *,
        max_entries: int = 200,
        archive_after_days: int = ARCHIVE_AFTER_DAYS,
        timeout: float = 60.0,
    ) -> None:
        """Name the database (None: ``kr.db`` in the knowledge base) and the guard's limits; wait ``timeout`` seconds for others."""
        self._database_url = database_url
        self._knowledge_base = os.fspath(knowledge_base)
        self._guarding = (max_entries, archive_after_days)
        self._timeout = timeout
        self._opened: Database | None = None
        self._mutex = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> "Path":
        """The database file, for the store alone."""
        from pathlib import Path

        return Path(self.place)

    @property
    def place(self) -> str:
        """Where the database is, as people are told. Raises ``StoreError`` for a URL that names no place."""
        return database_path(self._database_url, self._knowledge_base)

    def exists(self) -> bool:
        """Tell whether there is a database, without making one: reading or writing would."""
        from kr.store.sqlite import SCHEMA_VERSION, SqliteFile

        file = SqliteFile(self.place, schema_version=SCHEMA_VERSION, timeout=self._timeout)
        return file.identity() is not None

    def read(self) -> "AbstractContextManager[UnitOfWork]":
        """Open a unit on one snapshot. Takes no lock; changes nothing."""
        return self._database().read()

    @contextmanager
    def look(self) -> "Iterator[UnitOfWork]":
        """Open a unit as ``read``; where no database is, on one in memory that holds nothing: looking makes none."""
        if self.exists():
            with self.read() as unit:
                yield unit
            return
        import sqlite3
        from contextlib import closing

        from kr.store.database import create_tables
        from kr.store.session import Guarding, Session, UnitOfWork

        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            create_tables(connection)
            yield UnitOfWork(Session(connection), self._knowledge_base, Guarding())

    def read_untouched(self, work: "Callable[[UnitOfWork], T]") -> "T | None":
        from kr.store.database import read_only

        return read_only(self.place, self._knowledge_base, work)

    def complete(self, what: "Completed", **parameters: str) -> list[str]:
        from kr.store.database import complete

        return complete(self.place, what, **parameters)

    def write(self) -> "AbstractContextManager[UnitOfWork]":
        """Open a unit that others wait for, for no network work; rolled back unless the block ends normally."""
        return self._database().write()

    def save_report(self, draft: "Draft", text: str, now: datetime) -> "Saved":
        """Write a report, row and revision in one step, and run the guard (SPEC 3.8)."""
        from kr.store.saving import save

        return save(self._database(), draft, text, now=now)

    def run_guard(self, now: datetime) -> "Guarded":
        """Run the capacity guard by itself (SPEC 3.8): the last step of an import."""
        with self.write() as unit:
            return unit.archive.guard(unit.guarding, now)

    def read_file(self, path: str, *, folder: "StrPath | None" = None) -> bytes | None:
        """Return a report's bytes from the knowledge base or another folder; None: missing, no regular file, or outside."""
        from kr.store.reports import ReportFiles

        return ReportFiles(folder or self._knowledge_base).read(path)

    def read_report(self, entry: Entry, unit: "UnitOfWork | None" = None) -> str | None:
        """Return a report's text; None when it is nowhere. A person's edit is taken in first, a missing file is made.

        ``unit`` is a snapshot that is open anyway: where all is settled it says so.
        """
        from kr.store.reports import settled

        with nullcontext(unit) if unit else self.read() as snapshot:
            text = settled(snapshot, entry)
        return text if text is not None else self._settle(entry)

    def drop_lost(self, entry: Entry) -> bool:
        """Remove an entry whose text is nowhere (SPEC 3.3): not one that can't be read just now, nor of a folder that is not mounted."""
        if not os.path.isdir(self._knowledge_base):
            return False
        with self.write() as unit:
            row = unit.entries.get(entry.id)
            if row is None or unit.revisions.text(row.sha256) is not None:
                return False
            if unit.files.look(row.path).state != "absent":
                return False
            unit.wordings.forget(entry.id)
            return unit.entries.remove(entry.id)

    def remove(self, entry_ids: Sequence[str], now: datetime) -> "list[Archived] | None":
        """Move live entries to the archive by hand, all or none; None when one is not there (SPEC 6.3)."""
        from kr.store.saving import remove

        with self.write() as unit:
            return remove(unit, entry_ids, now)

    def restore_archived(
        self, archived: "Archived", now: datetime, *, replace: bool = False
    ) -> "Restored | None":
        from kr.store.saving import restore_archived

        return restore_archived(self._database(), archived, now, replace_live=replace)

    def restore_revision(self, entry_id: str, number: int, now: datetime) -> "Restored | None":
        from kr.store.saving import restore_revision

        return restore_revision(self._database(), entry_id, number, now)

    def close(self) -> None:
        """Close the database; it opens again when used again."""
        if self._opened is not None:
            self._opened.close()

    def _settle(self, entry: Entry) -> str | None:
        """Bring row and file together where that is possible; the text is served all the same where it is not."""
        from kr.naming import decoded
        from kr.store.reports import settle

        text = None
        if not self._database().is_writing:
            try:
                with self.write() as unit:
                    text = settle(unit, entry.id)
            except (StoreError, ReportUnwritable) as exc:
                log.warning("%s: its file is left as it is: %s", entry.path, exc)
        if text is None:
            with self.read() as unit:
                text = unit.revisions.text(entry.sha256) or decoded(unit.files.read(entry.path))
        return text if text.strip() else None

    def _database(self) -> "Database":
        with self._mutex:
            if self._opened is None:
                from kr.store.database import Database
                from kr.store.session import Guarding

                self._opened = Database(
                    self.place,
                    self._knowledge_base,
                    guarding=Guarding(*self._guarding),
                    timeout=self._timeout,
                )
            return self._opened


def database_path(database_url: str | None, knowledge_base: str) -> str:
    """Return the SQLite file that a URL names, else ``kr.db`` in the knowledge base.

    Another scheme, a host, or a database in memory raises ``StoreError`` (a password in the URL is not repeated).
    """
    if database_url is None:
        return os.path.join(knowledge_base, "kr.db")
    from urllib.parse import unquote, urlsplit

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
    return path


logger = logging.getLogger(__name__)

_LASTING = (StoreBusy, StoreCorrupt, StoreTooNew)
"""Problems that the next transaction would meet again, perhaps after another long wait."""


class Shelf:
    """A store for one run: its first ``problem`` is told once, and research goes on without what could not be had."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_closed = False
        self._is_read_only = False
        self._told: set[str] = set()
        self.problem: StoreError | None = None

    @property
    def can_write(self) -> bool:
        return not self._is_closed and not self._is_read_only

    def attempt(self, action: Callable[[Store], T], otherwise: T) -> T:
        """Run ``action``, or give ``otherwise`` where the store can't serve, now or since earlier in the run."""
        if self._is_closed:
            return otherwise
        try:
            return action(self._store)
        except StoreError as error:
            self.note(error)
            return otherwise

    def read(self, action: "Callable[[UnitOfWork], T]", otherwise: T) -> T:
        def run(store: Store) -> T:
            with store.read() as unit:
                return action(unit)

        return self.attempt(run, otherwise)

    def write(self, action: "Callable[[UnitOfWork], T]", otherwise: T) -> T:
        if self._is_read_only:
            return otherwise

        def run(store: Store) -> T:
            with store.write() as unit:
                return action(unit)

        return self.attempt(run, otherwise)

    def note(self, error: StoreError) -> None:
        if str(error) not in self._told:
            logger.warning("%s", error)
        self._told.add(str(error))
        self.problem = self.problem or error
        self._is_closed = self._is_closed or isinstance(error, _LASTING)
        self._is_read_only = self._is_read_only or isinstance(error, StoreUnwritable)
