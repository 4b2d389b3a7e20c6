"""The archive and the capacity guard that fills it (SPEC 3.8; seed 002, Cache Capacity Guard)."""

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from kr.store import keys, times
from kr.store.entries import Entries, to_entry
from kr.store.rows import Archived, ArchiveReason
from kr.store.schema import archived_entries, entries
from kr.values import Entry

_COPIED = [column.name for column in entries.columns if column.name != "status"]


class Guarded(NamedTuple):
    """How many entries the guard archived for their age, and evicted for lack of room."""

    auto_archived: int
    lru_evicted: int


class Archive:
    """Reads and fills the archive in the caller's transaction. Only a restored row leaves it (``take``)."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def all(self) -> list[Archived]:
        """Return every archived row, sorted by id, earlier archived first."""
        order = (archived_entries.c.id, archived_entries.c.archive_id)
        return [
            to_archived(row) for row in self._connection.execute(sa.select(archived_entries).order_by(*order))
        ]

    def of_pair(self, framework: str, topic: str) -> list[Archived]:
        """Return the archived rows of a framework and topic, the last archived first. Keys must be filled."""
        pair = keys.pair_of(framework, topic)
        return self._newest(
            sa.and_(archived_entries.c.framework_key == pair[0], archived_entries.c.topic_key == pair[1])
        )

    def of_id(self, entry_id: str) -> list[Archived]:
        """Return the archived rows of an id, the last archived first."""
        return self._newest(archived_entries.c.id == entry_id)

    def last_at(self, path: str) -> Entry | None:
        """Return the entry that was archived last of those whose report stands at a path."""
        found = self._newest(archived_entries.c.path == path)
        return found[0].entry if found else None

    def take(self, archive_id: int) -> bool:
        """Delete one row: its entry goes back to the index. False when there is none."""
        gone = sa.delete(archived_entries).where(archived_entries.c.archive_id == archive_id)
        return bool(self._connection.execute(gone).rowcount)

    def move(self, entry_id: str, reason: ArchiveReason, now: datetime) -> bool:
        """Move one live entry to the archive. False when there is none."""
        return bool(self._move(entries.c.id == entry_id, reason, now))

    def keep_text(self, path: str, sha256: str) -> None:
        """Note the text that a file is about to lose, where it is that of a row that came without a hash.

        It is a live entry's while there is one at the path, and else that of the row that was archived last.
        """
        if self._connection.execute(sa.select(entries.c.id).where(entries.c.path == path).limit(1)).first():
            return
        last = self._connection.execute(
            sa.select(archived_entries.c.archive_id, archived_entries.c.sha256)
            .where(archived_entries.c.path == path)
            .order_by(archived_entries.c.archived_at.desc(), archived_entries.c.archive_id.desc())
            .limit(1)
        ).one_or_none()
        if last is not None and last.sha256 is None:
            row = archived_entries.c.archive_id == last.archive_id
            self._connection.execute(sa.update(archived_entries).where(row).values(sha256=sha256))

    def guard(self, *, keep: str, now: datetime, max_entries: int, archive_after_days: int) -> Guarded:
        """Archive what was not accessed for too many whole UTC days, then evict down to ``max_entries``.

        ``keep`` is the id of the entry just written, which stays. Its cost grows with what it moves alone.
        """
        spared = entries.c.id != keep
        limit = times.days_before(times.from_text(times.to_text(now)).date(), archive_after_days)
        aged = self._move(sa.and_(entries.c.last_accessed < limit, spared), "age", now)
        too_many = Entries(self._connection).count() - max_entries
        if too_many <= 0:
            return Guarded(aged, 0)
        oldest = (
            sa.select(entries.c.id)
            .where(spared)
            .order_by(entries.c.last_accessed, entries.c.id)
            .limit(too_many)
        )
        return Guarded(aged, self._move(entries.c.id.in_(oldest), "lru", now))

    def _newest(self, which: sa.ColumnElement[bool]) -> list[Archived]:
        order = archived_entries.c.archive_id.desc()
        rows = self._connection.execute(sa.select(archived_entries).where(which).order_by(order))
        return [to_archived(row) for row in rows]

    def _move(self, which: sa.ColumnElement[bool], reason: ArchiveReason, now: datetime) -> int:
        rows = sa.select(
            *(entries.c[name] for name in _COPIED),
            sa.literal("archived"),
            entries.c.status,
            sa.literal(times.to_text(now)),
            sa.literal(reason),
        ).where(which)
        targets = [*_COPIED, "status", "prior_status", "archived_at", "reason"]
        ordered = rows.order_by(entries.c.last_accessed, entries.c.id)
        self._connection.execute(sa.insert(archived_entries).from_select(targets, ordered))
        return self._connection.execute(sa.delete(entries).where(which)).rowcount


def to_archived(row: sa.Row[tuple[object, ...]]) -> Archived:
    """Read an archived row, which anybody may have written."""
    return Archived(
        archive_id=row.archive_id,
        entry=to_entry(row, status=row.prior_status),
        archived_at=row.archived_at,
        reason=row.reason,
    )
