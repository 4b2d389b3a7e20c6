"""Writing one report: its text and its row in one transaction, and then the file (SPEC 3.8)."""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from typing import NamedTuple

from kr import naming
from kr.errors import ReportUnwritable, StoreError
from kr.freshness import major_key, same_major
from kr.naming import decoded, digest
from kr.reports.template import title_of
from kr.store import times
from kr.store.archive import Limits
from kr.store.database import Database, Transaction
from kr.store.entries import pair_of
from kr.store.reports import Place, ReportFiles, Staged, edit_at
from kr.store.requests import Need
from kr.store.session import Session, UnitOfWork
from kr.values import Confidence, Entry, EntryStatus, Origin, Value, replace

_VERSIONS = (
    "SELECT framework_version FROM entries WHERE framework_key = :framework AND topic_key = :topic UNION "
    "SELECT framework_version FROM archived_entries WHERE framework_key = :framework AND topic_key = :topic"
)
_LIVE = "SELECT id FROM entries WHERE id = :id UNION SELECT id FROM entries WHERE path = :path"
# Two look-ups rather than an OR: each has an index.
_OTHERS = " UNION ALL ".join(
    f"SELECT 1 FROM {table} WHERE {same} AND (framework_key <> :framework OR topic_key <> :topic)"
    for table, entry_id in (("archived_entries", "id"), ("revisions", "entry_id"))
    for same in (f"{entry_id} = :id", "path = :path")
)
_TAKEN = f"{_OTHERS} LIMIT 1"


class Subject(NamedTuple):
    """What a report is about. ``version`` is as it was asked for."""

    framework: str
    topic: str
    version: str


def free_name(session: Session, files: ReportFiles, subject: Subject) -> naming.Name:
    """Return the first name that nothing stands in the way of. Raises ``StoreError`` when there is none."""
    for name in wanted_names(subject, has_others=_has_other_majors(session, subject)):
        if is_free(session, files, name, subject):
            return name
    raise StoreError(f"{subject.framework} - {subject.topic}: every name for its report is taken")


def free_id(session: Session, files: ReportFiles, subject: Subject, path: str) -> str:
    """Return the first id that the report at a path, which no row speaks of, can have. Raises ``StoreError``."""
    for name in wanted_names(subject, has_others=_has_other_majors(session, subject)):
        if is_free(session, files, name._replace(path=path), subject):
            return name.id
    raise StoreError(f"{subject.framework} - {subject.topic}: every id for its report is taken")


def is_free(
    session: Session,
    files: ReportFiles,
    name: naming.Name,
    subject: Subject,
    *,
    own_id: str | None = None,
) -> bool:
    """Return whether a report of this subject can stand under a name. ``own_id``: the live entry that it renews."""
    return not files.is_blocked(name.path) and not _is_taken(session, name, subject, own_id)


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


def _has_other_majors(session: Session, subject: Subject) -> bool:
    """Tell whether there are entries of other major versions, live or archived."""
    framework, topic = pair_of(subject.framework, subject.topic)
    rows = session.rows(_VERSIONS, framework=framework, topic=topic)
    return any(not same_major(row["framework_version"], subject.version) for row in rows)


def _is_taken(session: Session, name: naming.Name, subject: Subject, own_id: str | None) -> bool:
    """Return whether another framework or topic has this id or path, live, archived or in the history.

    So does a live entry of the same topic, if it is not the one that is renewed: it is of another major version.
    """
    if any(row["id"] != own_id for row in session.rows(_LIVE, id=name.id, path=name.path)):
        return True
    framework, topic = pair_of(subject.framework, subject.topic)
    return session.row(_TAKEN, id=name.id, path=name.path, framework=framework, topic=topic) is not None


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


log = logging.getLogger(__name__)


class _Spot(NamedTuple):
    """Where a report goes. ``live`` is the entry that it renews, ``former`` that or the archived one."""

    name: naming.Name
    live: Entry | None
    former: Entry | None


def save(
    database: Database,
    files: ReportFiles,
    draft: Draft,
    text: str,
    *,
    limits: Limits,
    now: datetime,
    twin: Twin | None = None,
) -> Saved:
    """Write the text and its row, run the guard, and once that is committed make the file of it.

    ``twin`` finds the entry of another topic that the report renews, if any, in the same transaction. Raises ``ReportUnwritable`` or a ``StoreError``; files and database are then as they were.
    """
    text = text.encode(errors="replace").decode()
    if not text.strip():
        raise ReportUnwritable(f"{draft.framework} - {draft.topic}: a report can't be empty")
    with ExitStack() as opened:
        staged = opened.enter_context(files.staged(text))
        with database.write() as transaction:
            files.sweep()
            unit = UnitOfWork(transaction.session)
            unit.entries.fill_keys()
            known = twin(unit) if twin is not None else None
            need = None
            if known is not None:
                need = Need(draft.topic, draft.tags, draft.question or draft.topic)
                draft, text = _renewing(known, draft, text)
                staged = opened.enter_context(files.staged(text))
            spot = _spot(unit, files, draft)
            place = files.place(spot.name.path)
            entry = _entry(unit, spot, draft, unit.revisions.keep(text), now)
            _put(unit, files, spot, entry, text, now=now, need=need)
            saved = finish(transaction, unit, place, staged, entry, limits=limits, now=now)
        place.sync()
    return saved


