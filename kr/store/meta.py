"""Small facts about the knowledge base itself."""

import sqlalchemy as sa

from kr.store.schema import meta

FIRST_IMPORT = "first_import"
"""The key of when the index beside an empty database was imported; see ``kr.transfer.first_use``."""


class Meta:
    """Reads and writes them in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def get(self, key: str) -> str | None:
        """Return a value."""
        return self._connection.execute(sa.select(meta.c.value).where(meta.c.key == key)).scalar_one_or_none()

    def put(self, key: str, value: str) -> None:
        """Set a value."""
        if not self._connection.execute(
            sa.update(meta).where(meta.c.key == key).values(value=value)
        ).rowcount:
            self._connection.execute(sa.insert(meta).values(key=key, value=value))
