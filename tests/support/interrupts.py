"""A signal's exception may rise right after any call returned, before the line after it notes that it did."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupter:
    """Raises ``KeyboardInterrupt`` as the ``number``-th of the watched calls returns."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, _frame: FrameType, event: str, called: Any) -> None:
        if event == "c_return" and _is_watched(called):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    @contextmanager
    def watching(self) -> Iterator[None]:
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


def _is_watched(called: Any) -> bool:
    owner = getattr(called, "__self__", None)
    if isinstance(owner, sqlite3.Connection | sqlite3.Cursor):
        return True
    return getattr(called, "__module__", "") in {"posix", "_io", "fcntl"}
