"""What ``kr doctor`` asks of the tables, and changes in them (SPEC 6.5). Nothing is lost here."""

from dataclasses import asdict
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from kr.store import mending, times
from kr.store.cells import Told
from kr.store.entries import Entries
from kr.store.free_names import Subject, free_id
from kr.store.hashing import decoded
from kr.store.reports import ReportFiles
from kr.store.revisions import Revisions
from kr.store.rows import Circuit
from kr.store.schema import archived_entries, circuits, entries, leases, reservations
from kr.values import Entry


class Expired(NamedTuple):
    """How many leases and reservations have outlived their time."""

    leases: int
    reservations: int


class Upkeep:
    """Looks after the tables in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def expired(self, now: datetime) -> Expired:
        """Count what a killed process may have left, and others have not yet swept away."""
        return Expired(*(self._count(table, now) for table in (leases, reservations)))

    def drop_expired(self, now: datetime) -> Expired:
        """Remove those: they hold nothing any more."""
        moment = times.to_text(now)
        return Expired(
            *(
                self._connection.execute(sa.delete(table).where(table.c.expires_at <= moment)).rowcount
                for table in (leases, reservations)
            )
        )

    def circuits(self) -> list[Circuit]:
        """Return the breakers of all sources that failed lately, by name."""
        columns = (circuits.c[name] for name in Circuit.__dataclass_fields__)
        rows = self._connection.execute(sa.select(*columns).order_by(circuits.c.source))
        return [Circuit(**row._mapping) for row in rows]  # noqa: SLF001 - the documented name

    def known_paths(self) -> set[str]:
        """Return every path that a live or archived report has.

        An earlier text alone is no reason for a file: one that came back after its entry went is an orphan.
        """
        return {
            path
            for table in (entries, archived_entries)
            for path in self._connection.execute(sa.select(table.c.path)).scalars()
        }

    def adopt(self, files: ReportFiles, entry: Entry, content: bytes) -> Entry | None:
        """Index a report that no row speaks of, under an id that is free; ``entry.id`` is not looked at.

        None, and no change, when its framework, topic and major version have a live entry already.
        """
        subject = Subject(entry.framework, entry.topic, entry.framework_version)
        if Entries(self._connection).of_topic(*subject) is not None:
            return None
        adopted = Entry(
            **asdict(entry)
            | {
                "id": free_id(self._connection, files, subject, entry.path),
                "sha256": Revisions(self._connection).keep(decoded(content)),
            }
        )
        Entries(self._connection).put(adopted)
        return adopted

    def mend(self, told: Told) -> list[str]:
        """Put indexes, triggers, views, counters and cells right; see ``kr.store.mending``."""
        return mending.mend(self._connection, told)

    def _count(self, table: sa.Table, now: datetime) -> int:
        return self._connection.execute(
            sa.select(sa.func.count()).select_from(table).where(table.c.expires_at <= times.to_text(now))
        ).scalar_one()
