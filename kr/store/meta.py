"""Small facts about the knowledge base itself."""

from kr.store.session import Session, insert_into

FIRST_IMPORT = "first_import"
"""The key of when the index beside an empty database was imported; see ``kr.transfer.first_use``."""

ARCHIVE_CHANGES = "archive_changes"
"""The key of how often archived rows changed, or left; triggers count."""

_GET = "SELECT value FROM meta WHERE key = :key"
_PUT = f"{insert_into('meta', ('key', 'value'))} ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class Meta:
    """Reads and writes them in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, key: str) -> str | None:
        """Return a value."""
        found: str | None = self._session.value(_GET, key=key)
        return found

    def put(self, key: str, value: str) -> None:
        """Set a value."""
        self._session.execute(_PUT, key=key, value=value)
