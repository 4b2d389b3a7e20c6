"""The first released schema: what ``kr.store.schema`` declares. Numbers below its own were never released."""

from alembic import op

from kr.store.schema import sqlite_statements

revision = "0012"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in sqlite_statements():
        op.execute(statement)
