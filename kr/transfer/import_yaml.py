"""Imports an existing file-based knowledge base: ``kr import-yaml``, and an ``index.yaml`` beside an empty database.

Items are checked one by one; a bad one is named by file and line, and skipped. An entry is known again by its id, and the newer
``last_accessed`` wins, also against the archive: what the capacity guard archived does not come back. Importing twice changes nothing.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from kr.errors import IndexUnreadable, ReportUnwritable
from kr.freshness import UNKNOWN_VERSION, from_text, parse_time, to_text
from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.models import Confidence, Entry, Origin, origin_of_kind
from kr.naming import decoded
from kr.report import fresh_until, is_by_hand, origin_of, read_confidence, read_date
from kr.store.entries import Pair, of_major, pair_of
from kr.store.lock import exclusive
from kr.store.reports import ReportFiles, take_edit
from kr.store.requests import Need
from kr.store.saving import Subject, holders_of_id, holders_of_path, wanted_names
from kr.store.session import FIRST_IMPORT, UnitOfWork
from kr.store.store import Store
from kr.text.counting import counted
from kr.transfer import ARCHIVE, EXACT_TIMES, INDEX, WORDINGS, is_day
from kr.transfer.read_index import (
    BadItem,
    Fields,
    Item,
    check_item,
    one_of,
    read_items,
    required,
    tags_of,
    text_of,
    time_of,
)

log = logging.getLogger(__name__)

Outcome = Literal["imported", "updated", "unchanged", "archived"]

_BATCH = 500
_MAX_REPORT_BYTES = 16 * 1024 * 1024
_MOST_SHOWN = 20
_BEGUN = "begun"
_LOCK = ".import.lock"
_WAIT_SECONDS = 60.0
_OF_TEXT = ("researched_at", "fresh_until")
_TEXT_COLUMNS = (
    "path",
    "sha256",
    "revision",
    "origin",
    "written_by",
    "confidence",
    "framework_version",
    *_OF_TEXT,
)
"""Those of an entry that tell of its text."""


@dataclass(frozen=True, slots=True)
class Refused:
    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    file: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


@dataclass(slots=True)
class Imported:
    """What became of all items. ``unreadable`` are whole files, ``warnings`` sentences for a person."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(get_args(Outcome), 0))
    refused: list[Refused] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    auto_archived: int = 0
    lru_evicted: int = 0
    index_count: int = 0

    @property
    def has_changed(self) -> bool:
        return sum(self.counts.values()) > self.counts["unchanged"]

    def plain(self) -> dict[str, Any]:
        return {
            **self.counts,
            "refused": len(self.refused),
            "auto_archived": self.auto_archived,
            "lru_evicted": self.lru_evicted,
            "index_count": self.index_count,
            "refused_items": [asdict(item) for item in self.refused],
            "errors": [asdict(file) for file in self.unreadable],
        }

    def log_problems(self) -> None:
        """Warn of what was not imported."""
        problems = [*map(str, self.unreadable), *map(str, self.refused), *self.warnings]
        for line in problems[:_MOST_SHOWN]:
            log.warning("%s", line)
        if (more := len(problems) - _MOST_SHOWN) > 0:
            log.warning("%s", counted(more, "more warning"))


def import_on_first_use(store: Store, knowledge_base: Path, *, now: datetime) -> bool:
    """Import the index and archive beside an empty database, one of parallel first users for all; tell whether that was done now.

    A broken index is a warning, and tried again until there are entries. Raises a ``StoreError``.
    """
    if not _is_first_use(store):
        return False
    with exclusive(knowledge_base / _LOCK, timeout=_WAIT_SECONDS):
        if not _is_first_use(store):
            return False
        # Who is interrupted leaves a part: the next one goes on, whatever is in the database by then.
        _note_first_use(store, _BEGUN)
        result = import_yaml(store, knowledge_base, [knowledge_base], now=now)
        result.log_problems()
        is_in_vain = bool(result.unreadable) and not result.has_changed
        _note_first_use(store, "" if is_in_vain else to_text(now))
        return not is_in_vain


def _is_first_use(store: Store) -> bool:
    with store.read() as unit:
        noted = unit.meta.get(FIRST_IMPORT)
        return noted == _BEGUN or (not noted and unit.entries.count() == 0)


