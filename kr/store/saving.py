"""Writing, removing and restoring reports: text, row, revision and search index in one transaction, with the capacity guard; then the file."""

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import get_args

from kr.errors import EntryConflict, ReportUnwritable, StoreConflict, StoreError, UnknownEntry
from kr.frameworks import framework_key
from kr.models import PLACEHOLDER, Confidence, Entry, EntryStatus, Origin
from kr.slugs import Name
from kr.store import archive, entries, lookup, reports, wordings
from kr.store.archive import Archived
from kr.store.engine import Store, Transaction
from kr.store.entries import STALE_BASELINE
from kr.store.reports import pair_of
from kr.store.requests import Need
from kr.text import digest, tag_key
from kr.times import major_key, parse_time, same_major, to_text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a report is about, before it has an id and a path. Texts are non-empty."""

    framework: str
    framework_version: str
    topic: str
    tags: tuple[str, ...]
    confidence: Confidence
    status: EntryStatus = "fresh"
    """``stale``: a placeholder, or a report on a stale baseline."""
    origin: Origin = "excerpt"
    fresh_until: str | None = None
    researched_at: str | None = None
    """When the text was researched; None is now."""
    question: str | None = None
    written_by: str | None = None
    entry_id: str | None = None
    """The live entry that the text answers or improves; None: that of its framework, topic and major, or a new one."""

    def supersedes(self, entry: Entry) -> bool:
        """Whether the text takes the place of an entry's: nobody's words are overwritten.

        Only a finding replaces a finding, and only a person's replaces a person's; a placeholder replaces nothing but a placeholder.
        What another session confirmed gives way to no text that names neither a source nor what verified it.
        """
        if self.origin == "placeholder":
            return entry.origin == "placeholder"
        if entry.origin != "finding":
            return True
        if self.origin != "finding" or (self.written_by or "").startswith("person:"):
            return self.origin == "finding"
        is_confirmed = entry.confidence == "high" and self.written_by != entry.written_by
        return not (entry.written_by or "").startswith("person:") and not (
            is_confirmed and self.confidence == "low"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What became of a report. ``lru_evicted`` is -1 when the guard failed; a warning says why.

    ``revision`` is the text's number, and ``replaced`` that of the text whose place it took. ``is_beside``: it took none, and is
    kept as a revision beside the entry's own text. ``archived`` are the entries that gave way to a restored one.
    """

    entry: Entry
    index_count: int
    lru_evicted: int = 0
    auto_archived: int = 0
    warnings: tuple[str, ...] = ()
    revision: int = 1
    replaced: int | None = None
    is_beside: bool = False
    archived: tuple[Archived, ...] = ()


def save(store: Store, draft: Draft, text: str, now: datetime) -> Saved:
    """Write a report.

    Raises ``ReportUnwritable``, ``UnknownEntry`` or ``EntryConflict`` for an entry that can't take it, or a ``StoreError``; files and
    database are then as they were.
    """
    text = text.encode(errors="replace").decode()
    if not text.strip():
        raise ReportUnwritable(f"{draft.framework} - {draft.topic}: a report can't be empty")
    return store.change(lambda tx: _save(tx, draft, text, now))


def _save(tx: Transaction, draft: Draft, text: str, now: datetime) -> Saved:
    at = to_text(now)
    live = (
        _named(tx, draft)
        if draft.entry_id
        else entries.of_topic(tx, draft.framework, draft.topic, draft.framework_version)
    )
    if live is not None:
        live = reports.ingest_edit(tx, live)
    sha256 = reports.keep(tx, text)
    if live is not None and not draft.supersedes(live):
        return _keep_beside(tx, live, draft, sha256, at)
    name = _new_name(tx, draft) if live is None else name_of(tx, live)
    entry = _entry(tx, draft, name, live, sha256=sha256, now=now)
    is_new_text = live is None or entry.revision != live.revision
    if live is not None and is_new_text:
        reports.add_revision(tx, live, at)
    entries.put(tx, entry)
    if live is not None:
        _keep_wordings(tx, live, entry, draft, at)
    saved = _finish(tx, entry, text, now)
    return replace(saved, replaced=live.revision if live is not None and is_new_text else None)


def _finish(tx: Transaction, entry: Entry, text: str, now: datetime) -> Saved:
    """Have the file made, and run the guard, whose failure is undone alone (F1, error row 15)."""
    tx.write_report(entry.path, text)
    # A placeholder takes nobody's place: where there is no room it is the first to go itself.
    keep = "" if entry.origin == "placeholder" else entry.id
    try:
        with tx.savepoint():
            aged, evicted = archive.enforce_capacity(tx, now, keep=keep)
    except StoreConflict:
        raise
    except (sqlite3.Error, StoreError) as exc:
        if not tx.connection.in_transaction:
            raise StoreError("the database gave up the transaction") from exc
        log.warning("the capacity guard failed: %s", exc)
        return replace(_saved(tx, entry), lru_evicted=-1, warnings=(f"the capacity guard failed: {exc}",))
    return replace(_saved(tx, entry), auto_archived=aged, lru_evicted=evicted)


