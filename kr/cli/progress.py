"""What a person sees on standard error while sources are asked; silent when nobody watches (SPEC 6)."""

import sys
import threading
import time

from kr.cli.messages import is_dumb

_REFRESH_SECONDS = 0.5


class SilentProgress:
    """Says nothing: standard error is no terminal."""

    def asking(self, source: str) -> None:
        """Nobody watches."""

    def waiting(self) -> None:
        """Nobody watches."""

    def done(self) -> None:
        """Nobody watches."""


class TerminalProgress:
    """Keeps one line up to date: ``asking context7 … 3 s``."""

    def __init__(self) -> None:
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def asking(self, source: str) -> None:
        """Show that ``source`` is being asked, and for how long."""
        self._show(f"asking {source}")

    def waiting(self) -> None:
        """Show that another process's report is waited for, and for how long."""
        self._show("waiting for another process that researches the same")

    def _show(self, what: str) -> None:
        stop = self._stop = threading.Event()
        self._thread = threading.Thread(target=_tell, args=(what, stop), name="kr-progress", daemon=True)
        self._thread.start()

    def done(self) -> None:
        """Clear the line."""
        if self._stop is not None and self._thread is not None:
            self._stop.set()
            self._thread.join(timeout=_REFRESH_SECONDS)
        self._stop = self._thread = None


def _tell(what: str, stop: threading.Event) -> None:
    began = time.monotonic()
    while True:
        sys.stderr.write(f"\r\x1b[K{what} … {time.monotonic() - began:.0f} s")
        sys.stderr.flush()
        if stop.wait(_REFRESH_SECONDS):
            break
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def make_progress() -> SilentProgress | TerminalProgress:
    """Choose by whether standard error is a terminal, and one that can rewrite a line."""
    return TerminalProgress() if sys.stderr.isatty() and not is_dumb() else SilentProgress()