def _note_first_use(store: Store, value: str) -> None:
    with store.write() as unit:
        unit.meta.put(FIRST_IMPORT, value)


def import_yaml(
    store: Store, knowledge_base: Path, sources: Sequence[Path], *, now: datetime, guards: bool = True
) -> Imported:
    """Import folders (index, archive and wordings of each) and single index files; if it ``guards``, run the capacity guard afterwards.

    What can't be read or is refused stands in the result. Raises a ``StoreError``.
    """
    importer = _Importer(store, knowledge_base, now)
    result = importer.result
    files = list(_files(sources, result))
    for file in files:
        importer.import_index(file)
    importer.import_archived()
    for source in sources:
        if (source / WORDINGS).is_file():
            importer.import_wordings(source / WORDINGS)
    order = {str(file): number for number, file in enumerate(files)}
    result.refused.sort(key=lambda refused: (order[refused.file], refused.line))
    if result.has_changed and guards:
        result.auto_archived, result.lru_evicted = store.run_guard(now)
    if store.exists():
        with store.read() as unit:
            result.index_count = unit.entries.count()
    return result


def import_report(store: Store, knowledge_base: Path, item: Item, *, now: datetime) -> Imported:
    """Index a report that stands in the knowledge base already. Raises a ``StoreError``."""
    importer = _Importer(store, knowledge_base, now)
    importer.place([_Placing(knowledge_base / INDEX, item)])
    return importer.result


def _files(sources: Sequence[Path], result: Imported) -> Iterator[Path]:
    for source in dict.fromkeys(sources):
        if not source.is_dir():
            yield source
            continue
        found = [source / name for name in (INDEX, ARCHIVE) if (source / name).exists()]
        if not found:
            result.unreadable.append(Unreadable(str(source), f"holds neither {INDEX} nor {ARCHIVE}"))
        yield from found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A report's text, and what its own words tell."""

    text: str
    confidence: Confidence
    origin: Origin
    researched_at: str | None
    fresh_until: str | None


@dataclass(frozen=True, slots=True)
class _Placing:
    """An item that is to be placed, the index file that it is from, and whether the file at its path is its text."""

    index: Path
    item: Item
    has_text: bool = True


