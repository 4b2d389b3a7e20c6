"""Writing, removing and restoring reports: text, row, revision and search index in one transaction, with the capacity guard; then the file."""

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kr.errors import EntryConflict, ReportUnwritable, StoreConflict, StoreError, UnknownEntry
from kr.models import PLACEHOLDER, Entry
from kr.slugs import Name
from kr.store import entries, lookup, reports
from kr.store.engine import Store, Transaction
from kr.store.entries import STALE_BASELINE, Archived
from kr.store.reports import pair_of
from kr.text import tag_key
from kr.times import major_key, parse_time, same_major, to_text

log = logging.getLogger(__name__)


def supersedes(new: Entry, old: Entry) -> bool:
    """Tell whether a text takes the place of another: nobody's words are overwritten.

    Only a finding replaces a finding, and only a person's replaces a person's; a placeholder replaces nothing but a placeholder.
    What another session confirmed gives way to no text that names neither a source nor what verified it.
    """
    if new.origin == "placeholder":
        return old.origin == "placeholder"
    if old.origin != "finding":
        return True
    if new.origin != "finding" or (new.written_by or "").startswith("person:"):
        return new.origin == "finding"
    is_confirmed = old.confidence == "high" and new.written_by != old.written_by
    return not (old.written_by or "").startswith("person:") and not (is_confirmed and new.confidence == "low")


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
    revision: int
    replaced: int | None = None
    is_beside: bool = False
    archived: tuple[Archived, ...] = ()


def save(store: Store, draft: Entry, text: str, now: datetime) -> Saved:
    """Write a report. ``draft`` is an entry without a path: its id is that of the live one that the text answers or improves.

    Without an id it is that of its framework, topic and major, or a new one. Status ``stale`` is for a placeholder, or a report on a
    stale baseline; ``researched_at`` None is now. Raises ``ReportUnwritable``, ``UnknownEntry`` or ``EntryConflict`` for an entry that can't take it, or a ``StoreError``; files and
    database are then as they were.
    """
    text = text.encode(errors="replace").decode()
    if not text.strip():
        raise ReportUnwritable(f"{draft.framework} - {draft.topic}: a report can't be empty")
    return store.change(lambda tx: _save(tx, draft, text, now))


def _save(tx: Transaction, draft: Entry, text: str, now: datetime) -> Saved:
    at = to_text(now)
    live = _renewed(tx, draft)
    if live is not None:
        live = reports.ingest_edit(tx, live)
    sha256 = reports.keep(tx, text)
    if live is not None and not supersedes(draft, live):
        return _keep_beside(tx, live, draft, sha256, at)
    name = _new_name(tx, draft) if live is None else name_of(tx, live)
    entry = _entry(tx, draft, name, live, sha256=sha256, now=now)
    if live is None:
        return _put(tx, entry, text, now)
    is_new_text = entry.revision != live.revision
    if is_new_text:
        reports.add_revision(tx, live, at)
    saved = _put(tx, entry, text, now)
    _keep_wordings(tx, live, entry, draft, at)
    return replace(saved, replaced=live.revision if is_new_text else None)


def _renewed(tx: Transaction, draft: Entry) -> Entry | None:
    """Return the entry that a text is for, if it is live. Raises ``UnknownEntry`` or ``EntryConflict`` for one that is named."""
    if not draft.id:
        return entries.of_major(entries.of_pair(tx, draft.framework, draft.topic), draft.framework_version)
    live = _live(tx, draft.id)
    _refuse_other(tx, replace(live, framework_version=draft.framework_version))
    return live


def _put(tx: Transaction, entry: Entry, text: str, now: datetime) -> Saved:
    """Write a row, have its file made, and run the guard, whose failure is undone alone (F1, error row 15)."""
    entries.put(tx, entry)
    tx.write_report(entry.path, text)
    # What goes before all others takes nobody's place: where there is no room it goes itself.
    keep = "" if entry.origin == "placeholder" or entry.is_installed_excerpt else entry.id
    aged, evicted, warnings = 0, -1, tuple[str, ...]()
    tx.execute("SAVEPOINT guard")
    try:
        aged, evicted = entries.enforce_capacity(tx, now, keep=keep)
    except StoreConflict:
        raise
    except (sqlite3.Error, StoreError) as exc:
        if not tx.connection.in_transaction:
            raise StoreError("the database gave up the transaction") from exc
        log.warning("the capacity guard failed: %s", exc)
        warnings = (f"the capacity guard failed: {exc}",)
        tx.execute("ROLLBACK TO guard")
    return replace(_saved(tx, entry), auto_archived=aged, lru_evicted=evicted, warnings=warnings)


def _saved(tx: Transaction, entry: Entry) -> Saved:
    return Saved(entry=entry, index_count=entries.count(tx), revision=entry.revision)


def _keep_beside(tx: Transaction, live: Entry, draft: Entry, sha256: str, at: str) -> Saved:
    """Keep a text that does not take the place of the entry's own as a revision beside it; of a placeholder nothing is kept."""
    number = live.revision
    if draft.origin != "placeholder" and sha256 != live.sha256:
        known = {it["sha256"]: it["revision"] for it in reports.revisions(tx, live.id)}
        number = known.get(sha256) or reports.next_revision(tx, live.id)
        if sha256 not in known:
            place: dict[str, Any] = {
                name: getattr(live, name) for name in ("id", "path", "framework", "topic")
            }
            beside = replace(draft, **place, sha256=sha256, revision=number, researched_at=at)
            reports.add_revision(tx, beside, at)
    return replace(_saved(tx, live), revision=number, is_beside=True)


