"""Texts of reports, kept by their hash for good; the revisions; and the files that are made from them (SPEC 3.8).

The text in the database is the report; its file is made whole, and again where it is missing, empty or older. What somebody wrote into
it since is taken in, and the text before becomes a revision; a file of the size and time that kr noted is not read.
Nothing is read through a link that leaves the knowledge base, nothing written through any.
"""

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from kr.errors import ReportUnwritable
from kr.freshness import to_text
from kr.naming import decoded, digest
from kr.store.entries import framework_key, topic_key
from kr.store.session import Part, UnitOfWork, insert_into, upsert_into
from kr.values import Entry, NamedTuple, Value, replace

if TYPE_CHECKING:
    from pathlib import Path, PurePosixPath

    from _typeshed import StrPath


_STAGED = ".kr-tmp-"
_ABANDONED_SECONDS = 3600.0
_REGULAR = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_ABSENT = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.EISDIR, errno.ENXIO}
)
"""What tells that there is no such file. Anything else (EACCES, EIO, ESTALE) tells nothing about it."""


class FileState(NamedTuple):
    """By what a file is known again without reading it: bytes, and the time of its last change."""

    size: int
    mtime_ns: int


class ReportState(NamedTuple):
    """Whether a report is at a path: ``absent`` is also empty. ``blocked_by`` is where an ``unreadable`` one failed."""

    state: Literal["there", "absent", "unreadable"]
    blocked_by: "Path | None" = None
    reason: str = ""


class Staged(NamedTuple):
    """A text on disk under a hidden name, on its way to its own; a rename leaves its ``state`` as it is."""

    file: "Path"
    state: FileState

    def put(self, target: "Path") -> None:
        try:
            self.file.replace(target)
        except OSError as exc:
            raise _unwritable(target, exc) from exc


class ReportFiles:
    """The reports of one knowledge base. Paths are as in the index: relative, with forward slashes."""

    def __init__(self, knowledge_base: "StrPath") -> None:
        self._folder = os.fspath(knowledge_base)

    @cached_property
    def _base(self) -> "Path":
        from pathlib import Path  # not for a hit whose file is as it was

        return Path(self._folder)

    def read(self, path: str) -> bytes | None:
        """Return a report's bytes; None when it is missing, no regular file, or outside the base."""
        try:
            relative = _parts(path)
            base = self._base.resolve(strict=True)
            target = base.joinpath(relative).resolve(strict=True)
            if not target.is_relative_to(base):
                return None
            return _read_regular(os.open(target, _REGULAR))
        except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of symlinks
            return None

    def state(self, path: str) -> FileState | None:
        try:
            status = os.stat(f"{self._folder}/{path}")
        except (OSError, ValueError):
            return None
        return FileState(status.st_size, status.st_mtime_ns)

    def look(self, path: str) -> ReportState:
        """Tell whether a report is at a path, as far as this user can see."""
        if (self.read(path) or b"").strip():
            return ReportState(state="there")
        here = self._base
        try:
            relative = _parts(path)
            for here in (
                self._base,
                *(self._base.joinpath(*relative.parts[: n + 1]) for n in range(len(relative.parts))),
            ):
                here.stat()
            if here.is_file():
                with here.open("rb") as file:
                    file.read(1)
        except OSError as error:
            if error.errno not in _ABSENT:
                blocked = here if os.path.lexists(here) else here.parent
                return ReportState(
                    state="unreadable", blocked_by=blocked, reason=error.strerror or str(error)
                )
        except ValueError:
            pass
        return ReportState(state="absent")

    def is_blocked(self, path: str) -> bool:
        """Return whether nothing can be written at a path: a folder or device, or a path that leaves the base."""
        try:
            relative = _parts(path)
        except UnicodeEncodeError:  # a locale without these letters: the write itself will say so
            return False
        except ValueError:
            return True
        try:
            status = self._base.joinpath(relative).lstat()
        except OSError:
            return False
        return not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode))

    @contextmanager
    def staged(self, text: str, *, to_disk: bool = True) -> Iterator[Staged]:
        """Write a text to a temporary file, gone when the block ends; ``to_disk``: synced. Raises ``ReportUnwritable``."""
        target = self._base / (_STAGED + os.urandom(16).hex())
        try:
            try:
                self._base.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    file.write(text.encode())
                    file.flush()
                    if to_disk:
                        os.fsync(file.fileno())
                    status = os.fstat(file.fileno())
            except OSError as exc:
                raise ReportUnwritable(f"{self._base}: no report can be written: {exc.strerror}") from exc
            yield Staged(target, FileState(status.st_size, status.st_mtime_ns))
        finally:
            with suppress(OSError):
                target.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed writers left, once it is old enough to be nobody's."""
        limit = time.time() - _ABANDONED_SECONDS
        with suppress(OSError), os.scandir(self._base) as found:
            for item in found:
                if item.name.startswith(_STAGED) and item.stat(follow_symlinks=False).st_mtime < limit:
                    os.unlink(item.path)

    def place(self, path: str) -> "Path":
        """Make the folder of a path, and the base, where they are absent. Raises ``ReportUnwritable``."""
        folder = self._base
        try:
            relative = _parts(path)
            folder.mkdir(parents=True, exist_ok=True)
            for part in relative.parent.parts:
                folder /= part
                _refuse_link(folder)
                folder.mkdir(exist_ok=True)
        except (OSError, ValueError) as exc:
            raise _unwritable(self._base / path, exc) from exc
        return folder / relative.name

    def write(self, path: str, text: str, *, to_disk: bool = True) -> FileState:
        """Put a text at a path, whole or not at all. Call with the lock held. Raises ``ReportUnwritable``."""
        target = self.place(path)
        with self.staged(text, to_disk=to_disk) as staged:
            staged.put(target)
        return staged.state