class _Importer:
    """One import. Live entries are placed as they are read; archived ones once all live ones are known."""

    def __init__(self, store: Store, knowledge_base: Path, now: datetime) -> None:
        self.result = Imported()
        self._store = store
        self._base = knowledge_base
        self._now = now
        self._archived: list[tuple[Path, Item]] = []
        self._live_paths: set[Path] = set()
        self._new_files: dict[str, str] = {}
        self._differing = 0

    def import_index(self, file: Path) -> None:
        """Place the live entries of a file, and keep its archived ones for ``import_archived``.

        Where its YAML is broken, what stands before that place is imported.
        """
        self._differing = 0
        try:
            items = self._items(file)
            while batch := list(islice(items, _BATCH)):
                self.place([_Placing(file, item) for item in batch])
        except IndexUnreadable as error:
            self.result.unreadable.append(Unreadable(str(file), str(error)))
        if self._differing:
            items_say = counted(self._differing, "unchanged item says", "unchanged items say")
            self.result.warnings.append(
                f"{file}: {items_say} something else than the entry that is here, whose last_accessed is as new or newer. "
                f"Where the item is right, give it a later one: last_accessed: {self._now:%Y-%m-%dT%H:%M:%SZ}"
            )

    def import_archived(self) -> None:
        """Place the archived entries. A file is the text of the live entry that names it, else of the one that was archived last.

        What the others said is not known: they come without a text.
        """
        last: dict[Path, tuple[str, int]] = {}
        for number, (file, item) in enumerate(self._archived):
            path = file.parent / item.path
            last[path] = max(last.get(path, ("", 0)), (item.archived_at or "", number))
        owned = {number for path, (_, number) in last.items() if path not in self._live_paths}
        placings = [
            _Placing(file, item, has_text=number in owned or item.report is not None)
            for number, (file, item) in enumerate(self._archived)
        ]
        for start in range(0, len(placings), _BATCH):
            self.place(placings[start : start + _BATCH])

    def _items(self, file: Path) -> Iterator[Item]:
        for line, fields in _read(file):
            try:
                if isinstance(fields, BadItem):
                    raise fields
                item = check_item(fields, line, now=self._now, is_archive=file.name == ARCHIVE)
            except BadItem as error:
                self.result.refused.append(Refused(str(file), line, str(error)))
                continue
            if item.reason is not None:
                self._archived.append((file, item))
            else:
                self._live_paths.add(file.parent / item.path)
                yield item

    def place(self, batch: list[_Placing]) -> None:
        """Place a batch in one transaction, and make its files afterwards."""
        self._new_files.clear()
        with self._store.write() as unit:
            unit.entries.fill_keys()
            for placing in batch:
                try:
                    place = self._place_live if placing.item.reason is None else self._place_archived
                    self.result.counts[place(unit, placing)] += 1
                except BadItem as error:
                    self.result.refused.append(Refused(str(placing.index), placing.item.line, str(error)))
        files = ReportFiles(self._base)
        for path, text in self._new_files.items():
            try:
                files.write(path, text, to_disk=False)
            except ReportUnwritable as error:  # the next one who reads it makes it
                log.warning("%s; its text is in the database", error)

    def _place_live(self, unit: UnitOfWork, placing: _Placing) -> Outcome:
        item = placing.item
        entry_id = _choose_id(unit, item)
        live = unit.entries.get(entry_id)
        if not all(_is_newer(item.last_accessed, known) for known in _accesses(unit, entry_id)):
            self._differing += live is not None and _differs(item, live)
            return "unchanged"
        text = self._text(unit, placing)
        if text is None and (live is None or live.path != item.path):
            raise BadItem(f"path: there is no report at {item.path}, so that it is not indexed")
        if live is not None:
            live = take_edit(unit, live)
            if self._is_in_place(placing) and item.path == live.path and live.sha256:
                text = None  # its own file: what somebody wrote there is taken in by now
        entry = self._entry(unit, item, entry_id, text, live)
        if text is not None:
            entry = replace(entry, path=self._choose_path(unit, entry, text.text, live))
        if live is not None and live.sha256 != entry.sha256:
            entry = self._replacing(unit, live, entry)
        unit.entries.put(entry)
        return "imported" if live is None else "updated"

    def _place_archived(self, unit: UnitOfWork, placing: _Placing) -> Outcome:
        item = placing.item
        entry_id = _choose_id(unit, item)
        rows = unit.archive.of_id(entry_id)
        if any(_is_archived_as(item, row.entry, row.archived_at) for row in rows):
            return "unchanged"
        at = _stored(item.archived_at) or to_text(self._now)
        text = self._text(unit, placing) if placing.has_text else None
        if text is not None and item.report is None and self._is_in_place(placing):
            holders = holders_of_path(unit, item.path)
            if any(holder.is_live or (holder.archived_at or "") > at for holder in holders):
                text = None
        unit.archive.add(self._entry(unit, item, entry_id, text, None), item.reason or "manual", at)
        return "archived"

    def _replacing(self, unit: UnitOfWork, live: Entry, entry: Entry) -> Entry:
        """Let an imported text take the place of a live one, or stand beside one that somebody wrote."""
        at, number = to_text(self._now), unit.revisions.next_number(live.id)
        if not live.is_written:
            unit.revisions.add(live, at)
            return replace(entry, revision=number)
        unit.revisions.add(replace(entry, revision=number, path=live.path), at)
        self._new_files.pop(entry.path, None)
        kept = {name: getattr(live, name) for name in _TEXT_COLUMNS}
        return replace(entry, **kept, status=live.status)

    def _is_in_place(self, placing: _Placing) -> bool:
        return placing.index.absolute().parent == self._base.absolute()

    def _text(self, unit: UnitOfWork, placing: _Placing) -> _Text | None:
        """Read the report that an item names: beside its index, else the one that is here already and no other entry's."""
        item = placing.item
        content = _read_report(placing.index.parent, item.report or item.path)
        if content is None and not self._is_in_place(placing):
            others = (it for it in holders_of_path(unit, item.path) if it.pair != _pair(item))
            content = _read_report(self._base, item.path) if next(others, None) is None else None
        text = decoded(content)
        if not text.strip():
            return None
        if is_by_hand(text) and (reasons := reasons_to_hold(mask_secrets(clean(text)))):
            raise BadItem(f"path: its report is not imported, since it {'; it '.join(reasons)}")
        researched = parse_time(read_date(text) or "")
        researched_at = to_text(researched) if researched is not None and researched <= self._now else None
        kind = origin_of(text)
        end = fresh_until(kind, researched_at)
        return _Text(
            text=text,
            confidence=read_confidence(text) or "low",
            origin=origin_of_kind(kind, is_ours=False),
            researched_at=researched_at,
            fresh_until=to_text(end) if end is not None else None,
        )

    def _entry(
        self, unit: UnitOfWork, item: Item, entry_id: str, text: _Text | None, live: Entry | None
    ) -> Entry:
        """Make the entry of an item; what it leaves out is the live one's."""
        now = to_text(self._now)
        sha256 = None if text is None else unit.revisions.keep(text.text)
        of_text = text if live is None or (text is not None and sha256 != live.sha256) else live
        origin = of_text.origin if of_text else "imported"
        return Entry(
            id=entry_id,
            framework=item.framework,
            framework_version=item.framework_version or (live.framework_version if live else UNKNOWN_VERSION),
            topic=item.topic,
            tags=item.tags if item.tags is not None else live.tags if live else (),
            path=item.path,
            created=_stored(item.created) or (live.created if live else now),
            last_accessed=_stored(item.last_accessed) or now,
            status="stale" if origin == "placeholder" else item.status,
            confidence=of_text.confidence if of_text else "low",
            sha256=sha256 or (live.sha256 if live else None),
            researched_at=of_text.researched_at if of_text else None,
            fresh_until=of_text.fresh_until if of_text else None,
            origin=origin,
            question=live.question if live else None,
            written_by=live.written_by if live is not None and of_text is live else None,
            revision=live.revision if live else unit.revisions.next_number(entry_id),
        )

    def _choose_path(self, unit: UnitOfWork, entry: Entry, text: str, live: Entry | None) -> str:
        """Return the first path where this very text may stand: no other entry has it, and its file is absent or the same."""
        pair = pair_of(entry.framework, entry.topic)
        subject = Subject(entry.framework, entry.topic, entry.framework_version)
        wanted = [entry.path, *([live.path] if live else [])]
        wanted += [name.path for name in islice(wanted_names(subject, has_others=False), 1, 10)]
        for path in dict.fromkeys(wanted):
            holders = holders_of_path(unit, path)
            is_taken = any(it.id != entry.id if it.is_live else it.pair != pair for it in holders)
            if is_taken or unit.files.is_blocked(path):
                continue
            present = decoded(unit.files.read(path))
            if present == text:
                return path
            if not unit.files.exists(path) and self._new_files.setdefault(path, text) == text:
                return path
        raise BadItem("path: every name for its report is taken")

    def import_wordings(self, file: Path) -> None:
        """Give the entries that are here what the file says of them; what they know already stays."""
        try:
            items = list(_read(file))
        except IndexUnreadable as error:
            self.result.unreadable.append(Unreadable(str(file), str(error)))
            return
        with self._store.write() as unit:
            for line, fields in items:
                try:
                    if isinstance(fields, BadItem):
                        raise fields
                    _take_in(unit, fields, to_text(self._now))
                except BadItem as error:
                    self.result.warnings.append(f"{file}:{line}: {error}")


