"""Places imported items in the database: under which id and path, in whose stead, and with which text.

Nothing that is here is lost: an imported text never takes the place of one that somebody wrote, and what it replaces is a revision.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Literal

from kr.errors import ReportUnwritable
from kr.freshness import UNKNOWN_VERSION, from_text, parse_time, to_text
from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.models import Confidence, Entry, Origin, origin_of_kind
from kr.naming import decoded
from kr.report import fresh_until, is_by_hand, origin_of, read_confidence, read_date
from kr.store.entries import Pair, of_major, pair_of
from kr.store.reports import ReportFiles, take_edit
from kr.store.saving import Subject, holders_of_id, holders_of_path, wanted_names
from kr.store.session import UnitOfWork
from kr.transfer.read_index import BadItem, Item

Outcome = Literal["imported", "updated", "unchanged", "archived"]

_MAX_REPORT_BYTES = 16 * 1024 * 1024
_TEXT_COLUMNS = (
    "framework_version",
    "path",
    "sha256",
    "revision",
    "origin",
    "written_by",
    "confidence",
    "researched_at",
    "fresh_until",
)
"""Those of an entry that tell of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A report's text, and what its own words tell."""

    text: str
    confidence: Confidence
    origin: Origin
    researched_at: str | None
    fresh_until: str | None


class Placer:
    """Places items in one transaction. ``new_files`` are the texts of files that are to be made after it, by their paths."""

    def __init__(self, unit: UnitOfWork, knowledge_base: Path, now: datetime) -> None:
        self.new_files: dict[str, str] = {}
        self.differing = 0
        """How many unchanged items say something else than the entry that is here."""
        self._unit = unit
        self._base = knowledge_base
        self._now = now

    def place(self, item: Item, folder: Path, *, has_text: bool = True) -> Outcome:
        """Place an item of an index in ``folder``; ``has_text``: the file at its path is its text. Raises ``BadItem``."""
        if item.reason is None:
            return self._place_live(item, folder)
        return self._place_archived(item, folder, has_text=has_text)

    def _place_live(self, item: Item, folder: Path) -> Outcome:
        entry_id = _choose_id(self._unit, item)
        live = self._unit.entries.get(entry_id)
        if not all(_is_newer(item.last_accessed, known) for known in _accesses(self._unit, entry_id)):
            self.differing += live is not None and _differs(item, live)
            return "unchanged"
        text = self._text(item, folder)
        if text is None and (live is None or live.path != item.path):
            raise BadItem(f"path: there is no report at {item.path}, so that it is not indexed")
        if live is not None:
            live = take_edit(self._unit, live)
            if self._is_in_place(folder) and item.path == live.path and live.sha256:
                text = None  # its own file: what somebody wrote there is taken in by now
        entry = self._entry(item, entry_id, text, live)
        if text is not None:
            entry = replace(entry, path=self._choose_path(entry, text.text, live))
        if live is not None and live.sha256 != entry.sha256:
            entry = self._replacing(live, entry)
        self._unit.entries.put(entry)
        return "imported" if live is None else "updated"

    def _place_archived(self, item: Item, folder: Path, *, has_text: bool) -> Outcome:
        entry_id = _choose_id(self._unit, item)
        rows = self._unit.archive.of_id(entry_id)
        if any(_is_archived_as(item, row.entry, row.archived_at) for row in rows):
            return "unchanged"
        at = _stored(item.archived_at) or to_text(self._now)
        text = self._text(item, folder) if has_text else None
        if text is not None and item.report is None and self._is_in_place(folder):
            holders = holders_of_path(self._unit, item.path)
            if any(holder.is_live or (holder.archived_at or "") > at for holder in holders):
                text = None
        entry = self._entry(item, entry_id, text, None)
        path = next(
            (path for path in _paths(entry, None) if not _is_taken(self._unit, path, entry)), entry.path
        )
        self._unit.archive.add(replace(entry, path=path), item.reason or "manual", at)
        return "archived"

    def _replacing(self, live: Entry, entry: Entry) -> Entry:
        """Let an imported text take the place of a live one, or stand beside one that somebody wrote."""
        at, number = to_text(self._now), self._unit.revisions.next_number(live.id)
        if not live.is_written:
            self._unit.revisions.add(live, at)
            return replace(entry, revision=number)
        self._unit.revisions.add(replace(entry, revision=number, path=live.path), at)
        self.new_files.pop(entry.path, None)
        kept = {name: getattr(live, name) for name in _TEXT_COLUMNS}
        return replace(entry, **kept, status=live.status)

    def _is_in_place(self, folder: Path) -> bool:
        return folder.absolute() == self._base.absolute()

    def _text(self, item: Item, folder: Path) -> _Text | None:
        """Read the report that an item names: beside its index, else the one that is here already and no other entry's."""
        content = _read_report(folder, item.report or item.path)
        if content is None and not self._is_in_place(folder):
            others = (it for it in holders_of_path(self._unit, item.path) if it.pair != _pair(item))
            content = _read_report(self._base, item.path) if next(others, None) is None else None
        text = decoded(content)
        if not text.strip():
            return None
        if is_by_hand(text) and (reasons := reasons_to_hold(mask_secrets(clean(text)))):
            raise BadItem(f"path: its report is not imported, since it {'; it '.join(reasons)}")
        researched = parse_time(read_date(text) or "")
        researched_at = to_text(researched) if researched is not None and researched <= self._now else None
        kind = origin_of(text)
        end = fresh_until(kind, researched_at)
        return _Text(
            text=text,
            confidence=read_confidence(text) or "low",
            origin=origin_of_kind(kind, is_ours=False),
            researched_at=researched_at,
            fresh_until=to_text(end) if end is not None else None,
        )

    def _entry(self, item: Item, entry_id: str, text: _Text | None, live: Entry | None) -> Entry:
        """Make the entry of an item; what it leaves out is the live one's."""
        now = to_text(self._now)
        sha256 = None if text is None else self._unit.revisions.keep(text.text)
        of_text = text if live is None or (text is not None and sha256 != live.sha256) else live
        origin = of_text.origin if of_text else "imported"
        return Entry(
            id=entry_id,
            framework=item.framework,
            framework_version=item.framework_version or (live.framework_version if live else UNKNOWN_VERSION),
            topic=item.topic,
            tags=item.tags if item.tags is not None else live.tags if live else (),
            path=item.path,
            created=_stored(item.created) or (live.created if live else now),
            last_accessed=_stored(item.last_accessed) or now,
            status="stale" if origin == "placeholder" else item.status,
            confidence=of_text.confidence if of_text else "low",
            sha256=sha256 or (live.sha256 if live else None),
            researched_at=of_text.researched_at if of_text else None,
            fresh_until=of_text.fresh_until if of_text else None,
            origin=origin,
            question=live.question if live else None,
            written_by=live.written_by if live is not None and of_text is live else None,
            revision=live.revision if live else self._unit.revisions.next_number(entry_id),
        )

    def _choose_path(self, entry: Entry, text: str, live: Entry | None) -> str:
        """Return the first path where this very text may stand: no other entry has it, and its file is absent or the same."""
        for path in _paths(entry, live):
            if _is_taken(self._unit, path, entry) or self._unit.files.is_blocked(path):
                continue
            if decoded(self._unit.files.read(path)) == text:
                return path
            if not self._unit.files.exists(path) and self.new_files.setdefault(path, text) == text:
                try:
                    self._unit.files.place(path)
                except ReportUnwritable as exc:
                    raise BadItem(f"path: {exc}") from exc
                return path
        raise BadItem("path: every name for its report is taken")


