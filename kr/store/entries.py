"""The live index: table ``entries``."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

import sqlalchemy as sa

from kr.freshness import major_key, same_major
from kr.matching.frameworks import lookup_keys, same_framework
from kr.store import keys, times
from kr.store.lists import texts_of
from kr.store.schema import archived_entries, entries, entry_vectors
from kr.values import Confidence, Entry, EntryStatus, Origin

_Text = TypeVar("_Text", bound=str)

_CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")
_ORIGINS: tuple[Origin, ...] = ("researched", "installed", "baseline", "skeleton")

_NO_ALIASES: Mapping[str, str] = MappingProxyType({})
_OF_FRAMEWORK = (
    sa.select(entries)
    .where(
        sa.or_(
            entries.c.framework_key.in_(sa.bindparam("keys", expanding=True)),
            entries.c.framework_key.is_(None),
        )
    )
    .order_by(entries.c.id)
)
_ID_OF_FRAMEWORK = _OF_FRAMEWORK.with_only_columns(
    entries.c.id,
    entries.c.framework,
    entries.c.framework_key,
    entries.c.status,
    entries.c.keys_version,
)
_NEWEST = sa.select(entries.c.last_accessed).order_by(entries.c.last_accessed.desc()).limit(5)
_TOUCH = (
    sa.update(entries)
    .where(entries.c.id == sa.bindparam("entry"))
    .values(last_accessed=sa.bindparam("accessed"))
)


class Entries:
    """Reads and changes live entries in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def candidates(self, framework: str, aliases: Mapping[str, str] = _NO_ALIASES) -> list[Entry]:
        """Return the entries of one framework (SPEC 3.2, whichever of its names is written), sorted by id.

        ``aliases`` are names (other name: framework) beside the shipped ones. A row that somebody marked
        ``archived`` awaits the guard: it counts as a miss (SPEC 3.3).
        """
        return [to_entry(row) for row in self._rows(framework, aliases) if row.status != "archived"]

    def ids(self, framework: str, aliases: Mapping[str, str] = _NO_ALIASES) -> dict[str, int | None]:
        """Return the ids of ``candidates``, sorted, with the version of the keys that each has, if any."""
        rows = self._rows(framework, aliases, _ID_OF_FRAMEWORK)
        return {row.id: row.keys_version for row in rows if row.status != "archived"}

    def frameworks(self) -> list[str]:
        """Return the frameworks that have live entries, each under one of the names by which it was asked for."""
        named = sa.select(sa.func.min(entries.c.framework)).group_by(entries.c.framework_key)
        return list(self._connection.execute(named).scalars())

    def some(self, entry_ids: Iterable[str]) -> list[Entry]:
        """Return the entries with these ids, sorted by id."""
        wanted = sa.select(entries).where(entries.c.id.in_(list(entry_ids))).order_by(entries.c.id)
        return [to_entry(row) for row in self._connection.execute(wanted)]

    def _rows(
        self,
        framework: str,
        aliases: Mapping[str, str] = _NO_ALIASES,
        statement: sa.Select[Any] = _OF_FRAMEWORK,
    ) -> Iterator[sa.Row[Any]]:
        for row in self._connection.execute(statement, {"keys": lookup_keys(framework, aliases)}):
            if (row.framework_key is not None and not aliases) or same_framework(
                row.framework, framework, aliases
            ):
                yield row

    def get(self, entry_id: str) -> Entry | None:
        """Return one entry, or None."""
        row = self._connection.execute(sa.select(entries).where(entries.c.id == entry_id)).one_or_none()
        return None if row is None else to_entry(row)

    def all(self) -> list[Entry]:
        """Return every live entry, sorted by id."""
        return [to_entry(row) for row in self._connection.execute(sa.select(entries).order_by(entries.c.id))]

    def of_pair(self, framework: str, topic: str) -> list[Entry]:
        """Return the entries of a framework and topic (equal by their keys): one for each major version."""
        wanted = keys.topic_key(topic)
        return [to_entry(row) for row in self._rows(framework) if keys.topic_key(row.topic) == wanted]

    def of_topic(self, framework: str, topic: str, version: str) -> Entry | None:
        """Return the entry of a framework, topic and major version; see ``of_major``."""
        return of_major(self.of_pair(framework, topic), version)

    def count(self) -> int:
        """Return the number of live entries."""
        return self._connection.execute(sa.select(sa.func.count()).select_from(entries)).scalar_one()

    def next_access(self, now: datetime) -> str:
        """Return the time of an access now: later than every other, though the clock jumped back (SPEC 3.3)."""
        return times.after(now, self._connection.execute(_NEWEST).scalars())

    def touch(self, entry_id: str, now: datetime) -> str | None:
        """Record an access and return its time; None when the entry is gone."""
        accessed = self.next_access(now)
        touched = self._connection.execute(_TOUCH, {"entry": entry_id, "accessed": accessed})
        return accessed if touched.rowcount else None

    def mark_stale(self, entry_id: str, reason: str, *, major: str | None = None) -> bool:
        """Store the mark, for one ``major`` version (``kr.freshness.major_key``) or for all of them (SPEC 3.3).

        False when the entry is gone or marked already. A mark for all takes the place of one for a major version.
        """
        is_due = entries.c.status != "stale"
        if major is None:
            is_due = sa.or_(is_due, entries.c.stale_major.is_not(None))
        marked = self._connection.execute(
            sa.update(entries)
            .where(entries.c.id == entry_id, is_due)
            .values(status="stale", stale_reason=reason, stale_major=major)
        )
        return bool(marked.rowcount)

    def set_text(self, entry_id: str, sha256: str) -> None:
        """Note which text an entry shows now."""
        self._connection.execute(sa.update(entries).where(entries.c.id == entry_id).values(sha256=sha256))

    def set_question(self, entry_id: str, question: str) -> None:
        """Note what was asked when an entry was researched elsewhere, of every row of the id that doesn't know it."""
        for table in (entries, archived_entries):
            known = sa.update(table).where(table.c.id == entry_id, table.c.question.is_(None))
            self._connection.execute(known.values(question=question))

    def remove(self, entry_id: str) -> bool:
        """Delete an entry whose report is gone; its revisions stay. False when there is none."""
        return bool(self._connection.execute(sa.delete(entries).where(entries.c.id == entry_id)).rowcount)

    def put(self, entry: Entry) -> None:
        """Insert an entry, or overwrite the one with its id; a mark of staleness, keys and vectors are forgotten."""
        values = to_values(entry)
        marks = {"stale_reason": None, "stale_major": None}
        changed = self._connection.execute(
            sa.update(entries).where(entries.c.id == entry.id).values(**values, **marks)
        )
        if not changed.rowcount:
            self._connection.execute(sa.insert(entries).values(id=entry.id, **values))
            return
        self._connection.execute(sa.delete(entry_vectors).where(entry_vectors.c.entry_id == entry.id))

    def fill_keys(self) -> None:
        """Make the keys of framework and topic where they are missing; see ``kr.store.refilling``."""
        from kr.store import refilling

        refilling.fill(self._connection)


