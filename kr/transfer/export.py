"""Writes ``index.yaml`` and ``_archived-index.yaml`` beside the reports (SPEC 3.8 and 6.1)."""

import hashlib
import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kr.errors import ExportFailed, StoreUnwritable
from kr.store.lock import exclusive
from kr.store.store import Store
from kr.transfer.index_yaml import render_archive, render_index, tells_others

if TYPE_CHECKING:
    from kr.store.unit import Unit

log = logging.getLogger(__name__)

INDEX = "index.yaml"
ARCHIVE = "_archived-index.yaml"

_LOCK = ".export.lock"
_OWN = "exported:"
_WAIT_SECONDS = 60.0
_KEPT_HASHES = 8


@dataclass(frozen=True, slots=True)
class Exported:
    """How many entries and archived rows were written, and to which files."""

    entries: int
    archived: int
    files: tuple[Path, ...]

    def plain(self) -> dict[str, Any]:
        """Return the answer of the command."""
        return {
            "entries": self.entries,
            "archived": self.archived,
            "files": [str(file) for file in self.files],
        }


def export_yaml(store: Store, knowledge_base: Path, folder: Path | None = None) -> Exported:
    """Write both files into ``folder`` (default: the knowledge base), which is made if absent.

    Into another folder what the entries were asked goes along (``kr.transfer.wordings_yaml``).

    Parallel writers queue at a lock and each reads the state after it got there, so that the newest state is
    the one that stays. A file that kr did not write, or that tells of entries which are neither live nor
    archived any more, is kept as a copy beside it first; the files of
    a folder that the database doesn't belong to are left alone. Raises ``ExportFailed`` naming the file, or a
    ``StoreError``.
    """
    folder = knowledge_base if folder is None else folder
    is_own = folder.resolve() == knowledge_base.resolve()
    if is_own:
        store.refuse_foreign()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportFailed(f"{folder}: {error.strerror}") from error
    with _queue(knowledge_base, is_own=is_own):
        with store.read() as unit:
            entries, archived = unit.entries.all(), unit.archive.all()
            wordings = None if is_own else _wordings(unit)
        # The knowledge base may be moved or copied with its database: its own files are known by their names.
        key = _OWN if is_own else f"{_OWN}{folder.resolve()}{os.sep}"
        known = {entry.id for entry in entries} | {row.entry.id for row in archived}
        index = _put(store, folder / INDEX, render_index(entries), key + INDEX, known)
        rows = ((row.entry, row.archived_at, row.reason) for row in archived)
        archive = _put(store, folder / ARCHIVE, render_archive(rows), key + ARCHIVE, known)
        files = [index, archive]
        if wordings:
            files.append(_put(store, folder / wordings[0], wordings[1], key + wordings[0], known))
    return Exported(len(entries), len(archived), tuple(files))


def _wordings(unit: "Unit") -> tuple[str, str] | None:
    """Return name and text of what the entries were asked, where anything is known of it."""
    from kr.transfer.wordings_yaml import WORDINGS, render_wordings

    text = render_wordings(unit)
    return (WORDINGS, text) if text is not None else None


def is_ours(store: Store, path: Path) -> bool:
    """Tell whether this very database wrote the file that stands at a path of the knowledge base."""
    try:
        return _digest(path.read_bytes()) in _known(store, _OWN + path.name)
    except OSError:
        return False


@contextmanager
def _queue(knowledge_base: Path, *, is_own: bool) -> Iterator[None]:
    """Hold the lock of all exports of a knowledge base: in it, so that no lock stays in anybody's folder."""
    with ExitStack() as held:
        try:
            knowledge_base.mkdir(parents=True, exist_ok=True)
            held.enter_context(exclusive(knowledge_base / _LOCK, timeout=_WAIT_SECONDS))
        except (OSError, StoreUnwritable) as error:
            # One that can only be read is exported elsewhere all the same, without a queue.
            if is_own:
                raise
            log.debug("%s", error)
        yield


def _put(store: Store, path: Path, text: str, key: str, known: set[str]) -> Path:
    content = text.encode()
    try:
        present = path.read_bytes() if path.is_file() else None
        if present == content:
            return path
        ours = _known(store, key)
        if present is not None and (_digest(present) not in ours or tells_others(present.decode(), known)):
            _keep_copy(path, present)
        # Known as ours before it is there: a crash in between must not make it a stranger's.
        _remember(store, key, [_digest(content), *ours])
        _replace(path, content)
    except OSError as error:
        raise ExportFailed(f"{path}: {error.strerror}") from error
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _known(store: Store, key: str) -> list[str]:
    with store.read() as unit:
        return (unit.meta.get(key) or "").split()


def _remember(store: Store, key: str, hashes: list[str]) -> None:
    try:
        with store.write() as unit:
            unit.meta.put(key, " ".join(hashes[:_KEPT_HASHES]))
    except StoreUnwritable as error:
        # A database that can only be read is exported all the same; next time this file gets a copy.
        log.debug("%s", error)


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


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with fresh.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
