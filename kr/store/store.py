"""The store as the rest of kr sees it: transactions over the tables, and the report files beside them."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kr.errors import ReportUnwritable, StoreError
from kr.store.location import database_path
from kr.store.rows import Archived, Draft, Restored, Saved
from kr.values import Entry

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from kr.store.archive import Guarded
    from kr.store.database import Database
    from kr.store.incoming import Incoming, Outcome
    from kr.store.reports import ReportFiles
    from kr.store.restoring import Restorer
    from kr.store.saving import Limits
    from kr.store.unit import Unit

log = logging.getLogger(__name__)


class Store:
    """The knowledge base: a database and report files. Threads and processes may share it.

    Nothing is opened, and nothing heavy imported, before the first use. Every failure of the database is a
    ``StoreError``; of a report file, ``ReportUnwritable``.
    """

    def __init__(
        self,
        database_url: str | None,
        knowledge_base: Path,
        *,
        max_entries: int = 200,
        archive_after_days: int = 60,
        timeout: float = 60.0,
    ) -> None:
        """Name the database (``KR_DATABASE_URL``; None: ``kr.db`` in the knowledge base) and the guard's limits.

        ``timeout`` is how long to wait for other processes, in seconds.
        """
        self._database_url = database_url
        self._knowledge_base = knowledge_base
        self._max_entries = max_entries
        self._archive_after_days = archive_after_days
        self._timeout = timeout
        self._opened: Database | None = None
        self._mutex = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The database file."""
        return database_path(self._database_url, self._knowledge_base)

    def exists(self) -> bool:
        """Tell whether there is a database, without making one: reading or writing would."""
        from kr.store.inspection import sqlite_file

        return sqlite_file(self.path).identity() is not None

    @contextmanager
    def read(self) -> "Iterator[Unit]":
        """Open a unit on one snapshot. Takes no lock; changes nothing."""
        from kr.store.unit import Unit

        with self._database().read() as session:
            yield Unit(session)

    @contextmanager
    def write(self) -> "Iterator[Unit]":
        """Open a unit that others wait for; it is rolled back unless the block ends normally.

        Do no network work in it. A write inside a write is a ``RuntimeError``.
        """
        from kr.store.unit import Unit

        with self._database().write() as transaction:
            yield Unit(transaction.session)

    @contextmanager
    def change(self) -> "Iterator[Unit]":
        """Open a unit as ``write`` does, for what changes entries: none of another folder's (``kr.store.home``)."""
        self._require_home()
        with self.write() as unit:
            yield unit

    @contextmanager
    def rescuing(self) -> "Iterator[Connection]":
        """Open a transaction for ``kr.store.salvage``, as ``write`` does."""
        with self._database().write() as transaction:
            yield transaction.connection

    def save_report(self, draft: Draft, text: str, now: datetime) -> Saved:
        """Write a report, its row and its revision in one step, then run the capacity guard (SPEC 3.8)."""
        from kr.store.saving import save

        self._require_home()
        return save(self._database(), self._files(), draft, text, limits=self._limits(), now=now)

    def take_in(self, batch: Sequence["Incoming"], now: datetime) -> "list[Outcome]":
        """Place some hundreds of entries that others wrote, in one step (SPEC 6.2); an outcome for each, in order."""
        from kr.store.bulk import take_in

        self._require_home()
        return take_in(self._database(), self._files(), batch, now=now)

    def run_guard(self, now: datetime) -> "Guarded":
        """Run the capacity guard by itself (SPEC 3.8): the last step of an import."""
        with self.change() as unit:
            return unit.archive.guard(
                keep="",
                now=now,
                max_entries=self._max_entries,
                archive_after_days=self._archive_after_days,
            )

    def read_file(self, path: str, *, folder: Path | None = None) -> bytes | None:
        """Return a report's bytes from the knowledge base, or from another such folder.

        None when it is missing, no regular file, or outside the folder.
        """
        from kr.store.reports import ReportFiles

        return ReportFiles(folder or self._knowledge_base).read(path)

    def read_report(self, entry: Entry) -> str | None:
        """Return a report's text; None when it is missing, empty, no regular file, or outside the base.

        What a person edited is served as it stands; what a killed writer left half done is put right first.
        """
        from kr.store.hashing import decoded, digest

        content = self._files().read(entry.path)
        if content and digest(decoded(content)) != entry.sha256 and self._files().may_be_torn(entry.path):
            self._heal(entry)
            content = self._files().read(entry.path)
        text = decoded(content)
        if "\ufffd" in text and "\ufffd".encode() not in (content or b""):
            log.warning("%s: some bytes are no UTF-8 text; they are shown as \ufffd", entry.path)
        return text if text.strip() else None

    def drop_lost(self, entry: Entry) -> bool:
        """Remove an entry whose report is gone (SPEC 3.3), unless somebody has written it again meanwhile.

        A report that merely can't be read just now (no permission, a failing disk) is not gone, nor one of a
        database elsewhere whose folder of reports is not there (not mounted). Raises ``StoreError`` where the
        database belongs to another such folder.
        """
        from kr.store.standing import standing

        self._require_home()
        if not self._is_at_home() and not (self._knowledge_base / "frameworks").is_dir():
            return False
        with self.write() as unit:
            row = unit.entries.get(entry.id)
            if row is None or standing(self._knowledge_base, row.path).state != "absent":
                return False
            unit.wordings.forget(entry.id)
            return unit.entries.remove(entry.id)

    def remove(self, entry_ids: Sequence[str], now: datetime) -> list[Archived] | None:
        """Move live entries to the archive by hand, all or none; None when one is not there (SPEC 6.3)."""
        return self._restorer().remove(entry_ids, now)

    def restore_archived(
        self, archived: Archived, now: datetime, *, replace: bool = False
    ) -> Restored | None:
        """Make an archived entry live again; see ``kr.store.restoring.Restorer.restore_archived``."""
        return self._restorer().restore_archived(archived, now, replace_live=replace)

    def restore_revision(self, entry_id: str, number: int, now: datetime) -> Restored | None:
        """Bring an earlier text back; None when there is no such entry or revision (SPEC 3.8)."""
        return self._restorer().restore_revision(entry_id, number, now)

    def close(self) -> None:
        """Close the database; it opens again when used again."""
        if self._opened is not None:
            self._opened.close()

    def _heal(self, entry: Entry) -> None:
        if self._database().is_writing:
            return
        try:
            with self.write() as unit:
                row = unit.entries.get(entry.id)
                if row is not None and row.path == entry.path:
                    with self._files().replacement(row.path) as target:
                        target.heal(row.sha256)
        except (StoreError, ReportUnwritable) as exc:
            log.warning("%s: an interrupted write could not be put right: %s", entry.path, exc)

    def _limits(self) -> "Limits":
        from kr.store.saving import Limits

        return Limits(max_entries=self._max_entries, archive_after_days=self._archive_after_days)

    def other_home(self) -> Path | None:
        """Return the folder of reports that the database belongs to, when it is not this one (``kr.store.home``)."""
        from kr.store.home import foreign_home

        if self._is_at_home():
            return None
        with self.read() as unit:
            return foreign_home(unit, self._knowledge_base)

    def why_foreign(self) -> str | None:
        """Say why the database is another folder's, and what to do; None where it is this one's."""
        from kr.store.home import why_foreign

        if self._is_at_home():
            return None
        with self.read() as unit:
            reason = why_foreign(unit, self._knowledge_base)
        if reason is None:
            return None
        return (
            f"{reason}. Name the folder that holds them, or let this one have a database of its own (--kb); "
            "to a copy of that folder, `kr doctor --repair` gives the database"
        )

    def may_move_in(self) -> bool:
        """Tell whether ``move_in`` would go well."""
        from kr.store.home import may_move_in

        if self._is_at_home():
            return False
        with self.read() as unit:
            return may_move_in(unit, self._knowledge_base)

    def move_in(self) -> bool:
        """Give the database this folder, which holds every report that it indexes as its own folder does."""
        from kr.store.home import claim, may_move_in

        if self._is_at_home():
            return False
        with self.write() as unit:
            if not may_move_in(unit, self._knowledge_base):
                return False
            claim(unit, self._knowledge_base)
            return True

    def _is_at_home(self) -> bool:
        """Whether the database lies in its knowledge base: they go together wherever they go."""
        return self._database_url is None or self.path.resolve().is_relative_to(
            self._knowledge_base.resolve()
        )

    def refuse_foreign(self) -> None:
        """Raise ``StoreError`` where the database is another folder's."""
        reason = self.why_foreign()
        if reason is not None:
            raise StoreError(f"{self.path}: {reason}")

    def _require_home(self) -> None:
        """Refuse to touch another folder's entries; the first folder that is written to is the database's own."""
        from kr.store.home import claim, is_claimed

        if self._is_at_home():
            return
        with self.read() as unit:
            if is_claimed(unit, self._knowledge_base):
                return
        self.refuse_foreign()
        with self.write() as unit:
            claim(unit, self._knowledge_base)

    def _restorer(self) -> "Restorer":
        from kr.store.restoring import Restorer

        self._require_home()
        return Restorer(database=self._database(), files=self._files(), limits=self._limits())

    def _database(self) -> "Database":
        with self._mutex:
            if self._opened is None:
                from kr.store.database import Database

                self._opened = Database(self.path, timeout=self._timeout, read_report=self._files().read)
            return self._opened

    def _files(self) -> "ReportFiles":
        from kr.store.reports import ReportFiles

        return ReportFiles(self._knowledge_base)
