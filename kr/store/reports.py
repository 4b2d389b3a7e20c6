"""Report files below the knowledge base: read safely, written whole or not at all.

A path in the index may have been written by anybody, and a symlink may stand anywhere: nothing is read
through one that leaves the knowledge base, nothing is written through any.
"""

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from kr.errors import ReportUnwritable
from kr.values import NamedTuple, Value

if TYPE_CHECKING:
    from pathlib import Path, PurePosixPath

    from _typeshed import StrPath

_STAGED = ".kr-tmp-"
_ABANDONED_SECONDS = 3600.0
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_REGULAR = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_ABSENT = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.EISDIR, errno.ENXIO}
)
"""What tells that there is no such file. Anything else (EACCES, EIO, ESTALE) tells nothing about it."""


class FileState(NamedTuple):
    """By what a file is known again without reading it: bytes, and the time of its last change."""

    size: int
    mtime_ns: int


class ReportState(Value):
    """Whether a report is at a path: ``absent`` is also an empty one, or no regular file.

    ``blocked_by`` is the file or folder that an ``unreadable`` report failed at, and ``reason`` why.
    """

    state: Literal["there", "absent", "unreadable"]
    blocked_by: "Path | None" = None
    reason: str = ""


class Staged(Value):
    """A text on disk under a hidden name, on its way to its own; a rename leaves its ``state`` as it is."""

    name: str
    state: FileState


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
        """Return a file's size and time; None where there is none to be seen. Nothing is opened."""
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
        """Write a text to a temporary file, and ``to_disk``; the file is gone when the block ends.

        Raises ``ReportUnwritable``.
        """
        name = _STAGED + os.urandom(16).hex()
        target = self._base / name
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
            yield Staged(name=name, state=FileState(status.st_size, status.st_mtime_ns))
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

    def place(self, path: str) -> "Place":
        """Make the folder of a path, and the base, where they are absent. Raises ``ReportUnwritable``."""
        folder = self._base
        made_in = []
        try:
            relative = _parts(path)
            folder.mkdir(parents=True, exist_ok=True)
            for part in relative.parent.parts:
                if not (folder / part).exists():
                    made_in.append(folder)
                folder /= part
                _refuse_link(folder)
                folder.mkdir(exist_ok=True)
        except (OSError, ValueError) as exc:
            raise _unwritable(self._base / path, exc) from exc
        return Place(base=self._base, target=folder / relative.name, made_in=made_in)

    def write(self, path: str, text: str, *, to_disk: bool = True) -> FileState:
        """Put a text at a path, whole or not at all. Call with the lock held. Raises ``ReportUnwritable``."""
        place = self.place(path)
        with self.staged(text, to_disk=to_disk) as staged:
            place.put(staged)
        if to_disk:
            place.sync()
        return staged.state


class Place(Value):
    """Where one report goes: ``target``, and the folders in which others were made for it."""

    base: "Path"
    target: "Path"
    made_in: "list[Path]"

    def put(self, staged: Staged) -> None:
        """Give a staged text its name, in place of what stands there. Raises ``ReportUnwritable``."""
        try:
            (self.base / staged.name).replace(self.target)
        except OSError as exc:
            raise _unwritable(self.target, exc) from exc

    def sync(self) -> None:
        """Bring the new names to disk; folders that know no sync are passed over."""
        for folder in (*self.made_in, self.target.parent):
            with suppress(OSError):
                descriptor = os.open(folder, _DIRECTORY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


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
