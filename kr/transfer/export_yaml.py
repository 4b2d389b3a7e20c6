"""Writes ``index.yaml`` and ``_archived-index.yaml``, what was rated wrong, and into another folder what an import needs besides.

A write must not cost more because a million entries are archived: the exported archive stands in the order of archiving, and new rows
are appended. It is written anew where a row left it, which is counted. The index of the knowledge base that somebody else wrote is
imported before it is written over.
"""

import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kr.errors import ExportFailed
from kr.models import Entry, Outcome
from kr.store import archive, meta, revisions
from kr.store import entries as entry_rows
from kr.store import reports as stored_reports
from kr.store import wordings as wording_rows
from kr.store.archive import Archived
from kr.store.engine import ALONE, Store, Transaction
from kr.store.files import ReportFiles, open_own, write_new
from kr.store.lock import file_lock
from kr.store.meta import ARCHIVE_CHANGES
from kr.store.reports import settled
from kr.transfer import ARCHIVE, CONFLICT, EXACT_TIMES, INDEX, WORDINGS, has_conflict, is_day
from kr.transfer.import_yaml import import_yaml

log = logging.getLogger(__name__)

HEADER = "# Written by kr from its database. An edited item is taken in by `kr import-yaml` if its last_accessed is later.\n"

_LOCK = ".export.lock"
_WAIT_SECONDS = 60.0
_STATES = {INDEX: "exported index", WORDINGS: "exported ratings"}
"""The keys under which the hashes of the last states of the exported index and ratings are noted: those that kr knows for its own."""
_MOST_STATES = 8
_ARCHIVE_STATE = "exported archive"
"""The key of ``[size, mtime_ns, archive_id, removals]``: the exported archive's file as kr left it, the last row in it, and how
often rows had left the archive."""

_ENCODER = json.JSONEncoder(ensure_ascii=False)
Item = Mapping[str, str | tuple[str, ...]]


def refresh_exports(store: Store, knowledge_base: Path) -> None:
    """Bring both files of the knowledge base to what the database holds. Raises ``ExportFailed``, or a ``StoreError``."""
    asked, lock = time.time(), knowledge_base / _LOCK
    with _translated(knowledge_base):
        knowledge_base.mkdir(parents=True, exist_ok=True)
        with file_lock(lock, timeout=_WAIT_SECONDS):
            if _was_exported_since(lock, asked):
                return
            began = time.time()
            _write_own(store, knowledge_base)
            with suppress(OSError):  # another user's
                lock.write_text(str(began))


def _was_exported_since(lock: Path, asked: float) -> bool:
    """Tell whether who held the lock before read the database after this time: of many who wait, one exports for all."""
    with suppress(OSError, ValueError):
        return asked < float(lock.read_text()) <= time.time()
    return False


def export_yaml(store: Store, knowledge_base: Path, folder: Path | None = None) -> dict[str, Any]:
    """Write both files into ``folder`` (default: the knowledge base); into another one the reports and wordings too.

    Returns how many ``entries``, ``archived`` and ``reports`` were written, and the ``files``. What kr did not write is copied first, and
    the newest state of parallel writers stays. Raises ``ExportFailed`` naming the file, or a ``StoreError``.
    """
    folder = knowledge_base if folder is None else folder
    _take_edits_in(store)
    files, reports = [folder / INDEX, folder / ARCHIVE], 0
    if folder.resolve() == knowledge_base.resolve():
        refresh_exports(store, knowledge_base)
    else:
        with _translated(folder):
            folder.mkdir(parents=True, exist_ok=True)
            reports = _write_elsewhere(store, folder)
    with store.read() as tx:
        counts = {"entries": entry_rows.count(tx), "archived": archive.count(tx), "reports": reports}
    files += [folder / WORDINGS] if (folder / WORDINGS).exists() else []
    return {**counts, "files": [str(file) for file in files]}


def _take_edits_in(store: Store) -> None:
    """Take in what somebody wrote into the file of a report."""
    with store.read() as tx:
        edited = [entry for entry in entry_rows.all(tx) if settled(tx, entry) is None]
    for entry in edited:
        stored_reports.read_report(store, entry)


def _write_own(store: Store, folder: Path) -> None:
    """Write the files; an index or ratings that somebody else wrote are copied and imported first.

    An archive of others is copied alone: what left the index for good must not come back by an older file. Where git left conflict
    markers nothing is touched. Raises ``ExportFailed``.
    """
    for name in _STATES:
        _refuse_conflict(folder / name)
    contents = _own_contents(store)
    edited = [name for name in _STATES if _is_others(store, folder / name, contents[name])]
    if edited:
        paths = [folder / name for name in edited]
        for path in paths:
            log.warning("%s was edited: it is imported, and %s is a copy", path, _keep_copy(path).name)
        import_yaml(store, folder, paths, now=datetime.now(UTC), guards=False, adopts=True).log_problems()
        contents = _own_contents(store)
    for name, content in contents.items():
        _write_noted(store, folder / name, content)
    _write_archive(store, folder / ARCHIVE)


