"""Places imported items in the database: under which id and path, in whose stead, and with which text.

Nothing that is here is lost: an imported text never takes the place of one that somebody wrote, and what it replaces is a revision.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Literal

from kr.errors import ReportUnwritable
from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.models import Entry, Origin, ReportKind
from kr.report import (
    fresh_until,
    is_by_hand,
    is_finding,
    origin_of,
    read_confidence,
    read_date,
    read_question,
)
from kr.slugs import Name, suffixed_name
from kr.store import entries, reports
from kr.store.engine import Transaction
from kr.store.entries import of_major
from kr.store.files import ReportFiles
from kr.store.reports import holders, ingest_edit, is_free, pair_of, wanted_names
from kr.store.saving import name_of
from kr.times import UNKNOWN_VERSION, from_text, major_key, parse_time, to_text
from kr.transfer.read_index import BadItem, Item

Outcome = Literal["imported", "updated", "unchanged", "archived"]

_MAX_REPORT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Placer:
    """Places items in one transaction, and has their files written with it.

    ``adopts``: nobody asked for it, and a repository may have brought them: all that an agent would read is judged.
    """

    tx: Transaction
    knowledge_base: Path
    now: datetime
    adopts: bool

    def place(self, item: Item) -> Outcome:
        """Place an item. Raises ``BadItem``."""
        if self.adopts and (
            reasons := reasons_to_hold("\n".join([item.framework, item.topic, *(item.tags or ())]))
        ):
            raise BadItem(f"topic: is not imported, since it {'; it '.join(reasons)}")
        entry_id = self._choose_id(item)
        if item.reason is not None:
            return self._place_archived(item, entry_id)
        live = entries.get(self.tx, entry_id)
        known = [row.entry for row in entries.archived(self.tx, id=entry_id)] if live is None else [live]
        is_newer = all(_is_newer(item.last_accessed, entry.last_accessed) for entry in known)
        if not is_newer and (live is None or live.is_written):
            return "unchanged"
        text = self._read_text(item)
        if not is_newer and not is_finding(text or ""):
            return "unchanged"  # a finding takes the place of an excerpt or placeholder, whenever that was accessed
        if text is None and (live is None or live.path != item.path):
            raise BadItem(f"path: there is no report at {item.path}, so that it is not indexed")
        if live is None:
            entry = self._entry(item, entry_id, text)
            entries.put(self.tx, replace(entry, path=self._choose_path(entry, text or "")))
            return "imported"
        live = ingest_edit(self.tx, live)
        is_in_place = item.file.parent.absolute() == self.knowledge_base.absolute()
        if is_in_place and item.path == live.path and live.sha256:
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
            last_accessed=max(_stored(item.last_accessed) or "", live.last_accessed),
            status="stale" if live.origin == "placeholder" else item.status,
            stale_major=None,
            stale_reason=None,
        )
        if text is not None and reports.keep(self.tx, text) != live.sha256:
            at, new = to_text(self.now), self._entry(item, live.id, text)
            if live.is_written:
                reports.add_revision(self.tx, replace(new, path=live.path), at)
                entry = replace(entry, framework_version=live.framework_version, status=live.status)
            else:
                reports.add_revision(self.tx, live, at)
                entry = replace(
                    new,
                    framework_version=entry.framework_version,
                    tags=entry.tags,
                    created=entry.created,
                    path=name_of(self.tx, live).path,
                    question=live.question,
                )
                self.tx.write_report(entry.path, text)
        entries.put(self.tx, entry)

    def _place_archived(self, item: Item, entry_id: str) -> Outcome:
        rows = entries.archived(self.tx, id=entry_id)
        if any(_is_archived_as(item, row.entry, row.archived_at) for row in rows):
            return "unchanged"
        held = holders(self.tx, "path", item.path)
        is_lives = item.report is None and any(is_live for _, is_live in held)
        text = self._read_text(item) if item.has_text and not is_lives else None
        entry = self._entry(item, entry_id, text)
        if any(pair != pair_of(item.framework, item.topic) for pair, _ in held):
            entry = replace(entry, path=suffixed_name(item.framework, item.topic).path)
        at = _stored(item.archived_at) or to_text(self.now)
        entries.add_archived(self.tx, entry, item.reason or "manual", at)
        return "archived"

    def _read_text(self, item: Item) -> str | None:
        """Read the report that an item names beside its index; None where there is none. No link is followed out of its folder."""
        folder, path = item.file.parent, item.report or item.path
        files = ReportFiles(folder)
        if files.exists(path) and (folder / path).stat().st_size > _MAX_REPORT_BYTES:
            raise BadItem(f"path: the report is larger than {_MAX_REPORT_BYTES // 1024**2} MiB")
        content = files.read(path)
        if content is None and (files.exists(path) or (folder / path).is_symlink()):
            raise BadItem(
                f"path: {path} is not a readable file within {folder} (no link is followed out of it)"
            )
        text = (content or b"").decode(errors="replace")
        judged = text if is_by_hand(text) else _without_quotes(text) if self.adopts else ""
        if judged and (reasons := reasons_to_hold(mask_secrets(clean(judged)))):
            raise BadItem(f"path: its report is not imported, since it {'; it '.join(reasons)}")
        return text if text.strip() else None

    def _entry(self, item: Item, entry_id: str, text: str | None) -> Entry:
        """Make a new entry of an item and its report, whose own words tell when and of what it was made."""
        now, kind = to_text(self.now), origin_of(text or "")
        researched = parse_time(read_date(text or "") or "")
        researched_at = to_text(researched) if researched is not None and researched <= self.now else None
        end = fresh_until(kind, researched_at)
        is_written = is_finding(text or "")
        origins: dict[ReportKind, Origin] = {"skeleton": "placeholder", "installed": "excerpt"}
        origin = "finding" if is_written else origins.get(kind, "imported")
        confidence = read_confidence(text or "") or "low"
        if self.adopts and confidence == "high" and is_written:
            confidence = "medium"
        return Entry(
            id=entry_id,
            framework=item.framework,
            framework_version=item.framework_version or UNKNOWN_VERSION,
            topic=item.topic,
            tags=item.tags or (),
            question=read_question(text or ""),
            path=item.path,
            created=_stored(item.created) or now,
            last_accessed=_stored(item.last_accessed) or now,
            status="stale" if origin == "placeholder" else item.status,
            confidence=confidence,
            sha256=reports.keep(self.tx, text) if text else None,
            researched_at=researched_at,
            fresh_until=to_text(end) if end is not None else None,
            origin=origin,
            written_by="file" if is_written else None,
            revision=reports.next_revision(self.tx, entry_id),
        )

    def _choose_id(self, item: Item) -> str:
        """Return the id that the entry has here, or may take: no other framework or topic holds it."""
        version = item.framework_version or UNKNOWN_VERSION
        others = entries.of_pair(self.tx, item.framework, item.topic)
        equal = [it for it in others if major_key(it.framework_version) == major_key(version)]
        if item.framework_version is not None and equal:
            return equal[0].id
        if item.id is None and (same := of_major(others, version)) is not None:
            return same.id
        names = wanted_names(item.framework, item.topic, version, has_others=bool(others))
        first, *more = (name.id for name in islice(names, 10))
        for entry_id in (item.id or first, *more):
            held = holders(self.tx, "id", entry_id)
            if all(pair == pair_of(item.framework, item.topic) for pair, _ in held):
                return entry_id
        raise BadItem("id: every id for it is held by other entries")

    def _choose_path(self, entry: Entry, text: str) -> str:
        """Return the first path that is free for this very text, and have its file written."""
        pair, version = pair_of(entry.framework, entry.topic), entry.framework_version
        names = wanted_names(entry.framework, entry.topic, version, has_others=False)
        wanted = (name.path for name in islice(names, 10))
        for path in (entry.path, *wanted):
            if is_free(self.tx, Name(entry.id, path), pair, text):
                try:
                    self.tx.write_report(path, text)
                except ReportUnwritable as exc:
                    raise BadItem(f"path: {exc}") from exc
                return path
        raise BadItem("path: every name for its report is taken")


def _without_quotes(text: str) -> str:
    """Return what kr, and none of its sources, says in a report that it made."""
    return "\n".join(line for line in text.split("\n") if not line.startswith(">"))


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
