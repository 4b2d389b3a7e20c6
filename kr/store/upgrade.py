"""Making a database, and bringing an older one up to date. Alembic is imported here, late: only that pays for it."""

import sqlite3
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from kr.errors import StoreError

ReadReport = Callable[[str], bytes | None]

_SCHEMA = "schema.sql"


def create(connection: sqlite3.Connection) -> None:
    """Make every table of the newest version in an empty database, in one transaction. The caller holds the lock."""
    text = (files("kr.store") / _SCHEMA).read_text(encoding="utf-8")
    connection.executescript(f"BEGIN IMMEDIATE;\n{text}COMMIT;")


def run(connection: sqlite3.Connection, *, read_report: ReadReport | None = None, to: str = "head") -> None:
    """Bring a database to a migration, in one transaction. The caller holds the lock, and closes.

    ``read_report`` gives the bytes of the report at a path: older databases left some to the files alone.
    """
    import sqlalchemy as sa
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(_ini())
    config.attributes["read_report"] = read_report
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=sa.StaticPool)
    sa.event.listen(engine, "begin", lambda begun: begun.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as begun:
            config.attributes["connection"] = begun
            command.upgrade(config, to)
    except CommandError as exc:
        raise StoreError(f"the database can't be upgraded: {exc}") from exc
    except sa.exc.DBAPIError as exc:
        raise exc.orig or exc from exc


def _ini() -> Path:
    """``alembic.ini`` with ``migrations/`` beside it: in the installed package, or at the root of the source."""
    package = Path(str(files("kr")))
    for folder in (package, package.parent):
        if (folder / "alembic.ini").is_file() and (folder / "migrations").is_dir():
            return folder / "alembic.ini"
    raise StoreError(f"kr is installed without its migrations (looked in {package} and {package.parent})")
