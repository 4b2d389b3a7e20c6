"""Index and archive in the order in which people look through them: the last used first (SPEC 6.3)."""

from collections.abc import Iterator

import sqlalchemy as sa

from kr.store.archive import to_archived
from kr.store.entries import to_entry
from kr.store.keys import framework_key
from kr.store.rows import Archived, ArchiveReason
from kr.store.schema import archived_entries, entries
from kr.values import Entry


class Browsing:
    """Reads them row by row, so that a look at the first few stays cheap."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def entries(self, framework: str | None = None) -> Iterator[Entry]:
        """Give live entries, of one framework (whichever of its names) or all, the last accessed first."""
        order = (entries.c.last_accessed.desc(), entries.c.id)
        statement = _of(framework, entries, sa.select(entries)).order_by(*order)
        for row in self._connection.execute(statement).mappings():
            if _is_of(framework, row["framework"]):
                yield to_entry(row)

    def archived(
        self, framework: str | None = None, reason: ArchiveReason | None = None
    ) -> Iterator[Archived]:
        """Give archived rows, of one framework and one reason or all, the last archived first."""
        statement = _of(framework, archived_entries, sa.select(archived_entries))
        if reason is not None:
            statement = statement.where(archived_entries.c.reason == reason)
        ordered = statement.order_by(archived_entries.c.archive_id.desc())
        for row in self._connection.execute(ordered).mappings():
            if _is_of(framework, row["framework"]):
                yield to_archived(row)

    def ids(self) -> list[str]:
        """Return the ids of all live entries."""
        return list(self._connection.execute(sa.select(entries.c.id)).scalars())

    def archived_ids(self) -> list[str]:
        """Return the ids in the archive, each once."""
        return list(self._connection.execute(sa.select(archived_entries.c.id).distinct()).scalars())

    def stale_reason(self, entry_id: str) -> str | None:
        """Return why an entry was marked stale, where that is known."""
        reason = sa.select(entries.c.stale_reason).where(entries.c.id == entry_id)
        found: str | None = self._connection.execute(reason).scalar_one_or_none()
        return found


def _of(
    framework: str | None, table: sa.Table, statement: "sa.Select[tuple[object, ...]]"
) -> "sa.Select[tuple[object, ...]]":
    if framework is None:
        return statement
    # A row that came by plain SQL has no key until kr writes; it is compared after it was read.
    return statement.where(
        sa.or_(table.c.framework_key == framework_key(framework), table.c.framework_key.is_(None))
    )


def _is_of(framework: str | None, theirs: str) -> bool:
    return framework is None or framework_key(theirs) == framework_key(framework)
