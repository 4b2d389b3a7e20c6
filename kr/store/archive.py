"""The archive and the capacity guard that fills it (SPEC 3.8; seed 002, Cache Capacity Guard)."""

import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from typing import Literal

from kr.freshness import from_text, oldest_live, to_text
from kr.models import Entry
from kr.store.entries import WRITTEN, Entries, framework_key, pair_of, to_entry, to_values
from kr.store.search import Search
from kr.store.session import ARCHIVE_CHANGES, Guarding, Meta, Part, insert_into
from kr.values import NamedTuple, Value

ArchiveReason = Literal["lru", "age", "manual"]

EVICTED_FIRST = "CASE WHEN origin = 'placeholder' THEN 0 WHEN origin = 'excerpt' AND fresh_until IS NOT NULL THEN 1 ELSE 2 END"
"""The class of an entry in the order of eviction: placeholders, excerpts of installed documentation, the rest (SPEC 3.8)."""


class Archived(Value):
    """An archived row: the entry as it was (its status before), and when and why it left the index."""

    archive_id: int
    entry: Entry
    archived_at: str
    reason: str


_KEPT = (
    *(each.name for each in fields(Entry) if each.name != "status"),
    "stale_reason",
    "framework_key",
    "topic_key",
    "question_key",
    "keywords_key",
)
"""The columns that both tables of entries have, but for ``status``."""

_COLUMNS = ", ".join(
    (*(each.name for each in fields(Entry)), "archive_id", "archived_at", "reason", "prior_status")
)
_SINCE = f"SELECT {_COLUMNS} FROM archived_entries WHERE archive_id > :after ORDER BY archive_id"
_BROWSED = (
    f"SELECT {_COLUMNS} FROM archived_entries WHERE (:key IS NULL OR framework_key = :key OR framework_key IS NULL) "
    "AND (:reason IS NULL OR reason = :reason) ORDER BY archive_id DESC"
)
_IDS = "SELECT DISTINCT id FROM archived_entries"
_COUNT = "SELECT count(*) FROM archived_entries"
_LAST_ID = "SELECT coalesce(max(archive_id), 0) FROM archived_entries"
_OF_PAIR = (
    f"SELECT {_COLUMNS} FROM archived_entries "
    "WHERE framework_key = :framework_key AND topic_key = :topic_key ORDER BY archive_id DESC"
)
_OF_ID = f"SELECT {_COLUMNS} FROM archived_entries WHERE id = :id ORDER BY archive_id DESC"
_ADD = insert_into("archived_entries", ("id", *WRITTEN, "prior_status", "archived_at", "reason"))
_STOOD_IN = (
    "SELECT 1 FROM archived_entries WHERE archive_id = :archive_id "
    "AND origin = 'excerpt' AND prior_status = 'stale' AND stale_reason IS NULL"
)
_GIVE = "UPDATE archived_entries SET sha256 = :sha256 WHERE path = :path AND sha256 IS NULL"
_TAKE = "DELETE FROM archived_entries WHERE archive_id = :archive_id"

_ONE, _AGED = "id = :id", "last_accessed < :limit AND id <> :keep"
_OLDEST = f"id IN (SELECT id FROM entries WHERE id <> :keep ORDER BY {EVICTED_FIRST}, last_accessed, id LIMIT :too_many)"
_COPY = (
    f"INSERT INTO archived_entries ({', '.join(_KEPT)}, status, prior_status, archived_at, reason) "
    f"SELECT {', '.join(_KEPT)}, 'archived', status, :now, :reason FROM entries WHERE {{}} ORDER BY last_accessed, id"
)
_COPY_ONE, _COPY_AGED, _COPY_OLDEST = (_COPY.format(which) for which in (_ONE, _AGED, _OLDEST))
_DELETE_ONE, _DELETE_AGED, _DELETE_OLDEST = (
    f"DELETE FROM entries WHERE {which}" for which in (_ONE, _AGED, _OLDEST)
)


class Guarded(NamedTuple):
    """How many entries the guard archived for their age, and evicted for lack of room."""

    auto_archived: int
    lru_evicted: int


