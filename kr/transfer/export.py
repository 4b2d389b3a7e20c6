"""Writes ``index.yaml`` and ``_archived-index.yaml`` (SPEC 3.8 and 6.1); elsewhere with what an import needs besides.

A write of kr must not cost more because a million entries are archived: the exported archive stands in the order of
archiving, so that new rows are appended. It is written anew where a row left it, which is counted. What somebody else wrote into the index
is imported before it is written over.
"""

import hashlib
import json
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from kr.errors import ExportFailed, StoreUnwritable
from kr.models import Entry, to_plain
from kr.store import archive, meta, revisions
from kr.store import entries as entry_rows
from kr.store import reports as stored_reports
from kr.store import wordings as wording_rows
from kr.store.archive import Archived
from kr.store.engine import Store, Transaction
from kr.store.files import ReportFiles
from kr.store.lock import file_lock
from kr.store.meta import ARCHIVE_CHANGES
from kr.store.reports import is_settled
from kr.store.requests import Need
from kr.store.wordings import Wording
from kr.text.counting import counted
from kr.transfer import ARCHIVE, EXACT, INDEX, PROVED, STALE_MAJOR, TIMES, WORDINGS, WRITER, is_day

log = logging.getLogger(__name__)


_LOCK = ".export.lock"
_OWN = "exported:"
_WAIT_SECONDS = 60.0
_KEPT = 8
"""How many of its own earlier states of a file kr knows again."""
_CHUNK = 1024 * 1024
_SHOWN = 20


def refresh_exports(store: Store, knowledge_base: Path) -> None:
    """Bring both files of the knowledge base to what the database holds; raises as ``export_yaml``."""
    _make(knowledge_base)
    with _queue(knowledge_base, is_own=True):
        _write_own(store, knowledge_base)


def _take_edits_in(store: Store) -> None:
    """Take in what somebody wrote into a report's file, before it is told elsewhere (SPEC 3.8)."""
    with store.read() as tx:
        edited = [entry for entry in entry_rows.all(tx) if not is_settled(tx, entry)]
    for entry in edited:
        stored_reports.read_report(store, entry)


def _write_own(store: Store, folder: Path) -> None:
    """Write both files of the knowledge base; an index that somebody else wrote is imported first (SPEC 3.8), and a copy kept.

    Of the archive only a copy is kept: what left the index for good must not come back by an older file.
    """
    strangers = _write_indexes(store, folder, _OWN, is_first=True)
    if not strangers:
        return
    from kr.transfer.import_yaml import import_yaml

    result = import_yaml(store, folder, strangers, now=datetime.now(UTC), guards=False)
    told = [*map(str, result.unreadable), *map(str, result.refused), *result.warnings]
    for line in told[:_SHOWN]:
        log.warning("%s", line)
    if len(told) > _SHOWN:
        log.warning("%s: %s", folder, counted(len(told) - _SHOWN, "more warning"))
    _write_indexes(store, folder, _OWN)


def export_yaml(
    store: Store, knowledge_base: Path, folder: Path | None = None, *, index_only: bool = False
) -> dict[str, Any]:
    """Write both files into ``folder`` (default: the knowledge base), and elsewhere what an import needs besides.

    Returns how many ``entries``, ``archived`` and ``reports`` were written, and the ``files``. The newest state of parallel writers
    stays; what kr did not write is copied first. Raises ``ExportFailed`` naming the file, or a ``StoreError``.
    """
    folder = knowledge_base if folder is None else folder
    is_own = folder.resolve() == knowledge_base.resolve()
    files, reports = [folder / INDEX, folder / ARCHIVE], 0
    _make(folder)
    _take_edits_in(store)
    with _queue(knowledge_base, is_own=is_own):
        if is_own:
            _write_own(store, folder)
        else:
            more, reports = _write_elsewhere(store, folder, index_only=index_only)
            files += more
        with store.read() as tx:
            counts = {"entries": entry_rows.count(tx), "archived": archive.count(tx), "reports": reports}
    return {**counts, "files": [str(file) for file in files]}


