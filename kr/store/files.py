"""The report files of a knowledge base. Each is made from its row, whole; nothing is read or written through a link that leads out.

``open_own`` is how everything else that kr keeps in a file of a project is opened.

Paths are as in the index: relative, with forward slashes.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Literal

from kr.errors import ReportUnwritable
from kr.store.sql import new_id

_STAGED = ".kr-tmp-"
_ID = ".kr-folder"
_IGNORED = """\
# Written by kr once: what git leaves out. Reports, index.yaml and lessons may be committed.
kr.db*
kr-*.db
*.lock
*.bak
.kr-*
"""
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
"""What tells that there is no such file."""


def make_base(folder: Path) -> None:
    """Make a knowledge base's folder, with a ``.gitignore`` of its own that leaves the database out. Raises ``OSError``."""
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(OSError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write(_IGNORED)


class ReportFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def own_id(self) -> str:
        """Return what tells this folder from those of other machines: a file in it holds that. Raises ``ReportUnwritable``."""
        if not self.exists(_ID):
            with suppress(OSError):
                make_base(self.folder)
            self.write(_ID, new_id())
        return self.read_text(_ID)

    def read(self, path: str) -> bytes | None:
        """Return a report's bytes; None when it is missing, no regular file, outside the folder, or unreadable."""
        try:
            base = self.folder.resolve(strict=True)
            target = base.joinpath(_relative(path)).resolve(strict=True)
            if not target.is_relative_to(base) or not target.is_file():
                return None
            return target.read_bytes()
        except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of symbolic links
            return None

    def read_text(self, path: str) -> str:
        """Return a report's text, empty where ``read`` has none; what is no UTF-8 in it becomes U+FFFD."""
        return (self.read(path) or b"").decode(errors="replace")

    def exists(self, path: str) -> bool:
        """Tell whether anything stands at a path."""
        try:
            return self.folder.joinpath(_relative(path)).exists()
        except (OSError, ValueError):
            return False

    def state(self, path: str) -> Literal["there", "absent", "unreadable"]:
        """Tell whether a report is at a path, as far as this user can see; an empty one is absent."""
        if (self.read(path) or b"").strip():
            return "there"
        return "absent" if self.hindrance(path) is None else "unreadable"

    def hindrance(self, path: str) -> OSError | None:
        """Return why nothing can be known of a path, with the place (``filename``) that may not be looked into, if anything.

        A folder that is missing (a disk that is not mounted) says nothing of the reports in it.
        """
        here = self.folder
        if not here.is_dir():
            return FileNotFoundError(errno.ENOENT, "there is no such folder", str(here))
        try:
            for part in _relative(path).parts:
                here /= part
                here.stat()
            if here.is_file():
                here.read_bytes()
        except OSError as exc:
            if exc.errno not in _ABSENT:
                exc.filename = str(here if os.path.lexists(here) else here.parent)
                return exc
        except ValueError:  # it leads out of the folder
            pass
        return None

    def is_blocked(self, path: str) -> bool:
        """Tell whether no report can be put at a path: something else stands there, or it leads out of the folder."""
        try:
            status = self.folder.joinpath(_relative(path)).lstat()
        except OSError:
            return False
        except ValueError:
            return True
        return not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode))

    def stage(self, text: str) -> Path:
        """Write a text to a temporary file. Raises ``ReportUnwritable``."""
        staged = self.folder / f"{_STAGED}{new_id()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            staged.write_bytes(text.encode())
        except BaseException as exc:
            with suppress(OSError):
                staged.unlink(missing_ok=True)
            if not isinstance(exc, OSError):
                raise
            raise ReportUnwritable(f"{self.folder}: no report can be written: {exc.strerror}") from exc
        return staged

    def place(self, path: str) -> Path:
        """Return where a path is, its folders made. Raises ``ReportUnwritable``."""
        folder = self.folder
        try:
            relative = _relative(path)
            folder.mkdir(parents=True, exist_ok=True)
            for part in relative.parent.parts:
                folder /= part
                refuse_link(folder)
                folder.mkdir(exist_ok=True)
        except (OSError, ValueError) as exc:
            raise _unwritable(self.folder / path, exc) from exc
        return folder / relative.name

    def write(self, path: str, text: str) -> None:
        """Put a text at a path, whole or not at all. Raises ``ReportUnwritable``."""
        target, staged = self.place(path), self.stage(text)
        try:
            publish(staged, target)
        finally:
            staged.unlink(missing_ok=True)


def publish(staged: Path, target: Path) -> None:
    """Give a staged file its name. Raises ``ReportUnwritable``."""
    try:
        staged.replace(target)
    except OSError as exc:
        raise _unwritable(target, exc) from exc


def open_own(path: Path, flags: int) -> int:
    """Open a file of kr's for ``os``; who calls closes it.

    A repository may bring a symbolic link in the place of the file or of its folder: neither is followed. Raises ``OSError``.
    """
    refuse_link(path.parent)
    refuse_link(path)
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)


def write_new(path: Path, content: bytes) -> None:
    """Write a file of kr's, flushed to disk, in the place of what a killed process left there. Raises ``OSError``."""
    path.unlink(missing_ok=True)
    with os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk: a file that was new in it stays there. Raises ``OSError``."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_link(path: Path) -> None:
    """Raise ``OSError`` for a symbolic link."""
    if path.is_symlink():
        why = f"{path.name} is a symbolic link, and nothing is read or written through links"
        raise OSError(errno.ELOOP, why, str(path))


def _relative(path: str) -> PurePosixPath:
    relative = PurePosixPath(path)
    if not relative.parts or relative.is_absolute() or ".." in relative.parts or "\0" in path or "\\" in path:
        raise ValueError("the path leaves the knowledge base")
    os.fsencode(path)
    return relative


def _unwritable(path: Path, exc: OSError | ValueError) -> ReportUnwritable:
    reason = (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc)
    return ReportUnwritable(f"{path}: the report can't be written: {reason}")
