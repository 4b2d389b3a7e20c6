"""The append-only lessons file: read by anybody, written by one process at a time (seed 003, step 5; SPEC 4.2).

Writers queue at a lock file beside it. What stands in the file is never changed: a lesson goes to its end in
one write of whole lines, is flushed to disk and read back. What can't be written at once (a lock or a database that
others hold) waits in files beside it: whoever writes next takes all that waits.
"""

import json
import os
import stat
import uuid
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from kr.errors import KrError, StoreError
from kr.lessons.line import HEADER, Lesson, Parsed, format_line, parse_file
from kr.log import Logger
from kr.values import EventType

logger = Logger(__name__)

LOCK_TIMEOUT = 60.0
"""Seconds to queue behind other writers, each of which needs a few milliseconds, or more on a machine that is overloaded."""

_ATTEMPTS = 2
_MOST_WAITING = 1000
_BOM = b"\xef\xbb\xbf"


class LessonsUnreadable(KrError):
    """The lessons file can't be read. The message is the detail after the seed's words."""

    code = "file_read_error"


class AppendFailed(KrError):
    """The lessons file can't be written; it is as it was."""

    code = "append_write_failed"


class AppendBusy(AppendFailed):
    """Others have held the file's lock for too long."""


class Appended(NamedTuple):
    """What became of an append: the lessons written, and how many the file holds now."""

    lessons: tuple[Lesson, ...]
    total: int


