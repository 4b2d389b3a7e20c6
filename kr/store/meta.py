"""Single facts about the knowledge base (table ``meta``)."""

from kr.store.engine import Transaction
from kr.store.sql import upsert_into

FIRST_IMPORT = "first_import"
"""When the index beside an empty database was imported; see ``kr.transfer``."""
ARCHIVE_CHANGES = "archive_changes"
"""How often archived rows left."""


def get(tx: Transaction, key: str) -> str | None:
    found: str | None = tx.value("SELECT value FROM meta WHERE key = :key", key=key)
    return found


def remove(tx: Transaction, key: str) -> None:
    tx.execute("DELETE FROM meta WHERE key = :key", key=key)


def put(tx: Transaction, key: str, value: str) -> None:
    tx.execute(upsert_into("meta", ("key", "value"), "key"), key=key, value=value)
