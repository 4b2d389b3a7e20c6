"""What ``kr db`` does: the database's place, upgrade, soundness and backups (SPEC 6.5)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kr.store import backup
from kr.store import entries as entry_rows
from kr.store.engine import Store
from kr.store.sqlite import SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Databases:
    """The operations on one database. Each raises a ``StoreError`` that names it."""

    store: Store
    folder: Path
    clock: Callable[[], datetime]

    def path(self) -> dict[str, Any]:
        return {"path": str(self.store.path.absolute()), "exists": self.store.exists()}

    def upgrade(self) -> dict[str, Any]:
        """Bring the database to this kr's schema; an older one is backed up first, an absent one is made."""
        path = self.store.path
        before, copies = backup.inspect(path), backup.upgrade_copies(path)
        if before.state != "current":  # one that is may well be write-protected
            with self.store.write() as tx:
                entry_rows.count(tx)
        made = [copy for copy in backup.upgrade_copies(path) if copy not in copies]
        return {
            "path": str(self.store.path),
            "upgraded": before.state != "current",
            "from_version": before.version,
            "to_version": SCHEMA_VERSION,
            "backup": str(made[0]) if made else None,
        }

    def check(self) -> dict[str, Any]:
        """Examine the database; ``sound`` says that nothing is wrong, as where none was made yet."""
        from kr.maintenance.doctor import remains

        place, found = str(self.store.path), backup.inspect(self.store.path)
        problems = [found.message] if found.message else []
        if found.state == "absent" and (left := remains(self.folder)):
            problems = [
                f"there is no database, but there are {left}; `kr doctor --repair` makes one from them"
            ]
        elif found.state in {"current", "older"}:
            problems = backup.check(self.store.path)
        return {
            "path": place,
            "sound": not problems,
            "state": found.state,
            "schema_version": found.version,
            "expected_version": SCHEMA_VERSION,
            "problems": problems,
        }

    def backup(self, target: Path | None) -> dict[str, Any]:
        """Copy the database while others write: to a new file, or one with the time in its name beside it."""
        made = backup.backup(self.store.path, target, self._moment())
        return {"path": str(self.store.path), "backup": str(made), "bytes": made.stat().st_size}

    def restore(self, source: Path) -> dict[str, Any]:
        """Put a checked backup in the database's place; the present one is kept beside it."""
        kept = backup.restore(self.store.path, source, self._moment())
        with self.store.read() as tx:
            entries = entry_rows.count(tx)
        return {
            "path": str(self.store.path),
            "restored": str(source),
            "kept": str(kept) if kept else None,
            "entries": entries,
        }

    def _moment(self) -> str:
        return f"{self.clock():%Y%m%dT%H%M%SZ}"