def _saved(tx: Transaction, entry: Entry) -> Saved:
    return Saved(entry=entry, index_count=entries.count(tx), revision=entry.revision)


def _keep_beside(tx: Transaction, live: Entry, draft: Draft, sha256: str, at: str) -> Saved:
    """Keep a text that does not take the place of the entry's own as a revision beside it; of a placeholder nothing is kept."""
    number = live.revision
    if draft.origin != "placeholder" and sha256 != live.sha256:
        known = {it.sha256: it.revision for it in reports.revisions(tx, live.id)}
        number = known.get(sha256) or reports.next_revision(tx, live.id)
        if sha256 not in known:
            beside = replace(
                live,
                framework_version=draft.framework_version,
                confidence=draft.confidence,
                origin=draft.origin,
                written_by=draft.written_by,
                fresh_until=draft.fresh_until,
                sha256=sha256,
                revision=number,
                researched_at=at,
            )
            reports.add_revision(tx, beside, at)
    return replace(_saved(tx, live), revision=number, is_beside=True)


def _keep_wordings(tx: Transaction, old: Entry, entry: Entry, draft: Draft, at: str) -> None:
    """Keep how the renewed entry was asked for before, and how this text's writer asks, as known wordings."""
    if old.question is not None:
        own = Need(old.topic, old.tags, old.question)
        wordings.keep(tx, entry, own, at=old.researched_at or old.created, proved=True)
    if draft.question is not None:
        need = Need(draft.topic, draft.tags, draft.question)
        wordings.keep(tx, entry, need, at=at, proved=draft.origin == "finding")


def _entry(
    tx: Transaction, draft: Draft, name: Name, live: Entry | None, *, sha256: str, now: datetime
) -> Entry:
    is_same_text = live is not None and live.sha256 == sha256
    keeps_question = live is not None and draft.entry_id is not None and live.question is not None
    return Entry(
        id=name.id,
        path=name.path,
        framework=live.framework if live else draft.framework,
        framework_version=draft.framework_version,
        topic=live.topic if live else draft.topic,
        question=live.question if live and keeps_question else draft.question,
        tags=_joined(live.tags if live else (), draft.tags),
        created=live.created if live else to_text(now),
        last_accessed=lookup.next_access(tx, now),
        status=draft.status,
        stale_reason=STALE_BASELINE if draft.status == "stale" and draft.origin == "excerpt" else None,
        confidence=draft.confidence,
        origin=draft.origin,
        written_by=draft.written_by,
        sha256=sha256,
        revision=live.revision if live and is_same_text else reports.next_revision(tx, name.id),
        researched_at=draft.researched_at or to_text(now),
        fresh_until=draft.fresh_until,
    )


