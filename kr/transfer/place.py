"""Items of index files that anybody may have written: checked one by one, and placed in the database.

Every scalar is taken as it was written (``2.10`` stays ``2.10``). Nothing that is here is lost: an imported text never takes the place of one that
somebody wrote, and what it replaces is a revision.
"""

import os
import re
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from kr.errors import KrError, ReportUnwritable
from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.models import Confidence, Entry, EntryStatus, Origin, ReportKind
from kr.report import (
    fresh_until,
    is_by_hand,
    is_finding,
    origin_of,
    read_confidence,
    read_date,
    read_question,
)
from kr.requests import (
    Fields,
    bad,
    field_read_by,
    fields_of,
    line,
    lines,
    one_of,
    optional,
    read_fields,
    shown,
    text,
    yes_no,
)
from kr.slugs import Name, suffixed_name
from kr.store import entries, saving
from kr.store.engine import Transaction
from kr.store.entries import ArchiveReason, holders, is_free, of_major, pair_of, wanted_names
from kr.store.files import ReportFiles
from kr.store.saving import ingest_edit, name_of
from kr.text import Tree
from kr.times import UNKNOWN_VERSION, from_text, major_key, parse_time, to_text

Outcome = Literal["imported", "updated", "unchanged", "archived"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MAX_REPORT_BYTES = 16 * 1024 * 1024


class BadItem(KrError):
    """An item that can't be imported. The message names each bad field and what is allowed."""

    code = "bad_item"


def _read_path(value: object) -> str:
    """Take a report's path in its plain form: a visible Markdown file below its folder, and none of the lessons."""
    path = line(value)
    relative = PurePosixPath(path)
    parts = relative.parts
    is_ours = (
        not relative.is_absolute()
        and relative.suffix.lower() in {".md", ".markdown"}
        and not re.search(r"\\|^[A-Za-z]:", path)
        and not any(part.startswith(".") or len(part.encode()) > 255 for part in parts)
        and parts[0].casefold() != "lessons"
        and len(path.encode()) <= 1024
    )
    if not is_ours:
        raise bad(
            f"must be the relative path of a Markdown file (.md) in the knowledge base, not {shown(path)}"
        )
    return str(relative)


def _read_tags(value: object) -> tuple[str, ...]:
    members = value.split(",") if isinstance(value, str) else value
    if not isinstance(members, list):
        raise bad("must be a list of texts")
    return lines(members)


def _read_time(value: object) -> str:
    """Take a time in stored form, or a bare date as it is."""
    written = text(value).strip()
    moment = parse_time(written)
    if moment is None:
        raise bad(f"must be a date such as 2026-01-20, not {shown(written)}")
    return written if _DATE.fullmatch(written) else to_text(moment)


def _read_status(value: object) -> str:
    status: str = one_of("status", ("fresh", "stale", "archived"))(text(value).strip().lower())
    return status


def _read_reason(value: object) -> str:
    """Take why an entry was archived. Older tools give other reasons; ``manual`` promises nothing about capacity or age."""
    reason = str(value).strip().lower()
    return reason if reason in get_args(ArchiveReason) else "manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of an index ``file``, checked; what it does not tell is None. Texts are not blank.

    ``row`` is its line, from 1. ``path`` and ``report`` are relative and stay below their folder. Times are stored text or a bare
    ``YYYY-MM-DD``, none of them in the future. ``reason`` is None for a live entry. ``report`` is where the text of an archived entry
    stands that is not at its path. ``has_text``: the file there is its text.
    """

    file: Path
    row: int
    id: str | None = field_read_by(line, None)
    framework: str = field_read_by(line)
    framework_version: str | None = field_read_by(line, None)
    topic: str = field_read_by(line)
    tags: tuple[str, ...] | None = field_read_by(_read_tags, None)
    path: str = field_read_by(_read_path)
    created: str | None = field_read_by(_read_time, None)
    last_accessed: str | None = field_read_by(_read_time, None)
    status: EntryStatus = field_read_by(_read_status, "fresh")  # noqa: RUF009 - a dataclass field
    archived_at: str | None = field_read_by(_read_time, None)
    reason: ArchiveReason | None = field_read_by(_read_reason, None)  # noqa: RUF009 - a dataclass field
    report: str | None = field_read_by(_read_path, None)
    has_text: bool = True


def check_item(data: Tree, file: Path, row: int, *, now: datetime, is_archive: bool) -> Item:
    """Check one item; ``is_archive``: its file holds archived entries, whatever their status says. Raises ``BadItem``."""
    values = _checked(fields_of(Item), data)
    status, reason = values.pop("status"), values.pop("reason")
    for name in ("created", "last_accessed", "archived_at"):
        if values[name] is not None and from_text(values[name]) > now:
            values[name] = None
    is_archived = is_archive or status == "archived"
    return Item(
        file=file,
        row=row,
        **values,
        status="stale" if status == "stale" else "fresh",
        reason=(reason or "manual") if is_archived else None,
    )


def check_wording(data: Tree) -> dict[str, Any]:
    """Check an item of ``WORDINGS``: whose it is, its ``kind``, and the fields of that kind. Raises ``BadItem``."""
    whose = _checked(_WHOSE, data)
    return {**whose, **_checked(_OF_KIND[whose["kind"]], data)}


def _checked(readers: Fields, data: Tree) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise BadItem("an item must be a mapping")
    values, errors = read_fields(readers, data)
    if errors:
        told = (f"{error.field}: {error.message.removeprefix('Validation failed: ')}" for error in errors)
        raise BadItem("; ".join(told))
    return values


_WHOSE: Fields = {
    "id": line,
    "framework": line,
    "entry_topic": line,
    "kind": one_of("kind", ("times", "writer", "question", "wording")),
}
_WORDING: Fields = {
    "topic": text,
    "tags": optional(_read_tags, ()),
    "question": text,
    "at": optional(_read_time),
    "session_id": optional(line),
    "proved": optional(yes_no, default=False),
}
_OF_KIND: dict[str, Fields] = {
    "times": {},  # of an earlier kr
    "writer": {
        "sha256": line,
        "origin": one_of("origin", get_args(Origin)),
        "confidence": one_of("confidence", get_args(Confidence)),
        "written_by": optional(line),
    },
    "question": _WORDING,
    "wording": _WORDING,
}


# --- where an item goes ---


def refuse_orders(what: str, text: str) -> None:
    """Raise ``BadItem`` for a text that gives its reader orders."""
    if reasons := reasons_to_hold(text):
        raise BadItem(f"{what} is not imported, since it {'; it '.join(reasons)}")


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
        if self.adopts:
            refuse_orders("topic:", "\n".join([item.framework, item.topic, *(item.tags or ())]))
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
        if text is not None and saving.keep(self.tx, text) != live.sha256:
            at, new = to_text(self.now), self._entry(item, live.id, text)
            if live.is_written:
                saving.add_revision(self.tx, replace(new, path=live.path), at)
                entry = replace(entry, framework_version=live.framework_version, status=live.status)
            else:
                saving.add_revision(self.tx, live, at)
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
        belongs_to_live = item.report is None and any(is_live for _, is_live in held)
        text = self._read_text(item) if item.has_text and not belongs_to_live else None
        entry = self._entry(item, entry_id, text)
        if any(pair != pair_of(item.framework, item.topic) for pair, _ in held):
            entry = replace(entry, path=suffixed_name(item.framework, item.topic).path)
        at = _stored(item.archived_at) or to_text(self.now)
        entries.add_archived(self.tx, entry, item.reason or "manual", at)
        return "archived"

    def _read_text(self, item: Item) -> str | None:
        """Read the report that an item names beside its index; None where there is none. No link is followed out of its folder."""
        folder, path = item.file.parent, item.report or item.path
        if os.path.exists(folder / path) and (folder / path).stat().st_size > _MAX_REPORT_BYTES:  # noqa: PTH110 - this one raises nothing
            raise BadItem(f"path: the report is larger than {_MAX_REPORT_BYTES // 1024**2} MiB")
        content = ReportFiles(folder).read(path)
        if content is None and os.path.lexists(folder / path):
            raise BadItem(
                f"path: {path} is not a readable file within {folder} (no link is followed out of it)"
            )
        text = (content or b"").decode(errors="replace")
        judged = text if is_by_hand(text) else _without_quotes(text) if self.adopts else ""
        refuse_orders("path: its report", mask_secrets(clean(judged)))
        return text if text.strip() else None

    def _entry(self, item: Item, entry_id: str, text: str | None) -> Entry:
        """Make a new entry of an item and its report, whose own words tell when and of what it was made."""
        now, kind = to_text(self.now), origin_of(text or "")
        researched = parse_time(read_date(text or "") or "")
        researched_at = to_text(researched) if researched is not None and researched <= self.now else None
        end = fresh_until(kind, researched_at)
        is_written = is_finding(text or "")
        origins: dict[ReportKind, Origin] = {"placeholder": "placeholder", "installed": "excerpt"}
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
            sha256=saving.keep(self.tx, text) if text else None,
            researched_at=researched_at,
            fresh_until=to_text(end) if end is not None else None,
            origin=origin,
            written_by="file" if is_written else None,
            revision=saving.next_revision(self.tx, entry_id),
        )

    def _choose_id(self, item: Item) -> str:
        """Return the id that the entry has here, or may take: no other framework or topic holds it."""
        version, pair = item.framework_version or UNKNOWN_VERSION, pair_of(item.framework, item.topic)
        others = entries.of_pair(self.tx, item.framework, item.topic)
        same = of_major(others, version)
        if same is not None and (item.id is None or major_key(same.framework_version) == major_key(version)):
            return same.id
        if item.id is not None and all(other == pair for other, _ in holders(self.tx, "id", item.id)):
            return item.id
        names = wanted_names(item.framework, item.topic, version, has_others=bool(others))
        ids = (name.id for name in names)
        return next(it for it in ids if all(other == pair for other, _ in holders(self.tx, "id", it)))

    def _choose_path(self, entry: Entry, text: str) -> str:
        """Return the first path that is free for this very text, and have its file written."""
        pair, version = pair_of(entry.framework, entry.topic), entry.framework_version
        names = wanted_names(entry.framework, entry.topic, version, has_others=False)
        for path in (entry.path, *(name.path for name in names)):
            if is_free(self.tx, Name(entry.id, path), pair, text):
                break
        else:
            raise BadItem("path: every name that its report could have is taken")
        try:
            self.tx.write_report(path, text)
        except ReportUnwritable as exc:
            raise BadItem(f"path: {exc}") from exc
        return path


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