def _refuse_link(folder: "Path") -> None:
    if folder.is_symlink():
        raise ValueError(
            f"{folder.name} is a symbolic link, and nothing is written through links below the knowledge base"
        )


def _parts(path: str) -> "PurePosixPath":
    from pathlib import PurePosixPath

    relative = PurePosixPath(path)
    if not relative.parts or relative.is_absolute() or ".." in relative.parts or "\0" in path or "\\" in path:
        raise ValueError("the path leaves the knowledge base")
    os.fsencode(path)
    return relative


def _read_regular(file: int) -> bytes | None:
    with os.fdopen(file, "rb") as opened:
        return opened.read() if stat.S_ISREG(os.fstat(file).st_mode) else None


def _unwritable(path: "Path", exc: OSError | ValueError) -> ReportUnwritable:
    reason = (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc)
    return ReportUnwritable(f"{path}: the report can't be written: {reason}")


class Revision(Value):
    """An earlier text at an entry's path. What a person's own file was made for is not known: None."""

    entry_id: str
    revision: int
    sha256: str
    framework_version: str | None
    confidence: str | None
    researched_at: str | None
    replaced_at: str


_KEEP = "INSERT INTO report_texts (sha256, text) VALUES (:sha256, :text) ON CONFLICT DO NOTHING"
_TEXT = "SELECT text FROM report_texts WHERE sha256 = :sha256"
_HAS = "SELECT 1 FROM report_texts WHERE sha256 = :sha256"
_NOTE = upsert_into("report_files", ("path", "sha256", "size", "mtime_ns"), "path")
_SETTLED = (
    "SELECT noted.size, noted.mtime_ns, kept.text FROM report_files AS noted "
    "JOIN report_texts AS kept ON kept.sha256 = noted.sha256 WHERE noted.path = :path AND noted.sha256 = :sha256"
)
_NOTED = "SELECT sha256, size, mtime_ns FROM report_files WHERE path = :path"
_OF_ENTRY = (
    f"SELECT {', '.join(Revision.names())} FROM revisions WHERE entry_id = :entry_id ORDER BY revision"
)
_LAST = "SELECT revision, sha256 FROM revisions WHERE entry_id = :entry_id ORDER BY revision DESC LIMIT 1"
_ADD = insert_into("revisions", (*Revision.names(), "path", "framework_key", "topic_key"))


class Noted(NamedTuple):
    """Which text a file holds while it is in this state."""

    sha256: str
    state: FileState


