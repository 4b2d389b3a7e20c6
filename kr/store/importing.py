"""Taking in entries that others wrote, a batch in a transaction. Nothing that is here is lost.

An entry is known again by its framework, topic and major version, or by its id; the newer ``last_accessed`` wins, also against the
archive: what the guard archived does not come back by an old export.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from kr.errors import ReportUnwritable, StoreError
from kr.freshness import UNKNOWN_VERSION, from_text, major_key, to_text
from kr.models import Confidence, Entry, EntryStatus, Origin
from kr.naming import Name
from kr.store import archive, entries, places, reports, revisions
from kr.store.archive import ArchiveReason
from kr.store.engine import Store, Transaction
from kr.store.places import Holder, Subject

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportText:
    """A report's bytes, not blank, and what its own words say. Times are stored text.

    ``is_here``: the file stands in the knowledge base, at the entry's own path, already.
    """

    content: bytes
    is_here: bool
    is_theirs: bool
    """It was found beside the index that is imported."""
    confidence: Confidence
    origin: Origin
    researched_at: str | None
    fresh_until: str | None

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """When, where that is known, and why an entry was archived."""

    at: str | None
    reason: ArchiveReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """An entry that was checked, but has no place yet. None: nobody says.

    Texts are not blank; ``path`` is relative and stays below its folder. Times are stored text or a bare
    ``YYYY-MM-DD``, none of them in the future. ``text`` is None when the report is missing, or not read yet.
    ``report`` is where the text of an archived one stands, when that is not at its path.
    """

    id: str | None
    framework: str
    framework_version: str | None
    topic: str
    tags: tuple[str, ...] | None
    path: str
    created: str | None
    last_accessed: str | None
    status: EntryStatus
    departure: Departure | None
    report: str | None = None
    text: ReportText | None = None

    @property
    def subject(self) -> Subject:
        return Subject(self.framework, self.topic, self.framework_version or UNKNOWN_VERSION)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an entry. ``reason`` is there exactly when it was refused.

    ``differs``: it was left out because it is not newer, and says something else than the live entry.
    """

    taken: Literal["imported", "updated", "unchanged", "archived", "refused"]
    reason: str | None = None
    differs: bool = False


def take_in(store: Store, batch: Sequence[Incoming], now: datetime) -> list[Outcome]:
    """Place a batch, of some hundreds at most; one outcome for each, in order. All or nothing. Raises a ``StoreError``."""
    with store.write() as tx:
        return [_take(tx, item, now) for item in batch]


def run_guard(store: Store, now: datetime) -> archive.Evicted:
    """Run the capacity guard by itself: the last step of an import."""
    with store.write() as tx:
        return archive.guard(tx, now)


def _take(tx: Transaction, item: Incoming, now: datetime) -> Outcome:
    if item.departure is not None:
        return _take_archived(tx, item, item.departure, now)
    live = _live(tx, item)
    if live is not None:
        return _renew(tx, item, live, now)
    if item.id is not None and _is_known_older(tx, item):
        return Outcome("unchanged")
    if item.text is None:
        return Outcome("refused", f"path: there is no report at {item.path}, so that it is not indexed")
    name = _name(tx, item)
    if name is None:
        return Outcome("refused", "path: every name for its report is taken")
    try:
        tx.files.place(name.path)
    except ReportUnwritable as exc:
        return Outcome("refused", str(exc))
    entry = _entry(tx, item, name, None, now)
    entries.put(tx, entry)
    _write_file(tx, entry.path, item.text.text)
    return Outcome("imported")


def _live(tx: Transaction, item: Incoming) -> Entry | None:
    """Return the entry that an item is about: of its framework, topic and major version, or of its id."""
    same = entries.of_pair(tx, item.framework, item.topic)
    version = major_key(item.subject.version)
    by_major = next((it for it in same if major_key(it.framework_version) == version), None)
    if by_major is not None:
        return by_major
    if item.id is None or item.framework_version is None:
        found = entries.of_topic(tx, *(item.framework, item.topic, item.subject.version))
        return found if item.id is None or (found and found.id == item.id) else None
    return next((it for it in same if it.id == item.id), None)


def _is_known_older(tx: Transaction, item: Incoming) -> bool:
    """Tell whether the archive has an item's id, accessed as late or later."""
    held = [it for it in places.holders(tx, id=item.id) if it.archived_at and it.pair == item.subject.pair]
    return any(not _is_newer(item.last_accessed, it.last_accessed) for it in held)


def _renew(tx: Transaction, item: Incoming, live: Entry, now: datetime) -> Outcome:
    if not _is_newer(item.last_accessed, live.last_accessed):
        return Outcome("unchanged", differs=_differs(item, live))
    if item.text is None and live.path != item.path:
        return Outcome("refused", f"path: there is no report at {item.path}, so that it is not indexed")
    live = reports.take_edit(tx, live)
    if item.text is not None and item.text.is_here and item.path == live.path and live.sha256:
        item = replace(item, text=None)  # its own file: what somebody wrote there is taken in by now
    entry = _entry(tx, item, Name(live.id, live.path), live, now)
    if entry.sha256 != live.sha256:
        number = revisions.next_number(tx, live.id)
        if live.origin == "finding":  # nobody's words are overwritten: the imported text stands beside them
            revisions.add(tx, replace(entry, revision=number), to_text(now))
            entry = _with_text_of(entry, live)
        else:
            revisions.add(tx, live, to_text(now))
            entry = replace(entry, revision=number)
            _write_file(tx, entry.path, revisions.text(tx, entry.sha256) or "")
    entries.put(tx, entry)
    return Outcome("updated")


