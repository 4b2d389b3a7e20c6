"""Making the tables, and bringing them from one migration to the next."""

import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.exc import DBAPIError

from kr.errors import StoreError, StoreUnwritable
from kr.store.lock import file_lock
from kr.store.schema import metadata
from kr.store.sqlite import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    connect,
    lock_path,
    require_ours,
    translated,
    until,
    unused_name,
)

log = logging.getLogger(__name__)


def upgrade(path: Path, timeout: float) -> None:
    """Make the database where it is absent, and bring it to the newest migration; an older one is backed up first.

    Any number of processes may do so at once.
    """
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
            kept = unused_name(path, f"schema-{version}.bak")
            staged = path.with_name(f".{path.name}.bak")  # a copy that was killed bears no copy's name
            staged.unlink(missing_ok=True)
            connection.execute("VACUUM INTO :path", {"path": str(staged)})
            staged.replace(kept)
            log.info("%s: backed up to %s before the upgrade", path, kept.name)
        # A change of the journal mode does not wait for others by itself.
        until(deadline, lambda: connection.execute("PRAGMA journal_mode = WAL"))
        run(connection) if version else create(connection)


def create(connection: sqlite3.Connection) -> None:
    """Make every table of the newest version in an empty database, in one transaction."""
    with _engine(connection).begin() as begun:
        metadata.create_all(begun, checkfirst=False)
        begun.exec_driver_sql(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
        )
        begun.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{SCHEMA_VERSION:04d}')")
        mark(begun, SCHEMA_VERSION)


def mark(connection: Connection, version: int) -> None:
    """Note the number of the newest migration where every transaction looks, and that the database is ours."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA user_version = {version}")
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")


def run(connection: sqlite3.Connection) -> None:
    """Run the migrations that a database lacks, in one transaction. The caller holds the lock."""
    from alembic import command  # heavy: only an older database needs it
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(_ini())
    try:
        with _engine(connection).begin() as begun:
            config.attributes["connection"] = begun
            command.upgrade(config, "head")
    except CommandError as exc:
        raise StoreError(f"the database can't be upgraded: {exc}") from exc
    except DBAPIError as exc:
        raise exc.orig or exc from exc


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