class Revisions(Part):
    """Keeps texts in the caller's transaction. No text is ever deleted here."""

    def keep(self, text: str) -> str:
        """Store a text unless it is there already; return its hash."""
        sha256 = digest(text)
        self._session.execute(_KEEP, sha256=sha256, text=text)
        return sha256

    def text(self, sha256: str | None) -> str | None:
        found: str | None = self._session.value(_TEXT, sha256=sha256)
        return found

    def has(self, sha256: str) -> bool:
        return self._session.value(_HAS, sha256=sha256) is not None

    def note_file(self, path: str, sha256: str, state: FileState) -> None:
        self._session.execute(_NOTE, path=path, sha256=sha256, size=state.size, mtime_ns=state.mtime_ns)

    def file_at(self, path: str) -> Noted | None:
        row = self._session.row(_NOTED, path=path)
        return None if row is None else Noted(row["sha256"], FileState(row["size"], row["mtime_ns"]))

    def get(self, entry_id: str, number: int) -> Revision | None:
        return next((kept for kept in self.of_entry(entry_id) if kept.revision == number), None)

    def of_entry(self, entry_id: str) -> list[Revision]:
        """Return an entry's revisions, oldest first; those of an entry that is gone too."""
        return [Revision(**dict(row)) for row in self._session.rows(_OF_ENTRY, entry_id=entry_id)]

    def replace(self, new: Entry, old: Entry | None, edited: str | None, now: datetime) -> None:
        """Note what the text of ``new`` takes the place of: the text of ``old``, and what somebody ``edited`` since."""
        replaced = []
        if old is not None and old.sha256 is not None and self.has(old.sha256):
            replaced.append(old.sha256)
        if edited is not None:
            replaced.append(self.keep(edited))
        for sha256 in dict.fromkeys(replaced):
            if sha256 != new.sha256:
                self._add(new, sha256, old, now)

    def _add(self, new: Entry, sha256: str, old: Entry | None, now: datetime) -> None:
        last = self._session.row(_LAST, entry_id=new.id)
        if last is not None and last["sha256"] == sha256:
            return
        self._session.execute(
            _ADD,
            entry_id=new.id,
            revision=last["revision"] + 1 if last is not None else 1,
            sha256=sha256,
            path=new.path,
            framework_key=framework_key(new.framework),
            topic_key=topic_key(new.topic),
            framework_version=old.framework_version if old else None,
            confidence=old.confidence if old else None,
            researched_at=(old.researched_at or old.created) if old else None,
            replaced_at=to_text(now),
        )


class Edit(NamedTuple):
    """What somebody wrote, and the state of the file that holds it."""

    text: str
    state: FileState


def settled(unit: UnitOfWork, entry: Entry) -> str | None:
    """Return an entry's text if its file is known to hold it; None: ``settle`` is to look at both."""
    row = unit.session.row(_SETTLED, path=entry.path, sha256=entry.sha256)
    if row is None or (row["size"], row["mtime_ns"]) != unit.files.state(entry.path):
        return None
    text: str = row["text"]
    return text


def edit_at(unit: UnitOfWork, path: str) -> Edit | None:
    """Return what somebody wrote at a path since kr did. None: nothing that kr doesn't know, or an older file."""
    state, noted = unit.files.state(path), unit.revisions.file_at(path)
    if state is None or (noted is not None and state.mtime_ns < noted.state.mtime_ns):
        return None
    text = decoded(unit.files.read(path)) if noted is None or state != noted.state else ""
    if not text.strip() or (noted is not None and digest(text) == noted.sha256):
        return None
    return Edit(text, state)


def take_edit(unit: UnitOfWork, entry: Entry) -> Entry:
    """Take in what somebody wrote into a live entry's file; return the entry as it is then."""
    edit = edit_at(unit, entry.path)
    if edit is None:
        return entry
    edited = replace(entry, sha256=unit.revisions.keep(edit.text))
    if edited.sha256 != entry.sha256:
        written = datetime.fromtimestamp(edit.state.mtime_ns // 1_000_000_000, UTC)
        unit.revisions.replace(edited, entry, None, written)
        unit.entries.set_text(entry.id, edited.sha256 or "")
    unit.revisions.note_file(entry.path, edited.sha256 or "", edit.state)
    return edited


def settle(unit: UnitOfWork, entry_id: str) -> str | None:
    """Bring row and file of a live entry together in a write; return the text, None when it is nowhere. Raises ``ReportUnwritable``."""
    row = unit.entries.get(entry_id)
    if row is None:
        return None
    entry = take_edit(unit, row)
    text = unit.revisions.text(entry.sha256)
    if text is None or entry.sha256 is None:
        return None
    content, state = unit.files.read(entry.path), unit.files.state(entry.path)
    if content is None and state is not None:
        return text  # somebody's own: unreadable, no regular file, or a link that leads out of the base
    if state is None or decoded(content) != text:
        state = unit.files.write(entry.path, text)
    unit.revisions.note_file(entry.path, entry.sha256, state)
    return text
