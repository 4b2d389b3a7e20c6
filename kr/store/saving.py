"""Writing one report with its row: the old pair or the new pair, whatever happens in between (SPEC 3.8)."""

import logging
import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kr import naming
from kr.errors import ReportUnwritable
from kr.freshness import same_major
from kr.store import times
from kr.store.database import Database, Transaction
from kr.store.free_names import Subject, free_name, is_free
from kr.store.hashing import decoded, digest
from kr.store.reports import Replacement, ReportFiles
from kr.store.rows import Draft, Need, Saved
from kr.store.session import Session
from kr.store.unit import Unit
from kr.values import Entry

log = logging.getLogger(__name__)

_STANDS = "SELECT 1 FROM entries WHERE id = :id AND sha256 = :sha256 AND last_accessed = :last_accessed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The guard's: entries at most, and whole days without an access."""

    max_entries: int = 200
    archive_after_days: int = 60


class _Place(NamedTuple):
    """Where a report goes. ``live`` is the entry that it renews, ``former`` that or the archived one."""

    name: naming.Name
    live: Entry | None
    former: Entry | None


def save(
    database: Database, files: ReportFiles, draft: Draft, text: str, *, limits: Limits, now: datetime
) -> Saved:
    """Write the report and its row, then run the guard.

    Raises ``ReportUnwritable`` or a ``StoreError``; files and database are then as they were.
    """
    content = text.encode(errors="replace")
    if not content.strip():
        raise ReportUnwritable(f"{draft.framework} - {draft.topic}: a report can't be empty")
    with files.staged(content) as staged, ExitStack() as opened:
        with database.write() as transaction:
            files.sweep()
            unit = Unit(transaction.session)
            unit.entries.fill_keys()
            place = _place(unit, files, draft)
            target = opened.enter_context(files.replacement(place.name.path))
            entry = _write(unit, target, place, draft, content, now=now)
            saved = swap(transaction, unit, target, staged, entry, limits=limits, now=now)
        target.sync()
    return saved


def swap(
    transaction: Transaction,
    unit: Unit,
    target: Replacement,
    staged: str,
    entry: Entry,
    *,
    limits: Limits,
    now: datetime,
) -> Saved:
    """Run the guard, then put the staged text of ``entry``, whose row is written, in its place.

    The last step of a transaction: if that fails to commit, the old file comes back.
    """
    saved = _guard(transaction, unit, entry, limits, now)
    transaction.compensations.append(lambda seen: _undo(seen, target, entry))
    transaction.afterwards.append(target.finish)
    target.run(staged, entry.sha256 or "")
    return saved


def _write(
    unit: Unit, target: Replacement, place: _Place, draft: Draft, content: bytes, *, now: datetime
) -> Entry:
    target.heal(place.former.sha256 if place.former is not None else None)
    entry = _entry(unit, place, draft, unit.revisions.keep(decoded(content)), now)
    on_disk = target.current()
    unit.revisions.replace(entry, place.former, on_disk, now)
    if on_disk:
        unit.archive.keep_text(entry.path, digest(decoded(on_disk)))
    unit.entries.put(entry)
    old = place.live
    if old is not None and old.question is not None:
        need = Need(old.topic, old.tags, old.question)
        unit.wordings.keep(entry, need, at=old.researched_at or old.created)
    said = (Need(it.topic, it.tags, it.question) for it in unit.wordings.of([entry.id]).get(entry.id, ()))
    unit.terms.make(entry, said, content.decode(errors="replace"))
    return entry


def _undo(seen: Session, target: Replacement, entry: Entry) -> None:
    """Bring the old file back, unless what went wrong (a signal, say) struck after the commit."""
    if seen.row(_STANDS, id=entry.id, sha256=entry.sha256, last_accessed=entry.last_accessed) is not None:
        target.finish()
    else:
        target.roll_back()


def _guard(transaction: Transaction, unit: Unit, entry: Entry, limits: Limits, now: datetime) -> Saved:
    """Run the guard so that its failure is undone alone (seed 000, error row 15)."""
    try:
        with transaction.session.savepoint():
            moved = unit.archive.guard(
                keep=entry.id,
                now=now,
                max_entries=limits.max_entries,
                archive_after_days=limits.archive_after_days,
            )
    except sqlite3.Error as exc:
        transaction.require_alive()
        warning = f"the capacity guard failed: {exc}"
        log.warning("%s", warning)
        return Saved(entry=entry, index_count=unit.entries.count(), lru_evicted=-1, warnings=(warning,))
    return Saved(
        entry=entry,
        index_count=unit.entries.count(),
        lru_evicted=moved.lru_evicted,
        auto_archived=moved.auto_archived,
    )


def _entry(unit: Unit, place: _Place, draft: Draft, sha256: str, now: datetime) -> Entry:
    live = place.live
    moment = times.to_text(now)
    return Entry(
        id=place.name.id,
        framework=live.framework if live else draft.framework,
        framework_version=draft.framework_version,
        topic=live.topic if live else draft.topic,
        tags=_joined(live.tags if live else (), draft.tags),
        path=place.name.path,
        created=live.created if live else moment,
        last_accessed=unit.entries.next_access(now),
        status=draft.status,
        confidence=draft.confidence,
        sha256=sha256,
        researched_at=draft.researched_at or moment,
        fresh_until=draft.fresh_until,
        origin=draft.origin,
        question=draft.question,
        configured_sources=draft.configured_sources,
    )


def _joined(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """A renewed entry is still found by the tags that it had; of tags that compare alike the first stays."""
    tags: dict[str, str] = {}
    for tag in (*old, *new):
        tags.setdefault(naming.tag_key(tag), tag)
    return tuple(tags.values())


def _place(unit: Unit, files: ReportFiles, draft: Draft) -> _Place:
    subject = Subject(draft.framework, draft.topic, draft.framework_version)
    live = unit.entries.of_topic(*subject)
    archived = (row.entry for row in unit.archive.of_pair(draft.framework, draft.topic))
    former = live or next(
        (entry for entry in archived if same_major(entry.framework_version, subject.version)), None
    )
    own_id = live.id if live is not None else None
    if former is not None:
        name = naming.Name(former.id, former.path)
        if is_free(unit.session, files, name, subject, own_id=own_id):
            return _Place(name, live, former)
    name = free_name(unit.session, files, subject)
    # Only the path of a live entry can be in the way: its id is its own.
    return _Place(name if live is None else name._replace(id=live.id), live, live)
