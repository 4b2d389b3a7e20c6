"""Keeps the number of live entries, which every answer tells, and which lessons were found to be no orders.

Frozen: it creates what version 11 was, whatever kr/store/schema.sql says later.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

COUNT = """
    CREATE TRIGGER {name} AFTER {event} ON documents WHEN {row}.kind = 'entry'
    BEGIN UPDATE entry_count SET entries = entries {sign} 1; END"""


def upgrade() -> None:
    op.execute("ALTER TABLE lessons ADD COLUMN harmless_by TEXT")
    op.execute("CREATE TABLE entry_count (entries INTEGER NOT NULL)")
    op.execute("INSERT INTO entry_count SELECT count(*) FROM entries")
    op.execute(COUNT.format(name="entries_counted", event="INSERT", row="NEW", sign="+"))
    op.execute(COUNT.format(name="entries_uncounted", event="DELETE", row="OLD", sign="-"))