def finish(
    transaction: Transaction,
    unit: UnitOfWork,
    place: Place,
    staged: Staged,
    entry: Entry,
    *,
    limits: Limits,
    now: datetime,
) -> Saved:
    """Run the guard, and make the file of ``entry``, whose row is written, once the transaction is committed.

    A file that is not made, whatever the reason, is made by the next one who reads the report.
    """
    unit.revisions.note_file(entry.path, entry.sha256 or "", staged.state)
    transaction.afterwards.append(lambda: _publish(place, staged))
    return _guard(transaction, unit, entry, limits, now)


def note_edit(
    unit: UnitOfWork, files: ReportFiles, entry: Entry, former: Entry | None, now: datetime
) -> None:
    """Keep what stands at the path of ``entry`` and is about to be written over."""
    edit = edit_at(unit, files, entry.path)
    unit.revisions.replace(entry, former, edit.text if edit is not None else None, now)
    if edit is not None:
        unit.archive.keep_text(entry.path, digest(edit.text))


def _publish(place: Place, staged: Staged) -> None:
    try:
        place.put(staged)
    except ReportUnwritable as exc:
        log.warning("%s; its text is in the database", exc)


def _renewing(known: Entry, draft: Draft, text: str) -> tuple[Draft, str]:
    """Turn a report into that of an entry of another topic, whose name, tags and question stay."""
    title, end, rest = text.partition("\n")
    renewed = {name: getattr(known, name) for name in ("framework", "topic", "tags", "question")}
    own = title_of(draft.framework, draft.topic)
    return replace(draft, **renewed), (
        title_of(known.framework, known.topic) + end + rest if title == own else text
    )


def _put(
    unit: UnitOfWork,
    files: ReportFiles,
    spot: _Spot,
    entry: Entry,
    text: str,
    *,
    now: datetime,
    need: Need | None,
) -> None:
    note_edit(unit, files, entry, spot.former, now)
    unit.entries.put(entry)
    old = spot.live
    if old is not None and old.question is not None:
        own = Need(old.topic, old.tags, old.question)
        unit.wordings.keep(entry, own, at=old.researched_at or old.created)
    if need is not None:
        unit.wordings.keep(entry, need, at=times.to_text(now))
    said = (Need(it.topic, it.tags, it.question) for it in unit.wordings.of([entry.id]).get(entry.id, ()))
    unit.terms.make(entry, said, text)


def _guard(transaction: Transaction, unit: UnitOfWork, entry: Entry, limits: Limits, now: datetime) -> Saved:
    """Run the guard so that its failure is undone alone (seed 000, error row 15)."""
    try:
        with transaction.session.savepoint():
            moved = unit.archive.guard(limits, now, keep=entry.id)
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


def _entry(unit: UnitOfWork, spot: _Spot, draft: Draft, sha256: str, now: datetime) -> Entry:
    live = spot.live
    moment = times.to_text(now)
    return Entry(
        id=spot.name.id,
        framework=live.framework if live else draft.framework,
        framework_version=draft.framework_version,
        topic=live.topic if live else draft.topic,
        tags=_joined(live.tags if live else (), draft.tags),
        path=spot.name.path,
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


def _spot(unit: UnitOfWork, files: ReportFiles, draft: Draft) -> _Spot:
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
            return _Spot(name, live, former)
    name = free_name(unit.session, files, subject)
    # Only the path of a live entry can be in the way: its id is its own.
    return _Spot(name if live is None else name._replace(id=live.id), live, live)


def adopt(unit: UnitOfWork, files: ReportFiles, entry: Entry, content: bytes) -> Entry | None:
    """Index a report that no row speaks of, under an id that is free; ``entry.id`` is not looked at.

    None, and no change, when its framework, topic and major version have a live entry already.
    """
    subject = Subject(entry.framework, entry.topic, entry.framework_version)
    if unit.entries.of_topic(*subject) is not None:
        return None
    own_id = free_id(unit.session, files, subject, entry.path)
    adopted = replace(entry, id=own_id, sha256=unit.revisions.keep(decoded(content)))
    unit.entries.put(adopted)
    return adopted
