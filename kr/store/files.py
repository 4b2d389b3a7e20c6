"""What kr keeps in files: the reports of a knowledge base, each made from its row, whole; and the lock between processes.

Nothing is read or written through a link that leads out. ``open_own`` is how everything else that kr keeps in a file of a project is
opened. Paths of reports are as in the index: relative, with forward slashes.
"""

import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Literal

from kr.errors import ReportUnwritable, StoreBusy, StoreError, StoreUnwritable

_IGNORED = """\
# Written by kr once: what git leaves out. Reports, index.yaml and lessons may be committed.
kr.db*
kr-*.db
*.lock
*.bak
.kr-*
"""
_LEFT_SECONDS = 3600.0
"""After which nobody publishes a staged file any more."""
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
"""What tells that there is no such file."""


def new_id() -> str:
    """Return 32 random hexadecimal digits: the id of a row, or a name that nobody has."""
    return os.urandom(16).hex()


def make_base(folder: Path) -> None:
    """Make a knowledge base's folder, with a ``.gitignore`` of its own that leaves the database out. Raises ``OSError``."""
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(OSError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write(_IGNORED)


class ReportFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._is_swept = False

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

    def state(self, path: str) -> Literal["there", "absent", "unreadable"]:
        """Tell whether a report is at a path, as far as this user can see; an empty one is absent.

        A folder that is missing (a disk that is not mounted) says nothing of the reports in it.
        """
        if (self.read(path) or b"").strip():
            return "there"
        if not self.folder.is_dir():
            return "unreadable"
        try:
            os.close(os.open(self.folder.joinpath(_relative(path)), os.O_RDONLY | os.O_NONBLOCK))
        except OSError as exc:
            return "absent" if exc.errno in _ABSENT else "unreadable"
        except ValueError:  # it leads out of the folder
            pass
        return "absent"

    def is_blocked(self, path: str) -> bool:
        """Tell whether no report can be put at a path: something else stands there, or it leads out of the folder."""
        try:
            status = self.folder.joinpath(_relative(path)).lstat()
        except OSError:
            return False
        except ValueError:
            return True
        return not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode))

    def stage(self, path: str, text: str) -> tuple[Path, Path]:
        """Write a text to a temporary file and make the folders of its path; return both, for ``publish``. Raises ``ReportUnwritable``."""
        staged, target = self.folder / f".kr-tmp-{new_id()}", self.folder
        try:
            relative = _relative(path)
            target.mkdir(parents=True, exist_ok=True)
            self._sweep()
            for part in relative.parent.parts:
                target /= part
                refuse_link(target)
                target.mkdir(exist_ok=True)
            target /= relative.name
            staged.write_bytes(text.encode())
            return staged, target  # noqa: TRY300 - an interrupt may strike wherever a call ends
        except BaseException as exc:
            staged.unlink(missing_ok=True)
            if isinstance(exc, OSError | ValueError):
                raise _unwritable(self.folder / path, exc) from exc
            raise

    def _sweep(self) -> None:
        """Remove, once for a process, what killed ones left before the last hour."""
        if self._is_swept:
            return
        self._is_swept = True
        for left in self.folder.glob(".kr-tmp-*"):
            with suppress(OSError):
                if left.lstat().st_mtime < time.time() - _LEFT_SECONDS:
                    left.unlink()

    def write(self, path: str, text: str) -> None:
        """Put a text at a path, whole or not at all. Raises ``ReportUnwritable``."""
        staged, target = self.stage(path, text)
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


@contextmanager
def file_lock(path: Path, *, timeout: float) -> Iterator[None]:
    """Hold flock on a file of its own against other processes and threads. Not reentrant; free at once when its holder is killed.

    Every writer of a SQLite database queues here: SQLite's own busy handler starves writers, and releases of SQLite before 3.51.3 can
    corrupt a database when a commit and a checkpoint overlap (sqlite.org/wal.html#walresetbug). The file is never the database itself,
    because closing that would drop SQLite's own locks. Raises ``StoreBusy`` after ``timeout`` seconds, ``StoreUnwritable`` where no
    lock file can be made. A signal is obeyed while waiting.
    """
    descriptor = _acquire(path, timeout)
    try:
        yield
    finally:
        # Unlocked by name: a child process that inherited the descriptor does not keep the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _acquire(path: Path, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as exc:
            raise StoreUnwritable(f"{path}: the lock file can't be made: {exc.strerror}") from exc
        try:
            is_held = _try(descriptor, path) or _wait(descriptor, deadline - time.monotonic())
            if is_held and _is_at(path, descriptor):
                return descriptor
        except BaseException:  # also what a signal handler raised
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not is_held:
            why = f"{path}: another process has held the lock for more than {timeout:g} s"
            raise StoreBusy(why, "try again once it has ended")
        # Somebody removed the file while we waited: others lock the new one.


def _try(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as exc:
        raise StoreError(f"{path}: this file system has no locks: {exc.strerror}") from exc
    return True


def _wait(descriptor: int, seconds: float) -> bool:
    """Wait in the kernel's queue, which is fair; polling is not. flock has no timeout, so a thread of its own waits in it.

    The thread holds a duplicate of the descriptor. When nobody waits for it any more, closing that gives the lock back.
    """
    if seconds <= 0:
        return False
    duplicate = os.dup(descriptor)
    is_acquired = threading.Event()

    def wait() -> None:
        try:
            fcntl.flock(duplicate, fcntl.LOCK_EX)
            is_acquired.set()
        finally:
            os.close(duplicate)

    threading.Thread(target=wait, name="kr-lock", daemon=True).start()
    return is_acquired.wait(seconds)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
