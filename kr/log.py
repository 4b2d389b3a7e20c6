"""kr's own loggers: the standard library's, which is imported when there is the first thing to say.

A hit says nothing, and would spend more on ``logging`` than on its SQL.
"""

import sys
from typing import Any

_DEBUG, _INFO, _WARNING = 10, 20, 30


class _Settings:
    verbose: bool | None = None
    is_applied = False


class Logger:
    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, message: str, *values: object) -> None:
        self._say(_DEBUG, message, values)

    def info(self, message: str, *values: object) -> None:
        self._say(_INFO, message, values)

    def warning(self, message: str, *values: object) -> None:
        self._say(_WARNING, message, values)

    def _say(self, level: int, message: str, values: tuple[object, ...]) -> None:
        if level < _WARNING and not _Settings.verbose and "logging" not in sys.modules:
            return
        apply()
        import logging

        # The caller is two frames up.
        logging.getLogger(self._name).log(level, message, *values, stacklevel=3)


def configure(*, verbose: bool) -> None:
    """Want kr's messages on standard error, all of them or warnings alone; other libraries speak up only when something is wrong."""
    _Settings.verbose, _Settings.is_applied = verbose, False
    if "logging" in sys.modules:
        apply()


def apply() -> None:
    """Set ``logging`` up as it was wanted: before anything that brings libraries with messages of their own."""
    if _Settings.verbose is None or _Settings.is_applied:
        return
    import logging

    _Settings.is_applied = True
    for level in (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        logging.addLevelName(level, logging.getLevelName(level).lower())  # as kr's own messages read
    options: dict[str, Any] = {
        "format": "%(levelname)s: %(message)s",
        "level": logging.WARNING,
        "force": True,
    }
    logging.basicConfig(**options)
    logging.getLogger("kr").setLevel(logging.INFO if _Settings.verbose else logging.WARNING)
    # It logs an interrupt that strikes while a connection closes as an error with its traceback, and raises it as well.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
