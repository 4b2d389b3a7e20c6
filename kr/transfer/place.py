"""Places imported items in the database: under which id and path, in whose stead, and with which text.

Nothing that is here is lost: an imported text never takes the place of one that somebody wrote, and what it replaces is a revision.
"""

from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Literal

from kr.errors import ReportUnwritable
from kr.freshness import UNKNOWN_VERSION, from_text, parse_time, to_text
from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.models import Entry, origin_of_kind
from kr.naming import decoded, suffixed_name
from kr.report import fresh_until, is_by_hand, origin_of, read_confidence, read_date
from kr.store.entries import Pair, of_major, pair_of
from kr.store.reports import ReportFiles, take_edit
from kr.store.saving import Subject, holders_of_id, holders_of_path, wanted_names
from kr.store.session import UnitOfWork
from kr.transfer.read_index import BadItem, Item

Outcome = Literal["imported", "updated", "unchanged", "archived"]

_MAX_REPORT_BYTES = 16 * 1024 * 1024


class Placer:
    """Places items in one transaction. ``new_files`` are the texts of files that are to be made after it, by their paths."""

    def __init__(self, unit: UnitOfWork, knowledge_base: Path, now: datetime) -> None:
        self.new_files: dict[str, str] = {}
        self._unit = unit
        self._base = knowledge_base
        self._now = now

    def place(self, item: Item, folder: Path, *, has_text: bool = True) -> Outcome:
        """Place an item of an index in ``folder``; ``has_text``: the file at its path is its text. Raises ``BadItem``."""
        entry_id = self._choose_id(item)
        if item.reason is not None:
            return self._place_archived(item, entry_id, self._read_text(item, folder) if has_text else None)
        if not all(_is_newer(item.last_accessed, known) for known in self._accesses(entry_id)):
            return "unchanged"
        live = self._unit.entries.get(entry_id)
        text = self._read_text(item, folder)
        if text is None and (live is None or live.path != item.path):
            raise BadItem(f"path: there is no report at {item.path}, so that it is not indexed")
        if live is None:
            entry = self._entry(item, entry_id, text)
            self._unit.entries.put(replace(entry, path=self._choose_path(entry, text or "")))
            return "imported"
        live = take_edit(self._unit, live)
        if self._is_in_place(folder) and item.path == live.path and live.sha256:
            text = None  # its own file: what somebody wrote there is taken in by now
        self._update(item, live, text)
        return "updated"

    def _update(self, item: Item, live: Entry, text: str | None) -> None:
        """Give a live entry what an item says; the text of an entry that somebody wrote stays, and the item's is kept beside it."""
        entry = replace(
            live,
            framework=item.framework,
            framework_version=item.framework_version or live.framework_version,
            topic=item.topic,
            tags=live.tags if item.tags is None else item.tags,
            created=_stored(item.created) or live.created,
            last_accessed=_stored(item.last_accessed) or live.last_accessed,
            status="stale" if live.origin == "placeholder" else item.status,
        )
        if text is not None and self._unit.revisions.keep(text) != live.sha256:
            at, new = to_text(self._now), self._entry(item, live.id, text)
            if live.is_written:
                self._unit.revisions.add(replace(new, path=live.path), at)
                entry = replace(entry, framework_version=live.framework_version, status=live.status)
            else:
                self._unit.revisions.add(live, at)
                entry = replace(
                    new,
                    framework_version=entry.framework_version,
                    tags=entry.tags,
                    created=entry.created,
                    path=self._choose_path(new, text, live.path),
                    question=live.question,
                )
        self._unit.entries.put(entry)

    def _place_archived(self, item: Item, entry_id: str, text: str | None) -> Outcome:
        rows = self._unit.archive.of_id(entry_id)
        if any(_is_archived_as(item, row.entry, row.archived_at) for row in rows):
            return "unchanged"
        holders = holders_of_path(self._unit, item.path)
        if item.report is None and any(holder.is_live for holder in holders):
            text = None  # what stands there is the live entry's
        entry = self._entry(item, entry_id, text)
        if any(holder.pair != _pair(item) for holder in holders):
            entry = replace(entry, path=suffixed_name(item.framework, item.topic).path)
        at = _stored(item.archived_at) or to_text(self._now)
        self._unit.archive.add(entry, item.reason or "manual", at)
        return "archived"

    def _is_in_place(self, folder: Path) -> bool:
        return folder.absolute() == self._base.absolute()

    def _read_text(self, item: Item, folder: Path) -> str | None:
        """Read the report that an item names beside its index; where there is none, the one that is here and no other entry's."""
        content = _read_report(folder, item.report or item.path)
        if content is None:
            holders = holders_of_path(self._unit, item.path)
            if all(holder.pair == _pair(item) for holder in holders):
                content = _read_report(self._base, item.path)
        text = decoded(content)
        if is_by_hand(text) and (reasons := reasons_to_hold(mask_secrets(clean(text)))):
            raise BadItem(f"path: its report is not imported, since it {'; it '.join(reasons)}")
        return text if text.strip() else None

    def _entry(self, item: Item, entry_id: str, text: str | None) -> Entry:
        """Make a new entry of an item and its report, whose own words tell when and of what it was made."""
        now, kind = to_text(self._now), origin_of(text or "")
        researched = parse_time(read_date(text or "") or "")
        researched_at = to_text(researched) if researched is not None and researched <= self._now else None
        end = fresh_until(kind, researched_at)
        origin = origin_of_kind(kind, is_ours=False) if text else "imported"
        return Entry(
            id=entry_id,
            framework=item.framework,
            framework_version=item.framework_version or UNKNOWN_VERSION,
            topic=item.topic,
            tags=item.tags or (),
            path=item.path,
            created=_stored(item.created) or now,
            last_accessed=_stored(item.last_accessed) or now,
            status="stale" if origin == "placeholder" else item.status,
            confidence=read_confidence(text or "") or "low",
            sha256=self._unit.revisions.keep(text) if text else None,
            researched_at=researched_at,
            fresh_until=to_text(end) if end is not None else None,
            origin=origin,
            revision=self._unit.revisions.next_number(entry_id),
        )

    def _choose_id(self, item: Item) -> str:
        """Return the id that the entry has here, or may take: no other framework or topic holds it."""
        version = item.framework_version or UNKNOWN_VERSION
        others = [] if item.id else self._unit.entries.of_pair(item.framework, item.topic)
        if (same := of_major(others, version)) is not None:
            return same.id
        names = wanted_names(Subject(item.framework, item.topic, version), has_others=bool(others))
        first, *more = (name.id for name in islice(names, 10))
        for entry_id in (item.id or first, *more):
            if all(holder.pair == _pair(item) for holder in holders_of_id(self._unit, entry_id)):
                return entry_id
        raise BadItem("id: every id for it is held by other entries")

    def _choose_path(self, entry: Entry, text: str, *others: str) -> str:
        """Return the first path where this very text may stand: no other entry has it, and its file is absent or the same."""
        subject = Subject(entry.framework, entry.topic, entry.framework_version)
        pair = pair_of(entry.framework, entry.topic)
        names = islice(wanted_names(subject, has_others=False), 1, 10)
        for path in (entry.path, *others, *(name.path for name in names)):
            holders = holders_of_path(self._unit, path)
            if any(it.pair != pair or (it.is_live and it.id != entry.id) for it in holders):
                continue
            if decoded(self._unit.files.read(path)) == text:
                return path
            is_free = not self._unit.files.exists(path) and not self._unit.files.is_blocked(path)
            if is_free and self.new_files.setdefault(path, text) == text:
                try:
                    self._unit.files.place(path)
                except ReportUnwritable as exc:
                    raise BadItem(f"path: {exc}") from exc
                return path
        raise BadItem("path: every name for its report is taken")

    def _accesses(self, entry_id: str) -> list[str]:
        """Return when the entry of an id was accessed last: the live one, else the archived ones."""
        holders = holders_of_id(self._unit, entry_id)
        live = [holder.last_accessed for holder in holders if holder.is_live]
        return live or [holder.last_accessed for holder in holders if holder.archived_at]


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


def _stored(time: str | None) -> str | None:
    return None if time is None else to_text(from_text(time))


def _is_newer(told: str | None, known: str) -> bool:
    """Tell whether an access is later than the known one. A date alone compares as a date; an absent one says nothing."""
    return told is not None and told > known[: len(told)]


def _is_archived_as(item: Item, entry: Entry, archived_at: str) -> bool:
    """Tell whether an archived row is the item: by when it was archived, else by all that it tells."""
    if item.archived_at is not None:
        return archived_at == _stored(item.archived_at)
    is_accessed_then = item.last_accessed is None or entry.last_accessed.startswith(item.last_accessed)
    return is_accessed_then and entry.framework_version == (item.framework_version or UNKNOWN_VERSION)
