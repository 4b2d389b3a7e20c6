"""The archive, the capacity guard that fills it (the index schema of F1, "Cache Capacity Guard"), and what to say of an id that is not there."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from kr.errors import UnknownEntry
from kr.frameworks import framework_key
from kr.models import Entry
from kr.store import entries, search
from kr.store.engine import Transaction
from kr.store.entries import to_values
from kr.store.lookup import COLUMNS, KEYS, to_entry, topic_key
from kr.store.sql import EVICTED_FIRST, insert_into
from kr.text import nearest, one_line
from kr.times import from_text, oldest_live, to_text

ARCHIVE_CHANGES = "archive_changes"
"""The key of how often archived rows left."""
_LONGEST_ID = 200
ArchiveReason = Literal["lru", "age", "manual"]


@dataclass(frozen=True, slots=True)
class Archived:
    """An archived row: the entry as it was (its status before), and when and why it left the index."""

    archive_id: int
    entry: Entry
    archived_at: str
    reason: str


_SHARED = ", ".join((*(name for name in COLUMNS if name != "status"), *KEYS))
_ADD = insert_into("archived_entries", (*COLUMNS, *KEYS, "prior_status", "archived_at", "reason"))


def _select(tx: Transaction, rest: str, **parameters: object) -> list[Archived]:
    names = ", ".join((*COLUMNS, "archive_id", "archived_at", "reason", "prior_status"))
    rows = tx.rows(f"SELECT {names} FROM archived_entries {rest}", **parameters)
    return [
        Archived(
            row["archive_id"], to_entry(row, status=row["prior_status"]), row["archived_at"], row["reason"]
        )
        for row in rows
    ]


def since(tx: Transaction, archive_id: int) -> list[Archived]:
    """Return the rows that were archived after one, in the order in which they were archived."""
    return _select(tx, "WHERE archive_id > :after ORDER BY archive_id", after=archive_id)


def browse(
    tx: Transaction, framework: str | None = None, reason: ArchiveReason | None = None
) -> list[Archived]:
    """Return the rows of one framework and one reason, or all, the last archived first."""
    wanted: dict[str, Any] = {}
    if framework is not None:
        wanted["framework_key"] = framework_key(framework)
    if reason is not None:
        wanted["reason"] = reason
    where = " AND ".join(f"{name} = :{name}" for name in wanted)
    return _select(tx, f"{f'WHERE {where}' if where else ''} ORDER BY archive_id DESC", **wanted)


def ids(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.rows("SELECT DISTINCT id FROM archived_entries")]


def count(tx: Transaction) -> int:
    return int(tx.value("SELECT count(*) FROM archived_entries"))


def last_id(tx: Transaction) -> int:
    """Return the number of the row that was archived last; 0 when none is."""
    return int(tx.value("SELECT coalesce(max(archive_id), 0) FROM archived_entries"))


def of_pair(tx: Transaction, framework: str, topic: str) -> list[Archived]:
    """Return the archived rows of a framework and topic, the last archived first."""
    return _select(
        tx,
        "WHERE framework_key = :framework AND topic_key = :topic ORDER BY archive_id DESC",
        framework=framework_key(framework),
        topic=topic_key(topic),
    )


def of_id(tx: Transaction, entry_id: str) -> list[Archived]:
    """Return the archived rows of an id, the last archived first."""
    return _select(tx, "WHERE id = :id ORDER BY archive_id DESC", id=entry_id)


def pop(tx: Transaction, archive_id: int) -> bool:
    """Remove a row that becomes live again; False when it is not there. The export learns of it by ``ARCHIVE_CHANGES``."""
    tx.note(ARCHIVE_CHANGES, str(int(tx.fact(ARCHIVE_CHANGES) or 0) + 1))
    return bool(tx.execute("DELETE FROM archived_entries WHERE archive_id = :id", id=archive_id))


def add(tx: Transaction, entry: Entry, reason: ArchiveReason, at: str) -> None:
    """Put an entry into the archive that was archived elsewhere; ``at`` is stored text."""
    values = {**to_values(entry), "status": "archived", "prior_status": entry.status}
    tx.execute(_ADD, **values, archived_at=at, reason=reason)


def move(tx: Transaction, entry_id: str, reason: ArchiveReason, now: datetime) -> bool:
    """Archive a live entry; False when there is none."""
    return bool(_move(tx, "id = :id", reason, now, id=entry_id))


def enforce_capacity(tx: Transaction, now: datetime, *, keep: str = "") -> tuple[int, int]:
    """Archive what was not accessed for too many UTC days, then evict down to the most entries; ``keep`` is the id that stays.

    Returns how many were archived, and how many evicted. Placeholders go first, then excerpts of installed documentation, then the rest, each the least recently accessed first.
    """
    today = from_text(to_text(now)).date()
    limit = oldest_live(today, tx.store.archive_after_days).isoformat()
    aged = _move(tx, "last_accessed < :limit AND id <> :keep", "age", now, limit=limit, keep=keep)
    too_many = entries.count(tx) - tx.store.max_entries
    evicted = 0
    if too_many > 0:
        oldest = f"id IN (SELECT id FROM entries WHERE id <> :keep ORDER BY {EVICTED_FIRST}, last_accessed, id LIMIT :most)"
        evicted = _move(tx, oldest, "lru", now, keep=keep, most=too_many)
    return aged, evicted


def _move(tx: Transaction, where: str, reason: ArchiveReason, now: datetime, **parameters: object) -> int:
    tx.execute(
        f"INSERT INTO archived_entries ({_SHARED}, status, prior_status, archived_at, reason) "
        f"SELECT {_SHARED}, 'archived', status, :now, :reason FROM entries WHERE {where} ORDER BY last_accessed, id",
        now=to_text(now),
        reason=reason,
        **parameters,
    )
    moved = tx.execute(f"DELETE FROM entries WHERE {where}", **parameters)
    if moved:
        search.prune(tx)
    return moved


def unknown_entry(tx: Transaction, entry_id: str, *, in_archive: bool = False) -> UnknownEntry:
    """Say that no live entry, or none ``in_archive``, has this id, and which come near."""
    shown = f'"{one_line(entry_id, _LONGEST_ID)}"'
    if in_archive and entries.get(tx, entry_id) is not None:
        return UnknownEntry(f"{shown} is not in the archive: it is live; see kr entries show")
    if not in_archive and of_id(tx, entry_id):
        return UnknownEntry(
            f"{shown} is in the archive, not in the index; kr archive restore {entry_id} brings it back"
        )
    what, known = ("archived entry", ids(tx)) if in_archive else ("entry", entries.ids(tx))
    alike = ", ".join(one_line(found, _LONGEST_ID) for found in nearest(entry_id, known, most=3))
    command = "kr archive list" if in_archive else "kr entries list"
    hint = f"nearest: {alike}" if alike else f"{command} shows them"
    return UnknownEntry(f"no {what} has the id {shown}; {hint}")


def unknown_revision(entry_id: str, number: int) -> UnknownEntry:
    return UnknownEntry(f"{entry_id}: there is no revision {number}; see kr entries history {entry_id}")
