"""Writing reports: a new one, an earlier one brought back, one that stood in nobody's index (SPEC 3.8 and 6.3).

Text and row are one transaction, in which the capacity guard runs too, and what is written over becomes a revision. The file is
made once that is committed.
"""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import NamedTuple

from kr import naming
from kr.errors import EntryConflict, ReportUnwritable, StoreError, UnknownEntry
from kr.freshness import PLACEHOLDER, major_key, parse_time, same_major, to_text
from kr.models import Confidence, Entry, EntryStatus, Origin
from kr.naming import decoded, digest
from kr.store.archive import Archived
from kr.store.database import Database
from kr.store.entries import Pair, framework_key, pair_of
from kr.store.reports import ReportFiles, Revision, Staged, edit_at, guarded, take_edit
from kr.store.requests import Need
from kr.store.search import unknown_entry
from kr.store.session import UnitOfWork
from kr.values import Value, replace

log = logging.getLogger(__name__)

STOOD_IN = "an older report stood in: nothing was found then"

_VERSIONS = (
    "SELECT framework_version FROM entries WHERE framework_key = :framework AND topic_key = :topic UNION "
    "SELECT framework_version FROM archived_entries WHERE framework_key = :framework AND topic_key = :topic"
)
# Look-ups one by one rather than an OR: each has an index.
_HOLDERS = " UNION ALL ".join(
    f"SELECT id, path, framework_key, topic_key, {more}, framework_version FROM {table} WHERE {{0}} = :name"
    for table, more in (
        ("entries", "1, last_accessed, NULL"),
        ("archived_entries", "0, last_accessed, archived_at"),
        ("(SELECT *, entry_id AS id FROM revisions)", "0, '', NULL"),
    )
)
_BY_ID, _BY_PATH = _HOLDERS.format("id"), _HOLDERS.format("path")


class Holder(NamedTuple):
    """A row of the index, the archive or the history: each holds an id and a path."""

    id: str
    path: str
    pair: Pair
    is_live: int
    last_accessed: str
    archived_at: str | None
    """None but for an archived row."""
    framework_version: str | None


def holders_of_id(unit: UnitOfWork, entry_id: str) -> list[Holder]:
    return _holders(unit, _BY_ID, entry_id)


def holders_of_path(unit: UnitOfWork, path: str) -> list[Holder]:
    return _holders(unit, _BY_PATH, path)


def _holders(unit: UnitOfWork, statement: str, name: str) -> list[Holder]:
    rows = unit.session.rows(statement, name=name)
    return [Holder(row[0], row[1], (row[2], row[3]), *row[4:]) for row in rows]


class Subject(NamedTuple):
    """What a report is about. ``version`` is as it was asked for."""

    framework: str
    topic: str
    version: str


def subject_of(entry: Entry) -> Subject:
    return Subject(entry.framework, entry.topic, entry.framework_version)


def free_name(unit: UnitOfWork, subject: Subject, *, path: str | None = None) -> naming.Name:
    """Return the first free name; of a report at a ``path`` that no row speaks of: with this path. Raises ``StoreError`` when there is none."""
    for wanted in wanted_names(subject, has_others=_has_other_majors(unit, subject)):
        name = wanted if path is None else wanted._replace(path=path)
        if _is_free(unit, name, subject):
            return name
    raise StoreError(f"{subject.framework} - {subject.topic}: every name for its report is taken")


def wanted_names(subject: Subject, *, has_others: bool) -> Iterator[naming.Name]:
    """Give the names that a subject asks for, in order; ``has_others``: other major versions of it have theirs."""
    pair = (subject.framework, subject.topic)
    wanted = [naming.base_name(*pair), naming.suffixed_name(*pair)]
    if has_others:
        wanted = [naming.versioned_name(name, major_key(subject.version)) for name in wanted]
    yield from wanted
    last = wanted[-1]
    stem = last.path.removesuffix(".md")
    for number in range(2, 100):
        yield naming.Name(id=f"{last.id}-{number}", path=f"{stem}-{number}.md")


