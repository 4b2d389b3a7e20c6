"""Why a lesson waits for a person, and the keywords by which duplicates are found without reading the file.

Frozen: it creates what version 12 was, whatever kr/store/schema.sql says later.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE lessons DROP COLUMN harmless_by")
    op.execute("ALTER TABLE lessons ADD COLUMN held TEXT")
    op.execute(
        """CREATE TABLE lesson_keywords (
            keyword TEXT NOT NULL,
            lesson_id TEXT NOT NULL REFERENCES lessons (id),
            PRIMARY KEY (keyword, lesson_id)
        ) WITHOUT ROWID"""
    )