def _write_elsewhere(store: Store, folder: Path, *, index_only: bool) -> tuple[list[Path], int]:
    # Reports before the index that names them.
    with _told(folder), store.read() as tx:
        reports = 0 if index_only else write_reports(tx, folder)
        asked = render_wordings(tx)
        if asked is not None:
            _stage(folder / WORDINGS, [asked]).replace(folder / WORDINGS)
    prefix = f"{_OWN}{folder.resolve()}{os.sep}"
    _write_indexes(store, folder, prefix, report_of=None if index_only else archived_report)
    return [folder / WORDINGS] if asked is not None else [], reports


class _Ready(NamedTuple):
    """A file that takes its name, unless it is in place, once ``value`` is remembered under ``key``: a crash makes it no stranger's."""

    path: Path
    staged: Path | None
    key: str
    value: str
    is_strangers: bool = False
    """Whether somebody else wrote what is there."""


def _write_indexes(
    store: Store, folder: Path, prefix: str, report_of: Any = None, *, is_first: bool = False
) -> list[Path]:
    """Write both files. With ``is_first`` nothing is written where somebody else wrote one: which is returned."""
    ready: list[_Ready] = []
    try:
        with _told(folder):
            with store.read() as tx:
                ready += _index(tx, folder / INDEX, prefix + INDEX)
                ready += _archive(tx, folder / ARCHIVE, f"{prefix}{ARCHIVE}:states", report_of)
            strangers = [file.path for file in ready if file.is_strangers]
            if is_first and strangers:
                return strangers
            _remember(store, ready)
            for file in ready:
                if file.staged is not None:
                    file.staged.replace(file.path)
            return []
    finally:
        for file in ready:
            if file.staged is not None:
                file.staged.unlink(missing_ok=True)


def _index(tx: Transaction, path: Path, key: str) -> Iterator[_Ready]:
    """Make the index ready; its earlier states are known by their hashes."""
    content = render_index(entry_rows.all(tx)).encode()
    present = path.read_bytes() if path.is_file() else None
    if present == content:
        return
    known = (meta.get(tx, key) or "").split()
    is_strangers = present is not None and _digest(present) not in known
    if present is not None and is_strangers:
        _keep_copy(path, present)
    states = " ".join([_digest(content), *known][:_KEPT])
    yield _Ready(path, _stage(path, [content.decode()]), key, states, is_strangers)


class _Mark(NamedTuple):
    """A state of the exported archive: the file's size and time, its last row, and how many changes were seen."""

    size: int
    mtime_ns: int
    last: int
    changes: int

    @classmethod
    def of(cls, path: Path, last: int, changes: int) -> "_Mark":
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, last, changes)


def _archive(tx: Transaction, path: Path, key: str, report_of: Any) -> Iterator[_Ready]:
    """Make the archive ready, or append to it; a million rows are not read to tell whether the file is ours."""
    last, changes = archive.last_id(tx), int(meta.get(tx, ARCHIVE_CHANGES) or 0)
    marks = [_Mark(*map(int, mark.split())) for mark in (meta.get(tx, key) or "").split(";") if mark]
    present = path.stat() if path.is_file() else None
    ours = [
        mark for mark in marks if present is not None and mark[:2] == (present.st_size, present.st_mtime_ns)
    ]
    newest = marks[0] if marks[:1] == ours[:1] and ours else None
    if newest is not None and newest.changes == changes and report_of is None:
        if newest.last == last:
            return
        if newest.last:
            _append(path, render_archive(archive.since(tx, newest.last), is_continued=True))
            yield _Ready(path, None, key, _joined(_Mark.of(path, last, changes), marks))
            return
    staged = _stage(path, render_archive(archive.since(tx, 0), report_of=report_of))
    # An export that was killed while it appended left a beginning of what is to be written now.
    if present is not None and not ours and not _begins_with(staged, path):
        _keep_copy(path, path.read_bytes())
    yield _Ready(path, staged, key, _joined(_Mark.of(staged, last, changes), marks))


def _joined(newest: _Mark, marks: list[_Mark]) -> str:
    return ";".join(" ".join(map(str, mark)) for mark in [newest, *marks][:_KEPT])


