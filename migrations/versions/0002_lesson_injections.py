"""Which lessons were given to whom: what counts a lesson as recurred, and shows whether it helped.

Frozen: it creates what version 2 was, whatever kr/store/schema.sql says later.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lesson_injections",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("lesson_id", sa.Text, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("at", sa.Text),
        sa.Column("story_key", sa.Text),
        sa.Column("session_id", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("lesson_injections_lesson", "lesson_injections", ["lesson_id", "phase"])
