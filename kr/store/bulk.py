"""Taking in many entries that others wrote: each finds its place, and nothing that is here is lost (SPEC 6.2).

One batch is one transaction. An entry is known again by its id; the newer ``last_accessed`` wins, also
against the archive, so that what the guard archived doesn't come back with every import.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

import sqlalchemy as sa

from kr import naming
from kr.errors import ReportUnwritable
from kr.freshness import UNKNOWN_VERSION
from kr.store import times
from kr.store.claims import Claim, Claims
from kr.store.database import Database, Transaction
from kr.store.entries import of_major, to_entry, to_values
from kr.store.free_names import Subject, wanted_names
from kr.store.hashing import decoded, digest
from kr.store.incoming import Incoming, Outcome
from kr.store.keys import Pair, pair_of
from kr.store.report_texts import edit_at
from kr.store.reports import ReportFiles
from kr.store.schema import archived_entries, entries, report_texts
from kr.store.unit import Unit
from kr.values import Entry

log = logging.getLogger(__name__)

_MAX_SUFFIX = 9


def take_in(
    database: Database, files: ReportFiles, batch: Sequence[Incoming], *, now: datetime
) -> list[Outcome]:
    """Place a batch, of some hundreds at most; one outcome for each, in order.

    Raises a ``StoreError``; rows and files are then as they were.
    """
    with database.write() as transaction:
        files.sweep()
        unit = Unit(transaction.session)
        unit.entries.fill_keys()
        intake = _Intake(transaction, unit, files, now)
        intake.prepare(batch)
        outcomes = [intake.take(incoming) for incoming in batch]
        intake.flush()
        transaction.afterwards.append(intake.write_files)
    return outcomes


class _NoPlace(Exception):
    """No path is left for an entry; the message is a clause that says why."""


class _Intake:
    """One batch in its transaction. Rows are collected, and written at the end."""

    def __init__(self, transaction: Transaction, unit: Unit, files: ReportFiles, now: datetime) -> None:
        self._connection = transaction.connection
        self._unit = unit
        self._files = files
        self._now = now
        self._claims = Claims(self._connection)
        self._stored: dict[str, Entry] = {}
        self._put: dict[str, Entry] = {}
        self._pairs: dict[Pair, set[str]] = {}
        self._archived: list[dict[str, object]] = []
        self._texts: dict[str, str] = {}
        self._new_files: dict[str, str] = {}

    def prepare(self, batch: Sequence[Incoming]) -> None:
        """Look everything up at once that the batch will ask for."""
        names = [naming.base_name(item.framework, item.topic) for item in batch if item.id is None]
        ids = [item.id for item in batch if item.id is not None] + [name.id for name in names]
        self._claims.load(ids, [item.path for item in batch])
        self._stored = {entry.id: entry for entry in self._unit.entries.some(ids)}

    def take(self, item: Incoming) -> Outcome:
        """Place one entry."""
        pair = pair_of(item.framework, item.topic)
        try:
            if item.departure is not None:
                return self._archive(item, pair)
            return self._enter(item, pair)
        except _NoPlace as problem:
            return Outcome("refused", str(problem))

    def flush(self) -> None:
        """Write the rows."""
        self._write_texts()
        new = [entry for entry in self._put.values() if entry.id not in self._stored]
        if new:
            self._connection.execute(
                sa.insert(entries), [{"id": entry.id, **to_values(entry)} for entry in new]
            )
        for entry in self._put.values():
            if entry.id in self._stored:
                self._unit.entries.put(entry)
        if self._archived:
            self._connection.execute(sa.insert(archived_entries), self._archived)

    def _enter(self, item: Incoming, pair: Pair) -> Outcome:
        entry_id = self._identify(item, pair)
        live = self._live(entry_id)
        if any(not _is_newer(item.last_accessed, at) for at in self._accesses(entry_id)):
            return Outcome("unchanged", differs=live is not None and _differs(item, live))
        path = self._place(item, pair, live)
        entry = self._entry(item, entry_id, path, live)
        if live is not None and live.sha256 != entry.sha256:
            edit = edit_at(self._unit, self._files, live.path)
            self._write_texts()
            self._unit.revisions.replace(entry, live, edit.text if edit is not None else None, self._now)
        self._put[entry_id] = entry
        self._pairs.setdefault(pair, set()).add(entry_id)
        self._claims.add(Claim(entry_id, path, pair, is_live=True, last_accessed=entry.last_accessed))
        return Outcome("imported" if live is None else "updated")

    def _archive(self, item: Incoming, pair: Pair) -> Outcome:
        departure = item.departure
        if departure is None:
            raise AssertionError("only an archived entry comes here")
        entry_id = self._identify(item, pair)
        if any(_is_same(item, claim) for claim in self._claims.of_id(entry_id) if claim.archived_at):
            return Outcome("unchanged")
        if item.text is not None and item.text.is_here and self._is_of_another(item.path, departure.at):
            item = replace(item, text=None)
        entry = self._entry(item, entry_id, self._place(item, pair, None), None)
        at = _stored(departure.at) or times.to_text(self._now)
        self._archived.append(
            {
                "id": entry.id,
                **to_values(entry),
                "status": "archived",
                "prior_status": entry.status,
                "archived_at": at,
                "reason": departure.reason,
            }
        )
        claim = Claim(
            entry_id,
            entry.path,
            pair,
            last_accessed=entry.last_accessed,
            archived_at=at,
            framework_version=entry.framework_version,
        )
        self._claims.add(claim)
        return Outcome("archived")

    def _is_of_another(self, path: str, archived_at: str | None) -> bool:
        """Tell whether what stands at a path is the text of a live entry, or of one that left later."""
        claims = self._claims.of_path(path)
        return any(claim.is_live or (claim.archived_at or "") > (archived_at or "") for claim in claims)

    def _identify(self, item: Incoming, pair: Pair) -> str:
        """Return the id that the entry has here, or may take: no other framework or topic holds it."""
        others: list[Entry] = []
        if item.id is None:
            others = self._of_pair(pair)
            same = of_major(others, item.framework_version or UNKNOWN_VERSION)
            if same is not None:
                return same.id
        for entry_id in self._ids(item, has_others=bool(others)):
            if all(claim.pair == pair for claim in self._claims.of_id(entry_id)):
                return entry_id
        raise _NoPlace("id: every id for it is held by other entries")

    def _ids(self, item: Incoming, *, has_others: bool) -> Iterator[str]:
        subject = Subject(item.framework, item.topic, item.framework_version or UNKNOWN_VERSION)
        first, *others = islice(wanted_names(subject, has_others=has_others), _MAX_SUFFIX + 1)
        yield item.id or first.id
        yield from (name.id for name in others)

    def _of_pair(self, pair: Pair) -> list[Entry]:
        """Return the live entries of a pair, one for each major version, placed in this batch or earlier."""
        rows = self._connection.execute(
            sa.select(entries).where(entries.c.framework_key == pair[0], entries.c.topic_key == pair[1])
        )
        found = {row["id"]: to_entry(row) for row in rows.mappings()}
        return list(
            {**found, **{entry_id: self._put[entry_id] for entry_id in self._pairs.get(pair, ())}}.values()
        )

    def _live(self, entry_id: str) -> Entry | None:
        if entry_id in self._put:
            return self._put[entry_id]
        if entry_id not in self._stored and any(claim.is_live for claim in self._claims.of_id(entry_id)):
            entry = self._unit.entries.get(entry_id)
            if entry is not None:
                self._stored[entry_id] = entry
        return self._stored.get(entry_id)

    def _accesses(self, entry_id: str) -> list[str]:
        claims = self._claims.of_id(entry_id)
        live = [claim.last_accessed for claim in claims if claim.is_live]
        return live or [claim.last_accessed for claim in claims if claim.archived_at]

    def _place(self, item: Incoming, pair: Pair, live: Entry | None) -> str:
        """Return the path of the entry's report. The text of an archived one needs no file until it is restored."""
        if item.text is None:
            return self._place_without_text(item, pair, live)
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

    def _place_without_text(self, item: Incoming, pair: Pair, live: Entry | None) -> str:
        if live is not None and live.path != item.path:
            raise _NoPlace(f"path: there is no report at it, and {live.id} has one here")
        if item.departure is not None and self._is_of_others(item.path, pair):
            # It has no text to lose, and its row is worth keeping.
            return next(
                (path for path in self._paths(item, None) if not self._claims.of_path(path)), item.path
            )
        self._require_free(item, pair)
        return item.path

    def _is_of_others(self, path: str, pair: Pair) -> bool:
        return any(claim.pair != pair for claim in self._claims.of_path(path))

    def _require_free(self, item: Incoming, pair: Pair) -> None:
        holder = next((claim for claim in self._claims.of_path(item.path) if claim.pair != pair), None)
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
        if self._files.is_blocked(path):
            return False
        if self._files.state(path) is not None:
            return decoded(self._files.read(path)) == text
        with self._files.place(path):
            self._new_files[path] = text
        return True

    def write_files(self) -> None:
        """Make the files of what was taken in. One that can't be made is made by the next one who reads it."""
        for path, text in self._new_files.items():
            try:
                self._files.write(path, text, to_disk=False)
            except ReportUnwritable as error:
                log.warning("%s; its text is in the database", error)

    def _entry(self, item: Incoming, entry_id: str, path: str, live: Entry | None) -> Entry:
        now = times.to_text(self._now)
        text = item.text
        sha256 = None
        if text is not None:
            sha256 = digest(decoded(text.content))
            self._texts[sha256] = decoded(text.content)
        kept = live if live is not None and (text is None or sha256 == live.sha256) else None
        origin = kept.origin if kept else text.origin if text else "researched"
        return Entry(
            id=entry_id,
            framework=item.framework,
            framework_version=item.framework_version or (live.framework_version if live else "unknown"),
            topic=item.topic,
            tags=item.tags if item.tags is not None else live.tags if live else (),
            path=path,
            created=_stored(item.created) or (live.created if live else now),
            last_accessed=_stored(item.last_accessed) or now,
            status=item.status if origin in {"researched", "installed"} else "stale",
            confidence=kept.confidence if kept else text.confidence if text else "low",
            sha256=sha256 or (live.sha256 if live else None),
            researched_at=kept.researched_at if kept else text.researched_at if text else None,
            fresh_until=kept.fresh_until if kept else text.fresh_until if text else None,
            origin=origin,
            question=live.question if live else None,
            configured_sources=kept.configured_sources if kept else None,
        )

    def _write_texts(self) -> None:
        if not self._texts:
            return
        known = sa.select(report_texts.c.sha256).where(report_texts.c.sha256.in_(self._texts))
        for sha256 in self._connection.execute(known).scalars().all():
            del self._texts[sha256]
        if self._texts:
            rows = [{"sha256": sha256, "text": text} for sha256, text in self._texts.items()]
            self._connection.execute(sa.insert(report_texts), rows)
            self._texts.clear()


def _stored(time: str | None) -> str | None:
    """Return a time in stored form; a bare date is its midnight."""
    return None if time is None else times.to_text(times.from_text(time))


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


def _is_same(item: Incoming, claim: Claim) -> bool:
    """Tell whether an archived row is the item: by when it was archived, else by all that it tells."""
    if item.departure is not None and item.departure.at is not None:
        return claim.archived_at == _stored(item.departure.at)
    is_accessed_then = item.last_accessed is None or claim.last_accessed.startswith(item.last_accessed)
    return is_accessed_then and claim.framework_version == (item.framework_version or "unknown")