def _remember(store: Store, ready: list[_Ready]) -> None:
    if not ready:
        return
    try:
        with store.write() as tx:
            for file in ready:
                meta.put(tx, file.key, file.value)
    except StoreUnwritable as error:
        # A database that can only be read is exported all the same; next time these files get copies.
        log.debug("%s", error)


@contextmanager
def _queue(knowledge_base: Path, *, is_own: bool) -> Iterator[None]:
    """Hold the lock of all exports of a knowledge base: in it, so that no lock stays in anybody's folder."""
    with ExitStack() as held:
        try:
            knowledge_base.mkdir(parents=True, exist_ok=True)
            held.enter_context(file_lock(knowledge_base / _LOCK, timeout=_WAIT_SECONDS))
        except (OSError, StoreUnwritable) as error:
            # One that can only be read is exported elsewhere all the same, without a queue.
            if is_own:
                raise
            log.debug("%s", error)
        yield


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ExportFailed(f"{error.filename or folder}: {error.strerror}") from error


def _make(folder: Path) -> None:
    with _told(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _keep_copy(path: Path, content: bytes) -> None:
    """Copy to ``index.yaml.bak``, then ``.bak.1``, …: a name that is free, or holds these very bytes."""
    number = 0
    while True:
        copy = path.with_name(f"{path.name}.bak" + (f".{number}" if number else ""))
        with suppress(FileExistsError):
            with copy.open("xb") as file:
                file.write(content)
            return
        if copy.is_file() and copy.read_bytes() == content:
            return
        number += 1


def _stage(path: Path, parts: Iterable[str]) -> Path:
    """Write a text to disk under a hidden name beside ``path``; nothing is left of it when that fails."""
    staged = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with staged.open("x", encoding="utf-8", newline="") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    return staged


def _append(path: Path, parts: Iterable[str]) -> None:
    with path.open("a", encoding="utf-8", newline="") as file:
        file.writelines(parts)


def _begins_with(whole: Path, beginning: Path) -> bool:
    with whole.open("rb") as one, beginning.open("rb") as other:
        while part := other.read(_CHUNK):
            if one.read(len(part)) != part:
                return False
    return True


def archived_report(archived: Archived) -> str | None:
    """Return where an archived row's text goes: its path may be a live entry's by now. None: it has no text."""
    return f"archived/{archived.archive_id}.md" if archived.entry.sha256 is not None else None


def write_reports(tx: Transaction, folder: Path) -> int:
    """Write the text of every live entry to its path, and of archived rows beside; return how many. Raises ``ReportUnwritable``."""
    files = ReportFiles(folder)
    texts = [(entry.path, entry.sha256) for entry in entry_rows.all(tx)]
    texts += [(path, row.entry.sha256) for row in archive.since(tx, 0) if (path := archived_report(row))]
    number = 0
    for path, sha256 in texts:
        text = revisions.text(tx, sha256)
        if text is not None:
            files.write(path, text)
            number += 1
    return number


def render_wordings(tx: Transaction) -> str | None:
    """Render the writers, questions and wordings of all entries, live or archived, sorted by id; None where nothing is known."""
    known: dict[str, Entry] = {row.entry.id: row.entry for row in archive.all(tx)}
    known |= {entry.id: entry for entry in entry_rows.all(tx)}
    wordings = wording_rows.all(tx)
    items = [_times_item(entry) for entry in entry_rows.all(tx) if _says_more_than_days(entry)]
    texts = [*entry_rows.all(tx), *(row.entry for row in archive.all(tx))]
    written = {(it.id, it.sha256): it for it in texts if it.sha256 is not None and it.origin != "imported"}
    items += [_writer_item(entry, sha256) for (_, sha256), entry in sorted(written.items())]
    for _, entry in sorted(known.items()):
        items += _asked_items(entry, wordings.get(entry.id, ()))
    return render_items(items) if items else None


def _says_more_than_days(entry: Entry) -> bool:
    times = (getattr(entry, name) for name in EXACT)
    return entry.stale_major is not None or any(time is not None and not is_day(time) for time in times)


def _times_item(entry: Entry) -> "Item":
    told = {name: getattr(entry, name) for name in (*EXACT, STALE_MAJOR)}
    return {**_whose(entry), "kind": TIMES, **{name: time for name, time in told.items() if time is not None}}


def _writer_item(entry: Entry, sha256: str) -> "Item":
    told = {"origin": entry.origin, "confidence": entry.confidence, "written_by": entry.written_by}
    return {**_whose(entry), "kind": WRITER, "sha256": sha256} | {
        k: v for k, v in told.items() if v is not None
    }


def _asked_items(entry: Entry, wordings: Iterable[Wording]) -> Iterator["Item"]:
    if entry.question is not None:
        need, at = Need(entry.topic, entry.tags, entry.question), entry.researched_at or entry.created
        yield {**_whose(entry), "kind": "question", **to_plain(need), "at": at}
    for it in wordings:
        need = Need(it.topic, it.tags, it.question)
        item = {**_whose(entry), "kind": "wording", **to_plain(need), "at": it.at}
        told = {"session_id": it.session_id, PROVED: "true" if it.proved else None}
        yield {**item, **{name: value for name, value in told.items() if value is not None}}


def _whose(entry: Entry) -> dict[str, str]:
    return {"id": entry.id, "framework": entry.framework, "entry_topic": entry.topic}


HEADER = "# Written by kr from its database. An edited item is taken in by `kr import-yaml` if its last_accessed is later.\n"

Item = Mapping[str, str | tuple[str, ...]]

_EMOJI = "[\u203c-\u3299\ufe0f\U0001f000-\U0001faff]"
_NOT_PRINTABLE = re.compile(
    "[\x7f-\x9f\xad\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff\U000e0000-\U000e0fff]"
    # The joiner makes one sign of two emoji, and is seen there; anywhere else it hides.
    f"|(?<!{_EMOJI})\u200d|\u200d(?!{_EMOJI})"
)


_encode = json.JSONEncoder(ensure_ascii=False).encode


@lru_cache(4096)
def quoted(text: str) -> str:
    """Write ``text`` as a double-quoted scalar in one line; what a reader can't see is escaped."""
    return _NOT_PRINTABLE.sub(_escape, _encode(text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def render_index(entries: Iterable[Entry]) -> str:
    return render_items(_item(entry, entry.status) for entry in sorted(entries, key=lambda entry: entry.id))


def render_archive(
    archived: Iterable[Archived],
    *,
    report_of: Callable[[Archived], str | None] | None = None,
    is_continued: bool = False,
) -> Iterator[str]:
    """Render archived rows as they come; ``report_of`` says where a text stands, ``is_continued``: the file has a header."""
    items = (_archived_item(row, report_of) for row in archived)
    return render_parts(items, is_continued=is_continued)


def _archived_item(row: Archived, report_of: Callable[[Archived], str | None] | None) -> Item:
    item = {**_item(row.entry, "archived"), "archived_at": row.archived_at, "reason": row.reason}
    report = report_of(row) if report_of is not None else None
    return item if report is None else {**item, "report": report}


def _item(entry: Entry, status: str) -> dict[str, str | tuple[str, ...]]:
    return {
        "id": entry.id,
        "framework": entry.framework,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "tags": entry.tags,
        "path": entry.path,
        "created": entry.created[:10],
        "last_accessed": entry.last_accessed[:10],
        "status": status,
    }


def render_items(items: Iterable[Item]) -> str:
    return "".join(render_parts(items))


def render_parts(items: Iterable[Item], *, is_continued: bool = False) -> Iterator[str]:
    """Render a list item by item; an empty one, unless it ``is_continued``, is told as such."""
    if not is_continued:
        yield HEADER
    is_empty = not is_continued
    for item in items:
        is_empty = False
        lines = (f"  {key}: {_value(value)}\n" for key, value in item.items())
        yield f"- {''.join(lines)[2:]}"
    if is_empty:
        yield "[]\n"


def _value(value: str | tuple[str, ...]) -> str:
    return quoted(value) if isinstance(value, str) else f"[{', '.join(map(quoted, value))}]"
