"""Where lessons came from, for as long as the database can't be told: no origin is lost to a busy one (SPEC 4.2).

One file for each recording beside the lessons file. Whoever writes to the database next takes them all.
"""

import json
import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from kr.store.rows import LessonRow

logger = logging.getLogger(__name__)

_PREFIX = ".origin-"
_MOST = 1000


class WaitingOrigins:
    """The rows that wait in a folder. Nothing is raised for a folder that can't be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, rows: Sequence[LessonRow]) -> None:
        """Keep rows that the database could not take."""
        if not rows:
            return
        path = self._folder / f"{_PREFIX}{uuid.uuid4().hex}"
        try:
            part = path.with_suffix(".part")
            part.write_text(json.dumps([row.fields() for row in rows]), encoding="utf-8")
            part.replace(path)
        except OSError as error:
            logger.warning("%s: %s; an origin is lost", path, error.strerror or error)

    @contextmanager
    def taken(self) -> Iterator[list[LessonRow]]:
        """Give the rows that wait; their files go when the block ends well. Taking one twice does no harm."""
        found: list[LessonRow] = []
        files: list[Path] = []
        for path in self._waiting():
            try:
                items = json.loads(path.read_text(encoding="utf-8"))
                found += [LessonRow(**{**item, "tags": tuple(item["tags"])}) for item in items]
            except FileNotFoundError:
                continue
            except (OSError, ValueError, TypeError, KeyError) as error:
                logger.warning("%s: no origin of a lesson: %s", path, error)
                continue
            files.append(path)
        yield found
        for path in files:
            with suppress(OSError):
                path.unlink()

    def _waiting(self) -> list[Path]:
        with suppress(OSError):
            names = [path for path in self._folder.iterdir() if path.name.startswith(_PREFIX)]
            return [path for path in sorted(names)[:_MOST] if path.suffix != ".part"]
        return []