def of_major(same: Iterable[Entry], version: str) -> Entry | None:
    """Return the entry, of several of one framework and topic, that a report for a version renews (SPEC 3.3).

    That is one of the same major version; of several one whose version is known to be it, and of these the last used.
    """
    wanted = major_key(version)
    fitting = (entry for entry in same if same_major(entry.framework_version, version))
    return max(
        fitting,
        key=lambda entry: (major_key(entry.framework_version) == wanted, entry.last_accessed, entry.id),
        default=None,
    )


def to_values(entry: Entry) -> dict[str, Any]:
    """Return an entry's columns, without its id."""
    return {
        "framework": entry.framework,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "tags": json.dumps(entry.tags, ensure_ascii=False),
        "path": entry.path,
        "created": entry.created,
        "last_accessed": entry.last_accessed,
        "status": entry.status,
        "confidence": entry.confidence,
        "sha256": entry.sha256,
        "researched_at": entry.researched_at,
        "fresh_until": entry.fresh_until,
        "origin": entry.origin,
        "framework_key": keys.framework_key(entry.framework),
        "topic_key": keys.topic_key(entry.topic),
        "question": entry.question,
        "configured_sources": entry.configured_sources,
        "keys_version": None,
    }


def to_entry(row: sa.Row[Any], *, status: str | None = None) -> Entry:
    """Read a row, which anybody may have written: what is unknown counts as stale, and as low confidence."""
    state: EntryStatus = "fresh" if (status or row.status) == "fresh" else "stale"
    return Entry(
        id=str(row.id),
        framework=row.framework,
        framework_version=row.framework_version,
        topic=row.topic,
        tags=texts_of(row.tags),
        path=row.path,
        created=row.created,
        last_accessed=row.last_accessed,
        status=state,
        confidence=_one_of(_CONFIDENCES, row.confidence, "low"),
        sha256=row.sha256.lower() if row.sha256 else None,
        researched_at=row.researched_at,
        fresh_until=row.fresh_until,
        origin=_one_of(_ORIGINS, row.origin, "researched"),
        question=row.question,
        stale_major=row.stale_major,
        configured_sources=row.configured_sources,
    )


def _one_of(allowed: Sequence[_Text], value: object, otherwise: _Text) -> _Text:
    return next((known for known in allowed if known == value), otherwise)