def _refuse_conflict(path: Path) -> None:
    if path.is_file() and has_conflict(path):
        raise ExportFailed(f"{path}: {CONFLICT}")


def _own_contents(store: Store) -> dict[str, bytes]:
    """Return what the files of the knowledge base itself are to hold; nothing for one that is not needed."""
    with store.read() as tx:
        index, wrong = render_index(entry_rows.all(tx)), list(_ratings(tx, "wrong"))
    ratings = "".join(_render(wrong, HEADER)) if wrong else ""
    return {INDEX: index.encode(), WORDINGS: ratings.encode()}


def _is_others(store: Store, path: Path, content: bytes) -> bool:
    """Tell whether a file holds what kr did not write there."""
    present = _own_bytes(path)
    return bool(present) and present != content and _hash(present) not in _known_states(store, path.name)


def _write_noted(store: Store, path: Path, content: bytes) -> None:
    """Write a file whose state is noted before it takes its name: a crash in between makes it no stranger's."""
    if _own_bytes(path) == content:
        return
    states = [_hash(content), *_known_states(store, path.name)]
    _note(store, _STATES[path.name], " ".join(states[:_MOST_STATES]))
    if content:
        _replace(path, [content.decode()])
    else:
        path.unlink(missing_ok=True)


def _own_bytes(path: Path) -> bytes:
    """Return what a file holds; nothing where there is none, or a link that a repository brought."""
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""


def _known_states(store: Store, name: str) -> list[str]:
    with store.read() as tx:
        return (meta.get(tx, store.folder_key(_STATES[name])) or "").split()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_archive(store: Store, path: Path) -> None:
    """Append what was archived since the last export; where a row left the archive, or the file is not as it was, write all of it."""
    with store.read() as tx:
        rows = [archive.last_id(tx), int(meta.get(tx, ARCHIVE_CHANGES) or 0)]
        noted = json.loads(meta.get(tx, store.folder_key(_ARCHIVE_STATE)) or "null") or [None, None, 0, 0]
        is_ours = _file_state(path) == noted[:2]
        if is_ours and noted[2:] == rows:
            return
        last, removals = noted[2:]
        if is_ours and last and removals == rows[1]:
            with os.fdopen(
                open_own(path, os.O_WRONLY | os.O_APPEND), "a", encoding="utf-8", newline=""
            ) as file:
                file.writelines(_render(map(_archived_item, archive.since(tx, last))))
        else:
            if not is_ours and path.is_file():
                _refuse_conflict(path)
                _keep_copy(path)
            _replace(path, render_archive(archive.since(tx, 0)))
    _note(store, _ARCHIVE_STATE, json.dumps([*_file_state(path), *rows]))


def _file_state(path: Path) -> list[int]:
    """Return size and time of a file; a million rows are not read to tell whether it is kr's."""
    if not path.is_file():
        return []
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _note(store: Store, key: str, value: str) -> None:
    store.change(lambda tx: meta.put(tx, store.folder_key(key), value), scope=ALONE)


def _write_elsewhere(store: Store, folder: Path) -> int:
    """Write one snapshot into another folder, reports before the index that names them; return how many reports."""
    for name in (INDEX, ARCHIVE):
        file = folder / name
        if file.is_file() and not file.read_bytes().startswith(HEADER.encode()):
            _keep_copy(file)
    with store.read() as tx:
        reports = _write_reports(tx, folder)
        if items := list(_wordings(tx)):
            _replace(folder / WORDINGS, _render(items, HEADER))
        archived = (_archived_item(row, has_report=True) for row in archive.since(tx, 0))
        _replace(folder / ARCHIVE, _render(archived, HEADER))
        _replace(folder / INDEX, [render_index(entry_rows.all(tx))])
    return reports


def _write_reports(tx: Transaction, folder: Path) -> int:
    """Write the text of every live entry to its path, and those of archived rows beside; return how many."""
    files, number = ReportFiles(folder), 0
    texts = [(entry.path, entry.sha256) for entry in entry_rows.all(tx)]
    texts += [(_archived_path(row), row.entry.sha256) for row in archive.since(tx, 0)]
    for path, sha256 in texts:
        text = revisions.text(tx, sha256)
        if text is not None:
            files.write(path, text)
            number += 1
    return number


def _archived_path(row: Archived) -> str:
    """Return where an archived text goes: the row's own path may be a live entry's by now."""
    return f"archived/{row.archive_id}.md"


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise ExportFailed(f"{exc.filename or folder}: {exc.strerror}") from exc


