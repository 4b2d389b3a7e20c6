"""Writes ``index.yaml`` and ``_archived-index.yaml``, and into another folder what an import needs besides.

A write must not cost more because a million entries are archived: the exported archive stands in the order of archiving, and new rows
are appended. It is written anew where a row left it, which is counted. The index of the knowledge base that somebody else wrote is
imported before it is written over.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kr.errors import KrError
from kr.models import Entry
from kr.store import backup, lookup, saving
from kr.store import entries as entry_rows
from kr.store.engine import Store, Transaction
from kr.store.entries import ARCHIVE_CHANGES, Archived
from kr.store.files import ReportFiles, file_lock, new_id, open_own, write_new
from kr.store.lookup import text_in_file
from kr.transfer import ARCHIVE, INDEX, WORDINGS
from kr.transfer.import_yaml import import_yaml

log = logging.getLogger(__name__)

HEADER = "# Written by kr from its database. An edited item is taken in by `kr import-yaml` if its last_accessed is later.\n"

_LOCK = ".export.lock"
_WAIT_SECONDS = 60.0
_INDEX_STATES = "exported index"
"""The key of the hashes of the index as kr wrote it last, and the time before."""
_ARCHIVE_STATE = "exported archive"
"""The key of ``[size, mtime_ns, archive_id, removals]``: the exported archive's file as kr left it, the last row in it, and how
often rows had left the archive."""

_ENCODER = json.JSONEncoder(ensure_ascii=False)
Item = Mapping[str, str | tuple[str, ...] | None]
"""An item of an index by its keys; what is None is not written."""


def refresh_exports(store: Store, knowledge_base: Path) -> None:
    """Bring both files of the knowledge base to what the database holds. Raises ``KrError``, or a ``StoreError``."""
    asked, lock = time.time(), knowledge_base / _LOCK
    with _translated(knowledge_base):
        knowledge_base.mkdir(parents=True, exist_ok=True)
        with file_lock(lock, timeout=_WAIT_SECONDS):
            if _was_exported_since(lock, asked):
                return
            began = time.time()
            _write_index(store, knowledge_base)
            _write_archive(store, knowledge_base / ARCHIVE)
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
    the newest state of parallel writers stays. Raises ``KrError`` naming the file, or a ``StoreError``.
    """
    folder = knowledge_base if folder is None else folder
    with store.read() as tx:
        edited = [entry for entry in entry_rows.all(tx) if text_in_file(tx, entry) is None]
    for entry in edited:
        saving.read_report(store, entry)
    files, number = [folder / INDEX, folder / ARCHIVE], 0
    if folder.resolve() == knowledge_base.resolve():
        refresh_exports(store, knowledge_base)
    else:
        with _translated(folder):
            folder.mkdir(parents=True, exist_ok=True)
            number = _write_elsewhere(store, folder)
        files += [folder / WORDINGS] if (folder / WORDINGS).exists() else []
    with store.read() as tx:
        counts = {
            "entries": entry_rows.count(tx),
            "archived": entry_rows.archived_count(tx)[0],
            "reports": number,
        }
    return {**counts, "files": [str(file) for file in files]}


def restore_backup(store: Store, folder: Path, file: Path, moment: str) -> Path | None:
    """Put a backup in the database's place, and make reports and exports what it says; return the present database's copy.

    A report or export that differs is kept beside its new text, as ``NAME.MOMENT.bak``: it may hold what somebody wrote since.
    """
    kept = backup.restore(store.path, file, moment)
    for name in (INDEX, ARCHIVE):
        if (folder / name).exists():
            (folder / name).rename(folder / f"{name}.{moment}.bak")
    with store.write() as tx:
        for entry in entry_rows.all(tx):
            text, present = lookup.text_of(tx, entry.sha256), store.files.read(entry.path)
            if text is not None and present != text.encode():
                if present is not None:
                    (folder / entry.path).rename(folder / f"{entry.path}.{moment}.bak")
                store.files.write(entry.path, text)
    refresh_exports(store, folder)
    return kept


def has_edited_index(store: Store, knowledge_base: Path) -> bool:
    """Whether the index of the knowledge base is not as kr wrote it: somebody edited it, or git brought another. Raises a ``StoreError``."""
    present = b""
    with suppress(OSError):  # who writes it tells
        present = _own_bytes(knowledge_base / INDEX)
    return bool(present) and _hash(present) not in _known_states(store) and present != _index_of(store)


def _write_index(store: Store, folder: Path) -> None:
    """Write the index; one that somebody else wrote is copied and imported first.

    Its hash is noted before it takes its name: a crash in between makes it no stranger's.
    """
    path = folder / INDEX
    if has_edited_index(store, folder):
        log.warning("%s was edited: it is imported, and %s is a copy", path, _keep_copy(path).name)
        import_yaml(store, folder, [path], now=datetime.now(UTC), adopts=True).log_problems()
    content = _index_of(store)
    if _own_bytes(path) != content:
        _note(store, _INDEX_STATES, " ".join([_hash(content), *_known_states(store)[:1]]))
        _replace(path, [content.decode()])


def _own_bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""


def _known_states(store: Store) -> list[str]:
    with store.read() as tx:
        return (tx.fact(store.folder_key(_INDEX_STATES)) or "").split()


