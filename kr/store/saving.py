"""Writing reports: a new one, an earlier one brought back, one that stood in nobody's index (SPEC 3.8 and 6.3).

Text and row are one transaction, in which the capacity guard runs too, and what is written over becomes a revision. The file is
made once that is committed.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import NamedTuple

from kr import naming
from kr.errors import EntryConflict, ReportUnwritable, StoreError
from kr.freshness import major_key, same_major, to_text
from kr.naming import decoded, digest
from kr.report import fresh_until, origin_of, read_confidence, title_of, why_stale
from kr.store.archive import Archived
from kr.store.database import Database
from kr.store.entries import Pair, pair_of
from kr.store.reports import ReportFiles, Revision, Staged, edit_at, take_edit
from kr.store.requests import Need
from kr.store.session import UnitOfWork
from kr.values import Confidence, Entry, EntryStatus, Origin, Value, replace

log = logging.getLogger(__name__)

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
    origin: Origin = "researched"
    fresh_until: str | None = None
    researched_at: str | None = None
    """When the text was researched; None is now."""
    question: str | None = None
    configured_sources: str | None = None


Twin = Callable[[UnitOfWork], Entry | None]


class Saved(Value):
    """What became of a report (SPEC 3.8). ``lru_evicted`` is -1 when the guard failed; a warning says why."""

    entry: Entry
    index_count: int
    lru_evicted: int = 0
    auto_archived: int = 0
    warnings: tuple[str, ...] = ()


class _Spot(NamedTuple):
    """Where a report goes. ``live`` is the entry that it renews, ``former`` that or the archived one."""

    name: naming.Name
    live: Entry | None
    former: Entry | None


def save(database: Database, draft: Draft, text: str, *, now: datetime, twin: Twin | None = None) -> Saved:
    """Write the text and its row, run the guard, and once that is committed make the file. ``twin`` finds the entry to renew instead.

    Raises ``ReportUnwritable`` or a ``StoreError``; files and database are then as they were.
    """
    text = text.encode(errors="replace").decode()
    if not text.strip():
        raise ReportUnwritable(f"{draft.framework} - {draft.topic}: a report can't be empty")
    with ExitStack() as opened:
        staged = opened.enter_context(ReportFiles(database.folder).staged(text))
        with database.write() as unit:
            unit.files.sweep()
            unit.entries.fill_keys()
            known, need = twin(unit) if twin is not None else None, None
            if known is not None:
                need = Need(draft.topic, draft.tags, draft.question or draft.topic)
                draft, text = _renewing(known, draft, text)
                staged = opened.enter_context(unit.files.staged(text))
            spot = _spot(unit, draft)
            entry = _entry(unit, spot, draft, unit.revisions.keep(text), now)
            _note_edit(unit, entry, spot.former, now)
            unit.entries.put(entry)
            _keep_words(unit, spot.live, entry, need, to_text(now))
            unit.terms.make(entry, unit.wordings.needs(entry.id), text)
            return _finish(unit, staged, entry, now)


def _finish(unit: UnitOfWork, staged: Staged, entry: Entry, now: datetime) -> Saved:
    """Run the guard, whose failure is undone alone (seed 000, error row 15), and make the file once the row is committed.

    A file that is not made, whatever the reason, is made by the next one who reads the report.
    """
    target = unit.files.place(entry.path)
    unit.revisions.note_file(entry.path, entry.sha256 or "", staged.state)

    def publish() -> None:
        try:
            staged.put(target)
        except ReportUnwritable as exc:
            log.warning("%s; its text is in the database", exc)

    unit.afterwards.append(publish)
    try:
        with unit.session.savepoint():
            moved = unit.archive.guard(unit.guarding, now, keep=entry.id)
    except sqlite3.Error as exc:
        unit.require_alive()
        warning = f"the capacity guard failed: {exc}"
        log.warning("%s", warning)
        return Saved(entry=entry, index_count=unit.entries.count(), lru_evicted=-1, warnings=(warning,))
    return Saved(entry=entry, index_count=unit.entries.count(), **moved._asdict())


def _note_edit(unit: UnitOfWork, entry: Entry, former: Entry | None, now: datetime) -> None:
    """Keep what stands at the path of ``entry`` and is about to be written over."""
    edit = edit_at(unit, entry.path)
    unit.revisions.replace(entry, former, edit.text if edit is not None else None, now)
    if edit is not None:
        unit.archive.keep_text(entry.path, digest(edit.text))


def _renewing(known: Entry, draft: Draft, text: str) -> tuple[Draft, str]:
    """Turn a report into that of an entry of another topic, whose name, tags and question stay."""
    title, end, rest = text.partition("\n")
    renewed = {name: getattr(known, name) for name in ("framework", "topic", "tags", "question")}
    if title == title_of(draft.framework, draft.topic):
        text = title_of(known.framework, known.topic) + end + rest
    return replace(draft, **renewed), text


def _keep_words(unit: UnitOfWork, old: Entry | None, entry: Entry, need: Need | None, at: str) -> None:
    """Keep what the renewed entry was asked for before, and what a twin of it was."""
    if old is not None and old.question is not None:
        own = Need(old.topic, old.tags, old.question)
        unit.wordings.keep(entry, own, at=old.researched_at or old.created)
    if need is not None:
        unit.wordings.keep(entry, need, at=at)


def _entry(unit: UnitOfWork, spot: _Spot, draft: Draft, sha256: str, now: datetime) -> Entry:
    live, moment = spot.live, to_text(now)
    drafted = draft.fields() | {"researched_at": draft.researched_at or moment}
    if live is not None:
        tags = _joined(live.tags, draft.tags)
        drafted |= {"framework": live.framework, "topic": live.topic, "tags": tags}
    else:
        drafted["tags"] = _joined((), draft.tags)
    return Entry(
        **drafted,
        **spot.name._asdict(),
        created=live.created if live else moment,
        last_accessed=unit.entries.next_access(now),
        sha256=sha256,
    )


def _joined(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """A renewed entry is still found by the tags that it had; of tags that compare alike the first stays."""
    tags: dict[str, str] = {}
    for tag in (*old, *new):
        tags.setdefault(naming.tag_key(tag), tag)
    return tuple(tags.values())


def _spot(unit: UnitOfWork, draft: Draft) -> _Spot:
    subject = Subject(draft.framework, draft.topic, draft.framework_version)
    live = unit.entries.of_topic(*subject)
    archived = (row.entry for row in unit.archive.of_pair(draft.framework, draft.topic))
    former = live or next((it for it in archived if same_major(it.framework_version, subject.version)), None)
    if former is not None:
        name = naming.Name(former.id, former.path)
        if _is_free(unit, name, subject, live.id if live is not None else None):
            return _Spot(name, live, former)
    name = free_name(unit, subject)
    # Only the path of a live entry can be in the way: its id is its own.
    return _Spot(name if live is None else name._replace(id=live.id), live, live)


def adopt(unit: UnitOfWork, entry: Entry, content: bytes) -> Entry | None:
    """Index a report that no row speaks of, under a free id. None when its framework, topic and major have a live entry."""
    subject = subject_of(entry)
    if unit.entries.of_topic(*subject) is not None:
        return None
    own_id = free_name(unit, subject, path=entry.path).id
    adopted = replace(entry, id=own_id, sha256=unit.revisions.keep(decoded(content)))
    unit.entries.put(adopted)
    return adopted


class Restored(Value):
    """What became of a restoration (SPEC 6.3). ``replaced`` were archived for it; ``stale_reason`` None: it is fresh."""

    saved: Saved
    replaced: tuple[Archived, ...] = ()
    stale_reason: str | None = None


class HandedOver(NamedTuple):
    """The ids of entries of a need's very topic: those that ``gave_way``, and those that ``stay`` and go before its wording."""

    gave_way: tuple[str, ...]
    stay: tuple[str, ...]