def _has_other_majors(unit: UnitOfWork, subject: Subject) -> bool:
    framework, topic = pair_of(subject.framework, subject.topic)
    rows = unit.session.rows(_VERSIONS, framework=framework, topic=topic)
    return any(not same_major(row["framework_version"], subject.version) for row in rows)


def _is_free(unit: UnitOfWork, name: naming.Name, subject: Subject, own_id: str | None = None) -> bool:
    """Whether no other framework or topic has a name, live, archived or in the history, nor another live entry than ``own_id``."""
    pair = pair_of(subject.framework, subject.topic)
    holders = (*holders_of_id(unit, name.id), *holders_of_path(unit, name.path))
    is_taken = any(it.id != own_id if it.is_live else it.pair != pair for it in holders)
    return not is_taken and not unit.files.is_blocked(name.path)


class Draft(Value):
    """What a report is about, before it has an id and a path. Texts are non-empty."""

    framework: str
    framework_version: str
    topic: str
    tags: tuple[str, ...]
    confidence: Confidence
    status: EntryStatus = "fresh"
    origin: Origin = "excerpt"
    fresh_until: str | None = None
    researched_at: str | None = None
    """When the text was researched; None is now."""
    question: str | None = None
    written_by: str | None = None
    entry_id: str | None = None
    """The live entry that the text answers or improves; None: that of its framework, topic and major, or a new one."""

    def supersedes(self, entry: Entry) -> bool:
        """Whether the text takes the place of an entry's (SPEC 3.8, 3.10): nobody's words are overwritten.

        What was written gives way to what is written alone, a person's text to a person's, and any text but a placeholder
        to no placeholder.
        """
        if self.origin == "placeholder":
            return entry.origin == "placeholder"
        if not entry.is_written:
            return True
        is_persons = (entry.written_by or "").startswith("person:")
        return self.origin == "finding" and (not is_persons or (self.written_by or "").startswith("person:"))


class Saved(Value):
    """What became of a report (SPEC 3.8). ``lru_evicted`` is -1 when the guard failed; a warning says why.

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


class _Spot(NamedTuple):
    """Where a report goes. ``live`` is the entry that it renews, ``former`` that or the archived one."""

    name: naming.Name
    live: Entry | None
    former: Entry | None


def save(database: Database, draft: Draft, text: str, *, now: datetime) -> Saved:
    """Write the text and its row, run the guard, and once that is committed make the file.

    Raises ``ReportUnwritable``, ``UnknownEntry`` for an entry that is not there, or a ``StoreError``; files and database are then
    as they were.
    """
    text = text.encode(errors="replace").decode()
    if not text.strip():
        raise ReportUnwritable(f"{draft.framework} - {draft.topic}: a report can't be empty")
    with ReportFiles(database.folder).staged(text) as staged, database.write() as unit:
        unit.files.sweep()
        unit.entries.fill_keys()
        return _save(unit, draft, text, staged, now)


def _save(unit: UnitOfWork, draft: Draft, text: str, staged: Staged, now: datetime) -> Saved:
    spot = _spot(unit, draft)
    live, at = spot.live, to_text(now)
    sha256 = unit.revisions.keep(text)
    if live is not None and not draft.supersedes(live):
        return _keep_beside(unit, live, draft, sha256, at)
    entry = _entry(unit, spot, draft, sha256, now)
    if live is not None and entry.revision != live.revision:
        unit.revisions.add(live, at)
    unit.entries.put(entry)
    if live is None:
        _keep_stranger(unit, entry, at)
    if live is not None:
        _keep_words(unit, live, entry, draft, at)
    saved = _finish(unit, staged, entry, now)
    is_new = live is None or entry.revision != live.revision
    return replace(saved, revision=entry.revision, replaced=live.revision if live and is_new else None)


def _keep_beside(unit: UnitOfWork, live: Entry, draft: Draft, sha256: str, at: str) -> Saved:
    """Keep a text that does not take the place of the entry's own as a revision beside it; of a placeholder nothing is kept."""
    if draft.origin == "placeholder" or sha256 == live.sha256:
        return Saved(entry=live, index_count=unit.entries.count(), revision=live.revision, is_beside=True)
    kept = next((it for it in unit.revisions.of_entry(live.id) if it.sha256 == sha256), None)
    if kept is not None:
        count = unit.entries.count()
        return Saved(entry=live, index_count=count, revision=kept.revision, is_beside=True)
    number = unit.revisions.next_number(live.id)
    told = ("framework_version", "confidence", "origin", "written_by", "fresh_until")
    beside = {name: getattr(draft, name) for name in told}
    unit.revisions.add(replace(live, **beside, sha256=sha256, revision=number, researched_at=at), at)
    return Saved(entry=live, index_count=unit.entries.count(), revision=number, is_beside=True)


