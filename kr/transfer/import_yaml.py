"""Takes an existing file-based knowledge base in (SPEC 6.2).

Item by item: a bad one is named and skipped. What an index doesn't tell is taken from the report's own header.
A live entry whose report is missing is told and not indexed (SPEC 6.1): a look-up could only remove it.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from kr.errors import IndexUnreadable
from kr.freshness import parse_time, to_text
from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.report import fresh_until, is_by_hand, origin_of, read_confidence, read_date
from kr.store import archive, entries, importing, wordings
from kr.store.engine import Store, Transaction
from kr.store.files import ReportFiles
from kr.store.importing import Incoming, ReportText
from kr.store.places import pair_of
from kr.text.counting import counted
from kr.transfer import ARCHIVE, INDEX, TIMES, WORDINGS, WRITER, is_day
from kr.transfer.read_index import (
    LIMIT,
    Asked,
    Bad,
    BadItem,
    Item,
    Whose,
    Written,
    check_asked,
    check_item,
    check_times,
    check_writer,
    read_items,
)
from kr.values import Entry, origin_of_kind, replace

Progress = Callable[[int, int], None]
"""Called now and then with the number of lines that are done, and of all lines."""

_BATCH = 500
_BATCH_BYTES = 32 * 1024 * 1024
_MAX_REPORT_BYTES = 16 * 1024 * 1024


class Refused(NamedTuple):
    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class Unreadable(NamedTuple):
    file: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


@dataclass(slots=True)
class Imported:
    """What became of all items. ``warnings`` are sentences for a person."""

    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("imported", "updated", "unchanged", "archived"), 0)
    )
    refused: list[Refused] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    auto_archived: int = 0
    lru_evicted: int = 0
    index_count: int = 0

    @property
    def has_changed(self) -> bool:
        taken = sum(self.counts[name] for name in ("imported", "updated", "archived"))
        return bool(taken or self.auto_archived or self.lru_evicted)

    def plain(self) -> dict[str, Any]:
        return {
            **self.counts,
            "refused": len(self.refused),
            "auto_archived": self.auto_archived,
            "lru_evicted": self.lru_evicted,
            "index_count": self.index_count,
            "refused_items": [item._asdict() for item in self.refused],
            "errors": [file._asdict() for file in self.unreadable],
        }


def import_yaml(
    store: Store,
    knowledge_base: Path,
    sources: Sequence[Path],
    *,
    now: datetime,
    progress: Progress | None = None,
    guards: bool = True,
) -> Imported:
    """Import folders (both files of each) and single index files; the guard runs at the end, if it ``guards``.

    Files that can't be read and items that are refused are told in the result. Raises a ``StoreError``.
    """
    result = Imported()
    files = list(_files(sources, result))
    live_paths: dict[Path, set[str]] = {}
    # Live entries first: what is live and archived at once must not be taken for archived alone.
    for file in sorted(files, key=lambda file: file.name == ARCHIVE):
        live = live_paths.setdefault(file.absolute().parent, set())
        try:
            taken = _Import(store, knowledge_base, file, result=result, now=now, live_paths=live)
            taken.run(progress)
        except IndexUnreadable as error:
            result.unreadable.append(Unreadable(str(file), str(error)))
    _take_in_wordings(store, sources, result, now)
    if result.has_changed and guards:
        guarded = importing.run_guard(store, now)
        result.auto_archived, result.lru_evicted = guarded.auto_archived, guarded.lru_evicted
    if store.exists():
        with store.read() as tx:
            result.index_count = entries.count(tx)
    return result


def _take_in_wordings(store: Store, sources: Sequence[Path], result: Imported, now: datetime) -> None:
    """Take in what the entries of a folder were asked, where an export of kr says it."""
    for file in (source / WORDINGS for source in sources if source.is_dir()):
        if not file.exists():
            continue
        try:
            result.warnings += _wordings_of(store, file, _read(file), now=now)
        except IndexUnreadable as error:
            result.unreadable.append(Unreadable(str(file), str(error)))


def _files(sources: Sequence[Path], result: Imported) -> Iterator[Path]:
    seen: set[Path] = set()
    for source in sources:
        found = [source / name for name in (INDEX, ARCHIVE)] if source.is_dir() else [source]
        there = [file for file in found if file.exists() or not source.is_dir()]
        if not there:
            result.unreadable.append(Unreadable(str(source), f"holds neither {INDEX} nor {ARCHIVE}"))
        for file in there:
            if file.absolute() not in seen:
                seen.add(file.absolute())
                yield file


class _Import:
    def __init__(
        self,
        store: Store,
        knowledge_base: Path,
        file: Path,
        *,
        result: Imported,
        now: datetime,
        live_paths: set[str],
    ) -> None:
        self._store = store
        self._file = file
        self._folder = file.absolute().parent
        self._base = knowledge_base
        self._result = result
        self._now = now
        self._is_archive = file.name == ARCHIVE
        self._is_in_place = _is_same(self._folder, knowledge_base)
        self._first = len(result.refused)
        self._live_paths = live_paths
        self._departed: list[tuple[int, Incoming]] = []
        self._batch: list[tuple[int, Incoming]] = []
        self._bytes = 0
        self._differing: list[int] = []

    def run(self, progress: Progress | None) -> None:
        data = _read(self._file)
        total = data.count(b"\n") + 1

        def step(line: int) -> None:
            if len(self._batch) >= _BATCH or self._bytes >= _BATCH_BYTES:
                self._flush()
                if progress is not None:
                    progress(line, total)

        broken: IndexUnreadable | None = None
        try:
            for found in read_items(data):
                self._add(found)
                step(found.line)
        except IndexUnreadable as error:
            # What stands before the place is taken in; once that is mended, importing again takes in the rest.
            broken = error
        self._add_departed(step)
        self._flush()
        self._result.refused[self._first :] = sorted(self._result.refused[self._first :], key=_line)
        self._tell_differing()
        if broken is not None:
            raise broken

    def _add(self, found: Item | Bad) -> None:
        if isinstance(found, Bad):
            self._refuse(found.line, found.reason)
            return
        try:
            told = check_item(found.fields, now=self._now, archived=self._is_archive)
        except BadItem as error:
            self._refuse(found.line, str(error))
            return
        self._result.warnings += [f"{self._file}:{found.line}: {warning}" for warning in found.warnings]
        if told.departure is not None:
            self._departed.append((found.line, told))
            return
        self._live_paths.add(told.path)
        self._put(found.line, told, is_own=True)

    def _add_departed(self, step: Callable[[int], None]) -> None:
        """Add the archived items, once all live ones are known.

        A file is the report of the live entry that names it, else of the one that was archived last. What an
        archived entry said before that is not known, so that it comes without a text (SPEC 3.8).
        """
        last: dict[str, tuple[str, int]] = {}
        for line, told in self._departed:
            at = (told.departure.at if told.departure else None) or ""
            last[told.path] = max(last.get(told.path, ("", 0)), (at, line))
        for line, told in self._departed:
            is_last = last[told.path][1] == line and told.path not in self._live_paths
            self._put(line, told, is_own=is_last or told.report is not None)
            step(line)
        self._departed.clear()

    def _put(self, line: int, told: Incoming, *, is_own: bool) -> None:
        try:
            text = self._text(told) if is_own else None
        except BadItem as error:
            self._refuse(line, str(error))
            return
        self._batch.append((line, replace(told, text=text)))
        self._bytes += len(text.content) if text else 0

    def _text(self, told: Incoming) -> ReportText | None:
        """Read the report that an item names; where its folder has none, the one that is here already."""
        content = self._content(self._folder, told.report or told.path)
        if content is not None or self._is_in_place:
            return _read_header(content, self._now, is_here=self._is_in_place, is_theirs=True)
        here = self._store.files.read(told.path) if os.path.lexists(self._base / told.path) else None
        return _read_header(here, self._now, is_here=True, is_theirs=False)

    def _content(self, folder: Path, path: str) -> bytes | None:
        file = folder / path
        try:
            size = file.stat().st_size if os.path.lexists(file) else None
        except (OSError, RuntimeError, ValueError):
            size = 0
        if size is None:
            return None
        if size > _MAX_REPORT_BYTES:
            raise BadItem(f"path: the report is larger than {_MAX_REPORT_BYTES // 1024**2} MiB")
        content = ReportFiles(folder).read(path)
        if content is None:
            raise BadItem(
                f"path: {path} is not a file within {folder} that can be read (no link is followed out of it)"
            )
        return content

    def _flush(self) -> None:
        if not self._batch:
            return
        batch, self._batch, self._bytes = self._batch, [], 0
        outcomes = importing.take_in(self._store, [incoming for _, incoming in batch], self._now)
        for (line, _), outcome in zip(batch, outcomes, strict=True):
            if outcome.reason is not None:
                self._refuse(line, outcome.reason)
                continue
            self._result.counts[outcome.taken] += 1
            if outcome.differs:
                self._differing.append(line)

    def _tell_differing(self) -> None:
        if self._differing:
            items = counted(len(self._differing), "unchanged item says", "unchanged items say")
            self._result.warnings.append(
                f"{self._file}:{min(self._differing)}: {items} something else than the entry that is here, whose "
                "last_accessed is as new or newer. Where the item is right, give it the present time and import "
                f"again: last_accessed: {self._now:%Y-%m-%dT%H:%M:%SZ}"
            )

    def _refuse(self, line: int, reason: str) -> None:
        self._result.refused.append(Refused(str(self._file), line, reason))


def _read_header(
    content: bytes | None, now: datetime, *, is_here: bool, is_theirs: bool
) -> ReportText | None:
    text = (content or b"").decode(errors="replace")
    if content is None or not text.strip():
        return None
    kind = origin_of(text)
    if is_theirs and is_by_hand(text) and (reasons := reasons_to_hold(mask_secrets(clean(text)))):
        raise BadItem(f"path: its report is not taken in, since it {'; it '.join(reasons)}")
    researched = parse_time(read_date(text) or "")
    researched_at = to_text(researched) if researched is not None and researched <= now else None
    end = fresh_until(kind, researched_at)
    return ReportText(
        content=content,
        is_here=is_here,
        is_theirs=is_theirs,
        confidence=read_confidence(text) or "low",
        origin=origin_of_kind(kind, is_ours=False),
        researched_at=researched_at,
        fresh_until=to_text(end) if end is not None else None,
    )


def _line(refused: Refused) -> int:
    return refused.line


def _read(file: Path) -> bytes:
    try:
        if file.exists() and not file.is_file():
            raise IndexUnreadable("is not a regular file")
        with file.open("rb") as opened:
            return opened.read(LIMIT + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise IndexUnreadable(f"can't be read: {reason}") from error


def _is_same(folder: Path, other: Path) -> bool:
    try:
        return folder.samefile(other)
    except OSError:
        return False


def _wordings_of(store: Store, file: Path, data: bytes, *, now: datetime) -> list[str]:
    """Give the entries that are here what the file says of them; what they know is left. Returns what was wrong.

    Raises ``IndexUnreadable``, or a ``StoreError``.
    """
    bad: list[str] = []
    items = list(read_items(data))
    with store.write() as tx:
        for found in items:
            if isinstance(found, Bad):
                bad.append(f"{file}:{found.line}: {found.reason}")
                continue
            try:
                kind = found.fields.get("kind")
                if kind == TIMES:
                    _take_times(tx, *check_times(found.fields))
                elif kind == WRITER:
                    _take_writer(tx, check_writer(found.fields))
                else:
                    _take_asked(tx, check_asked(found.fields, now=now))
            except BadItem as error:
                bad.append(f"{file}:{found.line}: {error}")
    return bad


def _take_times(
    tx: Transaction, whose: Whose, times: Mapping[str, str | None], stale_major: str | None
) -> None:
    """Say exactly when, where the entry knows the day alone: an access since then is later, and stays.

    Likewise for which major version it is stale, where it came as stale and nobody here marked it.
    """
    entry = entries.get(tx, whose.id)
    if entry is not None and _is_of(whose, entry):
        exact = {name: _exact(getattr(entry, name), told) for name, told in times.items()}
        entries.set_times(tx, entry.id, exact)
        if stale_major is not None:
            entries.set_stale_major(tx, entry.id, stale_major)


def _take_writer(tx: Transaction, written: Written) -> None:
    """Say who wrote a text that came from elsewhere: one that kr or somebody here made keeps its own."""
    whose = written.whose
    live = entries.get(tx, whose.id)
    known = [row.entry for row in archive.of_id(tx, whose.id)]
    if any(_is_of(whose, entry) for entry in ([live, *known] if live is not None else known)):
        entries.set_writer(
            tx,
            whose.id,
            written.sha256,
            origin=written.origin,
            confidence=written.confidence,
            written_by=written.written_by,
        )


def _is_of(whose: Whose, entry: Entry) -> bool:
    return pair_of(entry.framework, entry.topic) == pair_of(whose.framework, whose.entry_topic)


def _exact(known: str | None, told: str | None) -> str | None:
    if known is None or told is None or not is_day(known) or known[:10] != told[:10]:
        return known
    return told


def _take_asked(tx: Transaction, asked: Asked) -> None:
    live = entries.get(tx, asked.whose.id)
    entry = live or next((row.entry for row in archive.of_id(tx, asked.whose.id)), None)
    if entry is None or not _is_of(asked.whose, entry):
        return
    if asked.kind == "question" and entry.question is None:
        entries.set_question(tx, entry.id, asked.need.question, at=asked.at)
    else:
        proved = asked.proved
        wordings.keep(tx, entry, asked.need, at=asked.at, session_id=asked.session_id, proved=proved)