def _read_report(folder: Path, path: str) -> bytes | None:
    """Return a report's bytes; None where nothing is at its path. Raises ``BadItem`` for what can't be its text."""
    files = ReportFiles(folder)
    if files.exists(path) and (folder / path).stat().st_size > _MAX_REPORT_BYTES:
        raise BadItem(f"path: the report is larger than {_MAX_REPORT_BYTES // 1024**2} MiB")
    content = files.read(path)
    if content is None and (files.exists(path) or (folder / path).is_symlink()):
        raise BadItem(f"path: {path} is not a readable file within {folder} (no link is followed out of it)")
    return content


def _pair(item: Item) -> Pair:
    return pair_of(item.framework, item.topic)


def _choose_id(unit: UnitOfWork, item: Item) -> str:
    """Return the id that the entry has here, or may take: no other framework or topic holds it."""
    version = item.framework_version or UNKNOWN_VERSION
    others: list[Entry] = []
    if item.id is None:
        others = unit.entries.of_pair(item.framework, item.topic)
        if (same := of_major(others, version)) is not None:
            return same.id
    names = wanted_names(Subject(item.framework, item.topic, version), has_others=bool(others))
    first, *more = (name.id for name in islice(names, 10))
    for entry_id in (item.id or first, *more):
        if all(holder.pair == _pair(item) for holder in holders_of_id(unit, entry_id)):
            return entry_id
    raise BadItem("id: every id for it is held by other entries")


def _paths(entry: Entry, live: Entry | None) -> Iterator[str]:
    """Give the paths that an entry may have, in order."""
    yield entry.path
    if live is not None and live.path != entry.path:
        yield live.path
    subject = Subject(entry.framework, entry.topic, entry.framework_version)
    yield from (name.path for name in islice(wanted_names(subject, has_others=False), 1, 10))


def _is_taken(unit: UnitOfWork, path: str, entry: Entry) -> bool:
    """Tell whether a path is that of another live entry, or of another framework or topic."""
    pair = pair_of(entry.framework, entry.topic)
    holders = holders_of_path(unit, path)
    return any(it.pair != pair or (it.is_live and it.id != entry.id) for it in holders)


def _accesses(unit: UnitOfWork, entry_id: str) -> list[str]:
    """Return when the entry of an id was accessed last: the live one, else the archived ones."""
    holders = holders_of_id(unit, entry_id)
    live = [holder.last_accessed for holder in holders if holder.is_live]
    return live or [holder.last_accessed for holder in holders if holder.archived_at]


def _stored(time: str | None) -> str | None:
    return None if time is None else to_text(from_text(time))


def _is_newer(told: str | None, known: str) -> bool:
    """Tell whether an access is later than the known one. A date alone compares as a date; an absent one says nothing."""
    return told is not None and told > known[: len(told)]


def _differs(item: Item, live: Entry) -> bool:
    """Tell whether an item says something of its entry that was not so before, as one that a person edited."""
    pairs = (
        (item.framework, live.framework),
        (item.framework_version, live.framework_version),
        (item.topic, live.topic),
        (item.tags, live.tags),
        # Fresh is also what an item without a status counts as.
        ("stale" if item.status == "stale" else None, live.status),
    )
    return any(new is not None and new != old for new, old in pairs)


def _is_archived_as(item: Item, entry: Entry, archived_at: str) -> bool:
    """Tell whether an archived row is the item: by when it was archived, else by all that it tells."""
    if item.archived_at is not None:
        return archived_at == _stored(item.archived_at)
    is_accessed_then = item.last_accessed is None or entry.last_accessed.startswith(item.last_accessed)
    return is_accessed_then and entry.framework_version == (item.framework_version or UNKNOWN_VERSION)
