"""A database as an older kr left it."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from kr.store.database import migrate
from tests.support.stores import insert_entry


def make_older(path: Path, *, topic: str = "one", version: int = 1) -> None:
    """Make a database at an older migration, with one entry, in place of what is there."""
    for found in path.parent.glob(f"{path.name}*"):
        if not found.name.endswith(".lock") and ".bak" not in found.name:
            found.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, to=f"{version:04}")
    insert_entry(path, f"click-{topic}", topic=topic)


def fill_older(base: Path, number: int, *, edited: int) -> dict[str, str]:
    """Add entries to a database of before version 8, with reports; of some a person has changed the file since.

    Returns what the files say, by path.
    """
    written = {}
    with closing(sqlite3.connect(base / "kr.db")) as connection, connection:
        for at in range(number):
            text = f"# click - topic {at}\n\n{'words ' * 300}\n".encode()
            path = f"frameworks/click/topic-{at}.md"
            sha256 = hashlib.sha256(text).hexdigest()
            connection.execute("INSERT INTO report_texts (sha256, content) VALUES (?, ?)", (sha256, text))
            connection.execute(
                "INSERT INTO entries (id, framework, framework_version, topic, tags, path, created, last_accessed, "
                "status, confidence, sha256) VALUES (?, 'click', '8', ?, '[]', ?, '2026-09-01', '2026-09-30', "
                "'fresh', 'high', ?)",
                (f"click-topic-{at}", f"topic {at}", path, sha256),
            )
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            (base / path).write_bytes(text + (b"edited\n" if at < edited else b""))
            written[path] = (base / path).read_text()
    return written