def remove(unit: UnitOfWork, entry_ids: Sequence[str], now: datetime) -> list[Archived] | None:
    """Move live entries to the archive, each with the text that it last showed. None: one is not there."""
    unit.entries.fill_keys()
    found = [unit.entries.get(entry_id) for entry_id in dict.fromkeys(entry_ids)]
    live = [entry for entry in found if entry is not None]
    return [_archive(unit, entry, now) for entry in live] if len(live) == len(found) else None


def hand_over(
    unit: UnitOfWork,
    entry: Entry,
    need: Need,
    now: datetime,
    session_id: str | None = None,
    *,
    archives: bool = True,
) -> HandedOver:
    """Have a live entry answer the words of a need from now on, as somebody said, and no other of its framework (SPEC 3.2).

    What was researched for them goes to the archive, where ``archives`` is not set only what says nothing; what has its topic for
    another question stays: an equal topic always answers.
    """
    unit.entries.fill_keys()
    unit.wordings.take(need, unit.entries.ids(entry.framework).keys() - {entry.id})
    same = [
        it
        for it in unit.entries.of_pair(entry.framework, need.topic)
        if it.id != entry.id and same_major(it.framework_version, entry.framework_version)
    ]
    gone = [it for it in same if (archives or it.origin == "skeleton") and _is_made_for(it, need)]
    for it in gone:
        _archive(unit, it, now)
    unit.wordings.keep(entry, need, at=to_text(now), session_id=session_id)
    return HandedOver(tuple(it.id for it in gone), tuple(it.id for it in same if it not in gone))


