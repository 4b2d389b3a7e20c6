"""What a check finds, and what it looks at."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kr.errors import StoreError
from kr.store.reports import ReportFiles
from kr.store.soundness import Look
from kr.store.store import Store

Severity = Literal["error", "warning", "information"]
Fix = Callable[[], str]
"""Does what a finding's ``repair`` announced, and returns what was done. Raises ``KrError``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found. ``information`` is no problem.

    ``repair`` says what ``--repair`` would do; it is None where only a person can help, and ``message`` then
    says how.
    """

    check: str
    severity: Severity
    subject: str
    message: str
    repair: str | None = None
    fix: Fix | None = field(default=None, compare=False, repr=False)

    @property
    def is_problem(self) -> bool:
        """Whether it counts for the exit status."""
        return self.severity != "information"

    def plain(self) -> dict[str, Any]:
        """Give the public form."""
        return {
            "check": self.check,
            "severity": self.severity,
            "subject": self.subject,
            "message": self.message,
            "repair": self.repair,
        }


@dataclass(kw_only=True)
class KnowledgeBase:
    """A knowledge base under examination. ``mounts`` is the system's table of file systems."""

    store: Store
    folder: Path
    auto_export: bool
    clock: Callable[[], datetime]
    mounts: Path = Path("/proc/self/mounts")

    @property
    def look(self) -> Look:
        """What stands at the database's path."""
        try:
            return self.store.care.look()
        except StoreError as error:
            return Look(state="unreadable", message=str(error))

    @property
    def place(self) -> str:
        """What a finding about the database is about: its path, or the setting that names none."""
        try:
            return self.store.place
        except StoreError:
            return "KR_DATABASE_URL"

    @property
    def is_readable(self) -> bool:
        """Whether the tables can be asked without upgrading them."""
        return self.look.state == "current"

    @property
    def reports(self) -> ReportFiles:
        """The report files."""
        return ReportFiles(self.folder)
