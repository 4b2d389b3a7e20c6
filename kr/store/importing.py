"""Taking in many entries that others wrote, a batch in a transaction; nothing that is here is lost (SPEC 6.2).

An entry is known again by its id; the newer ``last_accessed`` wins, also against the archive, or what the guard archived would come back.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Literal, NamedTuple

from kr import naming
from kr.errors import ReportUnwritable
from kr.freshness import UNKNOWN_VERSION, from_text, to_text
from kr.naming import decoded
from kr.store.archive import ArchiveReason
from kr.store.database import Database
from kr.store.entries import Pair, of_major, pair_of
from kr.store.reports import take_edit
from kr.store.saving import Holder, Subject, holders_of_id, holders_of_path, wanted_names
from kr.store.session import UnitOfWork
from kr.values import Confidence, Entry, EntryStatus, Origin, Value, replace

log = logging.getLogger(__name__)

_MAX_SUFFIX = 9

Taken = Literal["imported", "updated", "unchanged", "archived", "refused"]


class ReportText(Value):
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


class Departure(Value):
    """When, as far as it is told, and why an entry was archived."""

    at: str | None
    reason: ArchiveReason


class Incoming(Value):
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


class Outcome(NamedTuple):
    """What became of an entry. ``reason`` is there exactly when it was refused.

    ``differs``: it was left out because it is not newer, and says something else than the live entry.
    """

    taken: Taken
    reason: str | None = None
    differs: bool = False


def take_in(database: Database, batch: Sequence[Incoming], *, now: datetime) -> list[Outcome]:
    """Place a batch, of some hundreds at most; one outcome for each, in order. All or nothing. Raises a ``StoreError``."""
    with database.write() as unit:
        unit.files.sweep()
        unit.entries.fill_keys()
        intake = _Intake(unit, now)
        unit.afterwards.append(intake.write_files)
        return [intake.take(incoming) for incoming in batch]


_OF_TEXT = (
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
"""The columns that tell of an entry's text."""


class _NoPlace(Exception):
    """No path is left for an entry; the message is a clause that says why."""


