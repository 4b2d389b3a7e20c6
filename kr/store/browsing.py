"""Index and archive in the order in which people look through them: the last used first (SPEC 6.3)."""

from collections.abc import Iterator

from kr.store.archive import to_archived
from kr.store.entries import to_entry
from kr.store.keys import framework_key
from kr.store.rows import Archived, ArchiveReason
from kr.store.session import Session
from kr.values import Entry

# A row that came by plain SQL has no key until kr writes; it is compared after it was read.
_OF = "(:key IS NULL OR framework_key = :key OR framework_key IS NULL)"
_ENTRIES = f"SELECT * FROM entries WHERE {_OF} ORDER BY last_accessed DESC, id"
_ARCHIVED = (
    f"SELECT * FROM archived_entries WHERE {_OF} AND (:reason IS NULL OR reason = :reason) "
    "ORDER BY archive_id DESC"
)
_IDS = "SELECT id FROM entries"
_ARCHIVED_IDS = "SELECT DISTINCT id FROM archived_entries"
_STALE_REASON = "SELECT stale_reason FROM entries WHERE id = :id"


class Browsing:
    """Reads them row by row, so that a look at the first few stays cheap."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def entries(self, framework: str | None = None) -> Iterator[Entry]:
        """Give live entries, of one framework (whichever of its names) or all, the last accessed first."""
        key = None if framework is None else framework_key(framework)
        for row in self._session.each(_ENTRIES, key=key):
            if key is None or framework_key(row["framework"]) == key:
                yield to_entry(row)

    def archived(
        self, framework: str | None = None, reason: ArchiveReason | None = None
    ) -> Iterator[Archived]:
        """Give archived rows, of one framework and one reason or all, the last archived first."""
        key = None if framework is None else framework_key(framework)
        for row in self._session.each(_ARCHIVED, key=key, reason=reason):
            if key is None or framework_key(row["framework"]) == key:
                yield to_archived(row)

    def ids(self) -> list[str]:
        """Return the ids of all live entries."""
        return [row["id"] for row in self._session.rows(_IDS)]

    def archived_ids(self) -> list[str]:
        """Return the ids in the archive, each once."""
        return [row["id"] for row in self._session.rows(_ARCHIVED_IDS)]

    def stale_reason(self, entry_id: str) -> str | None:
        """Return why an entry was marked stale, where that is known."""
        reason: str | None = self._session.value(_STALE_REASON, id=entry_id)
        return reason
