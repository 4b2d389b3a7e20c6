"""What a request waits for, for who wants to know."""

from typing import Protocol


class Progress(Protocol):
    """Hears what a request waits for."""

    def asking(self, source: str) -> None:
        """``source`` is being asked."""

    def waiting(self) -> None:
        """Another process researches the same, and its report is waited for."""

    def done(self) -> None:
        """Nothing is being asked, or waited for, any more."""