class _Intake:
    """One batch in its transaction. Each row is written as it is placed; the new files are made at the end."""

    def __init__(self, unit: UnitOfWork, now: datetime) -> None:
        self._unit = unit
        self._now = now
        self._new_files: dict[str, str] = {}

    def take(self, item: Incoming) -> Outcome:
        pair = pair_of(item.framework, item.topic)
        try:
            if item.departure is not None:
                return self._archive(item, pair)
            return self._enter(item, pair)
        except _NoPlace as problem:
            return Outcome("refused", str(problem))

    def _enter(self, item: Incoming, pair: Pair) -> Outcome:
        entry_id = self._identify(item, pair)
        live = self._unit.entries.get(entry_id)
        if any(not _is_newer(item.last_accessed, at) for at in self._accesses(entry_id)):
            return Outcome("unchanged", differs=live is not None and _differs(item, live))
        if item.text is None and (live is None or live.path != item.path):
            raise _NoPlace(f"path: there is no report at {item.path}, so that it is not indexed")
        if live is not None:
            live = take_edit(self._unit, live)
            if item.text is not None and item.text.is_here and item.path == live.path and live.sha256:
                item = replace(item, text=None)  # its own file: what somebody wrote there is taken in by now
        entry = self._entry(item, entry_id, self._place(item, pair, live), live)
        if live is not None and live.sha256 != entry.sha256:
            entry = self._replacing(live, entry)
        self._unit.entries.put(entry)
        return Outcome("imported" if live is None else "updated")

    def _replacing(self, live: Entry, entry: Entry) -> Entry:
        """Let an imported text take the place of a live one, or stand beside one that somebody wrote (SPEC 3.8)."""
        at, number = to_text(self._now), self._unit.revisions.next_number(live.id)
        if not live.is_written:
            self._unit.revisions.add(live, at)
            return replace(entry, revision=number)
        self._unit.revisions.add(replace(entry, revision=number, path=live.path), at)
        self._new_files.pop(entry.path, None)
        kept = {name: getattr(live, name) for name in _OF_TEXT}
        return replace(entry, **kept, status=live.status)

    def _archive(self, item: Incoming, pair: Pair) -> Outcome:
        departure = item.departure
        if departure is None:
            raise AssertionError("only an archived entry comes here")
        entry_id = self._identify(item, pair)
        if any(
            _is_same(item, holder) for holder in holders_of_id(self._unit, entry_id) if holder.archived_at
        ):
            return Outcome("unchanged")
        if item.text is not None and item.text.is_here and self._is_of_another(item.path, departure.at):
            item = replace(item, text=None)
        entry = self._entry(item, entry_id, self._place(item, pair, None), None)
        at = _stored(departure.at) or to_text(self._now)
        self._unit.archive.add(entry, departure.reason, at)
        return Outcome("archived")

    def _is_of_another(self, path: str, archived_at: str | None) -> bool:
        """Tell whether what stands at a path is the text of a live entry, or of one that left later."""
        holders = holders_of_path(self._unit, path)
        return any(it.is_live or (it.archived_at or "") > (archived_at or "") for it in holders)

    def _identify(self, item: Incoming, pair: Pair) -> str:
        """Return the id that the entry has here, or may take: no other framework or topic holds it."""
        others: list[Entry] = []
        if item.id is None:
            others = self._unit.entries.of_pair(item.framework, item.topic)
            same = of_major(others, item.framework_version or UNKNOWN_VERSION)
            if same is not None:
                return same.id
        for entry_id in self._ids(item, has_others=bool(others)):
            if all(holder.pair == pair for holder in holders_of_id(self._unit, entry_id)):
                return entry_id
        raise _NoPlace("id: every id for it is held by other entries")

    def _ids(self, item: Incoming, *, has_others: bool) -> Iterator[str]:
        subject = Subject(item.framework, item.topic, item.framework_version or UNKNOWN_VERSION)
        first, *others = islice(wanted_names(subject, has_others=has_others), _MAX_SUFFIX + 1)
        yield item.id or first.id
        yield from (name.id for name in others)

    def _accesses(self, entry_id: str) -> list[str]:
        holders = holders_of_id(self._unit, entry_id)
        live = [holder.last_accessed for holder in holders if holder.is_live]
        return live or [holder.last_accessed for holder in holders if holder.archived_at]

    def _place(self, item: Incoming, pair: Pair, live: Entry | None) -> str:
        """Return the path of the entry's report. The text of an archived one needs no file until it is restored."""
        if item.text is None:
            return self._place_without_text(item, pair)
        paths = (path for path in self._paths(item, live) if not self._is_of_others(path, pair))
        if item.departure is not None:
            return next(paths, item.path)
        if not item.text.is_theirs or (item.text.is_here and not self._is_of_others(item.path, pair)):
            self._require_free(item, pair)
            return item.path
        problem = ""
        text = decoded(item.text.content)
        for path in paths:
            try:
                if self._is_available(path, text):
                    return path
            except ReportUnwritable as error:
                problem = problem or str(error)
        raise _NoPlace(problem or "path: every name for its report is taken")

    def _place_without_text(self, item: Incoming, pair: Pair) -> str:
        """Return a live entry's own path, or for an archived one, whose row is worth keeping, a path that nobody has."""
        if not self._is_of_others(item.path, pair):
            return item.path
        return next(
            (path for path in self._paths(item, None) if not holders_of_path(self._unit, path)), item.path
        )

    def _is_of_others(self, path: str, pair: Pair) -> bool:
        return any(holder.pair != pair for holder in holders_of_path(self._unit, path))

    def _require_free(self, item: Incoming, pair: Pair) -> None:
        holder = next((it for it in holders_of_path(self._unit, item.path) if it.pair != pair), None)
        if holder is not None:
            raise _NoPlace(f"path: it is that of {holder.id}, and there is no report to copy")

    def _paths(self, item: Incoming, live: Entry | None) -> Iterator[str]:
        yield item.path
        if live is not None and live.path != item.path:
            yield live.path
        suffixed = naming.suffixed_name(item.framework, item.topic).path
        yield suffixed
        stem = suffixed.removesuffix(".md")
        yield from (f"{stem}-{number}.md" for number in range(2, _MAX_SUFFIX + 1))

    def _is_available(self, path: str, text: str) -> bool:
        """Tell whether this very text may stand at a path: nothing else does. Its file is made after the commit."""
        if path in self._new_files:
            return self._new_files[path] == text
        if self._unit.files.is_blocked(path):
            return False
        if self._unit.files.exists(path):
            return decoded(self._unit.files.read(path)) == text
        self._unit.files.place(path)
        self._new_files[path] = text
        return True

    def write_files(self) -> None:
        """Make the files of what was taken in. One that can't be made is made by the next one who reads it."""
        for path, text in self._new_files.items():
            try:
                self._unit.files.write(path, text, to_disk=False)
            except ReportUnwritable as error:
                log.warning("%s; its text is in the database", error)

    def _entry(self, item: Incoming, entry_id: str, path: str, live: Entry | None) -> Entry:
        now = to_text(self._now)
        text = item.text
        sha256 = None if text is None else self._unit.revisions.keep(decoded(text.content))
        kept = live if live is not None and (text is None or sha256 == live.sha256) else None
        origin = kept.origin if kept else text.origin if text else "imported"
        return Entry(
            id=entry_id,
            framework=item.framework,
            framework_version=item.framework_version or (live.framework_version if live else "unknown"),
            topic=item.topic,
            tags=item.tags if item.tags is not None else live.tags if live else (),
            path=path,
            created=_stored(item.created) or (live.created if live else now),
            last_accessed=_stored(item.last_accessed) or now,
            status="stale" if origin == "placeholder" else item.status,
            confidence=kept.confidence if kept else text.confidence if text else "low",
            sha256=sha256 or (live.sha256 if live else None),
            researched_at=kept.researched_at if kept else text.researched_at if text else None,
            fresh_until=kept.fresh_until if kept else text.fresh_until if text else None,
            origin=origin,
            question=live.question if live else None,
            written_by=kept.written_by if kept else None,
            revision=live.revision if live else self._unit.revisions.next_number(entry_id),
        )


def _stored(time: str | None) -> str | None:
    return None if time is None else to_text(from_text(time))


def _is_newer(told: str | None, known: str) -> bool:
    """Tell whether an access is later than the known one. A date alone compares as a date; none tells nothing."""
    return told is not None and told > known[: len(told)]


def _differs(item: Incoming, live: Entry) -> bool:
    """Tell whether an item says something of its entry that was not so before, as one that a person edited."""
    told = (
        (item.framework, live.framework),
        (item.framework_version, live.framework_version),
        (item.topic, live.topic),
        (item.tags, live.tags),
        # Fresh is also what an item counts as that tells no status.
        ("stale" if item.status == "stale" else None, live.status),
    )
    return any(new is not None and new != old for new, old in told)


def _is_same(item: Incoming, row: Holder) -> bool:
    """Tell whether an archived row is the item: by when it was archived, else by all that it tells."""
    if item.departure is not None and item.departure.at is not None:
        return row.archived_at == _stored(item.departure.at)
    is_accessed_then = item.last_accessed is None or row.last_accessed.startswith(item.last_accessed)
    return is_accessed_then and row.framework_version == (item.framework_version or "unknown")
