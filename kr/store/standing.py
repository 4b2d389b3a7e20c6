"""Whether a report stands at its path: there, absent or empty, or there for all we know but not readable."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from kr.store.reports import ReportFiles

_ABSENT = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.EISDIR, errno.ENXIO}
)
"""What tells that there is no such file. Anything else (EACCES, EIO, ESTALE) tells nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``blocked_by`` is the file or folder that an ``unreadable`` report failed at, and ``reason`` why."""

    state: Literal["there", "absent", "unreadable"]
    blocked_by: Path | None = None
    reason: str = ""


THERE = Standing(state="there")
ABSENT = Standing(state="absent")


def standing(knowledge_base: Path, path: str) -> Standing:
    """Tell whether a report is at a path of the index; ``absent`` is also an empty one, or no regular file."""
    if (ReportFiles(knowledge_base).read(path) or b"").strip():
        return THERE
    relative = PurePosixPath(path)
    if relative.is_absolute() or ".." in relative.parts or "\0" in path:
        return ABSENT
    here = knowledge_base
    try:
        for here in (knowledge_base, *_below(knowledge_base, relative)):
            here.stat()
        if here.is_file():
            with here.open("rb") as file:
                file.read(1)
    except OSError as error:
        if error.errno in _ABSENT:
            return ABSENT
        blocked = here if os.path.lexists(here) else here.parent
        return Standing(state="unreadable", blocked_by=blocked, reason=error.strerror or str(error))
    except ValueError:
        return ABSENT
    return ABSENT


def _below(base: Path, relative: PurePosixPath) -> list[Path]:
    return [base.joinpath(*relative.parts[:number]) for number in range(1, len(relative.parts) + 1)]
