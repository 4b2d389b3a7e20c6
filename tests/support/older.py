"""A database as a kr from before the first release left it: of its tables, what tells them from another program's."""

import sqlite3
from contextlib import closing
from pathlib import Path


def make_unreleased(path: Path, *, version: int = 11) -> None:
    """Make such a database, with one entry."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = (
        "id TEXT PRIMARY KEY, framework TEXT, framework_version TEXT, topic TEXT, tags TEXT, path TEXT, "
        "created TEXT, last_accessed TEXT, status TEXT, confidence TEXT, sha256 TEXT"
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for table in ("entries", "archived_entries"):
            connection.execute(f"CREATE TABLE {table} ({columns})")
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (f"{version:04}",))
        connection.execute(f"PRAGMA user_version = {version}")
        row = (
            "click-one",
            "click",
            "8.2",
            "one",
            "[]",
            "frameworks/click/one.md",
            "2026-09-01",
            "2026-09-30",
        )
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'fresh', 'high', NULL)", row)
