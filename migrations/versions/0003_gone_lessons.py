"""Which lessons the file no longer holds: they are kept with their counts, and counted no more.

Frozen: it creates what version 3 was, whatever kr/store/schema.sql says later.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

LESSONS_BY_PHASE = """
    SELECT phase, count(*) AS lessons, sum(injected) AS injected, sum(recurred) AS recurred,
           max(date) AS newest
    FROM lessons WHERE gone_at IS NULL GROUP BY phase ORDER BY phase"""


def upgrade() -> None:
    op.execute("DROP VIEW lessons_by_phase")
    op.add_column("lessons", sa.Column("gone_at", sa.Text))
    op.execute(f"CREATE VIEW lessons_by_phase AS {LESSONS_BY_PHASE}")
