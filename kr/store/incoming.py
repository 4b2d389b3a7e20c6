"""Entries that come from elsewhere, on their way into the store, and what became of them (SPEC 6.2)."""

from dataclasses import dataclass
from typing import Literal

from kr.store.rows import ArchiveReason
from kr.values import Confidence, EntryStatus, Origin

Taken = Literal["imported", "updated", "unchanged", "archived", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportText:
    """A report's bytes, not blank, and what its own words tell. Times are stored text.

    ``is_here``: the file stands in the knowledge base, at the entry's own path, already. ``is_theirs``: it was
    found beside the index that is imported.
    """

    content: bytes
    is_here: bool
    is_theirs: bool
    confidence: Confidence
    origin: Origin
    researched_at: str | None
    fresh_until: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """When, as far as it is told, and why an entry was archived."""

    at: str | None
    reason: ArchiveReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """An entry that was checked, but has no place yet. None: it isn't told.

    Texts are not blank; ``path`` is relative and stays below its folder. Times are stored text or a bare
    ``YYYY-MM-DD``, none of them in the future. ``text`` is None when the report is missing, or not read yet.
    ``report`` is where the text of an archived one stands, when that is not at its path.
    """

    id: str | None
    framework: str
    framework_version: str | None
    topic: str
    tags: tuple[str, ...] | None
    path: str
    created: str | None
    last_accessed: str | None
    status: EntryStatus
    departure: Departure | None
    report: str | None = None
    text: ReportText | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an entry. ``reason`` is there exactly when it was refused.

    ``differs``: it was left out because it is not newer, and says something else than the live entry.
    """

    taken: Taken
    reason: str | None = None
    differs: bool = False