def _is_made_for(entry: Entry, need: Need) -> bool:
    """Tell whether an entry of a need's topic was researched for its question, or has its topic from its question's words."""
    question = entry.question or ""
    if naming.fold(question) == naming.fold(need.question):
        return True
    from kr.matching.question import derive_topic

    return naming.fold(derive_topic(entry.framework, question)) == naming.fold(entry.topic)


def restore_archived(
    database: Database, archived: Archived, now: datetime, *, replace_live: bool
) -> Restored | None:
    """Make an archived entry live again, with its own text. None: it left the archive meanwhile.

    Raises ``EntryConflict`` when its text is lost, or its id or topic is live (``replace_live``: archived first); ``ReportUnwritable``.
    """
    with ExitStack() as opened, database.write() as unit:
        unit.entries.fill_keys()
        if not unit.archive.take(archived.archive_id):
            return None
        live = _live_again(unit, archived.entry)
        if live and not replace_live:
            raise EntryConflict(
                f"{archived.entry.id}: {_named(live[0], archived.entry)} is live; "
                "--replace archives it first and then restores this one"
            )
        moved = tuple(_archive(unit, entry, now) for entry in live)
        entry = replace(archived.entry, path=_free_path(unit, archived.entry))
        text = _text(unit, archived.entry)
        restored = _put_back(unit, opened, entry, unit.archive.last_at(entry.path), text=text, now=now)
        return replace(restored, replaced=moved)


def restore_revision(database: Database, entry_id: str, number: int, now: datetime) -> Restored | None:
    """Bring an earlier text of a live entry back with its version, confidence and time. None: no such entry or revision."""
    with ExitStack() as opened, database.write() as unit:
        unit.entries.fill_keys()
        current = unit.entries.get(entry_id)
        revision = unit.revisions.get(entry_id, number)
        text = unit.revisions.text(revision.sha256) if revision is not None else None
        if current is None or revision is None or text is None:
            return None
        entry = replace(_as_it_was(current, revision, text), path=_free_path(unit, current))
        return _put_back(unit, opened, entry, current, text=text, now=now)


def _put_back(
    unit: UnitOfWork, opened: ExitStack, entry: Entry, owner: Entry | None, *, text: str, now: datetime
) -> Restored:
    """Make an entry live with a text; ``owner`` is the one whose report its path holds now."""
    staged = opened.enter_context(unit.files.staged(text))
    stale_reason = why_stale(entry, now)
    entry = replace(
        entry,
        sha256=unit.revisions.keep(text),
        last_accessed=unit.entries.next_access(now),
        status="fresh" if stale_reason is None else "stale",
    )
    _note_edit(unit, entry, owner, now)
    unit.entries.put(replace(entry, status="fresh"))
    if stale_reason is not None:
        unit.entries.mark_stale(entry.id, stale_reason)
    return Restored(saved=_finish(unit, staged, entry, now), stale_reason=stale_reason)


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


def _named(live: Entry, entry: Entry) -> str:
    return "this id" if live.id == entry.id else f"its framework and topic, as {live.id},"


def _as_it_was(current: Entry, revision: Revision, text: str) -> Entry:
    origin = origin_of(text)
    end = fresh_until(origin, revision.researched_at)
    levels: tuple[Confidence, ...] = ("high", "medium", "low")
    known = next((level for level in levels if level == revision.confidence), None)
    return replace(
        current,
        framework_version=revision.framework_version or current.framework_version,
        confidence=known or read_confidence(text) or "low",
        researched_at=revision.researched_at,
        origin=origin,
        fresh_until=to_text(end) if end is not None else None,
    )
