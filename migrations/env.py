"""Runs the migrations: on the connection that kr hands over, or for a person on KR_DATABASE_URL.

Both ways the whole upgrade is one transaction under the database's lock; a crash leaves the old schema.
"""

import os

from alembic import context
from sqlalchemy import Connection

from kr.store import schema
from kr.store.engine import Store


def note_version(*, ctx, step, heads, run_args) -> None:  # noqa: ANN001, ARG001 - Alembic's callback
    schema.mark(ctx.connection, max((int(head) for head in heads), default=0))


def run(connection: Connection) -> None:
    context.configure(connection=connection, transactional_ddl=True, on_version_apply=note_version)
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    raise SystemExit("kr's migrations need a database: --sql is not supported")
if (handed_over := context.config.attributes.get("connection")) is not None:
    run(handed_over)
elif url := os.environ.get("KR_DATABASE_URL"):
    with Store(url, ".") as store, store.write():
        pass  # a write brings the tables up to date first
else:
    raise SystemExit("set KR_DATABASE_URL to the database to migrate, for example sqlite:///kr.db")
