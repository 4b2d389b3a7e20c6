"""The append-only lessons file (U5, step 5).

What stands in it is never changed. Writers queue at a lock file beside it; lessons go to its end in one write of whole
lines, are flushed to disk and read back. Whoever keeps a ``FileMark`` reads only what was appended since.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kr.errors import KrError, StoreError
from kr.lessons.line import HEADER, Lesson, ParsedLines, format_line, parse_lines
from kr.store.files import open_own, refuse_link, sync_folder
from kr.store.lock import file_lock

LOCK_TIMEOUT = 60.0
"""Seconds to queue behind other writers, each of which needs some milliseconds."""

_BOM = b"\xef\xbb\xbf"
_TAIL = 512


class LessonsUnreadable(KrError):
    """The lessons file can't be read. The message is the detail after U5's words."""

    code = "file_read_error"


class AppendFailed(KrError):
    """The lessons file can't be written; it is as it was."""

    code = "append_write_failed"


@dataclass(frozen=True, slots=True)
class FileMark:
    """How far a file was read: its state then, and a digest of the last bytes, which tells whether it only grew."""

    size: int = 0
    mtime_ns: int = 0
    tail: str = ""
    lessons: int = 0


@dataclass(frozen=True, slots=True)
class Appended:
    """What a file holds beyond a mark; ``is_whole``: the mark was of no use, and this is everything."""

    parsed: ParsedLines
    mark: FileMark
    is_whole: bool


class LessonsFile:
    """One lessons file. Nothing is opened before it is used."""

    def __init__(self, path: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.path = path
        self._lock_timeout = lock_timeout

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers out. Raises ``AppendFailed`` where others hold the lock for too long."""
        with ExitStack() as held:
            try:
                refuse_link(self.path.parent)
                self.path.parent.mkdir(parents=True, exist_ok=True)
                lock = self.path.parent / f".{self.path.name}.lock"
                held.enter_context(file_lock(lock, timeout=self._lock_timeout))
            except (StoreError, OSError) as error:
                raise AppendFailed(_reason(error, self.path)) from error
            yield

    def read(self) -> ParsedLines:
        """Read the whole file. Raises ``LessonsUnreadable``."""
        return parse_lines(_decoded(self._bytes()))

    def read_news(self, mark: FileMark | None) -> Appended | None:
        """Read what was appended since ``mark``; ``None`` where nothing was. Raises ``LessonsUnreadable``."""
        state = self._stat()
        if mark is not None and (state.st_size, state.st_mtime_ns) == (mark.size, mark.mtime_ns):
            return None
        if mark is not None and mark.size <= state.st_size:
            start = max(0, mark.size - _TAIL)
            grown = self._bytes(start)
            known, new = grown[: mark.size - start], grown[mark.size - start :]
            if _digest(known) == mark.tail and (not known or known.endswith(b"\n")):
                return _news(parse_lines(_decoded(new)), grown, mark, state)
        content = self._bytes()
        return _news(parse_lines(_decoded(content)), content, None, state)

    def append(self, lessons: Sequence[Lesson]) -> None:
        """Append clean lessons (``make_lesson``), in one write that is flushed and read back; hold ``lock`` meanwhile.

        It is tried again once: a tool that knows no lock may have changed the file under our hands. Raises
        ``AppendFailed``, and the file is as it was.
        """
        lines = [format_line(lesson) for lesson in lessons]
        try:
            for _ in range(2):
                size = self._stat().st_size
                addition = _addition(self._bytes(max(0, size - _TAIL)), lines)
                self._write(size, addition)
                if self._bytes(size) == addition or self._holds(lines):
                    return
        except OSError as error:
            raise AppendFailed(_reason(error, self.path)) from error
        except LessonsUnreadable as error:
            raise AppendFailed(str(error)) from error
        raise AppendFailed("the appended lines were not found when the file was read again")

    def _holds(self, lines: Sequence[str]) -> bool:
        present = {line.rstrip(b"\r") for line in self._bytes().split(b"\n")}
        return all(line.encode() in present for line in lines)

    def _stat(self) -> os.stat_result:
        try:
            return self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return os.stat_result((stat.S_IFREG, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        except OSError as error:
            raise LessonsUnreadable(error.strerror or str(error)) from error

    def _bytes(self, start: int = 0) -> bytes:
        """Return the file's bytes from ``start`` on; nothing where there is no file."""
        try:
            # A pipe or a device would keep us waiting, or never end.
            with _opened(self.path, os.O_RDONLY) as file:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise LessonsUnreadable("it is not a regular file")
                with os.fdopen(file, "rb", closefd=False) as stream:
                    stream.seek(start)
                    return stream.read()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise LessonsUnreadable(error.strerror or str(error)) from error

    def _write(self, size: int, addition: bytes) -> None:
        """Write all of it or nothing: what a full disk took of it is taken back."""
        is_new = not os.path.lexists(self.path)
        # The system lets root write anything; a file that nobody may write is meant to stay as it is.
        if self.path.exists() and not self.path.stat().st_mode & 0o222:
            raise PermissionError(13, "permission denied: the file is read-only")
        with _opened(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
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


def _news(parsed: ParsedLines, content: bytes, before: FileMark | None, state: os.stat_result) -> Appended:
    """Mark how far the content reads; it begins within the last bytes that ``before`` knows of."""
    old = before or FileMark()
    size = max(0, old.size - _TAIL) + len(content)
    # Somebody may append while we read: what we saw counts, and a time that fits no other state.
    mark = FileMark(
        size=size,
        mtime_ns=state.st_mtime_ns if size == state.st_size else 0,
        tail=_digest(content[-_TAIL:]),
        lessons=old.lessons + len(parsed.lessons),
    )
    return Appended(parsed, mark, before is None)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]


def _decoded(content: bytes) -> str:
    """Decode with a lone surrogate for a byte that is no UTF-8: it costs only its own line."""
    return content.decode("utf-8", errors="surrogateescape")


def _addition(tail: bytes, lines: Sequence[str]) -> bytes:
    """Return the bytes to append: the header in an empty file, and a new line after one that is not ended."""
    ending = "\r\n" if tail[tail.rfind(b"\n") - 1 :].startswith(b"\r\n") else "\n"
    text = "".join(line + ending for line in lines)
    if not tail.removeprefix(_BOM).strip():
        text = HEADER + text
    is_torn = bool(tail.removeprefix(_BOM)) and not tail.endswith(b"\n")
    return ((ending if is_torn else "") + text).encode()


def _reason(error: Exception, path: Path) -> str:
    """Say why, with the name of the folder or file that it is about, if that is another one than ``path``."""
    if not isinstance(error, OSError):
        return str(error)
    reason = error.strerror or str(error)
    is_other = error.filename is not None and Path(error.filename) != path
    return f"{error.filename}: {reason}" if is_other else reason


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    file = open_own(path, flags)
    try:
        yield file
    finally:
        os.close(file)
