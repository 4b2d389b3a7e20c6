"""What ``kr doctor`` asks of the tables, and changes in them (SPEC 6.5). Nothing is lost here."""

from datetime import datetime
from typing import NamedTuple

from kr.store import times
from kr.store.circuits import Circuits
from kr.store.entries import Entries
from kr.store.free_names import Subject, free_id
from kr.store.hashing import decoded
from kr.store.reports import ReportFiles
from kr.store.revisions import Revisions
from kr.store.rows import Circuit
from kr.store.session import Session
from kr.values import Entry

_OLD_LEASES = "SELECT count(*) FROM leases WHERE expires_at <= :moment"
_OLD_RESERVATIONS = "SELECT count(*) FROM reservations WHERE expires_at <= :moment"
_DROP_LEASES = "DELETE FROM leases WHERE expires_at <= :moment"
_DROP_RESERVATIONS = "DELETE FROM reservations WHERE expires_at <= :moment"
_PATHS = "SELECT path FROM entries UNION SELECT path FROM archived_entries"


class Expired(NamedTuple):
    """How many leases and reservations have outlived their time."""

    leases: int
    reservations: int


class Upkeep:
    """Looks after the tables in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def expired(self, now: datetime) -> Expired:
        """Count what a killed process may have left, and others have not yet swept away."""
        moment = times.to_text(now)
        return Expired(
            *(self._session.value(count, moment=moment) for count in (_OLD_LEASES, _OLD_RESERVATIONS))
        )

    def drop_expired(self, now: datetime) -> Expired:
        """Remove those: they hold nothing any more."""
        moment = times.to_text(now)
        return Expired(
            *(self._session.execute(drop, moment=moment) for drop in (_DROP_LEASES, _DROP_RESERVATIONS))
        )

    def circuits(self) -> list[Circuit]:
        """Return the breakers of all sources that failed lately, by name."""
        return Circuits(self._session).all()

    def known_paths(self) -> set[str]:
        """Return every path that a live or archived report has.

        An earlier text alone is no reason for a file: one that came back after its entry went is an orphan.
        """
        return {row["path"] for row in self._session.rows(_PATHS)}

    def adopt(self, files: ReportFiles, entry: Entry, content: bytes) -> Entry | None:
        """Index a report that no row speaks of, under an id that is free; ``entry.id`` is not looked at.

        None, and no change, when its framework, topic and major version have a live entry already.
        """
        subject = Subject(entry.framework, entry.topic, entry.framework_version)
        if Entries(self._session).of_topic(*subject) is not None:
            return None
        adopted = Entry(
            **entry.fields()
            | {
                "id": free_id(self._session, files, subject, entry.path),
                "sha256": Revisions(self._session).keep(decoded(content)),
            }
        )
        Entries(self._session).put(adopted)
        return adopted

    def repair(self) -> list[str]:
        """Put indexes, triggers, views and derived rows right; see ``kr.store.soundness.repair``."""
        from kr.store.soundness import repair

        return repair(self._session)