class LessonsFile:
    """One lessons file. Nothing is opened before it is used."""

    def __init__(self, path: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.path = path
        self._lock_timeout = lock_timeout

    @property
    def lock_path(self) -> Path:
        """The file that writers lock; it stays."""
        return self.path.parent / f".{self.path.name}.lock"

    def content(self) -> bytes:
        """Return the file's bytes; nothing where there is no file. Raises ``LessonsUnreadable``."""
        try:
            # A pipe or a device would keep us waiting, or never end.
            with _opened(self.path, os.O_RDONLY) as file:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise LessonsUnreadable("it is not a regular file")
                with os.fdopen(file, "rb", closefd=False) as stream:
                    return stream.read()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as exc:
            raise LessonsUnreadable(exc.strerror or str(exc)) from exc

    def text(self) -> str:
        """Return the file's text, with a lone surrogate for a byte that is no UTF-8. Raises ``LessonsUnreadable``."""
        return decoded(self.content())

    def read(self, tags: Container[str] | None = None) -> Parsed:
        """Parse the file; with ``tags``, lessons without any of them are but counted. Raises ``LessonsUnreadable``."""
        return parse_file(self.text(), tags)

    def append(
        self,
        choose: Callable[[Sequence[Lesson]], Sequence[Lesson]],
        tags: Container[str] | None = None,
    ) -> Appended:
        """Append what ``choose`` makes of the lessons that the file holds; nobody else appends meanwhile.

        ``choose`` may be called twice: when a tool that knows no lock changed the file under our hands. Its
        lessons must be clean (``line.cleaned``). With ``tags`` it is given the lessons that have one of them.
        Raises ``AppendFailed``, also where ``read`` would raise: what nobody could read is not added to.
        """
        # Only writers need the lock, and its module is not light.
        from kr.store.lock import exclusive

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with exclusive(self.lock_path, timeout=self._lock_timeout):
                return self._append(choose, tags)
        except StoreError as exc:
            raise AppendBusy(str(exc)) from exc
        except OSError as exc:
            raise AppendFailed(_reason(exc, self.path)) from exc
        except LessonsUnreadable as exc:
            raise AppendFailed(str(exc)) from exc

    def _append(
        self, choose: Callable[[Sequence[Lesson]], Sequence[Lesson]], tags: Container[str] | None
    ) -> Appended:
        for _ in range(_ATTEMPTS):
            before = self.content()
            present = parse_file(decoded(before), tags)
            chosen = tuple(choose(present.lessons))
            if not chosen:
                return Appended((), present.total)
            addition = _addition(before, [format_line(lesson) for lesson in chosen])
            self._write(len(before), addition)
            after = self.content()
            if after == before + addition:
                return Appended(chosen, present.total + len(chosen))
            lines = {line.rstrip(b"\r") for line in after.split(b"\n")}
            if all(format_line(lesson).encode() in lines for lesson in chosen):
                return Appended(chosen, parse_file(decoded(after)).total)
        raise AppendFailed("the appended lines were not found when the file was read again")

    def _write(self, size: int, addition: bytes) -> None:
        """Write all of it or nothing: what a full disk took of it is taken back."""
        is_new = not os.path.lexists(self.path)
        _refuse_read_only(self.path)
        with _opened(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
            try:
                _write_all(file, addition)
                os.fsync(file)
            except OSError:
                _take_back(file, size, addition)
                if is_new:
                    self.path.unlink(missing_ok=True)
                raise
        if is_new:
            _flush_folder(self.path.parent)


def _reason(error: OSError, path: Path) -> str:
    """Say why, with the name of the folder or file that it is about, if that is another one than ``path``."""
    reason = error.strerror or str(error)
    is_other = error.filename is not None and Path(error.filename) != path
    return f"{error.filename}: {reason}" if is_other else reason


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    file = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    try:
        yield file
    finally:
        os.close(file)


def _write_all(file: int, content: bytes) -> None:
    written = os.write(file, content)
    # A short write is a full disk, which the next one tells; or a signal.
    while written < len(content):
        written += os.write(file, content[written:])


def _flush_folder(folder: Path) -> None:
    with suppress(OSError), _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as file:
        os.fsync(file)


def decoded(content: bytes) -> str:
    """Return the text of a lessons file; a byte that is no UTF-8 becomes a lone surrogate, and its line is no lesson."""
    return content.decode("utf-8", errors="surrogateescape")


def _addition(before: bytes, lines: Sequence[str]) -> bytes:
    """Return the bytes to append: the header in an empty file, and a new line after one that is not ended."""
    ending = _last_ending(before)
    text = "".join(line + ending for line in lines)
    if not before.removeprefix(_BOM).strip():
        text = HEADER + text
    is_torn = bool(before.removeprefix(_BOM)) and not before.endswith(b"\n")
    return ((ending if is_torn else "") + text).encode()


def _last_ending(before: bytes) -> str:
    """Return how the last whole line of the file ends."""
    return "\r\n" if before[before.rfind(b"\n") - 1 :].startswith(b"\r\n") else "\n"


def _refuse_read_only(path: Path) -> None:
    # The system lets root write anything; a file that nobody may write is meant to stay as it is.
    if path.exists() and not path.stat().st_mode & 0o222:
        raise PermissionError(13, "permission denied: the file is read-only")


def _take_back(file: int, size: int, addition: bytes) -> None:
    """Cut off what was written of ``addition``, unless somebody without the lock wrote after it."""
    if size < os.fstat(file).st_size <= size + len(addition):
        os.ftruncate(file, size)


class Waiting:
    """The files of one prefix in a folder, each with plain data. Nothing is raised for a folder that can't be written."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix

    def keep(self, data: object) -> bool:
        """Keep what could not be written; tell whether it is kept."""
        path = self._folder / f"{self._prefix}{uuid.uuid4().hex}"
        try:
            part = path.with_suffix(".part")
            part.write_text(json.dumps(data), encoding="utf-8")
            part.replace(path)
        except OSError as error:
            logger.warning("%s: %s; it is lost", path, error.strerror or error)
            return False
        return True

    def found(self) -> Iterator[tuple[Path, Any]]:
        """Yield each file that waits with its data; what is none is told and stays."""
        names: list[Path] = []
        with suppress(OSError):
            names = sorted(path for path in self._folder.iterdir() if path.name.startswith(self._prefix))
        for path in names[:_MOST_WAITING]:
            try:
                if path.suffix != ".part":
                    yield path, json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                logger.warning("%s: can't be read: %s", path, error)


def take(path: Path) -> bool:
    """Take a file away; tell whether nobody else was faster."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


LESSONS_WAITING = ".lesson-"
"""What the names of the files begin with in which recorders' lessons wait."""


class Candidate(NamedTuple):
    """A lesson that is to be recorded: the event that it came from, and who worded it."""

    event: EventType
    lesson: Lesson
    source: str


def waiting_recordings(folder: Path) -> Iterator[tuple[Path, str, str, list[Candidate]]]:
    """Yield what recorders could not append when it was their turn: its file, story, session and lessons."""
    for path, data in Waiting(folder, LESSONS_WAITING).found():
        try:
            candidates = [
                Candidate(event, Lesson(**{**lesson, "tags": tuple(lesson["tags"])}), source)
                for event, lesson, source in data["candidates"]
            ]
            yield path, data["story_key"], data["session_id"], candidates
        except (TypeError, KeyError, ValueError) as error:
            logger.warning("%s: no lesson that waits: %s", path, error)
