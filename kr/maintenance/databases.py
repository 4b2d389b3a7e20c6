"""What ``kr db`` does: the database's place, upgrade, soundness and backups (SPEC 6.5)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kr.store.sqlite import SCHEMA_VERSION
from kr.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Databases:
    """The operations on one database. Each raises a ``StoreError`` that names it."""

    store: Store
    folder: Path
    clock: Callable[[], datetime]

    def path(self) -> dict[str, Any]:
        return {"path": str(Path(self.store.place).absolute()), "exists": self.store.exists()}

    def upgrade(self) -> dict[str, Any]:
        """Bring the database to this kr's schema; an older one is backed up first, an absent one is made."""
        care = self.store.care
        before, copies = care.look(), care.upgrade_copies()
        if before.state != "current":  # one that is may well be write-protected
            with self.store.write() as unit:
                unit.entries.count()
        made = [copy for copy in care.upgrade_copies() if copy not in copies]
        return {
            "path": self.store.place,
            "upgraded": before.state != "current",
            "from_version": before.version,
            "to_version": SCHEMA_VERSION,
            "backup": str(made[0]) if made else None,
        }

    def check(self) -> dict[str, Any]:
        """Examine the database; ``sound`` says that nothing is wrong, as where none was made yet."""
        from kr.maintenance.doctor import remains

        place, found = self.store.place, self.store.care.look()
        problems = [found.message] if found.message else []
        if found.state == "absent" and (left := remains(self.folder)):
            problems = [
                f"there is no database, but there are {left}; `kr doctor --repair` makes one from them"
            ]
        elif found.state in {"current", "older"}:
            problems = list(self.store.care.examine().problems)
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
        made = self.store.care.backup(target, self._moment())
        return {"path": self.store.place, "backup": str(made), "bytes": made.stat().st_size}

    def restore(self, source: Path) -> dict[str, Any]:
        """Put a checked backup in the database's place; the present one is kept beside it."""
        kept = self.store.care.restore(source, self._moment())
        with self.store.read() as unit:
            entries = unit.entries.count()
        return {
            "path": self.store.place,
            "restored": str(source),
            "kept": str(kept) if kept else None,
            "entries": entries,
        }

    def _moment(self) -> str:
        return f"{self.clock():%Y%m%dT%H%M%SZ}"