class Archive(Part):
    """Reads and fills the archive in the caller's transaction. Only a restored row leaves it (``take``)."""

    def all(self) -> list[Archived]:
        return list(self.since(0))

    def since(self, archive_id: int) -> Iterator[Archived]:
        """Give the rows that were archived after one, in the order in which they were archived, read one by one."""
        return map(to_archived, self._session.each(_SINCE, after=archive_id))

    def browse(self, framework: str | None = None, reason: ArchiveReason | None = None) -> Iterator[Archived]:
        """Give rows of one framework and one reason, or all, the last archived first, read one by one."""
        key = None if framework is None else framework_key(framework)
        for row in self._session.each(_BROWSED, key=key, reason=reason):
            if key is None or framework_key(row["framework"]) == key:
                yield to_archived(row)

    def ids(self) -> list[str]:
        return [row["id"] for row in self._session.rows(_IDS)]

    def count(self) -> int:
        return int(self._session.value(_COUNT))

    def last_id(self) -> int:
        """Return the number of the row that was archived last; 0 when none is."""
        return int(self._session.value(_LAST_ID))

    def of_pair(self, framework: str, topic: str) -> list[Archived]:
        """Return the archived rows of a framework and topic, the last archived first. Keys must be filled."""
        framework_key, topic_key = pair_of(framework, topic)
        rows = self._session.rows(_OF_PAIR, framework_key=framework_key, topic_key=topic_key)
        return [to_archived(row) for row in rows]

    def of_id(self, entry_id: str) -> list[Archived]:
        """Return the archived rows of an id, the last archived first."""
        return [to_archived(row) for row in self._session.rows(_OF_ID, id=entry_id)]

    def stood_in(self, archive_id: int) -> bool:
        """Tell whether an archived text was written as stale: an older report that stood in for research."""
        return self._session.value(_STOOD_IN, archive_id=archive_id) is not None

    def give_text(self, path: str, sha256: str) -> None:
        """Note what archived rows without a text say: it stood in their file alone, which is about to be written over."""
        self._session.execute(_GIVE, path=path, sha256=sha256)

    def take(self, archive_id: int) -> bool:
        """Remove a row that becomes live again; False when it is not there. The export hears of it by ``ARCHIVE_CHANGES``."""
        meta = Meta(self._session)
        meta.put(ARCHIVE_CHANGES, str(int(meta.get(ARCHIVE_CHANGES) or 0) + 1))
        return bool(self._session.execute(_TAKE, archive_id=archive_id))

    def move(self, entry_id: str, reason: ArchiveReason, now: datetime) -> bool:
        moved = {"id": entry_id, "reason": reason, "now": to_text(now)}
        self._session.execute(_COPY_ONE, moved)
        is_gone = bool(self._session.execute(_DELETE_ONE, moved))
        Search(self._session).prune()
        return is_gone

    def add(self, entry: Entry, reason: ArchiveReason, at: str) -> None:
        """Put an entry into the archive that was archived elsewhere; ``at`` is stored text."""
        values = {"id": entry.id, **to_values(entry), "status": "archived", "prior_status": entry.status}
        self._session.execute(_ADD, {**values, "archived_at": at, "reason": reason})

    def guard(self, limits: Guarding, now: datetime, *, keep: str = "") -> Guarded:
        """Archive what was not accessed for too many UTC days, then evict down to the most entries; ``keep`` is the id that stays.

        Placeholders go first, then excerpts of installed documentation, then the rest, each the least recently accessed first.
        """
        today = from_text(to_text(now)).date()
        limit = oldest_live(today, limits.archive_after_days).isoformat()
        moved = {"keep": keep, "now": to_text(now)}
        self._session.execute(_COPY_AGED, {**moved, "limit": limit, "reason": "age"})
        aged = self._session.execute(_DELETE_AGED, {**moved, "limit": limit})
        too_many = Entries(self._session).count() - limits.max_entries
        evicted = 0
        if too_many > 0:
            self._session.execute(_COPY_OLDEST, {**moved, "too_many": too_many, "reason": "lru"})
            evicted = self._session.execute(_DELETE_OLDEST, {**moved, "too_many": too_many})
        if aged or evicted:
            Search(self._session).prune()
        return Guarded(aged, evicted)


def to_archived(row: sqlite3.Row) -> Archived:
    """Read an archived row, which anybody may have written."""
    return Archived(
        archive_id=row["archive_id"],
        entry=to_entry(row, status=row["prior_status"]),
        archived_at=row["archived_at"],
        reason=row["reason"],
    )
