"""Texts of reports, and how they become entries: text, row, revision and search index in one transaction, then the file.

The text in the database is the report. A file that is missing, torn, or holds an earlier text of kr's is made again; what somebody else
wrote into it becomes a finding, and the text before a revision, or it waits for a person.
"""

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kr.errors import EntryConflict, ReportUnwritable, StoreConflict, StoreError, UnknownEntry
from kr.models import PLACEHOLDER, Entry
from kr.slugs import Name
from kr.store import entries, lookup
from kr.store.engine import Row, Store, Transaction
from kr.store.entries import STALE_BASELINE, Archived, free_name, is_free, pair_of
from kr.store.lookup import text_in_file, text_of
from kr.text import digest, tag_key
from kr.times import major_key, parse_time, to_text

log = logging.getLogger(__name__)

HELD_FILE = "file-"
"""How the id of what waits begins when it stood in an edited report file."""
_SYNC_TIMEOUT = 0.2
"""Seconds that a reader waits for writers, to bring file and row together; the next reader tries again."""
_KEPT = "revision sha256 path framework_version confidence origin written_by fresh_until".split()
"""What a revision has of the entry."""


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


# --- texts and revisions


def keep(tx: Transaction, text: str) -> str:
    """Store a text unless it is there already; return its hash. No text is ever deleted."""
    hashed = digest(text)
    tx.insert("report_texts", {"sha256": hashed, "text": text}, "sha256")
    return hashed


def revisions(tx: Transaction, entry_id: str) -> list[Row]:
    """Return an entry's revisions, oldest first; those of an entry that is gone too. What came from elsewhere may lack much."""
    return tx.rows("SELECT * FROM revisions WHERE entry_id = :id ORDER BY revision", id=entry_id)


def next_revision(tx: Transaction, entry_id: str) -> int:
    """Return the number of the next text of an id: one that no text had, and nobody rated."""
    of = {"revisions": "entry_id", "ratings": "entry_id", "entries": "id", "archived_entries": "id"}
    each = (f"SELECT revision FROM {table} WHERE {name} = :id" for table, name in of.items())
    known = " UNION ALL ".join(each)
    return int(tx.value(f"SELECT coalesce(max(revision), 0) + 1 FROM ({known}) AS known", id=entry_id))


def add_revision(tx: Transaction, entry: Entry, at: str) -> None:
    """Keep an entry's text as the revision of its number: another one takes its place, or it stands beside the current one."""
    if text_of(tx, entry.sha256) is None:
        return
    is_baseline = entry.status == "stale" and entry.stale_reason == STALE_BASELINE
    framework, topic = pair_of(entry.framework, entry.topic)
    kept = {name: getattr(entry, name) for name in _KEPT} | {
        "entry_id": entry.id,
        "framework_key": framework,
        "topic_key": topic,
        "researched_at": entry.researched_at or entry.created,
        "status": "stale" if is_baseline else None,
        "replaced_at": at,
    }
    tx.insert("revisions", kept, "entry_id", "revision")


# --- the file of a report


def read_report(store: Store, entry: Entry) -> str | None:
    """Return a report's text; None when it is nowhere. An edit is taken in first, a missing file is made.

    Where the file can't be brought together with the row just now, the text is returned all the same.
    """
    with store.read() as tx:
        found = text_in_file(tx, entry)
    if found is not None:
        return found
    try:
        found = store.change(lambda tx: _sync_file(tx, entry.id), timeout=_SYNC_TIMEOUT)
    except (StoreError, ReportUnwritable) as exc:
        log.warning("%s: its file is left as it is: %s", entry.path, exc)
    if found is None:
        with store.read() as tx:
            found = text_of(tx, entry.sha256) or tx.files.read_text(entry.path)
    return found if found.strip() else None


def _sync_file(tx: Transaction, entry_id: str) -> str | None:
    """Bring row and file of a live entry together in a write; return the text, None when it is nowhere. Raises ``ReportUnwritable``."""
    row = entries.get(tx, entry_id)
    if row is None:
        return None
    entry = ingest_edit(tx, row)
    text = text_of(tx, entry.sha256)
    is_left = tx.files.is_blocked(entry.path) or _has_conflict(entries.edit_at(tx, entry.path, entry.sha256))
    if text is not None and text_in_file(tx, entry) is None and not is_left:
        tx.write_report(entry.path, text)
    return text


def drop_lost(store: Store, entry: Entry) -> None:
    """Remove an entry whose text is nowhere: not one that can't be read just now, nor of a folder that is not mounted."""
    if store.is_shared:  # another machine's folder may have its file
        return
    with store.write() as tx:
        row = entries.get(tx, entry.id)
        if row is not None and text_of(tx, row.sha256) is None and tx.files.state(row.path) == "absent":
            for table, name in (
                ("wordings", "entry_id"),
                ("entries", "id"),
            ):  # it may become another one's id
                tx.execute(f"DELETE FROM {table} WHERE {name} = :id", id=entry.id)
            lookup.prune(tx)