def _take_in(unit: UnitOfWork, fields: Fields, now: str) -> None:
    entry_id = required(fields, "id")
    pair = pair_of(required(fields, "framework"), required(fields, "entry_topic"))
    live = unit.entries.get(entry_id)
    rows = [*([live] if live else []), *(row.entry for row in unit.archive.of_id(entry_id))]
    entry = next((row for row in rows if pair_of(row.framework, row.topic) == pair), None)
    kind = one_of(fields, "kind", ("times", "writer", "question", "wording"))
    if entry is None:
        return
    if kind == "times" and entry is live:
        _take_times(unit, entry, fields)
    elif kind == "writer":
        unit.entries.set_writer(
            entry_id,
            required(fields, "sha256").lower(),
            origin=one_of(fields, "origin", get_args(Origin)),
            confidence=one_of(fields, "confidence", get_args(Confidence)),
            written_by=text_of(fields, "written_by"),
        )
    elif kind in {"question", "wording"}:
        question, at = required(fields, "question", lines=True), min(time_of(fields, "at") or now, now)
        if kind == "question" and entry.question is None:
            unit.entries.set_question(entry_id, question, at=at)
            return
        need = Need(required(fields, "topic", lines=True), tags_of(fields) or (), question)
        session, proved = text_of(fields, "session_id"), text_of(fields, "proved") == "true"
        unit.wordings.keep(entry, need, at=at, session_id=session, proved=proved)


