"""Texts of reports, kept by their hash for good; the revisions; and the files that are made from them (SPEC 3.8).

The text in the database is the report; its file is made whole, and again where it is missing, torn or holds an earlier text of kr's.
What somebody wrote into it is taken in as a finding, and the text before becomes a revision.
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
from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.models import Entry
from kr.naming import decoded, digest
from kr.store.entries import framework_key, topic_key
from kr.store.quarantine import Quarantined
from kr.store.session import Part, UnitOfWork, upsert_into
from kr.values import NamedTuple, Value, replace

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


class ReportState(NamedTuple):
    """Whether a report is at a path: ``absent`` is also empty. ``blocked_by`` is where an ``unreadable`` one failed."""

    state: Literal["there", "absent", "unreadable"]
    blocked_by: "Path | None" = None
    reason: str = ""


class Staged(NamedTuple):
    """A text on disk under a hidden name, on its way to its own."""

    file: "Path"

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

    def exists(self, path: str) -> bool:
        """Tell whether anything stands at a path."""
        try:
            os.stat(f"{self._folder}/{path}")
        except (OSError, ValueError):
            return False
        return True

    def changed_at(self, path: str) -> float:
        """Return when the file at a path was changed, in seconds. Raises ``OSError``."""
        return os.stat(f"{self._folder}/{path}").st_mtime

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
            except OSError as exc:
                raise ReportUnwritable(f"{self._base}: no report can be written: {exc.strerror}") from exc
            yield Staged(target)
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

    def write(self, path: str, text: str, *, to_disk: bool = True) -> None:
        """Put a text at a path, whole or not at all. Call with the lock held. Raises ``ReportUnwritable``."""
        target = self.place(path)
        with self.staged(text, to_disk=to_disk) as staged:
            staged.put(target)


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
    """An earlier text of an entry, or one that was kept beside its current one."""

    entry_id: str
    revision: int
    sha256: str
    framework_version: str | None
    confidence: str | None
    origin: str | None
    written_by: str | None
    researched_at: str | None
    fresh_until: str | None
    status: str | None
    """``stale`` where it was written as such: an older report that stood in for research."""
    replaced_at: str


_KEEP = "INSERT INTO report_texts (sha256, text) VALUES (:sha256, :text) ON CONFLICT DO NOTHING"
_TEXT = "SELECT text FROM report_texts WHERE sha256 = :sha256"
_HAS = "SELECT 1 FROM report_texts WHERE sha256 = :sha256"
_OF_ENTRY = (
    f"SELECT {', '.join(Revision.names())} FROM revisions WHERE entry_id = :entry_id ORDER BY revision"
)
_LAST = (
    "SELECT max((SELECT coalesce(max(revision), 0) FROM revisions WHERE entry_id = :entry_id), "
    "(SELECT coalesce(max(revision), 0) FROM entries WHERE id = :entry_id), "
    "(SELECT coalesce(max(revision), 0) FROM ratings WHERE entry_id = :entry_id), "
    "(SELECT coalesce(max(revision), 0) FROM archived_entries WHERE id = :entry_id))"
)
_STOOD_IN = (
    "SELECT status FROM entries WHERE id = :id AND sha256 = :sha256 "
    "AND origin = 'excerpt' AND status = 'stale' AND stale_reason IS NULL"
)
_ADD = upsert_into(
    "revisions", (*Revision.names(), "path", "framework_key", "topic_key"), "entry_id, revision"
)


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

    def get(self, entry_id: str, number: int) -> Revision | None:
        return next((kept for kept in self.of_entry(entry_id) if kept.revision == number), None)

    def of_entry(self, entry_id: str) -> list[Revision]:
        """Return an entry's revisions, oldest first; those of an entry that is gone too."""
        return [Revision(**dict(row)) for row in self._session.rows(_OF_ENTRY, entry_id=entry_id)]

    def next_number(self, entry_id: str) -> int:
        """Return the number of the next text of an id, live, archived or gone: one that no text had, and nobody rated."""
        return int(self._session.value(_LAST, entry_id=entry_id)) + 1

    def add(self, entry: Entry, at: str) -> None:
        """Keep an entry's text as the revision of its number: another one takes its place, or it stands beside the current one."""
        if entry.sha256 is None or not self.has(entry.sha256):
            return
        self._session.execute(
            _ADD,
            entry_id=entry.id,
            revision=entry.revision,
            sha256=entry.sha256,
            path=entry.path,
            framework_key=framework_key(entry.framework),
            topic_key=topic_key(entry.topic),
            framework_version=entry.framework_version,
            confidence=entry.confidence,
            origin=entry.origin,
            written_by=entry.written_by,
            researched_at=entry.researched_at or entry.created,
            fresh_until=entry.fresh_until,
            status=self._session.value(_STOOD_IN, id=entry.id, sha256=entry.sha256),
            replaced_at=at,
        )