def _keep_stranger(unit: UnitOfWork, entry: Entry, at: str) -> None:
    """Keep what somebody put at the path of a new entry, whose row is written, and is about to be written over: as a revision beside it."""
    found = edit_at(unit, entry.path, None)
    written = None if found is None else guarded(unit, entry, found, at)
    if written is not None:
        number = unit.revisions.next_number(entry.id)
        sha256 = unit.revisions.keep(written)
        unit.archive.give_text(entry.path, sha256)
        kept = replace(
            entry,
            sha256=sha256,
            revision=number,
            origin="finding",
            written_by="file",
            fresh_until=None,
        )
        unit.revisions.add(kept, at)


def _finish(unit: UnitOfWork, staged: Staged, entry: Entry, now: datetime) -> Saved:
    """Run the guard, whose failure is undone alone (seed 000, error row 15), and make the file once the row is committed.

    A file that is not made, whatever the reason, is made by the next one who reads the report.
    """
    target = unit.files.place(entry.path)

    def publish() -> None:
        try:
            staged.put(target)
        except ReportUnwritable as exc:
            log.warning("%s; its text is in the database", exc)

    unit.afterwards.append(publish)
    try:
        with unit.session.savepoint():
            # A placeholder takes nobody's place: where there is no room it is the first to go itself.
            keep = "" if entry.origin == "placeholder" else entry.id
            moved = unit.archive.guard(unit.guarding, now, keep=keep)
    except sqlite3.Error as exc:
        unit.require_alive()
        warning = f"the capacity guard failed: {exc}"
        log.warning("%s", warning)
        return Saved(entry=entry, index_count=unit.entries.count(), lru_evicted=-1, warnings=(warning,))
    return Saved(entry=entry, index_count=unit.entries.count(), **moved._asdict())


def _keep_words(unit: UnitOfWork, old: Entry, entry: Entry, draft: Draft, at: str) -> None:
    """Keep how the renewed entry was asked for before, and how this text's writer asks, as known wordings."""
    if old.question is not None:
        own = Need(old.topic, old.tags, old.question)
        unit.wordings.keep(entry, own, at=old.researched_at or old.created, proved=True)
    if draft.question is not None:
        need = Need(draft.topic, draft.tags, draft.question)
        unit.wordings.keep(entry, need, at=at, proved=draft.origin == "finding")


def _entry(unit: UnitOfWork, spot: _Spot, draft: Draft, sha256: str, now: datetime) -> Entry:
    live, moment = spot.live, to_text(now)
    drafted = draft.fields() | {"researched_at": draft.researched_at or moment}
    del drafted["entry_id"]
    if live is not None:
        tags = _joined(live.tags, draft.tags)
        drafted |= {"framework": live.framework, "topic": live.topic, "tags": tags}
        if draft.entry_id is not None and live.question is not None:
            drafted["question"] = live.question
    else:
        drafted["tags"] = _joined((), draft.tags)
    is_same_text = live is not None and live.sha256 == sha256
    revision = live.revision if live and is_same_text else unit.revisions.next_number(spot.name.id)
    return Entry(
        **drafted,
        **spot.name._asdict(),
        created=live.created if live else moment,
        last_accessed=unit.entries.next_access(now),
        sha256=sha256,
        revision=revision,
    )