def _with_text_of(entry: Entry, live: Entry) -> Entry:
    return replace(
        entry,
        framework_version=live.framework_version,
        sha256=live.sha256,
        revision=live.revision,
        origin=live.origin,
        written_by=live.written_by,
        confidence=live.confidence,
        researched_at=live.researched_at,
        fresh_until=live.fresh_until,
        status=live.status,
    )


def _take_archived(tx: Transaction, item: Incoming, departure: Departure, now: datetime) -> Outcome:
    first = next(places.wanted_names(item.subject, has_others=False))
    held = places.holders(tx, id=item.id or first.id)
    if any(_is_same(item, departure, holder) for holder in held if holder.archived_at):
        return Outcome("unchanged")
    if item.text is not None and item.text.is_here and _is_of_another(tx, item.path, departure.at):
        item = replace(item, text=None)
    # Its file is made when it is restored: the path needs to be free only then.
    at_path = places.holders(tx, path=item.path)
    is_others = any(it.pair != item.subject.pair for it in (*held, *at_path))
    name = places.free_name(tx, item.subject) if is_others else Name(item.id or first.id, item.path)
    entry = _entry(tx, item, name, None, now)
    archive.add(tx, entry, departure.reason, _stored(departure.at) or to_text(now))
    return Outcome("archived")


def _is_of_another(tx: Transaction, path: str, archived_at: str | None) -> bool:
    """Tell whether what stands at a path is the text of a live entry, or of one that left later."""
    held = places.holders(tx, path=path)
    return any(it.is_live or (it.archived_at or "") > (archived_at or "") for it in held)


def _name(tx: Transaction, item: Incoming) -> Name | None:
    """Return the name of a new entry: its own where that is free, or its own text stands there, else the first free one."""
    subject = item.subject
    first = next(places.wanted_names(subject, has_others=places.has_other_majors(tx, subject)))
    own = Name(item.id or first.id, item.path)
    held = (*places.holders(tx, id=own.id), *places.holders(tx, path=own.path))
    is_held = any(it.is_live or it.pair != subject.pair for it in held)
    is_own_text = item.text is not None and tx.files.read(item.path) == item.text.content
    if not is_held and (is_own_text or places.is_free(tx, own, subject)):
        return own
    try:
        return places.free_name(tx, subject)
    except StoreError:
        return None


def _entry(tx: Transaction, item: Incoming, name: Name, live: Entry | None, now: datetime) -> Entry:
    text = item.text
    sha256 = None if text is None else revisions.keep(tx, text.text)
    entry = Entry(
        id=name.id,
        path=name.path,
        framework=item.framework,
        framework_version=item.framework_version or (live.framework_version if live else UNKNOWN_VERSION),
        topic=item.topic,
        tags=item.tags if item.tags is not None else live.tags if live else (),
        created=_stored(item.created) or (live.created if live else to_text(now)),
        last_accessed=_stored(item.last_accessed) or to_text(now),
        status=item.status,
        confidence=text.confidence if text else "low",
        origin=text.origin if text else "imported",
        sha256=sha256,
        researched_at=text.researched_at if text else None,
        fresh_until=text.fresh_until if text else None,
        question=live.question if live else None,
        revision=live.revision if live else revisions.next_number(tx, name.id),
    )
    if live is not None and (text is None or sha256 == live.sha256):
        kept = _with_text_of(entry, live)
        entry = replace(kept, status=item.status, framework_version=entry.framework_version)
    return replace(entry, status="stale") if entry.origin == "placeholder" else entry


def _write_file(tx: Transaction, path: str, text: str) -> None:
    """Make a file once the row is committed. One that can't be made is made by the next one who reads it."""

    def write() -> None:
        try:
            if tx.files.read(path) != text.encode():
                tx.files.write(path, text)
        except ReportUnwritable as exc:
            log.warning("%s; its text is in the database", exc)

    tx.after_commit.append(write)


def _stored(time: str | None) -> str | None:
    return None if time is None else to_text(from_text(time))


def _is_newer(given: str | None, known: str) -> bool:
    """Tell whether an access is later than the known one. A date alone compares as a date; none says nothing."""
    return given is not None and given > known[: len(given)]


def _differs(item: Incoming, live: Entry) -> bool:
    """Tell whether an item says something of its entry that was not so before, as one that a person edited."""
    pairs = (
        (item.framework, live.framework),
        (item.framework_version, live.framework_version),
        (item.topic, live.topic),
        (item.tags, live.tags),
        # Fresh is also what an item without a status counts as.
        ("stale" if item.status == "stale" else None, live.status),
    )
    return any(new is not None and new != old for new, old in pairs)


def _is_same(item: Incoming, departure: Departure, row: Holder) -> bool:
    """Tell whether an archived row is the item: by when it was archived, else by when it was accessed."""
    if departure.at is not None:
        return row.archived_at == _stored(departure.at)
    return item.last_accessed is None or row.last_accessed.startswith(item.last_accessed)
