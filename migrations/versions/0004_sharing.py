"""What an entry is found by: its question, the wordings that it served, terms and vectors made from them.

And for which major version a mark was made, which sources were configured, and what a request asked and came to.
Frozen: it creates what version 4 was, whatever kr/store/schema.sql says later.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

REWORDED = """
    CREATE TRIGGER entries_reworded AFTER UPDATE OF framework, topic, tags, question ON entries
    WHEN (NEW.framework IS NOT OLD.framework OR NEW.topic IS NOT OLD.topic
            OR NEW.tags IS NOT OLD.tags OR NEW.question IS NOT OLD.question)
        AND NEW.keys_version IS NOT NULL AND NEW.keys_version IS OLD.keys_version
    BEGIN UPDATE entries SET keys_version = NULL WHERE rowid = NEW.rowid; END"""
"""Forget that the keys are made of a row that was edited."""


def upgrade() -> None:
    for table in ("entries", "archived_entries"):
        op.add_column(table, sa.Column("question", sa.Text))
        op.add_column(table, sa.Column("stale_major", sa.Text))
        op.add_column(table, sa.Column("configured_sources", sa.Text))
        op.add_column(table, sa.Column("keys_version", sa.Integer))
    op.create_table(
        "wordings",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("entry_id", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("wordings_entry", "wordings", ["entry_id", "id"])
    op.create_table(
        "entry_terms",
        sa.Column("framework_key", sa.Text, primary_key=True),
        sa.Column("term", sa.Text, primary_key=True),
        sa.Column("entry_id", sa.Text, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("fields", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("entry_terms_entry", "entry_terms", ["entry_id", "fields", "term"])
    op.create_table(
        "entry_vectors",
        sa.Column("entry_id", sa.Text, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
    op.execute(REWORDED)
    op.add_column("requests", sa.Column("question", sa.Text))
    op.add_column("requests", sa.Column("likelihood", sa.Float))
    op.add_column("requests", sa.Column("error", sa.Text))