def _has_conflict(edit: str | None) -> bool:
    """Tell whether git left conflict markers in an edited file, which nobody may read as a text until they are gone."""
    lines = (edit or "").splitlines()
    return all(any(line.startswith(mark) for line in lines) for mark in ("<<<<<<< ", ">>>>>>> "))


def ingest_edit(tx: Transaction, entry: Entry) -> Entry:
    """Take in as a finding what somebody wrote into a live entry's file; return the entry as it is then.

    What must wait for a person goes into the quarantine, and the entry stays as it was.
    """
    text = entries.edit_at(tx, entry.path, entry.sha256)
    if text is None:
        return entry
    if _has_conflict(text):
        log.warning("%s has the conflict markers of git, and is left as it is: take one side", entry.path)
        return entry
    from kr.guard import clean, mask_secrets, reasons_to_hold  # heavy: its patterns, for an edit alone
    from kr.report import read_confidence  # heavy: for an edit alone

    changed_at = tx.files.folder.joinpath(entry.path).stat().st_mtime
    at = to_text(datetime.fromtimestamp(int(changed_at), UTC))
    if entry.sha256 is None:  # it came without a text: this is its own
        edited = replace(entry, sha256=keep(tx, text))
        entries.put(tx, edited)
        return edited
    written = mask_secrets(clean(text))
    if reasons := reasons_to_hold(written):
        _hold(tx, entry, written, reasons, at)
        return entry
    if not written.strip():
        return entry
    edited = replace(
        entry,
        sha256=keep(tx, written),
        revision=next_revision(tx, entry.id),
        origin="finding",
        written_by="file",
        status="fresh",
        stale_major=None,
        stale_reason=None,
        fresh_until=None,
        researched_at=at,
        confidence="low" if (read_confidence(written) or entry.confidence) == "low" else "medium",
    )
    add_revision(tx, entry, at)
    entries.put(tx, edited)
    return edited


def _hold(tx: Transaction, entry: Entry, text: str, reasons: tuple[str, ...], at: str) -> None:
    about = {"framework": entry.framework, "question": entry.question or entry.topic}
    request = {
        **about,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "tags": list(entry.tags),
        "entry": entry.id,
        "answer": text,
    }
    held = {"id": f"{HELD_FILE}{digest(text)[:12]}", "at": at, "reasons": reasons, "written_by": "file"}
    entries.quarantine(tx, {**held, **about, "request": request})


# --- saving


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


def save(store: Store, draft: Entry, text: str, now: datetime) -> Saved:
    """Write a report. ``draft`` is an entry without a path: its id is that of the live one that the text answers or improves.

    Without an id it is that of its framework, topic and major, or a new one. Status ``stale`` is for a placeholder, or a report on a
    stale baseline; ``researched_at`` None is now. Raises ``ReportUnwritable``, ``UnknownEntry``, a ``StoreError``, or ``EntryConflict``
    for an entry that can't take it; files and database are then as they were.
    """
    text = text.encode(errors="replace").decode()
    if not text.strip():
        raise ReportUnwritable(f"{draft.framework} - {draft.topic}: a report can't be empty")
    return store.change(lambda tx: _save(tx, draft, text, now))


def _save(tx: Transaction, draft: Entry, text: str, now: datetime) -> Saved:
    at = to_text(now)
    live = _renewed(tx, draft)
    if live is not None:
        live = ingest_edit(tx, live)
    sha256 = keep(tx, text)
    if live is not None and not supersedes(draft, live):
        return _keep_beside(tx, live, draft, sha256, at)
    if live is None:
        name = free_name(tx, draft.framework, draft.topic, draft.framework_version)
        return _put(tx, _entry(tx, draft, name, None, sha256=sha256, now=now), text, now)
    entry = _entry(tx, draft, name_of(tx, live), live, sha256=sha256, now=now)
    is_new_text = entry.revision != live.revision
    if is_new_text:
        add_revision(tx, live, at)
    saved = _put(tx, entry, text, now)
    # How it was asked for before, and how this text's writer asks, are wordings of it.
    before = live.researched_at or live.created
    for of, when, is_proved in ((live, before, True), (draft, at, draft.origin == "finding")):
        if of.question is not None:
            asked = {"at": when, "topic": of.topic, "tags": of.tags, "question": of.question}
            entries.keep_wording(tx, entry, asked | {"proved": is_proved})
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
    # Placeholders and excerpts of installed documentation are evicted first, also one that was just saved.
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
    saved = Saved(entry=entry, index_count=entries.count(tx), revision=entry.revision, warnings=warnings)
    return replace(saved, auto_archived=aged, lru_evicted=evicted)