def _take_times(unit: UnitOfWork, entry: Entry, fields: Fields) -> None:
    """Say exactly when where the entry knows the day alone: an access since then is later, and stays.

    When a text was researched is known from its own header so far, where somebody who edited it may have left the old day.
    """
    exact: dict[str, str | None] = {}
    for name in EXACT_TIMES:
        known, told = getattr(entry, name), time_of(fields, name)
        is_rough = known is not None and told is not None and is_day(known)
        exact[name] = told if is_rough and (name in _OF_TEXT or known[:10] == str(told)[:10]) else known
    unit.entries.set_times(entry.id, exact)
    if (major := text_of(fields, "stale_major")) is not None:
        unit.entries.set_stale_major(entry.id, major)


def _read(file: Path) -> Iterator[tuple[int, Fields | BadItem]]:
    try:
        if file.exists() and not file.is_file():
            raise IndexUnreadable("is not a regular file")
        with file.open("rb") as opened:
            yield from read_items(opened)
    except OSError as exc:
        raise IndexUnreadable(f"can't be read: {exc.strerror}") from exc


def _read_report(folder: Path, path: str) -> bytes | None:
    """Return a report's bytes; None where nothing is at its path. Raises ``BadItem`` for what can't be its text."""
    files = ReportFiles(folder)
    if files.exists(path) and (folder / path).stat().st_size > _MAX_REPORT_BYTES:
        raise BadItem(f"path: the report is larger than {_MAX_REPORT_BYTES // 1024**2} MiB")
    content = files.read(path)
    if content is None and (files.exists(path) or (folder / path).is_symlink()):
        raise BadItem(f"path: {path} is not a readable file within {folder} (no link is followed out of it)")
    return content


def _pair(item: Item) -> Pair:
    return pair_of(item.framework, item.topic)


def _choose_id(unit: UnitOfWork, item: Item) -> str:
    """Return the id that the entry has here, or may take: no other framework or topic holds it."""
    version = item.framework_version or UNKNOWN_VERSION
    others: list[Entry] = []
    if item.id is None:
        others = unit.entries.of_pair(item.framework, item.topic)
        if (same := of_major(others, version)) is not None:
            return same.id
    names = wanted_names(Subject(item.framework, item.topic, version), has_others=bool(others))
    first, *more = (name.id for name in islice(names, 10))
    for entry_id in (item.id or first, *more):
        if all(holder.pair == _pair(item) for holder in holders_of_id(unit, entry_id)):
            return entry_id
    raise BadItem("id: every id for it is held by other entries")


def _accesses(unit: UnitOfWork, entry_id: str) -> list[str]:
    """Return when the entry of an id was accessed last: the live one, else the archived ones."""
    holders = holders_of_id(unit, entry_id)
    live = [holder.last_accessed for holder in holders if holder.is_live]
    return live or [holder.last_accessed for holder in holders if holder.archived_at]


def _stored(time: str | None) -> str | None:
    return None if time is None else to_text(from_text(time))


def _is_newer(told: str | None, known: str) -> bool:
    """Tell whether an access is later than the known one. A date alone compares as a date; an absent one says nothing."""
    return told is not None and told > known[: len(told)]


def _differs(item: Item, live: Entry) -> bool:
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


def _is_archived_as(item: Item, entry: Entry, archived_at: str) -> bool:
    """Tell whether an archived row is the item: by when it was archived, else by all that it tells."""
    if item.archived_at is not None:
        return archived_at == _stored(item.archived_at)
    is_accessed_then = item.last_accessed is None or entry.last_accessed.startswith(item.last_accessed)
    return is_accessed_then and entry.framework_version == (item.framework_version or UNKNOWN_VERSION)
