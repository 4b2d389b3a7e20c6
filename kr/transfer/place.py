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
from kr.freshness import UNKNOWN_VERSION, from_text, major_key, parse_time, to_text
from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.models import Confidence, Entry, Origin, origin_of_kind
from kr.report import fresh_until, is_by_hand, origin_of, read_confidence, read_date
from kr.store import archive, entries, revisions
from kr.store.engine import Transaction
from kr.store.entries import of_major
from kr.store.files import ReportFiles
from kr.store.places import Pair, Subject, holders, pair_of, wanted_names
from kr.store.reports import take_edit
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

    def __init__(self, tx: Transaction, knowledge_base: Path, now: datetime) -> None:
        self.new_files: dict[str, str] = {}
        self.differing = 0
        """How many unchanged items say something else than the entry that is here."""
        self._tx = tx
        self._base = knowledge_base
        self._now = now

    def place(self, item: Item, folder: Path, *, has_text: bool = True) -> Outcome:
        """Place an item of an index in ``folder``; ``has_text``: the file at its path is its text. Raises ``BadItem``."""
        if item.reason is None:
            return self._place_live(item, folder)
        return self._place_archived(item, folder, has_text=has_text)

    def _place_live(self, item: Item, folder: Path) -> Outcome:
        entry_id = _choose_id(self._tx, item)
        live = entries.get(self._tx, entry_id)
        if not all(_is_newer(item.last_accessed, known) for known in _accesses(self._tx, entry_id)):
            self.differing += live is not None and _differs(item, live)
            return "unchanged"
        text = self._text(item, folder)
        if text is None and (live is None or live.path != item.path):
            raise BadItem(f"path: there is no report at {item.path}, so that it is not indexed")
        if live is not None:
            live = take_edit(self._tx, live)
            if self._is_in_place(folder) and item.path == live.path and live.sha256:
                text = None  # its own file: what somebody wrote there is taken in by now
        entry = self._entry(item, entry_id, text, live)
        if text is not None:
            entry = replace(entry, path=self._choose_path(entry, text.text, live))
        if live is not None and live.sha256 != entry.sha256:
            entry = self._replacing(live, entry)
        entries.put(self._tx, entry)
        return "imported" if live is None else "updated"

    def _place_archived(self, item: Item, folder: Path, *, has_text: bool) -> Outcome:
        entry_id = _choose_id(self._tx, item)
        rows = archive.of_id(self._tx, entry_id)
        if any(_is_archived_as(item, row.entry, row.archived_at) for row in rows):
            return "unchanged"
        at = _stored(item.archived_at) or to_text(self._now)
        text = self._text(item, folder) if has_text else None
        if text is not None and item.report is None and self._is_in_place(folder):
            held = holders(self._tx, path=item.path)
            if any(it.is_live or (it.archived_at or "") > at for it in held):
                text = None
        entry = self._entry(item, entry_id, text, None)
        path = next(
            (path for path in _paths(entry, None) if not _is_taken(self._tx, path, entry)), entry.path
        )
        archive.add(self._tx, replace(entry, path=path), item.reason or "manual", at)
        return "archived"

    def _replacing(self, live: Entry, entry: Entry) -> Entry:
        """Let an imported text take the place of a live one, or stand beside one that somebody wrote."""
        at, number = to_text(self._now), revisions.next_number(self._tx, live.id)
        if not live.is_written:
            revisions.add(self._tx, live, at)
            return replace(entry, revision=number)
        revisions.add(self._tx, replace(entry, revision=number, path=live.path), at)
        self.new_files.pop(entry.path, None)
        kept = {name: getattr(live, name) for name in _TEXT_COLUMNS}
        return replace(entry, **kept, status=live.status)

    def _is_in_place(self, folder: Path) -> bool:
        return folder.absolute() == self._base.absolute()

    def _text(self, item: Item, folder: Path) -> _Text | None:
        """Read the report that an item names: beside its index, else the one that is here already and no other entry's."""
        content = _read_report(folder, item.report or item.path)
        if content is None and not self._is_in_place(folder):
            others = (it for it in holders(self._tx, path=item.path) if it.pair != _pair(item))
            content = _read_report(self._base, item.path) if next(others, None) is None else None
        text = (content or b"").decode(errors="replace")
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
        sha256 = None if text is None else revisions.keep(self._tx, text.text)
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
            revision=live.revision if live else revisions.next_number(self._tx, entry_id),
        )

    def _choose_path(self, entry: Entry, text: str, live: Entry | None) -> str:
        """Return the first path where this very text may stand: no other entry has it, and its file is absent or the same."""
        for path in _paths(entry, live):
            if _is_taken(self._tx, path, entry) or self._tx.files.is_blocked(path):
                continue
            if self._tx.files.read_text(path) == text:
                return path
            if not self._tx.files.exists(path) and self.new_files.setdefault(path, text) == text:
                try:
                    self._tx.files.place(path)
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


def _choose_id(tx: Transaction, item: Item) -> str:
    """Return the id that the entry has here, or may take: no other framework or topic holds it."""
    version = item.framework_version or UNKNOWN_VERSION
    others = entries.of_pair(tx, item.framework, item.topic)
    if item.framework_version is not None:
        equal = [it for it in others if major_key(it.framework_version) == major_key(version)]
        if equal:
            return equal[0].id
    if item.id is None and (same := of_major(others, version)) is not None:
        return same.id
    names = wanted_names(Subject(item.framework, item.topic, version), has_others=bool(others))
    first, *more = (name.id for name in islice(names, 10))
    for entry_id in (item.id or first, *more):
        if all(holder.pair == _pair(item) for holder in holders(tx, id=entry_id)):
            return entry_id
    raise BadItem("id: every id for it is held by other entries")


def _paths(entry: Entry, live: Entry | None) -> Iterator[str]:
    """Give the paths that an entry may have, in order."""
    yield entry.path
    if live is not None and live.path != entry.path:
        yield live.path
    subject = Subject(entry.framework, entry.topic, entry.framework_version)
    yield from (name.path for name in islice(wanted_names(subject, has_others=False), 1, 10))


def _is_taken(tx: Transaction, path: str, entry: Entry) -> bool:
    """Tell whether a path is that of another live entry, or of another framework or topic."""
    pair = pair_of(entry.framework, entry.topic)
    held = holders(tx, path=path)
    return any(it.pair != pair or (it.is_live and it.id != entry.id) for it in held)


def _accesses(tx: Transaction, entry_id: str) -> list[str]:
    """Return when the entry of an id was accessed last: the live one, else the archived ones."""
    held = holders(tx, id=entry_id)
    live = [it.last_accessed for it in held if it.is_live]
    return live or [it.last_accessed for it in held if it.archived_at]


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