def _keep_copy(path: Path) -> Path:
    """Copy a file to one beside it that is named by what is in it, such as ``index.yaml.5f70bf18.bak``."""
    content = path.read_bytes()
    copy = path.with_name(f"{path.name}.{hashlib.sha256(content).hexdigest()[:8]}.bak")
    write_new(copy, content)
    return copy


def _replace(path: Path, parts: Iterable[str]) -> None:
    """Write a file whole or not at all. What a power failure takes of it is in the database."""
    staged = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with staged.open("x", encoding="utf-8", newline="") as file:
            file.writelines(parts)
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def render_index(entries: Iterable[Entry]) -> str:
    """Render live entries, sorted by id: the nine keys of the index schema of F1, in its order."""
    ordered = sorted(entries, key=lambda entry: entry.id)
    return "".join(_render((_item(entry, entry.status) for entry in ordered), HEADER))


def render_archive(rows: Iterable[Archived]) -> Iterator[str]:
    """Render archived rows in the order in which they come, with when and why each was archived."""
    return _render(map(_archived_item, rows), HEADER)


def _item(entry: Entry, status: str) -> Item:
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


def _archived_item(row: Archived, *, has_report: bool = False) -> Item:
    item = {**_item(row.entry, "archived"), "archived_at": row.archived_at, "reason": row.reason}
    return {**item, "report": _archived_path(row)} if has_report and row.entry.sha256 is not None else item


def _wordings(tx: Transaction) -> Iterator[Item]:
    """Tell times, writers, questions and wordings of all entries, live or archived, each sorted by id."""
    live, archived = entry_rows.all(tx), [row.entry for row in archive.all(tx)]
    for entry in live:
        times = {name: getattr(entry, name) for name in EXACT_TIMES}
        if entry.stale_major is not None or any(
            time is not None and not is_day(time) for time in times.values()
        ):
            yield _of(entry, "times", **times, stale_major=entry.stale_major)
    written = {(entry.id, entry.sha256): entry for entry in (*live, *archived) if entry.origin != "imported"}
    for (_, sha256), entry in sorted((key, entry) for key, entry in written.items() if key[1] is not None):
        told = {"origin": entry.origin, "confidence": entry.confidence, "written_by": entry.written_by}
        yield _of(entry, "writer", sha256=sha256, **told)
    wordings = wording_rows.all(tx)
    for _, entry in sorted({entry.id: entry for entry in (*archived, *live)}.items()):
        if entry.question is not None:
            at = entry.researched_at or entry.created
            yield _of(entry, "question", topic=entry.topic, tags=entry.tags, question=entry.question, at=at)
        for it in wordings.get(entry.id, ()):
            of_whom = {"at": it.at, "session_id": it.session_id, "proved": "true" if it.proved else None}
            yield _of(entry, "wording", topic=it.topic, tags=it.tags, question=it.question, **of_whom)
    yield from _ratings(tx, "worked", "wrong")


def _ratings(tx: Transaction, *outcomes: Outcome) -> Iterator[Item]:
    """Tell what sessions said with one of these outcomes of the texts that entries have, live or archived."""
    for rated in wording_rows.rated_texts(tx, *outcomes):
        it = rated.rating
        whose = {
            "id": it.entry_id,
            "framework": rated.framework,
            "entry_topic": rated.topic,
            "kind": "rating",
        }
        said = {"sha256": rated.sha256, "outcome": it.outcome, "note": it.note, "session_id": it.session_id}
        yield _without_none({**whose, **said, "story_key": it.story_key, "at": it.at})


def _of(entry: Entry, kind: str, **told: str | tuple[str, ...] | None) -> Item:
    """Make an item about an entry; what is None is left out."""
    whose = {"id": entry.id, "framework": entry.framework, "entry_topic": entry.topic, "kind": kind}
    return _without_none({**whose, **told})


def _without_none(item: Mapping[str, str | tuple[str, ...] | None]) -> Item:
    return {name: value for name, value in item.items() if value is not None}


def _render(items: Iterable[Item], header: str = "") -> Iterator[str]:
    """Render a list item by item; without a header as the continuation of one."""
    yield header
    is_empty = bool(header)
    for item in items:
        is_empty = False
        lines = (f"  {key}: {_value(value)}\n" for key, value in item.items())
        yield f"- {''.join(lines)[2:]}"
    if is_empty:
        yield "[]\n"


def _value(value: str | tuple[str, ...]) -> str:
    return quoted(value) if isinstance(value, str) else f"[{', '.join(map(quoted, value))}]"


def quoted(text: str) -> str:
    """Write a double-quoted scalar in one line, which every reader of YAML 1.1 and 1.2 takes; what can't be seen is escaped."""
    written = _ENCODER.encode(text)
    return written if written.isprintable() else "".join(map(_escaped, written))


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04X}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08X}"
