"""What can't be written at once waits in files of its own beside the lessons file (SPEC 4.2).

Neither a lesson nor its origin is lost to a lock or a database that others hold: whoever writes next takes all that waits.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kr.log import Logger

logger = Logger(__name__)

_MOST = 1000


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
        for path in self._paths():
            try:
                yield path, json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                logger.warning("%s: can't be read: %s", path, error)

    def _paths(self) -> list[Path]:
        with suppress(OSError):
            names = [path for path in self._folder.iterdir() if path.name.startswith(self._prefix)]
            return [path for path in sorted(names)[:_MOST] if path.suffix != ".part"]
        return []


def take(path: Path) -> bool:
    """Take a file away; tell whether nobody else was faster."""
    try:
        path.unlink()
    except OSError:
        return False
    return True
