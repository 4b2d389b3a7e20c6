"""Counts changes of archived rows, so that an export need not read a million of them to know that it may append.

Frozen: it creates what version 9 was, whatever kr/store/schema.sql says later.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

EXPORTED = "id, framework, framework_version, topic, tags, path, created, last_accessed, archived_at, reason"

COUNT = """
    CREATE TRIGGER archived_entries_{name} AFTER {event} ON archived_entries BEGIN
        INSERT OR IGNORE INTO meta (key, value) VALUES ('archive_changes', '0');
        UPDATE meta SET value = value + 1 WHERE key = 'archive_changes';
    END"""


def upgrade() -> None:
    op.execute(COUNT.format(name="delete", event="DELETE"))
    op.execute(COUNT.format(name="update", event=f"UPDATE OF {EXPORTED}"))
