"""What was looked at to find a project's version of a framework, so that it is looked for again only when that changes.

Detection reads every dependency file of a project, which costs more than the rest of a hit. While ``watched`` is open,
what reads them says so here: a file with its times, size and inode, a folder with the names in it, a place with
whether there is something. Nothing of it is imported that a hit would not import anyway.
"""

import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

Path: TypeAlias = "str | os.PathLike[str]"

_MOST = 400
"""Marks that are still cheaper to compare than a project is to read."""
_SETTLED_NS = 100_000_000
"""A file that was written this shortly before may be written again within one tick of the clock."""


class Seen:
    """What was looked at: ``marks`` by kind and path, and the warnings that were given."""

    def __init__(self) -> None:
        self.marks: dict[str, Any] = {}
        self.warnings: list[str] = []

    def is_settled(self, started_ns: int) -> bool:
        """Whether no change can hide behind these marks; ``started_ns`` is when the search began, of ``time.time_ns``."""
        files = [mark for mark in self.marks.values() if isinstance(mark, list)]
        is_old = all(max(mark[:2]) < started_ns - _SETTLED_NS for mark in files)
        return is_old and len(self.marks) <= _MOST

    def still_holds(self) -> bool:
        """Whether all is as it was when it was looked at."""
        return all(_mark(key) == mark for key, mark in self.marks.items())


_seen: ContextVar[Seen | None] = ContextVar("seen", default=None)


@contextmanager
def watched() -> Iterator[Seen]:
    """Give what is looked at from here on."""
    seen = Seen()
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


def saw_file(path: Path) -> None:
    """Say, before it is read, that a file's content counts, or that there is none."""
    _note("file", path)


def saw_names(folder: Path) -> None:
    """Say, before it is listed, that the names in a folder count."""
    _note("names", folder)


def saw_place(path: Path) -> None:
    """Say that it counts whether there is something at a path."""
    _note("place", path)


def warned(sentence: str) -> None:
    """Say what the user was told."""
    if (seen := _seen.get()) is not None:
        seen.warnings.append(sentence)


def _note(kind: str, path: Path) -> None:
    seen = _seen.get()
    if seen is not None and len(seen.marks) <= _MOST:
        key = f"{kind} {os.path.abspath(path)}"  # noqa: PTH100
        seen.marks.setdefault(key, _mark(key))


def _mark(key: str) -> Any:
    kind, _, path = key.partition(" ")
    try:
        if kind == "names":
            return zlib.crc32("\0".join(sorted(os.listdir(path))).encode(errors="surrogateescape"))  # noqa: PTH208
        if kind == "place":
            return os.path.lexists(path)
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError) as error:
        return type(error).__name__
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino]


def now_ns() -> int:
    """Tell when a search begins."""
    return time.time_ns()
