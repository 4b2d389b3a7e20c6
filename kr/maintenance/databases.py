"""``kr db``: where the database is, its upgrade, its soundness, its backups (SPEC 6.5)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kr.errors import StoreError
from kr.store.copies import backup, restore
from kr.store.soundness import examine, look
from kr.store.sqlite import SCHEMA_VERSION
from kr.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Databases:
    """The operations on one database. Each raises a ``StoreError`` that names the file."""

    store: Store
    clock: Callable[[], datetime]

    def path(self) -> dict[str, Any]:
        """Say where the database is, and whether it is there."""
        return {"path": str(self.store.path.absolute()), "exists": self.store.exists()}

    def upgrade(self) -> dict[str, Any]:
        """Bring the database to this kr's schema; an older one is backed up first, an absent one is made."""
        path = self.store.path
        before = look(path)
        copies = _copies(path)
        if before.state != "current":  # one that is may well be write-protected
            with self.store.write() as unit:
                unit.entries.count()
        made = sorted(_copies(path) - copies)
        return {
            "path": str(path),
            "upgraded": before.state != "current",
            "from_version": before.version,
            "to_version": SCHEMA_VERSION,
            "backup": str(made[0]) if made else None,
        }

    def check(self) -> dict[str, Any]:
        """Examine the database; ``sound`` says whether this kr can trust it."""
        path = self.store.path
        found = look(path)
        problems = [found.message] if found.message else []
        if found.state == "absent":
            problems = [
                f"{path}: there is no database; `kr init` makes one, `kr doctor --repair` rebuilds one"
            ]
        elif found.state in {"current", "older"}:
            problems = list(examine(path).problems)
        return {
            "path": str(path),
            "sound": not problems,
            "state": found.state,
            "schema_version": found.version,
            "expected_version": SCHEMA_VERSION,
            "problems": problems,
        }

    def backup(self, target: Path | None) -> dict[str, Any]:
        """Copy the database while others write: to a new file, or one with the time in its name beside it."""
        path = self.store.path
        if target is None or target.is_dir():
            target = self._free(path.parent if target is None else target, path)
        backup(path, target)
        return {"path": str(path), "backup": str(target), "bytes": target.stat().st_size}

    def restore(self, source: Path) -> dict[str, Any]:
        """Put a checked backup in the database's place; the present one is kept beside it."""
        path = self.store.path
        kept = restore(path, source, name=f"{self._moment()}")
        with self.store.read() as unit:
            entries = unit.entries.count()
        return {
            "path": str(path),
            "restored": str(source),
            "kept": str(kept) if kept else None,
            "entries": entries,
        }

    def prune(self, *, keep: int) -> dict[str, Any]:
        """Delete the copies beside the database but the ``keep`` newest: backups, those of upgrades and of restores."""
        path = self.store.path
        found = {*path.parent.glob(f"{path.name}.*.bak*"), *path.parent.glob(f"{path.stem}-*T*Z*.db")}
        copies = sorted(found, key=lambda copy: (copy.stat().st_mtime, copy.name), reverse=True)
        freed = sum(copy.stat().st_size for copy in copies[keep:])
        try:
            for copy in copies[keep:]:
                copy.unlink()
        except OSError as error:
            raise StoreError(f"{error.filename}: can't be deleted: {error.strerror}") from error
        return {
            "path": str(path),
            "kept": [str(copy) for copy in copies[:keep]],
            "deleted": [str(copy) for copy in copies[keep:]],
            "bytes": freed,
        }

    def _free(self, folder: Path, path: Path) -> Path:
        stem = f"{path.stem}-{self._moment()}"
        names = [f"{stem}.db", *(f"{stem}-{number}.db" for number in range(2, 100))]
        free = next((folder / name for name in names if not (folder / name).exists()), None)
        if free is None:
            raise StoreError(f"{folder}: no name for a backup is free; name a file")
        return free

    def _moment(self) -> str:
        return f"{self.clock():%Y%m%dT%H%M%SZ}"


def _copies(path: Path) -> set[Path]:
    return set(path.parent.glob(f"{path.name}.schema-*.bak*"))
