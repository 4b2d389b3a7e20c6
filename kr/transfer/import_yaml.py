"""Imports an existing file-based knowledge base: ``kr import-yaml``, and an ``index.yaml`` beside an empty database.

Items are checked one by one; a bad one is named by file and line, and skipped. An entry is known again by its id, and the newer
``last_accessed`` wins, also against the archive: what the capacity guard archived does not come back. Importing twice changes nothing.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from kr.errors import IndexUnreadable, ReportUnwritable
from kr.models import Confidence, Entry, Origin
from kr.store import archive, entries, meta, wordings
from kr.store.engine import Store, Transaction
from kr.store.files import ReportFiles
from kr.store.lock import file_lock
from kr.store.meta import FIRST_IMPORT
from kr.store.places import pair_of
from kr.store.requests import Need
from kr.text import counted
from kr.times import to_text
from kr.transfer import ARCHIVE, EXACT_TIMES, INDEX, WORDINGS, is_day
from kr.transfer.place import Outcome, Placer
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

_BATCH = 500
_MOST_SHOWN = 20
_BEGUN = "begun"
_LOCK = ".import.lock"
_WAIT_SECONDS = 60.0
_OF_TEXT = ("researched_at", "fresh_until")


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
    with file_lock(knowledge_base / _LOCK, timeout=_WAIT_SECONDS):
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
    with store.read() as tx:
        noted = meta.get(tx, FIRST_IMPORT)
        return noted == _BEGUN or (not noted and entries.count(tx) == 0)


def _note_first_use(store: Store, value: str) -> None:
    with store.write() as tx:
        meta.put(tx, FIRST_IMPORT, value)


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
        if (source / WORDINGS).is_file() and not (source / WORDINGS).is_symlink():
            importer.import_wordings(source / WORDINGS)
    order = {str(file): number for number, file in enumerate(files)}
    result.refused.sort(key=lambda refused: (order[refused.file], refused.line))
    if result.has_changed and guards:
        evicted = archive.run_guard(store, now)
        result.auto_archived, result.lru_evicted = evicted.auto_archived, evicted.lru_evicted
    if store.exists():
        with store.read() as tx:
            result.index_count = entries.count(tx)
    return result


def import_report(store: Store, knowledge_base: Path, item: Item, *, now: datetime) -> Imported:
    """Index a report that stands in the knowledge base already. Raises a ``StoreError``."""
    importer = _Importer(store, knowledge_base, now)
    importer.place([(knowledge_base / INDEX, item, True)])
    return importer.result


def _files(sources: Sequence[Path], result: Imported) -> Iterator[Path]:
    for source in dict.fromkeys(sources):
        if not source.is_dir():
            yield source
            continue
        found = [source / name for name in (INDEX, ARCHIVE) if (source / name).exists()]
        if not found:
            result.unreadable.append(Unreadable(str(source), f"holds neither {INDEX} nor {ARCHIVE}"))
        for file in found:  # a repository may bring them: no link is followed out of the folder
            if file.is_symlink():
                result.unreadable.append(Unreadable(str(file), "is a symbolic link, and is not followed"))
            else:
                yield file


class _Importer:
    """One import. Live entries are placed as they are read; archived ones once all live ones are known."""

    def __init__(self, store: Store, knowledge_base: Path, now: datetime) -> None:
        self.result = Imported()
        self._store = store
        self._base = knowledge_base
        self._now = now
        self._archived: list[tuple[Path, Item]] = []
        self._live_paths: set[Path] = set()

    def import_index(self, file: Path) -> None:
        """Place the live entries of a file, and keep its archived ones for ``import_archived``.

        Where its YAML is broken, what stands before that place is imported.
        """
        batch: list[tuple[Path, Item, bool]] = []
        try:
            for item in self._items(file):
                batch.append((file, item, True))
                if len(batch) == _BATCH:
                    self.place(batch)
                    batch.clear()
        except IndexUnreadable as error:
            self.result.unreadable.append(Unreadable(str(file), str(error)))
        self.place(batch)

    def import_archived(self) -> None:
        """Place the archived entries. A file is the text of the live entry that names it, else of the archived one that stands last.

        What the others said is not known: they come without a text.
        """
        last = {file.parent / item.path: number for number, (file, item) in enumerate(self._archived)}
        owners = {number for path, number in last.items() if path not in self._live_paths}
        placings = [
            (file, item, item.report is not None or number in owners)
            for number, (file, item) in enumerate(self._archived)
        ]
        for start in range(0, len(placings), _BATCH):
            self.place(placings[start : start + _BATCH])

    def place(self, batch: Sequence[tuple[Path, Item, bool]]) -> None:
        """Place items in one transaction, each with its index file and whether the file at its path is its text; then make the files."""
        if not batch:
            return
        with self._store.write() as tx:
            placer = Placer(tx, self._base, self._now)
            for file, item, has_text in batch:
                try:
                    self.result.counts[placer.place(item, file.parent, has_text=has_text)] += 1
                except BadItem as error:
                    self.result.refused.append(Refused(str(file), item.line, str(error)))
        files = ReportFiles(self._base)
        for path, text in placer.new_files.items():
            try:
                files.write(path, text)
            except ReportUnwritable as error:  # the next one who reads it makes it
                log.warning("%s; its text is in the database", error)

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

    def import_wordings(self, file: Path) -> None:
        """Give the entries that are here what the file says of them; what they know already stays."""
        try:
            items = list(_read(file))
        except IndexUnreadable as error:
            self.result.unreadable.append(Unreadable(str(file), str(error)))
            return
        with self._store.write() as tx:
            for line, fields in items:
                try:
                    if isinstance(fields, BadItem):
                        raise fields
                    _take_in(tx, fields, to_text(self._now))
                except BadItem as error:
                    self.result.warnings.append(f"{file}:{line}: {error}")


def _take_in(tx: Transaction, fields: Fields, now: str) -> None:
    entry_id = required(fields, "id")
    pair = pair_of(required(fields, "framework"), required(fields, "entry_topic"))
    live = entries.get(tx, entry_id)
    rows = [*([live] if live else []), *(row.entry for row in archive.of_id(tx, entry_id))]
    entry = next((row for row in rows if pair_of(row.framework, row.topic) == pair), None)
    kind = one_of(fields, "kind", ("times", "writer", "question", "wording"))
    if entry is None:
        return
    if kind == "times" and entry is live:
        _take_times(tx, entry, fields)
    elif kind == "writer":
        entries.set_writer(
            tx,
            entry_id,
            required(fields, "sha256").lower(),
            origin=one_of(fields, "origin", get_args(Origin)),
            confidence=one_of(fields, "confidence", get_args(Confidence)),
            written_by=text_of(fields, "written_by"),
        )
    elif kind in {"question", "wording"}:
        question, at = required(fields, "question", lines=True), min(time_of(fields, "at") or now, now)
        if kind == "question" and entry.question is None:
            entries.set_question(tx, entry_id, question, at=at)
            return
        need = Need(required(fields, "topic", lines=True), tags_of(fields) or (), question)
        session, proved = text_of(fields, "session_id"), text_of(fields, "proved") == "true"
        wordings.keep(tx, entry, need, at=at, session_id=session, proved=proved)


def _take_times(tx: Transaction, entry: Entry, fields: Fields) -> None:
    """Say exactly when where the entry knows the day alone: an access since then is later, and stays.

    When a text was researched is known from its own header so far, where somebody who edited it may have left the old day.
    """
    exact: dict[str, str | None] = {}
    for name in EXACT_TIMES:
        known, told = getattr(entry, name), time_of(fields, name)
        is_rough = known is not None and told is not None and is_day(known)
        exact[name] = told if is_rough and (name in _OF_TEXT or known[:10] == str(told)[:10]) else known
    entries.set_times(tx, entry.id, exact)
    if (major := text_of(fields, "stale_major")) is not None:
        entries.set_stale_major(tx, entry.id, major)


def _read(file: Path) -> Iterator[tuple[int, Fields | BadItem]]:
    try:
        if file.exists() and not file.is_file():
            raise IndexUnreadable("is not a regular file")
        with file.open("rb") as opened:
            yield from read_items(opened)
    except OSError as exc:
        raise IndexUnreadable(f"can't be read: {exc.strerror}") from exc
