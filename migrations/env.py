"""Runs the migrations: on the connection that kr hands over, or for a person on KR_DATABASE_URL.

Both ways the whole upgrade is one transaction under the database's lock; a crash leaves the old schema.
"""

import os
from pathlib import Path

from alembic import context
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError


def mark_version(*, ctx, step, heads, run_args) -> None:  # noqa: ANN001, ARG001 - Alembic's callback
    """Keep ``PRAGMA user_version`` equal to the number of the newest migration: kr's cheap check."""
    if ctx.dialect.name == "sqlite":
        newest = max((int(head) for head in heads), default=0)
        ctx.connection.exec_driver_sql(f"PRAGMA user_version = {newest}")


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, transactional_ddl=True, on_version_apply=mark_version)
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    handed_over = context.config.attributes.get("connection")
    if handed_over is not None:
        migrate(handed_over)
        return
    from kr.store.database import Database
    from kr.store.store import database_path

    url = os.environ.get("KR_DATABASE_URL")
    if not url:
        raise SystemExit("set KR_DATABASE_URL to the database to migrate, for example sqlite:///kr.db")
    path = database_path(url, ".")
    Database(path, str(Path(path).parent)).upgrade()


if context.is_offline_mode():
    raise SystemExit("kr's migrations need a database: --sql is not supported")
try:
    main()
except SQLAlchemyError as exc:
    if context.config.attributes.get("connection") is not None:
        raise
    raise SystemExit(f"migration failed: {exc}") from exc