def _joined(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """Join tags: a renewed entry is still found by those that it had; of tags that compare alike the first stays."""
    tags: dict[str, str] = {}
    for tag in (*old, *new):
        tags.setdefault(tag_key(tag), tag)
    return tuple(tags.values())


def _named(tx: Transaction, draft: Draft) -> Entry:
    """Return the entry that a finding names. Raises ``UnknownEntry``, also for one of another framework, or ``EntryConflict``."""
    live = entries.get(tx, draft.entry_id or "")
    if live is None:
        raise archive.unknown_entry(tx, draft.entry_id or "")
    if framework_key(live.framework) != framework_key(draft.framework):
        raise UnknownEntry(f"{live.id} is about {live.framework}, not about {draft.framework}")
    for other in entries.of_pair(tx, live.framework, live.topic):
        is_of_major = major_key(other.framework_version) == major_key(draft.framework_version)
        if is_of_major and other.id != live.id:
            raise EntryConflict(
                f"{other.id} is the entry of this topic for {draft.framework_version}: name that one"
            )
    return live


def name_of(tx: Transaction, live: Entry) -> Name:
    """Return where a live entry's text goes: its own path, unless something else stands there."""
    if not tx.files.is_blocked(live.path):
        return Name(live.id, live.path)
    return Name(live.id, reports.free_name(tx, live.framework, live.topic, live.framework_version).path)


def _new_name(tx: Transaction, draft: Draft) -> Name:
    """Return the name for a new entry: that of the archived one of its framework, topic and major, if that is free."""
    for row in archive.of_pair(tx, draft.framework, draft.topic):
        former = row.entry
        if same_major(former.framework_version, draft.framework_version):
            name = Name(former.id, former.path)
            if reports.is_free(tx, name, pair_of(draft.framework, draft.topic)):
                return name
            break
    return reports.free_name(tx, draft.framework, draft.topic, draft.framework_version)


def remove(store: Store, entry_ids: Sequence[str], now: datetime) -> list[Archived]:
    """Move live entries to the archive by hand, each with the text that it last showed; all or none. Raises ``UnknownEntry``."""

    def write(tx: Transaction) -> list[Archived]:
        return [_archive(tx, _live(tx, entry_id), now) for entry_id in dict.fromkeys(entry_ids)]

    return store.change(write)


def _live(tx: Transaction, entry_id: str) -> Entry:
    entry = entries.get(tx, entry_id)
    if entry is None:
        raise archive.unknown_entry(tx, entry_id)
    return entry


def restore_archived(store: Store, archived: Archived, now: datetime, *, replace_live: bool = False) -> Saved:
    """Make an archived entry live again, with its own text. Raises ``UnknownEntry`` where it left the archive meanwhile.

    Raises ``EntryConflict`` when its text is lost, or its id or topic is live (``replace_live``: archived first); ``ReportUnwritable``.
    """

    def write(tx: Transaction) -> Saved:
        entry = archived.entry
        if not archive.pop(tx, archived.archive_id):
            raise archive.unknown_entry(tx, entry.id, in_archive=True)
        same = [entries.get(tx, entry.id), *_of_same_major(tx, entry)]
        live = list({it.id: it for it in same if it is not None}.values())
        if live and not replace_live:
            what = "this id" if live[0].id == entry.id else f"its framework and topic, as {live[0].id},"
            raise EntryConflict(
                f"{entry.id}: {what} is live; --replace archives it first and then restores this one"
            )
        moved = tuple(_archive(tx, it, now) for it in live)
        text, about = _own_text(tx, entry), (entry.framework, entry.topic, entry.framework_version)
        if not reports.is_free(tx, Name(entry.id, entry.path), pair_of(*about[:2]), text):
            entry = replace(entry, path=reports.free_name(tx, *about).path)
        is_baseline = entry.stale_reason == STALE_BASELINE
        return replace(_put_back(tx, entry, text, now, is_baseline=is_baseline), archived=moved)

    return store.change(write)


def restore_revision(store: Store, entry_id: str, number: int, now: datetime) -> Saved:
    """Bring an earlier text of a live entry back with its version, confidence, writer and time. Raises ``UnknownEntry``.

    Raises ``EntryConflict`` when another live entry is the one of that version.
    """

    def write(tx: Transaction) -> Saved:
        current = _live(tx, entry_id)
        revision = reports.revision(tx, entry_id, number)
        text = reports.text_of(tx, revision.sha256) if revision is not None else None
        if revision is None or text is None:
            raise archive.unknown_revision(entry_id, number)
        current = reports.ingest_edit(tx, current)
        confidence: Confidence = next((it for it in get_args(Confidence) if it == revision.confidence), "low")
        origin: Origin = next((it for it in get_args(Origin) if it == revision.origin), "imported")
        entry = replace(
            current,
            path=name_of(tx, current).path,
            framework_version=revision.framework_version or current.framework_version,
            confidence=confidence,
            researched_at=revision.researched_at,
            origin=origin,
            written_by=revision.written_by,
            revision=revision.revision,
            fresh_until=revision.fresh_until,
        )
        if others := [it for it in _of_same_major(tx, entry) if it.id != entry_id]:
            raise EntryConflict(f"{others[0].id} is the entry of this topic for {entry.framework_version}")
        reports.add_revision(tx, current, to_text(now))
        wordings.doubt(tx, entry_id)  # somebody confirmed them for the other text
        restored = _put_back(tx, entry, text, now, is_baseline=revision.status == "stale")
        return replace(restored, replaced=current.revision)

    return store.change(write)


def _put_back(tx: Transaction, entry: Entry, text: str, now: datetime, *, is_baseline: bool) -> Saved:
    """Make an entry live with a text; ``is_baseline``: an older one that stood in for research."""
    end = parse_time(entry.fresh_until or "")
    stale_reason = None
    if is_baseline:
        stale_reason = STALE_BASELINE
    elif entry.origin == "placeholder":
        stale_reason = PLACEHOLDER
    elif end is not None and now >= end:
        stale_reason = f"fresh until {entry.fresh_until} only"
    entry = replace(
        entry,
        sha256=reports.keep(tx, text),
        last_accessed=lookup.next_access(tx, now),
        status="fresh" if stale_reason is None else "stale",
        stale_reason=stale_reason,
        stale_major=None,
    )
    entries.put(tx, entry)
    return _finish(tx, entry, text, now)


def _archive(tx: Transaction, entry: Entry, now: datetime) -> Archived:
    """Move an entry to the archive; what a person wrote into its file goes with it."""
    reports.ingest_edit(tx, entry)
    archive.move(tx, entry.id, "manual", now)
    return archive.of_id(tx, entry.id)[0]


def _own_text(tx: Transaction, entry: Entry) -> str:
    """Return an entry's text by its hash, or what still stands at its path if that is no other entry's text."""
    own = reports.text_of(tx, entry.sha256)
    if own is not None:
        return own
    on_disk = tx.files.read_text(entry.path)
    is_known = reports.text_of(tx, digest(on_disk)) is not None
    if on_disk.strip() and (entry.sha256 == digest(on_disk) or not is_known):
        return on_disk
    raise EntryConflict(
        f"{entry.id}: its text is lost, it is neither in the database nor at {entry.path}; "
        "nothing was changed, ask kr research about it again"
    )


def _of_same_major(tx: Transaction, entry: Entry) -> list[Entry]:
    same = entries.of_pair(tx, entry.framework, entry.topic)
    return [it for it in same if major_key(it.framework_version) == major_key(entry.framework_version)]
