"""Who holds which id and path: looked up for many entries at once, and kept up to date as they are placed."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa

from kr.store.keys import Pair
from kr.store.schema import archived_entries, entries, revisions


class Claim(NamedTuple):
    """A row's hold on its id and path. ``archived_at`` is there for archived rows alone."""

    id: str
    path: str
    pair: Pair
    is_live: bool = False
    last_accessed: str = ""
    archived_at: str | None = None
    framework_version: str | None = None


class Claims:
    """The claims of the index, the archive and the history on ids and paths. Keys must be filled."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._by_id: dict[str, list[Claim]] = {}
        self._by_path: dict[str, list[Claim]] = {}

    def load(self, ids: Iterable[str], paths: Iterable[str]) -> None:
        """Look up, in a few queries, the ids and paths that will be asked for."""
        self._fill(self._by_id, ids, is_path=False)
        self._fill(self._by_path, paths, is_path=True)

    def of_id(self, entry_id: str) -> list[Claim]:
        """Return who holds an id."""
        if entry_id not in self._by_id:
            self.load([entry_id], [])
        return self._by_id[entry_id]

    def of_path(self, path: str) -> list[Claim]:
        """Return who holds a path."""
        if path not in self._by_path:
            self.load([], [path])
        return self._by_path[path]

    def add(self, claim: Claim) -> None:
        """Note a row that was placed; a live one takes the place of the live one with its id."""
        same = self.of_id(claim.id)
        if claim.is_live:
            same[:] = [other for other in same if not other.is_live]
        same.append(claim)
        self.of_path(claim.path).append(claim)

    def _fill(self, known: dict[str, list[Claim]], keys: Iterable[str], *, is_path: bool) -> None:
        new = [key for key in dict.fromkeys(keys) if key not in known]
        if not new:
            return
        known.update({key: [] for key in new})
        for table, entry_id, more in _TABLES:
            key = table.c.path if is_path else entry_id
            columns = (entry_id, table.c.path, table.c.framework_key, table.c.topic_key, *more)
            for row in self._connection.execute(sa.select(*columns).where(key.in_(new))):
                claim = _claim(table, row)
                known[claim.path if is_path else claim.id].append(claim)


_TABLES: tuple[tuple[sa.Table, sa.Column[Any], tuple[sa.Column[Any], ...]], ...] = (
    (entries, entries.c.id, (entries.c.last_accessed,)),
    (
        archived_entries,
        archived_entries.c.id,
        (
            archived_entries.c.last_accessed,
            archived_entries.c.archived_at,
            archived_entries.c.framework_version,
        ),
    ),
    (revisions, revisions.c.entry_id, ()),
)


def _claim(table: sa.Table, row: sa.Row[Any]) -> Claim:
    told = row._mapping  # noqa: SLF001 - the documented name
    return Claim(
        id=row[0],
        path=told["path"],
        pair=(told["framework_key"], told["topic_key"]),
        is_live=table is entries,
        last_accessed=told.get("last_accessed", ""),
        archived_at=told.get("archived_at"),
        framework_version=told.get("framework_version"),
    )