def settled(unit: UnitOfWork, entry: Entry) -> str | None:
    """Return an entry's text if its file holds it; None: ``settle`` is to look at both."""
    text = unit.revisions.text(entry.sha256)
    return text if text is not None and decoded(unit.files.read(entry.path)) == text else None


def edit_at(unit: UnitOfWork, path: str, sha256: str | None) -> str | None:
    """Return what somebody wrote into the file at a path, whose own text has this hash; None: nothing that kr doesn't know.

    A torn file (its end is missing, or zeros), and an earlier text of kr's, are no edits.
    """
    content = unit.files.read(path) or b""
    text = decoded(content)
    if not text.strip("\0").strip():
        return None
    own = (unit.revisions.text(sha256) or "").encode()
    is_torn = own.startswith(content.rstrip(b"\0")) and not content.endswith(b"\n")
    return None if is_torn or unit.revisions.has(digest(text)) else text


def take_edit(unit: UnitOfWork, entry: Entry) -> Entry:
    """Take in as a finding what somebody wrote into a live entry's file (SPEC 3.8); return the entry as it is then.

    What must wait for a person goes into the quarantine, and the entry stays as it was.
    """
    text = edit_at(unit, entry.path, entry.sha256)
    if text is None:
        return entry
    at = to_text(datetime.fromtimestamp(int(unit.files.changed_at(entry.path)), UTC))
    if entry.sha256 is None:  # it came without a text: this is its own
        edited = replace(entry, sha256=unit.revisions.keep(text))
        unit.entries.put(edited)
        return edited
    written = guarded(unit, entry, text, at)
    if written is None:
        return entry
    edited = replace(
        entry,
        sha256=unit.revisions.keep(written),
        revision=unit.revisions.next_number(entry.id),
        origin="finding",
        written_by="file",
        status="fresh",
        stale_major=None,
        fresh_until=None,
        researched_at=at,
        confidence="low" if entry.confidence == "low" else "medium",
    )
    unit.revisions.add(entry, at)
    unit.entries.put(edited)
    return edited


def guarded(unit: UnitOfWork, entry: Entry, text: str, at: str) -> str | None:
    """Return what somebody wrote into the file of an entry as it may be kept; None: it waits in the quarantine, or says nothing."""
    written = mask_secrets(clean(text))
    if reasons := reasons_to_hold(written):
        _hold(unit, entry, written, reasons, at)
        return None
    return written if written.strip() else None


def _hold(unit: UnitOfWork, entry: Entry, text: str, reasons: tuple[str, ...], at: str) -> None:
    held_id = f"file-{digest(text)[:12]}"
    if unit.quarantine.get(held_id) is not None:
        return
    request = {
        "framework": entry.framework,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "tags": list(entry.tags),
        "question": entry.question or entry.topic,
        "entry": entry.id,
        "answer": text,
    }
    unit.quarantine.add(
        Quarantined(
            id=held_id,
            at=at,
            framework=entry.framework,
            question=entry.question or entry.topic,
            reasons=reasons,
            request=request,
            written_by="file",
        )
    )


def settle(unit: UnitOfWork, entry_id: str) -> str | None:
    """Bring row and file of a live entry together in a write; return the text, None when it is nowhere. Raises ``ReportUnwritable``."""
    row = unit.entries.get(entry_id)
    if row is None:
        return None
    entry = take_edit(unit, row)
    text = unit.revisions.text(entry.sha256)
    if text is None:
        return None
    content = unit.files.read(entry.path)
    if content is None and unit.files.exists(entry.path):
        return text  # somebody's own: unreadable, no regular file, or a link that leads out of the base
    if decoded(content) != text:
        unit.files.write(entry.path, text)
    return text
