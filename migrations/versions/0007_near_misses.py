"""Entries that were near a question and were not taken, and what the answers of sources would cost to read.

Frozen: it creates what version 7 was, whatever kr/store/schema.sql says later.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "near_misses",
        sa.Column("request_id", sa.Text, sa.ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("related", sa.Text, nullable=False),
        sa.Column("settled_at", sa.Text),
        sa.Column("answered_by", sa.Text),
    )
    op.create_index("near_misses_settled", "near_misses", ["settled_at", "request_id"])
    op.add_column("source_calls", sa.Column("answer_tokens", sa.Integer))