def _keep_beside(tx: Transaction, live: Entry, draft: Entry, sha256: str, at: str) -> Saved:
    """Keep a text that does not take the place of the entry's own as a revision beside it; of a placeholder nothing is kept."""
    number = live.revision
    if draft.origin != "placeholder" and sha256 != live.sha256:
        known = {it["sha256"]: it["revision"] for it in revisions(tx, live.id)}
        number = known.get(sha256) or next_revision(tx, live.id)
        if sha256 not in known:
            beside = replace(draft, id=live.id, path=live.path, framework=live.framework, topic=live.topic)
            add_revision(tx, replace(beside, sha256=sha256, revision=number, researched_at=at), at)
    return Saved(entry=live, index_count=entries.count(tx), revision=number, is_beside=True)


def _entry(
    tx: Transaction, draft: Entry, name: Name, live: Entry | None, *, sha256: str, now: datetime
) -> Entry:
    # A renewed entry is still found by the tags that it had; of those that compare alike the first stays.
    tags = dict[str, str]()
    for tag in (*(live.tags if live else ()), *draft.tags):
        tags.setdefault(tag_key(tag), tag)
    entry = replace(
        draft,
        id=name.id,
        path=name.path,
        tags=tuple(tags.values()),
        created=to_text(now),
        last_accessed=lookup.next_access(tx, now),
        stale_reason=STALE_BASELINE if draft.status == "stale" and draft.origin == "excerpt" else None,
        sha256=sha256,
        revision=live.revision if live and live.sha256 == sha256 else next_revision(tx, name.id),
        researched_at=draft.researched_at or to_text(now),
    )
    if live is None:
        return entry
    question = live.question if draft.id and live.question is not None else draft.question
    return replace(entry, framework=live.framework, topic=live.topic, created=live.created, question=question)


def name_of(tx: Transaction, live: Entry) -> Name:
    """Return where a live entry's text goes: its own path, unless something else stands there."""
    if not tx.files.is_blocked(live.path):
        return Name(live.id, live.path)
    return Name(live.id, free_name(tx, live.framework, live.topic, live.framework_version).path)


# --- removing, and bringing back


def remove(store: Store, entry_ids: Sequence[str], now: datetime) -> list[Archived]:
    """Move live entries to the archive by hand, each with the text that it last showed; all or none. Raises ``UnknownEntry``."""
    return store.change(lambda tx: [_archive(tx, _live(tx, it), now) for it in dict.fromkeys(entry_ids)])


def _live(tx: Transaction, entry_id: str) -> Entry:
    entry = entries.get(tx, entry_id)
    if entry is None:
        raise entries.unknown_entry(tx, entry_id)
    return entry


def _archive(tx: Transaction, entry: Entry, now: datetime) -> Archived:
    ingest_edit(tx, entry)  # what a person wrote into its file goes with it
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
        text = text_of(tx, entry.sha256) or entries.edit_at(tx, entry.path, None)
        if text is None:
            why = f"its text is lost, neither in the database nor at {entry.path}: ask kr research about it again"
            raise EntryConflict(f"{entry.id}: {why}")
        about = (entry.framework, entry.topic, entry.framework_version)
        if not is_free(tx, Name(entry.id, entry.path), pair_of(*about[:2]), text):
            entry = replace(entry, path=free_name(tx, *about).path)
        is_baseline = entry.stale_reason == STALE_BASELINE
        return replace(_put_back(tx, entry, text, now, is_baseline=is_baseline), archived=moved)

    return store.change(write)


def restore_revision(store: Store, entry_id: str, number: int, now: datetime) -> Saved:
    """Bring an earlier text of a live entry back with its version, confidence, writer and time. Raises ``UnknownEntry``.

    Raises ``EntryConflict`` when another live entry is the one of that version.
    """

    def write(tx: Transaction) -> Saved:
        current = ingest_edit(tx, _live(tx, entry_id))
        found = next((it for it in revisions(tx, entry_id) if it["revision"] == number), None)
        text = text_of(tx, found["sha256"]) if found is not None else None
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
        add_revision(tx, current, to_text(now))
        entries.unprove_wordings(tx, entry_id)  # somebody confirmed them for the other text
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
        sha256=keep(tx, text),
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
            why = f"is the entry of this topic for {entry.framework_version}: name that one"
            raise EntryConflict(f"{other.id} {why}")


def _same_major(tx: Transaction, entry: Entry) -> list[Entry]:
    same = entries.of_pair(tx, entry.framework, entry.topic)
    return [it for it in same if major_key(it.framework_version) == major_key(entry.framework_version)]