def _joined(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """A renewed entry is still found by the tags that it had; of tags that compare alike the first stays."""
    tags: dict[str, str] = {}
    for tag in (*old, *new):
        tags.setdefault(naming.tag_key(tag), tag)
    return tuple(tags.values())


def _spot(unit: UnitOfWork, draft: Draft) -> _Spot:
    subject = Subject(draft.framework, draft.topic, draft.framework_version)
    live = _named(unit, draft) if draft.entry_id is not None else unit.entries.of_topic(*subject)
    if live is not None:
        live = take_edit(unit, live)
        subject = Subject(live.framework, live.topic, draft.framework_version)
    archived = (row.entry for row in unit.archive.of_pair(draft.framework, draft.topic))
    former = live or next((it for it in archived if same_major(it.framework_version, subject.version)), None)
    if former is not None:
        name = naming.Name(former.id, former.path)
        if _is_free(unit, name, subject, live.id if live is not None else None):
            return _Spot(name, live, former)
    name = free_name(unit, subject)
    # Only the path of a live entry can be in the way: its id is its own.
    return _Spot(name if live is None else name._replace(id=live.id), live, live)


def _named(unit: UnitOfWork, draft: Draft) -> Entry:
    """Return the entry that a finding names. Raises ``UnknownEntry``, also for one of another framework."""
    live = unit.entries.get(draft.entry_id or "")
    if live is None:
        raise unknown_entry(unit, draft.entry_id or "")
    if framework_key(live.framework) != framework_key(draft.framework):
        raise UnknownEntry(f"{live.id} is about {live.framework}, not about {draft.framework}")
    return live


class Restored(Value):
    """What became of a restoration (SPEC 6.3). ``replaced`` were archived for it; ``stale_reason`` None: it is fresh."""

    saved: Saved
    replaced: tuple[Archived, ...] = ()
    stale_reason: str | None = None


def remove(unit: UnitOfWork, entry_ids: Sequence[str], now: datetime) -> list[Archived] | None:
    """Move live entries to the archive, each with the text that it last showed. None: one is not there."""
    unit.entries.fill_keys()
    found = [unit.entries.get(entry_id) for entry_id in dict.fromkeys(entry_ids)]
    live = [entry for entry in found if entry is not None]
    return [_archive(unit, entry, now) for entry in live] if len(live) == len(found) else None


def restore_archived(
    database: Database, archived: Archived, now: datetime, *, replace_live: bool
) -> Restored | None:
    """Make an archived entry live again, with its own text. None: it left the archive meanwhile.

    Raises ``EntryConflict`` when its text is lost, or its id or topic is live (``replace_live``: archived first); ``ReportUnwritable``.
    """
    with ExitStack() as opened, database.write() as unit:
        unit.entries.fill_keys()
        stood_in = unit.archive.stood_in(archived.archive_id)
        if not unit.archive.take(archived.archive_id):
            return None
        live = _live_again(unit, archived.entry)
        if live and not replace_live:
            raise EntryConflict(
                f"{archived.entry.id}: {_in_the_way(live[0], archived.entry)} is live; "
                "--replace archives it first and then restores this one"
            )
        moved = tuple(_archive(unit, entry, now) for entry in live)
        entry = replace(archived.entry, path=_free_path(unit, archived.entry))
        text = _text(unit, archived.entry)
        back = _put_back(unit, opened, entry, text=text, now=now, stood_in=stood_in)
        _keep_stranger(unit, back.saved.entry, to_text(now))
        return replace(back, replaced=moved)


def restore_revision(database: Database, entry_id: str, number: int, now: datetime) -> Restored | None:
    """Bring an earlier text of a live entry back with its version, confidence, writer and time. None: no such entry or revision."""
    with ExitStack() as opened, database.write() as unit:
        unit.entries.fill_keys()
        current = unit.entries.get(entry_id)
        revision = unit.revisions.get(entry_id, number)
        text = unit.revisions.text(revision.sha256) if revision is not None else None
        if current is None or revision is None or text is None:
            return None
        current = take_edit(unit, current)
        unit.revisions.add(current, to_text(now))
        unit.wordings.doubt(entry_id)  # somebody confirmed them for the other text
        entry = replace(_as_it_was(current, revision), path=_free_path(unit, current))
        stood_in = revision.status == "stale"
        return _put_back(unit, opened, entry, text=text, now=now, stood_in=stood_in)


def _put_back(
    unit: UnitOfWork, opened: ExitStack, entry: Entry, *, text: str, now: datetime, stood_in: bool
) -> Restored:
    """Make an entry live with a text; ``stood_in``: an older one that stood in for research."""
    staged = opened.enter_context(unit.files.staged(text))
    stale_reason = STOOD_IN if stood_in else why_stale(entry, now)
    entry = replace(
        entry,
        sha256=unit.revisions.keep(text),
        last_accessed=unit.entries.next_access(now),
        status="fresh",
    )
    unit.entries.put(entry)
    if stale_reason is not None:
        unit.entries.mark_stale(entry.id, stale_reason)
        entry = replace(entry, status="stale")
    saved = replace(_finish(unit, staged, entry, now), revision=entry.revision)
    return Restored(saved=saved, stale_reason=stale_reason)


def _archive(unit: UnitOfWork, entry: Entry, now: datetime) -> Archived:
    """Move an entry to the archive; what a person wrote into its file goes with it."""
    take_edit(unit, entry)
    unit.archive.move(entry.id, "manual", now)
    return unit.archive.of_id(entry.id)[0]


def _free_path(unit: UnitOfWork, entry: Entry) -> str:
    """Return where the text goes: its own path, unless a folder or another entry's report is there."""
    subject = subject_of(entry)
    if _is_free(unit, naming.Name(entry.id, entry.path), subject, entry.id):
        return entry.path
    return free_name(unit, subject).path


def _text(unit: UnitOfWork, entry: Entry) -> str:
    """Return an entry's text by its hash, or what still stands at its path if that is no other entry's text."""
    own = unit.revisions.text(entry.sha256)
    if own is not None:
        return own
    on_disk = decoded(unit.files.read(entry.path))
    if on_disk.strip() and (entry.sha256 == digest(on_disk) or unit.revisions.text(digest(on_disk)) is None):
        return on_disk
    raise EntryConflict(
        f"{entry.id}: its text is lost, it is neither in the database nor at {entry.path}; "
        "nothing was changed, ask kr research about it again"
    )


def _live_again(unit: UnitOfWork, entry: Entry) -> list[Entry]:
    """Return the live entries that stand in the way: of the same id, or the same framework, topic and major."""
    found = (unit.entries.get(entry.id), unit.entries.of_topic(*subject_of(entry)))
    return list({live.id: live for live in found if live is not None}.values())


def _in_the_way(live: Entry, entry: Entry) -> str:
    return "this id" if live.id == entry.id else f"its framework and topic, as {live.id},"


def _as_it_was(current: Entry, revision: Revision) -> Entry:
    levels: tuple[Confidence, ...] = ("high", "medium", "low")
    origins: tuple[Origin, ...] = ("finding", "excerpt", "placeholder", "imported")
    known = next((level for level in levels if level == revision.confidence), None)
    origin = next((kind for kind in origins if kind == revision.origin), "imported")
    return replace(
        current,
        framework_version=revision.framework_version or current.framework_version,
        confidence=known or "low",
        researched_at=revision.researched_at,
        origin=origin,
        written_by=revision.written_by,
        revision=revision.revision,
        fresh_until=revision.fresh_until,
    )


def why_stale(entry: Entry, now: datetime) -> str | None:
    """Say why a text that comes back can't be served as fresh; None where it can."""
    if entry.origin == "placeholder":
        return PLACEHOLDER
    end = parse_time(entry.fresh_until or "")
    return None if end is None or now < end else f"fresh until {entry.fresh_until} only"
