"""Report files below the knowledge base: read safely, replaced in one step that can be undone.

A path in the index may have been written by anybody, and a symlink may stand anywhere: nothing is read
through one that leaves the knowledge base, nothing is written through any.

A replacement hard-links the old file to a hidden undo name, made of the file's name and the new text's hash,
before the new one is renamed over it; the link goes once the index row is committed. After a crash the undo
name therefore tells whether the row or the file is ahead (``heal``).
"""

import hashlib
import os
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

from kr.errors import ReportUnwritable
from kr.store.hashing import decoded, digest

_STAGED = ".kr-tmp-"
_UNDO = ".kr-undo-"
_ABANDONED_SECONDS = 3600.0
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_REGULAR = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class ReportFiles:
    """The reports of one knowledge base. Paths are as in the index: relative, with forward slashes."""

    def __init__(self, knowledge_base: Path) -> None:
        self._base = knowledge_base

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
    def staged(self, content: bytes) -> Iterator[str]:
        """Write a text to a temporary file and to disk; the file is gone when the block ends.

        Raises ``ReportUnwritable``.
        """
        name = _STAGED + uuid.uuid4().hex
        target = self._base / name
        try:
            try:
                self._base.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as exc:
                raise ReportUnwritable(f"{self._base}: no report can be written: {exc.strerror}") from exc
            yield name
        finally:
            with suppress(OSError):
                target.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed writers left, once it is old enough to be nobody's."""
        limit = time.time() - _ABANDONED_SECONDS
        with suppress(OSError), os.scandir(self._base) as found:
            for item in found:
                if item.name.startswith(_STAGED) and item.stat(follow_symlinks=False).st_mtime < limit:
                    Path(item.path).unlink(missing_ok=True)

    def may_be_torn(self, path: str) -> bool:
        """Return whether a replacement at this path was, or is being, made."""
        try:
            folder = self._base.joinpath(_parts(path)).parent
            prefix = _undo_prefix(PurePosixPath(path).name)
            return any(found.name.startswith(prefix) for found in folder.iterdir())
        except (OSError, ValueError):
            return False

    @contextmanager
    def replacement(self, path: str) -> Iterator["Replacement"]:
        """Open the folder of a path, without following symlinks; it and the base are made if absent.

        Call with the lock held. Raises ``ReportUnwritable``.
        """
        with ExitStack() as opened:
            try:
                relative = _parts(path)
                self._base.mkdir(parents=True, exist_ok=True)
                base = folder = _opened(opened, os.open(self._base.resolve(), _DIRECTORY))
                made_in = []
                for part in relative.parent.parts:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder)
                        made_in.append(folder)
                    _refuse_link(part, folder)
                    folder = _opened(opened, os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=folder))
            except (OSError, ValueError) as exc:
                raise _unwritable(self._base / path, exc) from exc
            yield Replacement(self._base / path, base, folder, made_in)