def _index_of(store: Store) -> bytes:
    with store.read() as tx:
        return render_index(entry_rows.all(tx)).encode()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_archive(store: Store, path: Path) -> None:
    """Append what was archived since the last export; where a row left the archive, or the file is not as it was, write all of it.

    An archive of others is copied alone: what left the index for good must not come back by an older file.
    """
    with store.read() as tx:
        rows = [entry_rows.archived_count(tx)[1], int(tx.fact(ARCHIVE_CHANGES) or 0)]
        noted = json.loads(tx.fact(store.folder_key(_ARCHIVE_STATE)) or "null") or [None, None, 0, 0]
        is_ours = _file_state(path) == noted[:2]
        if is_ours and noted[2:] == rows:
            return
        last, removals = noted[2:]
        if is_ours and last and removals == rows[1]:
            added = "".join(_render(map(_archived_item, entry_rows.archived_since(tx, last))))
            # One write: a kill leaves all of it or nothing. What is torn all the same is not as it was noted, and written anew.
            with os.fdopen(open_own(path, os.O_WRONLY | os.O_APPEND), "ab", buffering=0) as file:
                file.write(added.encode())
        else:
            if not is_ours and path.is_file():
                _keep_copy(path)
            _replace(path, render_archive(entry_rows.archived_since(tx, 0)))
    _note(store, _ARCHIVE_STATE, json.dumps([*_file_state(path), *rows]))


def _file_state(path: Path) -> list[int]:
    """Return size and time of a file; a million rows are not read to tell whether it is kr's."""
    if not path.is_file():
        return []
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _note(store: Store, key: str, value: str) -> None:
    store.change(lambda tx: tx.note(store.folder_key(key), value), scope=None)


def _write_elsewhere(store: Store, folder: Path) -> int:
    """Write one snapshot into another folder, reports before the index that names them; return how many reports."""
    for name in (INDEX, ARCHIVE):
        file = folder / name
        if file.is_file() and not file.read_bytes().startswith(HEADER.encode()):
            _keep_copy(file)
    files, number = ReportFiles(folder), 0
    with store.read() as tx:
        live, archived = entry_rows.all(tx), entry_rows.archived_since(tx, 0)
        texts = [(entry.path, entry.sha256) for entry in live]
        for path, sha256 in texts + [(_archived_path(row), row.entry.sha256) for row in archived]:
            if (text := lookup.text_of(tx, sha256)) is not None:
                files.write(path, text)
                number += 1
        if items := list(_wordings(tx, live, archived)):
            _replace(folder / WORDINGS, _render(items, HEADER))
        _replace(folder / ARCHIVE, _render((_archived_item(it, has_report=True) for it in archived), HEADER))
        _replace(folder / INDEX, [render_index(live)])
    return number


def _archived_path(row: Archived) -> str:
    """Return where an archived text goes: the row's own path may be a live entry's by now."""
    return f"archived/{row.archive_id}.md"


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise KrError(f"{exc.filename or folder}: {exc.strerror}") from exc


def _keep_copy(path: Path) -> Path:
    """Copy a file to one beside it that is named by what is in it, such as ``index.yaml.5f70bf18.bak``."""
    content = path.read_bytes()
    copy = path.with_name(f"{path.name}.{_hash(content)[:8]}.bak")
    write_new(copy, content)
    return copy


def _replace(path: Path, parts: Iterable[str]) -> None:
    """Write a file whole or not at all. What a power failure takes of it is in the database."""
    staged = path.with_name(f".{path.name}.{new_id()}")
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
    report = _archived_path(row) if has_report and row.entry.sha256 is not None else None
    of_archive = {"archived_at": row.archived_at, "reason": row.reason, "report": report}
    return {**_item(row.entry, "archived"), **of_archive}


def _wordings(tx: Transaction, live: list[Entry], archived: list[Archived]) -> Iterator[Item]:
    """Tell writers, questions and wordings of all entries, live or archived, each sorted by id."""
    gone = [row.entry for row in archived]
    written = {(entry.id, entry.sha256): entry for entry in (*live, *gone) if entry.origin != "imported"}
    for (_, sha256), entry in sorted((key, entry) for key, entry in written.items() if key[1] is not None):
        told = {"origin": entry.origin, "confidence": entry.confidence, "written_by": entry.written_by}
        yield _of(entry, "writer", sha256=sha256, **told)
    for _, entry in sorted({entry.id: entry for entry in (*gone, *live)}.items()):
        if entry.question is not None:
            at = entry.researched_at or entry.created
            yield _of(entry, "question", topic=entry.topic, tags=entry.tags, question=entry.question, at=at)
        for it in entry_rows.wordings_of(tx, entry.id):
            told = {name: it[name] for name in ("topic", "tags", "question", "at", "session_id")}
            yield _of(entry, "wording", **told, proved="true" if it["proved"] else None)


def _of(entry: Entry, kind: str, **told: str | tuple[str, ...] | None) -> Item:
    return {
        "id": entry.id,
        "framework": entry.framework,
        "entry_topic": entry.topic,
        "kind": kind,
        **told,
    }


def _render(items: Iterable[Item], header: str = "") -> Iterator[str]:
    """Render a list item by item; without a header as the continuation of one."""
    yield header
    is_empty = bool(header)
    for item in items:
        is_empty = False
        lines = (f"  {key}: {_value(value)}\n" for key, value in item.items() if value is not None)
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
