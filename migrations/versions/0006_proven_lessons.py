"""What proves a lesson: who worded it, whether its failure came back although it was given, and what people said of it.

Frozen: it creates what version 6 was, whatever kr/store/schema.sql says later.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("source", "last_recurred_at", "retired_at", "pinned_at", "approved_at", "superseded_by"):
        op.add_column("lessons", sa.Column(name, sa.Text))
    counted = sa.Column("recurred_after_injection", sa.Integer, nullable=False, server_default="0")
    op.add_column("lessons", counted)
    # Until now a recurrence was counted only of a lesson that had been given.
    op.execute("UPDATE lessons SET recurred_after_injection = recurred")
    op.create_index("lesson_injections_session", "lesson_injections", ["session_id", "lesson_id"])
