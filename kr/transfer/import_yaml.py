"""Imports an existing file-based knowledge base: ``kr import-yaml``, and an ``index.yaml`` beside an empty database.

Items are checked one by one; a bad one is named by file and line, and skipped. An entry is known again by its id, and the newer
``last_accessed`` wins, also against the archive: what the capacity guard archived does not come back. Importing twice changes nothing.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from kr.errors import BrokenYaml
from kr.models import Entry
from kr.store import entries
from kr.store.engine import Store, Transaction
from kr.store.entries import pair_of
from kr.store.files import file_lock
from kr.text import Tree
from kr.times import to_text
from kr.transfer import ARCHIVE, INDEX, WORDINGS
from kr.transfer.place import BadItem, Item, Outcome, Placer, check_item, check_wording, refuse_orders
from kr.yaml_io import read_list

log = logging.getLogger(__name__)

_BATCH = 500
_MOST_SHOWN = 20
_FIRST_IMPORT = "first_import"
"""The key of when the index beside an empty database was imported."""
_BEGUN = "begun"
_LOCK = ".import.lock"
_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Problem:
    """An item that was refused, by its line from 1; or, without a line, a file that can't be read."""

    file: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.reason}"


@dataclass(slots=True)
class Imported:
    """What became of all items."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(get_args(Outcome), 0))
    refused: list[Problem] = field(default_factory=list)
    unreadable: list[Problem] = field(default_factory=list)

    @property
    def has_changed(self) -> bool:
        return sum(self.counts.values()) > self.counts["unchanged"]

    def plain(self) -> dict[str, Any]:
        return {
            **self.counts,
            "refused": len(self.refused),
            "refused_items": [asdict(item) for item in self.refused],
            "errors": [asdict(file) for file in self.unreadable],
        }

    def log_problems(self) -> None:
        """Warn of what was not imported."""
        problems = [*self.unreadable, *self.refused]
        for problem in problems[:_MOST_SHOWN]:
            log.warning("%s", problem)
        if len(problems) > _MOST_SHOWN:
            log.warning("… and %d more", len(problems) - _MOST_SHOWN)


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
        store.change(lambda tx: tx.note(_FIRST_IMPORT, _BEGUN))
        result = import_yaml(store, knowledge_base, [knowledge_base], now=now, adopts=True)
        result.log_problems()
        is_in_vain = bool(result.unreadable) and not result.has_changed
        store.change(lambda tx: tx.note(_FIRST_IMPORT, "" if is_in_vain else to_text(now)))
        return not is_in_vain


def _is_first_use(store: Store) -> bool:
    with store.read() as tx:
        noted = tx.fact(_FIRST_IMPORT)
        return noted == _BEGUN or (not noted and entries.count(tx) == 0)


def import_yaml(
    store: Store, knowledge_base: Path, sources: Sequence[Path], *, now: datetime, adopts: bool = False
) -> Imported:
    """Import folders (index and archive of each) and single index files, with the wordings beside them; then run the capacity guard.

    With ``adopts`` nobody asked for it, and a repository may have brought the files: all that an agent would read is judged, and
    nothing counts as a person's, as confirmed or as proved. Where a YAML is broken, what stands before that place is imported.
    What can't be read or is refused stands in the result. Raises a ``StoreError``.
    """
    result, live, archived = Imported(), list[Item](), list[Item]()
    for file in _files(sources, result):
        for line, data in _read(file, result):
            try:
                item = check_item(data, file, line, now=now, is_archive=file.name == ARCHIVE)
            except BadItem as error:
                result.refused.append(Problem(str(file), line, str(error)))
            else:
                (live if item.reason is None else archived).append(item)
    # A file is the text of the live entry that names it, else of the archived one that stands last; of others it is not known.
    owners = {item.file.parent / item.path: item for item in (*archived, *live)}
    archived = [
        item if item.report or owners[item.file.parent / item.path] is item else replace(item, has_text=False)
        for item in archived
    ]
    items = [*live, *archived]
    for start in range(0, len(items), _BATCH):
        _place(store, knowledge_base, items[start : start + _BATCH], result, now=now, adopts=adopts)
    for folder in dict.fromkeys(source if source.is_dir() else source.parent for source in sources):
        if (folder / WORDINGS).is_file() and not (folder / WORDINGS).is_symlink():
            _import_wordings(store, folder / WORDINGS, result, now=to_text(now), adopts=adopts)
    result.refused.sort(key=lambda problem: (problem.file, problem.line))
    if result.has_changed:
        store.change(lambda tx: entries.enforce_capacity(tx, now))
    return result


def import_report(store: Store, knowledge_base: Path, item: Item, *, now: datetime) -> Imported:
    """Index a report that stands in the knowledge base already. Raises a ``StoreError``."""
    result = Imported()
    _place(store, knowledge_base, [item], result, now=now, adopts=True)
    return result


def _files(sources: Sequence[Path], result: Imported) -> Iterator[Path]:
    for source in dict.fromkeys(sources):
        if not source.is_dir():
            if source.name != WORDINGS or not source.exists():
                yield source
            continue
        found = [source / name for name in (INDEX, ARCHIVE) if (source / name).exists()]
        if not found:
            result.unreadable.append(Problem(str(source), None, f"holds neither {INDEX} nor {ARCHIVE}"))
        for file in found:  # a repository may bring them: no link is followed out of the folder
            if file.is_symlink():
                result.unreadable.append(Problem(str(file), None, "is a symbolic link, and is not followed"))
            else:
                yield file


def _read(file: Path, result: Imported) -> Iterator[tuple[int, Tree]]:
    """Yield a file's items, each with its line from 1; that it can't be read, or not further, stands in the result."""
    if file.exists() and not file.is_file():
        result.unreadable.append(Problem(str(file), None, "is not a regular file"))
        return
    try:
        with file.open("rb") as stream:
            yield from read_list(stream)
    except OSError as error:
        result.unreadable.append(Problem(str(file), None, f"can't be read: {error.strerror}"))
    except BrokenYaml as error:
        result.unreadable.append(Problem(str(file), None, str(error)))


def _place(
    store: Store,
    knowledge_base: Path,
    items: Sequence[Item],
    result: Imported,
    *,
    now: datetime,
    adopts: bool,
) -> None:
    """Place items in one transaction."""

    def write(tx: Transaction) -> tuple[list[Outcome], list[Problem]]:
        placer = Placer(tx, knowledge_base, now, adopts)
        done, refused = list[Outcome](), list[Problem]()
        for item in items:
            try:
                done.append(placer.place(item))
            except BadItem as error:
                refused.append(Problem(str(item.file), item.row, str(error)))
        return done, refused

    done, refused = store.change(write)
    result.refused += refused
    for what in done:
        result.counts[what] += 1


def _import_wordings(store: Store, file: Path, result: Imported, *, now: str, adopts: bool) -> None:
    """Give the entries that are here what the file says of them; what they know already stays."""
    items = list(_read(file, result))

    def write(tx: Transaction) -> list[Problem]:
        refused = []
        for line, data in items:
            try:
                _take_in(tx, check_wording(data), now, adopts=adopts)
            except BadItem as error:
                refused.append(Problem(str(file), line, str(error)))
        return refused

    result.refused += store.change(write)


def _take_in(tx: Transaction, told: Mapping[str, Any], now: str, *, adopts: bool) -> None:
    entry_id, pair = told["id"], pair_of(told["framework"], told["entry_topic"])
    live = entries.get(tx, entry_id)
    gone = (row.entry for row in entries.archived(tx, id=entry_id))
    rows = gone if live is None else (live, *gone)
    entry = next((row for row in rows if pair_of(row.framework, row.topic) == pair), None)
    if entry is None:
        return
    if adopts:
        told = _doubted(told, entry)
    match told["kind"]:
        case "writer":
            who = {name: told[name] for name in ("origin", "confidence", "written_by")}
            entries.set_writer(tx, entry_id, told["sha256"].lower(), **who)
        case "question" if entry.question in {None, told["question"]}:
            entries.set_question(tx, entry_id, told["question"], at=min(told["at"] or now, now))
        case "question" | "wording":
            names = ("topic", "tags", "question", "session_id", "proved")
            wording = {name: told[name] for name in names}
            entries.keep_wording(tx, entry, wording | {"at": min(told["at"] or now, now)})


def _doubted(told: Mapping[str, Any], entry: Entry) -> dict[str, Any]:
    """Return what is left of an item that nobody vouches for. Raises ``BadItem`` where it gives orders."""
    refuse_orders("question:", "\n".join(filter(None, (told.get("question"), told.get("topic")))))
    less: dict[str, Any] = {"proved": False, "confidence": entry.confidence}
    if told.get("origin") == "finding" and entry.confidence == "high":
        less["confidence"] = "medium"
    if (told.get("written_by") or "").startswith("person:"):
        less["written_by"] = "file"
    return {**told, **less}
