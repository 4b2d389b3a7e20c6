"""Writing a report: text, row, revision and search index in one transaction, with the capacity guard; then the file."""

import logging
import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from kr.errors import EntryConflict, ReportUnwritable, StoreConflict, StoreError, UnknownEntry
from kr.frameworks import framework_key
from kr.models import Confidence, Entry, EntryStatus, Origin
from kr.slugs import Name
from kr.store import archive, edits, entries, files, places, revisions, wordings
from kr.store.engine import Store, Transaction
from kr.store.entries import STALE_BASELINE
from kr.store.places import Subject
from kr.store.requests import Need
from kr.text import tag_key
from kr.times import major_key, same_major, to_text

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
        """
        if self.origin == "placeholder":
            return entry.origin == "placeholder"
        if entry.origin != "finding":
            return True
        is_persons = (entry.written_by or "").startswith("person:")
        return self.origin == "finding" and (not is_persons or (self.written_by or "").startswith("person:"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What became of a report. ``lru_evicted`` is -1 when the guard failed; a warning says why.

    ``revision`` is the text's number, and ``replaced`` that of the text whose place it took. ``is_beside``: it took none, and is
    kept as a revision beside the entry's own text.
    """

    entry: Entry
    index_count: int
    lru_evicted: int = 0
    auto_archived: int = 0
    warnings: tuple[str, ...] = ()
    revision: int = 1
    replaced: int | None = None
    is_beside: bool = False


def save(store: Store, draft: Draft, text: str, now: datetime) -> Saved:
    """Write a report; its file is made once the row is committed.

    Raises ``ReportUnwritable``, ``UnknownEntry`` or ``EntryConflict`` for an entry that can't take it, or a ``StoreError``; files and
    database are then as they were.
    """
    text = text.encode(errors="replace").decode()
    if not text.strip():
        raise ReportUnwritable(f"{draft.framework} - {draft.topic}: a report can't be empty")
    with store.files.staged(text) as staged:
        return store.change(lambda tx: _save(tx, draft, text, staged, now))


def _save(tx: Transaction, draft: Draft, text: str, staged: Path, now: datetime) -> Saved:
    at = to_text(now)
    live = _named(tx, draft) if draft.entry_id else entries.of_topic(tx, *_subject(draft))
    if live is not None:
        live = edits.ingest_edit(tx, live)
    sha256 = revisions.keep(tx, text)
    if live is not None and not draft.supersedes(live):
        return _keep_beside(tx, live, draft, sha256, at)
    name = _new_name(tx, draft) if live is None else name_of(tx, live)
    entry = _entry(tx, draft, name, live, sha256=sha256, now=now)
    is_new_text = live is None or entry.revision != live.revision
    if live is not None and is_new_text:
        revisions.add(tx, live, at)
    is_baseline = draft.status == "stale" and draft.origin == "excerpt"
    entries.put(tx, entry, stale_reason=STALE_BASELINE if is_baseline else None)
    if live is not None:
        _keep_wordings(tx, live, entry, draft, at)
    saved = finish(tx, staged, entry, now)
    return replace(saved, replaced=live.revision if live is not None and is_new_text else None)


def finish(tx: Transaction, staged: Path, entry: Entry, now: datetime) -> Saved:
    """Have the file made once the row is committed, and run the guard, whose failure is undone alone (F1, error row 15).

    A file that is not made, whatever the reason, is made by the next one who reads the report.
    """
    target = tx.files.place(entry.path)

    def publish() -> None:
        try:
            files.publish(staged, target)
        except ReportUnwritable as exc:
            log.warning("%s; its text is in the database", exc)

    tx.after_commit.append(publish)
    # A placeholder takes nobody's place: where there is no room it is the first to go itself.
    keep = "" if entry.origin == "placeholder" else entry.id
    try:
        with tx.savepoint():
            evicted = archive.enforce_capacity(tx, now, keep=keep)
    except StoreConflict:
        raise
    except (sqlite3.Error, StoreError) as exc:
        if not tx.connection.in_transaction:
            raise StoreError("the database gave up the transaction") from exc
        log.warning("the capacity guard failed: %s", exc)
        warnings = (f"the capacity guard failed: {exc}",)
        return _saved(tx, entry, lru_evicted=-1, warnings=warnings)
    return _saved(tx, entry, auto_archived=evicted.auto_archived, lru_evicted=evicted.lru_evicted)


def _saved(
    tx: Transaction,
    entry: Entry,
    *,
    auto_archived: int = 0,
    lru_evicted: int = 0,
    warnings: tuple[str, ...] = (),
) -> Saved:
    return Saved(
        entry=entry,
        index_count=entries.count(tx),
        revision=entry.revision,
        auto_archived=auto_archived,
        lru_evicted=lru_evicted,
        warnings=warnings,
    )


def _keep_beside(tx: Transaction, live: Entry, draft: Draft, sha256: str, at: str) -> Saved:
    """Keep a text that does not take the place of the entry's own as a revision beside it; of a placeholder nothing is kept."""
    number = live.revision
    if draft.origin != "placeholder" and sha256 != live.sha256:
        known = {it.sha256: it.revision for it in revisions.of_entry(tx, live.id)}
        number = known.get(sha256) or revisions.next_number(tx, live.id)
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
            revisions.add(tx, beside, at)
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
        last_accessed=entries.next_access(tx, now),
        status=draft.status,
        confidence=draft.confidence,
        origin=draft.origin,
        written_by=draft.written_by,
        sha256=sha256,
        revision=live.revision if live and is_same_text else revisions.next_number(tx, name.id),
        researched_at=draft.researched_at or to_text(now),
        fresh_until=draft.fresh_until,
    )


def _joined(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """Join tags: a renewed entry is still found by those that it had; of tags that compare alike the first stays."""
    tags: dict[str, str] = {}
    for tag in (*old, *new):
        tags.setdefault(tag_key(tag), tag)
    return tuple(tags.values())


def _subject(draft: Draft) -> tuple[str, str, str]:
    return draft.framework, draft.topic, draft.framework_version


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
    subject = Subject(live.framework, live.topic, live.framework_version)
    return Name(live.id, places.free_name(tx, subject).path)


def _new_name(tx: Transaction, draft: Draft) -> Name:
    """Return the name for a new entry: that of the archived one of its framework, topic and major, if that is free."""
    subject = Subject(*_subject(draft))
    for row in archive.of_pair(tx, draft.framework, draft.topic):
        former = row.entry
        if same_major(former.framework_version, draft.framework_version):
            name = Name(former.id, former.path)
            if places.is_free(tx, name, subject):
                return name
            break
    return places.free_name(tx, subject)