def _keep_wordings(tx: Transaction, old: Entry, entry: Entry, draft: Entry, at: str) -> None:
    """Keep how the renewed entry was asked for before, and how this text's writer asks, as known wordings."""
    before = old.researched_at or old.created
    for of, when, is_proved in ((old, before, True), (draft, at, draft.origin == "finding")):
        if of.question is not None:
            asked = {"at": when, "topic": of.topic, "tags": of.tags, "question": of.question}
            entries.keep_wording(tx, entry, asked | {"proved": is_proved})


def _entry(
    tx: Transaction, draft: Entry, name: Name, live: Entry | None, *, sha256: str, now: datetime
) -> Entry:
    revision = live.revision if live and live.sha256 == sha256 else reports.next_revision(tx, name.id)
    entry = replace(
        draft,
        id=name.id,
        path=name.path,
        created=to_text(now),
        last_accessed=lookup.next_access(tx, now),
        stale_reason=STALE_BASELINE if draft.status == "stale" and draft.origin == "excerpt" else None,
        sha256=sha256,
        revision=revision,
        researched_at=draft.researched_at or to_text(now),
    )
    # A renewed entry is still found by the tags that it had; of those that compare alike the first stays.
    tags = dict[str, str]()
    for tag in (*(live.tags if live else ()), *draft.tags):
        tags.setdefault(tag_key(tag), tag)
    entry = replace(entry, tags=tuple(tags.values()))
    if live is None:
        return entry
    question = live.question if draft.id and live.question is not None else draft.question
    return replace(entry, framework=live.framework, topic=live.topic, created=live.created, question=question)


def name_of(tx: Transaction, live: Entry) -> Name:
    """Return where a live entry's text goes: its own path, unless something else stands there."""
    if not tx.files.is_blocked(live.path):
        return Name(live.id, live.path)
    return Name(live.id, reports.free_name(tx, live.framework, live.topic, live.framework_version).path)


def _new_name(tx: Transaction, draft: Entry) -> Name:
    """Return the name for a new entry: that of the archived one of its framework, topic and major, if that is free."""
    pair = pair_of(draft.framework, draft.topic)
    for row in entries.archived(tx, framework_key=pair[0], topic_key=pair[1]):
        if same_major(row.entry.framework_version, draft.framework_version):
            name = Name(row.entry.id, row.entry.path)
            if reports.is_free(tx, name, pair):
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
        raise entries.unknown_entry(tx, entry_id)
    return entry


def _archive(tx: Transaction, entry: Entry, now: datetime) -> Archived:
    reports.ingest_edit(tx, entry)  # what a person wrote into its file goes with it
    entries.archive(tx, entry.id, "manual", now)
    return entries.archived(tx, id=entry.id)[0]


def restore_archived(store: Store, archived: Archived, now: datetime) -> Saved:
    """Make an archived entry live again, with its own text; a live one of its id or topic goes to the archive.

    Raises ``UnknownEntry`` where it left the archive meanwhile, ``EntryConflict`` when its text is lost, ``ReportUnwritable``.
    """

    def write(tx: Transaction) -> Saved:
        entry = archived.entry
        if not entries.unarchive(tx, archived.archive_id):
            raise entries.unknown_entry(tx, entry.id, in_archive=True)
        in_the_way = {it.id: it for it in (*entries.find(tx, id=entry.id), *_same_major(tx, entry))}
        moved = tuple(_archive(tx, it, now) for it in in_the_way.values())
        # What stands at its path is its text too, if that is no other entry's.
        text = lookup.text_of(tx, entry.sha256) or reports.edit_at(tx, entry.path, None)
        if text is None:
            raise EntryConflict(
                f"{entry.id}: its text is lost, it is neither in the database nor at {entry.path}; "
                "nothing was changed, ask kr research about it again"
            )
        about = (entry.framework, entry.topic, entry.framework_version)
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
        current = reports.ingest_edit(tx, _live(tx, entry_id))
        found = next((it for it in reports.revisions(tx, entry_id) if it["revision"] == number), None)
        text = lookup.text_of(tx, found["sha256"]) if found is not None else None
        if found is None or text is None:
            raise unknown_revision(entry_id, number)
        entry = replace(
            current,
            path=name_of(tx, current).path,
            framework_version=found["framework_version"] or current.framework_version,
            confidence=found["confidence"] or "low",
            origin=found["origin"] or "imported",
            **{name: found[name] for name in ("researched_at", "written_by", "revision", "fresh_until")},
        )
        _refuse_other(tx, entry)
        reports.add_revision(tx, current, to_text(now))
        entries.doubt_wordings(tx, entry_id)  # somebody confirmed them for the other text
        restored = _put_back(tx, entry, text, now, is_baseline=found["status"] == "stale")
        return replace(restored, replaced=current.revision)

    return store.change(write)


def unknown_revision(entry_id: str, number: int) -> UnknownEntry:
    return UnknownEntry(f"{entry_id}: there is no revision {number}; see kr entries history {entry_id}")


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
    return _put(tx, entry, text, now)


def _refuse_other(tx: Transaction, entry: Entry) -> None:
    """Raise ``EntryConflict`` where another live entry is the one of an entry's topic and major version."""
    for other in _same_major(tx, entry):
        if other.id != entry.id:
            raise EntryConflict(
                f"{other.id} is the entry of this topic for {entry.framework_version}: name that one"
            )


def _same_major(tx: Transaction, entry: Entry) -> list[Entry]:
    same = entries.of_pair(tx, entry.framework, entry.topic)
    return [it for it in same if major_key(it.framework_version) == major_key(entry.framework_version)]
