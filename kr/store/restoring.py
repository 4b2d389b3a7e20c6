"""Removing entries by hand, and bringing back what was archived, or an earlier text."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import get_args

from kr.errors import EntryConflict
from kr.models import PLACEHOLDER, Confidence, Entry, Origin
from kr.slugs import Name
from kr.store import archive, edits, entries, places, revisions, saving, wordings
from kr.store.archive import Archived
from kr.store.engine import Store, Transaction
from kr.store.entries import STALE_BASELINE
from kr.store.places import Subject
from kr.store.revisions import Revision
from kr.store.saving import Saved
from kr.text import digest
from kr.times import major_key, parse_time, to_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What became of a restoration. ``archived`` gave way to it; ``stale_reason`` None: it is fresh.

    ``replaced`` is the number of the revision that an earlier text of the same entry took the place of.
    """

    saved: Saved
    archived: tuple[Archived, ...] = ()
    replaced: int | None = None
    stale_reason: str | None = None


def remove(store: Store, entry_ids: Sequence[str], now: datetime) -> list[Archived] | None:
    """Move live entries to the archive by hand, each with the text that it last showed; all or none.

    None: one is not there.
    """

    def write(tx: Transaction) -> list[Archived] | None:
        wanted = dict.fromkeys(entry_ids)
        live = entries.some(tx, wanted)
        if len(live) < len(wanted):
            return None
        by_id = {entry.id: entry for entry in live}
        return [_archive(tx, by_id[entry_id], now) for entry_id in wanted]

    return store.change(write)


def restore_archived(
    store: Store, archived: Archived, now: datetime, *, replace_live: bool = False
) -> Restored | None:
    """Make an archived entry live again, with its own text. None: it left the archive meanwhile.

    Raises ``EntryConflict`` when its text is lost, or its id or topic is live (``replace_live``: archived first); ``ReportUnwritable``.
    """
    opened = ExitStack()

    def write(tx: Transaction) -> Restored | None:
        if not archive.pop(tx, archived.archive_id):
            return None
        entry = archived.entry
        live = _in_the_way(tx, entry)
        if live and not replace_live:
            what = "this id" if live[0].id == entry.id else f"its framework and topic, as {live[0].id},"
            raise EntryConflict(
                f"{entry.id}: {what} is live; --replace archives it first and then restores this one"
            )
        moved = tuple(_archive(tx, it, now) for it in live)
        text = _text(tx, entry)
        if not places.is_free(tx, Name(entry.id, entry.path), _subject(entry), text):
            entry = replace(entry, path=places.free_name(tx, _subject(entry)).path)
        is_baseline = archived.stale_reason == STALE_BASELINE
        restored = _put_back(tx, opened, entry, text, now, is_baseline=is_baseline)
        return replace(restored, archived=moved)

    with opened:  # what is staged there is needed until the commit
        return store.change(write)


def restore_revision(store: Store, entry_id: str, number: int, now: datetime) -> Restored | None:
    """Bring an earlier text of a live entry back with its version, confidence, writer and time. None: no such entry or revision.

    Raises ``EntryConflict`` when another live entry is the one of that version.
    """
    opened = ExitStack()

    def write(tx: Transaction) -> Restored | None:
        current = entries.get(tx, entry_id)
        revision = revisions.get(tx, entry_id, number)
        text = revisions.text(tx, revision.sha256) if revision is not None else None
        if current is None or revision is None or text is None:
            return None
        current = edits.ingest_edit(tx, current)
        entry = replace(_as_it_was(current, revision), path=saving.name_of(tx, current).path)
        others = [it for it in _of_same_major(tx, entry) if it.id != entry_id]
        if others:
            raise EntryConflict(f"{others[0].id} is the entry of this topic for {entry.framework_version}")
        revisions.add(tx, current, to_text(now))
        wordings.doubt(tx, entry_id)  # somebody confirmed them for the other text
        restored = _put_back(tx, opened, entry, text, now, is_baseline=revision.status == "stale")
        return replace(restored, replaced=current.revision)

    with opened:  # what is staged there is needed until the commit
        return store.change(write)


def _put_back(
    tx: Transaction, opened: ExitStack, entry: Entry, text: str, now: datetime, *, is_baseline: bool
) -> Restored:
    """Make an entry live with a text; ``is_baseline``: an older one that stood in for research."""
    staged = opened.enter_context(tx.files.staged(text))
    stale_reason = STALE_BASELINE if is_baseline else _why_stale(entry, now)
    entry = replace(
        entry,
        sha256=revisions.keep(tx, text),
        last_accessed=entries.next_access(tx, now),
        status="fresh" if stale_reason is None else "stale",
    )
    entries.put(tx, entry, stale_reason=stale_reason)
    return Restored(saved=saving.finish(tx, staged, entry, now), stale_reason=stale_reason)


def _archive(tx: Transaction, entry: Entry, now: datetime) -> Archived:
    """Move an entry to the archive; what a person wrote into its file goes with it."""
    edits.ingest_edit(tx, entry)
    archive.move(tx, entry.id, "manual", now)
    return archive.of_id(tx, entry.id)[0]


def _text(tx: Transaction, entry: Entry) -> str:
    """Return an entry's text by its hash, or what still stands at its path if that is no other entry's text."""
    own = revisions.text(tx, entry.sha256)
    if own is not None:
        return own
    on_disk = tx.files.read_text(entry.path)
    if on_disk.strip() and (entry.sha256 == digest(on_disk) or not revisions.has(tx, digest(on_disk))):
        return on_disk
    raise EntryConflict(
        f"{entry.id}: its text is lost, it is neither in the database nor at {entry.path}; "
        "nothing was changed, ask kr research about it again"
    )


def _in_the_way(tx: Transaction, entry: Entry) -> list[Entry]:
    """Return the live entries of the same id, or the same framework, topic and major."""
    found = [
        entries.get(tx, entry.id),
        entries.of_topic(tx, entry.framework, entry.topic, entry.framework_version),
        *_of_same_major(tx, entry),
    ]
    return list({live.id: live for live in found if live is not None}.values())


def _of_same_major(tx: Transaction, entry: Entry) -> list[Entry]:
    same = entries.of_pair(tx, entry.framework, entry.topic)
    return [it for it in same if major_key(it.framework_version) == major_key(entry.framework_version)]


def _as_it_was(current: Entry, revision: Revision) -> Entry:
    confidence: Confidence = next((it for it in get_args(Confidence) if it == revision.confidence), "low")
    origin: Origin = next((it for it in get_args(Origin) if it == revision.origin), "imported")
    return replace(
        current,
        framework_version=revision.framework_version or current.framework_version,
        confidence=confidence,
        researched_at=revision.researched_at,
        origin=origin,
        written_by=revision.written_by,
        revision=revision.revision,
        fresh_until=revision.fresh_until,
    )


def _why_stale(entry: Entry, now: datetime) -> str | None:
    """Say why a text that comes back can't be served as fresh; None where it can."""
    if entry.origin == "placeholder":
        return PLACEHOLDER
    end = parse_time(entry.fresh_until or "")
    return None if end is None or now < end else f"fresh until {entry.fresh_until} only"


def _subject(entry: Entry) -> Subject:
    return Subject(entry.framework, entry.topic, entry.framework_version)
