"""Making the tables, and bringing them from one migration to the next."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, StaticPool, create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError

from kr.errors import StoreError, StoreUnwritable
from kr.store.lock import file_lock
from kr.store.schema import metadata
from kr.store.sql import SCHEMA_KEY, SCHEMA_VERSION, upsert_into
from kr.store.sqlite import (
    APPLICATION_ID,
    connect,
    lock_path,
    refuse_triggers,
    require_ours,
    translated,
    until,
)


def upgrade(path: Path, timeout: float) -> None:
    """Make the database where it is absent, or bring it to the newest migration. Any number of processes may do so at once."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreUnwritable(f"{path.parent}: can't be created: {exc.strerror}") from exc
    with (
        file_lock(lock_path(path), timeout=timeout),
        translated(path),
        closing(connect(path, "rwc")) as connection,
    ):
        deadline = time.monotonic() + timeout
        version = until(deadline, lambda: require_ours(path, connection))
        if version == SCHEMA_VERSION:
            return
        if version:
            refuse_triggers(path, connection)
        # A change of the journal mode does not wait for others by itself.
        until(deadline, lambda: connection.execute("PRAGMA journal_mode = WAL"))
        run(connection) if version else create(connection)


def create(connection: sqlite3.Connection) -> None:
    """Make every table of the newest version in an empty database, in one transaction."""
    with _engine(connection).begin() as begun:
        _create(begun)


def _create(begun: Connection) -> None:
    metadata.create_all(begun, checkfirst=False)
    begun.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    begun.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{SCHEMA_VERSION:04d}')")
    mark(begun, SCHEMA_VERSION)


def upgrade_postgresql(connection: Any, location: str) -> None:
    """Make the tables through a connection of psycopg's, or bring older ones to the newest migration, in one transaction.

    Any number of processes may do so at once. Raises ``StoreError`` where another program has tables of these names.
    """
    engine = create_engine("postgresql+psycopg://", creator=lambda: connection, poolclass=StaticPool)
    with engine.begin() as begun:
        begun.exec_driver_sql("SELECT pg_advisory_xact_lock(27506, 2)")
        present = {*inspect(begun).get_table_names()}
        if "meta" not in present:
            if foreign := sorted(present & {"alembic_version", *metadata.tables}):
                raise StoreError(
                    f"{location}: has a table {foreign[0]} of another program; give kr a database of its own, or a schema "
                    "(KR_DATABASE_URL=postgresql+psycopg://…?options=-csearch_path%3Dkr)"
                )
            _create(begun)
            return
        found = text("SELECT value FROM meta WHERE key = :key")
        if int(begun.execute(found, {"key": SCHEMA_KEY}).scalar_one()) < SCHEMA_VERSION:
            _migrate(begun)


def mark(connection: Connection, version: int) -> None:
    """Note the number of the newest migration where every transaction looks, and that the database is ours."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA user_version = {version}")
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        return
    connection.execute(
        text(upsert_into("meta", ("key", "value"), "key")), {"key": SCHEMA_KEY, "value": str(version)}
    )


def run(connection: sqlite3.Connection) -> None:
    """Run the migrations that a database lacks, in one transaction. The caller holds the lock."""
    try:
        with _engine(connection).begin() as begun:
            _migrate(begun)
    except DBAPIError as exc:
        raise exc.orig or exc from exc


def _migrate(begun: Connection) -> None:
    from alembic import command  # heavy: only an older database needs it
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(_ini())
    config.attributes["connection"] = begun
    try:
        command.upgrade(config, "head")
    except CommandError as exc:
        raise StoreError(f"the database can't be upgraded: {exc}") from exc


def _engine(connection: sqlite3.Connection) -> Engine:
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    event.listen(engine, "begin", lambda begun: begun.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _ini() -> Path:
    """Return ``alembic.ini``, with ``migrations/`` beside it: in the installed package, or at the root of the source."""
    package = Path(__file__).parents[1]
    for folder in (package, package.parent):
        if (folder / "alembic.ini").is_file() and (folder / "migrations").is_dir():
            return folder / "alembic.ini"
    raise StoreError(f"kr is installed without its migrations (looked in {package} and {package.parent})")
