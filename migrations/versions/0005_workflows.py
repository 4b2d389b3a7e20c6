"""Instances of workflows: one row each, so that kr workflow list and kr stats know them.

Frozen: it creates what version 5 was, whatever kr/store/schema.sql says later.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "workflows",
        sa.Column("workflow_id", sa.Text, primary_key=True),
        sa.Column("template_id", sa.Text, nullable=False),
        sa.Column("template_ref", sa.Text),
        sa.Column("type", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("current_step", sa.Text),
        sa.Column("state_file", sa.Text),
        sa.Column("is_simulated", sa.Boolean, nullable=False, server_default="0"),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Text),
        sa.Column("completed_at", sa.Text),
    )
    op.create_index("workflows_created_at", "workflows", ["created_at"])
