"""First use and upgrade. Alembic is imported here, late: an up-to-date database never pays for it."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import sqlalchemy as sa

from kr.errors import StoreError

ReadReport = Callable[[str], bytes | None]


def run(connection: sa.Connection, *, read_report: ReadReport | None = None) -> None:
    """Bring the database to the newest migration, in the transaction that ``connection`` is in.

    ``read_report`` gives the bytes of the report at a path: older databases left some to the files alone. The
    caller holds the database's lock, and commits.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(_ini())
    config.attributes["connection"] = connection
    config.attributes["read_report"] = read_report
    try:
        command.upgrade(config, "head")
    except CommandError as exc:
        raise StoreError(f"the database can't be upgraded: {exc}") from exc


def _ini() -> Path:
    """``alembic.ini`` with ``migrations/`` beside it: in the installed package, or at the root of the source."""
    package = Path(str(files("kr")))
    for folder in (package, package.parent):
        if (folder / "alembic.ini").is_file() and (folder / "migrations").is_dir():
            return folder / "alembic.ini"
    raise StoreError(f"kr is installed without its migrations (looked in {package} and {package.parent})")