class Replacement:
    """One report file being replaced: by ``run``, then either ``finish`` or ``roll_back``."""

    def __init__(self, shown: Path, base: int, folder: int, made_in: list[int]) -> None:
        self._shown = shown
        self._base = base
        self._folder = folder
        self._made_in = made_in
        self._name = shown.name
        self._staged: str | None = None
        self._undo: str | None = None

    def heal(self, live_sha256: str | None) -> None:
        """Finish or undo what a killed writer left: the row's hash says whether it had committed."""
        prefix = _undo_prefix(self._name)
        try:
            for undo in [name for name in os.listdir(self._folder) if name.startswith(prefix)]:  # noqa: PTH208 - a descriptor
                written = undo.removeprefix(prefix)
                if live_sha256 != written and digest(decoded(self.current())) == written:
                    os.replace(undo, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                else:
                    os.unlink(undo, dir_fd=self._folder)
        except OSError as exc:
            raise _unwritable(self._shown, exc) from exc

    def current(self) -> bytes | None:
        """Return the bytes that stand there now, if it is a regular file."""
        try:
            return _read_regular(os.open(self._name, _REGULAR, dir_fd=self._folder))
        except OSError:
            return None

    def run(self, staged: str, sha256: str) -> None:
        """Put the staged file, whose hash is given, in place. Raises ``ReportUnwritable``."""
        folder = self._folder
        # Noted before it is done: a signal may strike between a step and any note of it.
        self._staged, self._undo = staged, _undo_prefix(self._name) + sha256
        try:
            self._keep_old(self._undo)
            os.replace(staged, self._name, src_dir_fd=self._base, dst_dir_fd=folder)
        except OSError as exc:
            raise _unwritable(self._shown, exc) from exc

    def create(self, content: bytes) -> bool:
        """Put a file where none stands, whole or not at all; False where one does. It is not synced.

        Raises ``ReportUnwritable``.
        """
        staged = _STAGED + uuid.uuid4().hex
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(staged, new, 0o666, dir_fd=self._base), "wb") as file:
                file.write(content)
            try:
                self._link(staged, content)
            finally:
                os.unlink(staged, dir_fd=self._base)
        except FileExistsError:
            return False
        except OSError as exc:
            raise _unwritable(self._shown, exc) from exc
        return True

    def remove(self) -> None:
        """Take away what ``create`` put there."""
        with suppress(OSError):
            os.unlink(self._name, dir_fd=self._folder)

    def roll_back(self) -> None:
        """Bring the old file back, or none where none was. Raises ``ReportUnwritable``.

        How far ``run`` came is read from the files. Call it while the staged file is still kept.
        """
        if self._staged is None or self._undo is None:
            return
        folder = self._folder
        try:
            if _exists(self._staged, self._base):
                _unlink(self._undo, folder)
            elif _exists(self._undo, folder):
                os.replace(self._undo, self._name, src_dir_fd=folder, dst_dir_fd=folder)
            else:
                _unlink(self._name, folder)
        except OSError as exc:
            raise _unwritable(self._shown, exc) from exc
        self._staged = None

    def finish(self) -> None:
        """Forget the old file: the new pair is committed. What can't be removed, ``heal`` removes."""
        if self._undo is not None:
            with suppress(OSError):
                _unlink(self._undo, self._folder)

    def sync(self) -> None:
        """Bring the new names to disk; folders that know no sync are passed over."""
        for folder in (*self._made_in, self._folder):
            with suppress(OSError):
                os.fsync(folder)

    def _link(self, staged: str, content: bytes) -> None:
        try:
            os.link(staged, self._name, src_dir_fd=self._base, dst_dir_fd=self._folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(self._name, new, 0o666, dir_fd=self._folder), "wb") as file:
                try:
                    file.write(content)
                    file.flush()
                except BaseException:
                    self.remove()
                    raise

    def _keep_old(self, undo: str) -> None:
        try:
            os.link(self._name, undo, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError:  # a file system without hard links
            copy = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(undo, copy, 0o666, dir_fd=self._folder), "wb") as file:
                file.write(self.current() or b"")


def _refuse_link(name: str, folder: int) -> None:
    if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
        raise ValueError(
            f"{name} is a symbolic link, and nothing is written through links below the knowledge base"
        )


def _exists(name: str, folder: int) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _parts(path: str) -> PurePosixPath:
    relative = PurePosixPath(path)
    if not relative.parts or relative.is_absolute() or ".." in relative.parts or "\0" in path or "\\" in path:
        raise ValueError("the path leaves the knowledge base")
    os.fsencode(path)
    return relative


def _undo_prefix(name: str) -> str:
    # A hash of the name: a name may already be as long as the file system takes.
    return f"{_UNDO}{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}-"


def _read_regular(file: int) -> bytes | None:
    with os.fdopen(file, "rb") as opened:
        return opened.read() if stat.S_ISREG(os.fstat(file).st_mode) else None


def _opened(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _unwritable(path: Path, exc: OSError | ValueError) -> ReportUnwritable:
    reason = (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc)
    return ReportUnwritable(f"{path}: the report can't be written: {reason}")
