"""A database as an older kr left it."""

from pathlib import Path

from alembic import command
from alembic.config import Config

from kr.store.database import Database
from tests.support.stores import ROOT, insert_entry


def make_older(path: Path, *, topic: str = "one", version: int = 1) -> None:
    """Make a database at an older migration, with one entry, in place of what is there."""
    for found in path.parent.glob(f"{path.name}*"):
        if not found.name.endswith(".lock") and ".bak" not in found.name:
            found.unlink()
    config = Config(ROOT / "alembic.ini")
    with Database(path) as database, database.migrating() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, f"{version:04}")
    insert_entry(path, f"click-{topic}", topic=topic)
