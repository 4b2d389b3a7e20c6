"""The append-only lessons file (U5, step 5).

What stands in it is never changed. Writers queue at a lock file beside it; lessons go to its end in one write of whole
lines, are flushed to disk and read back. Whoever keeps a ``FileMark`` reads only what was appended since.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Literal

from kr.errors import KrError
from kr.lessons.line import BOM, HEADER, ParsedLines, format_line, parse_lines
from kr.models import Lesson
from kr.store.files import file_lock, open_own, refuse_link, sync_folder

LOCK_TIMEOUT = 60.0
"""Seconds to queue behind other writers, each of which needs some milliseconds."""

_TAIL = 512


class LessonsFileError(KrError):
    """The lessons file can't be read; or it can't be written, and is as it was. The message names it and says why."""

    code = "lessons_file"


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class FileMark:
    """How far a file was read: its bytes, a digest of the last of them, which tells whether it only grew, and its lessons."""

    size: int = 0
    tail: str = _digest(b"")
    lessons: int = 0


class LessonsFile:
    """One lessons file. Nothing is opened before it is used. Whatever can't be done raises ``LessonsFileError``."""

    def __init__(self, path: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.path = path
        self._lock_timeout = lock_timeout

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers out. Raises ``StoreError`` where others hold the lock for too long."""
        with self._named_errors():
            refuse_link(self.path.parent)
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(self.path.parent / f".{self.path.name}.lock", timeout=self._lock_timeout):
            yield

    def read(self) -> ParsedLines:
        """Read the whole file; no file is an empty one."""
        return parse_lines(self._bytes())

    def read_since(self, mark: FileMark) -> tuple[ParsedLines, FileMark, bool]:
        """Read what was appended since ``mark``: it, how far the file is read now, and whether it is all that the file holds.

        It is all where the file did not merely grow.
        """
        start = max(0, mark.size - _TAIL)
        content = self._bytes(start)
        known = content[: mark.size - start]
        is_whole = not known.endswith(b"\n") or _digest(known) != mark.tail
        if is_whole:
            mark, start, known, content = FileMark(), 0, b"", self._bytes()
        parsed = parse_lines(content[len(known) :])
        lessons = mark.lessons + len(parsed)
        return parsed, FileMark(start + len(content), _digest(content[-_TAIL:]), lessons), is_whole

    def append(self, lessons: Sequence[Lesson]) -> None:
        """Append clean lessons (``make_lesson``), in one write that is flushed and read back; hold ``lock`` meanwhile."""
        with self._named_errors():
            size, written = self._write([format_line(lesson) for lesson in lessons])
        if written not in self._bytes(size):
            raise LessonsFileError(f"{self.path}: the appended lines were not found when it was read again")

    def _opened(self, mode: Literal["rb", "ab+"]) -> IO[bytes]:
        return open(self.path, mode, buffering=0, opener=lambda _, flags: open_own(self.path, flags))

    def _bytes(self, start: int = 0) -> bytes:
        """Return the file's bytes from ``start`` on; nothing where there is no file."""
        with self._named_errors():
            try:
                with self._opened("rb") as stream:
                    # A pipe or a device would keep us waiting, or never end.
                    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                        raise OSError("it is not a regular file")
                    stream.seek(start)
                    return stream.read()
            except (FileNotFoundError, NotADirectoryError):
                return b""

    def _write(self, lines: Sequence[str]) -> tuple[int, bytes]:
        """Write all of the lines or nothing; return behind which byte, and what. What a full disk took is taken back."""
        is_new = not os.path.lexists(self.path)
        with self._opened("ab+") as stream:
            file = stream.fileno()
            size, mode = os.fstat(file).st_size, os.fstat(file).st_mode
            # The system lets root write anything; a file that nobody may write is meant to stay as it is.
            if not mode & 0o222:
                raise PermissionError(13, "permission denied: the file is read-only")
            addition = _addition(os.pread(file, _TAIL, max(0, size - _TAIL)), lines)
            try:
                written = 0
                while written < len(addition):
                    written += os.write(file, addition[written:])
                os.fsync(file)
            except OSError:
                # Unless somebody without the lock wrote after it.
                if size < os.fstat(file).st_size <= size + len(addition):
                    os.ftruncate(file, size)
                if is_new:
                    self.path.unlink(missing_ok=True)
                raise
        if is_new:
            with suppress(OSError):
                sync_folder(self.path.parent)
        return size, addition

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LessonsFileError(f"{error.filename or self.path}: {error.strerror or error}") from error


def _addition(tail: bytes, lines: Sequence[str]) -> bytes:
    """Return the bytes to append: the header in an empty file, and a new line after one that is not ended."""
    tail = tail.removeprefix(BOM)
    header = "" if tail.strip() else HEADER
    start = "\n" if tail and not tail.endswith(b"\n") else ""
    return (start + header + "".join(f"{line}\n" for line in lines)).encode()
