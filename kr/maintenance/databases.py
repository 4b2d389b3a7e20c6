"""What ``kr init`` and ``kr db`` do: an empty knowledge base; its database's place, upgrade, soundness and backups (SPEC 6.5)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kr.errors import ConfigError
from kr.naming import sha256_of
from kr.settings import Settings
from kr.settings.trust import trust
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


CONFIG = "kr.yaml"

NEXT = (
    'kr research click "How do I ask for a password without showing it?"',
    "kr warm",
    "kr doctor",
)
"""What to try after the first time."""


State = Literal["created", "exists"]
"""Whether a file was made now, or stood there before."""


def initialize(settings: Settings, store: Store, *, environ: Mapping[str, str]) -> dict[str, Any]:
    """Make what is missing: ``{files: [{path, state}], hints, next}``. Raises ``ConfigError`` or a ``StoreError``."""
    from kr.research.persona import chosen_persona, fitting_persona

    home = Path(environ.get("HOME") or "/nonexistent")
    persona = fitting_persona(settings.project_root, home)
    hints: list[str] = []
    if settings.config_file is None:
        config = settings.project_root / CONFIG
        state = _write_config(config, settings, persona)
        if state == "created":
            trust(config, sha256_of(config.read_bytes()), environ)
    else:
        config, state = settings.config_file, "exists"
        _, problem = chosen_persona(settings, home)
        if problem is not None:
            hints.append(
                f"{settings.config_file}: no persona was found for role_mapping.knowledge_researcher_persona. Add:\n"
                f"  role_mapping:\n    knowledge_researcher_persona: {persona}"
            )
    existed = store.exists()
    with store.write() as tx:
        entry_rows.count(tx)
    files = [
        {"path": str(config), "state": state},
        {"path": str(store.path), "state": "exists" if existed else "created"},
    ]
    hints.append(_versioned(settings))
    return {"files": files, "hints": hints, "next": list(NEXT)}


def _versioned(settings: Settings) -> str:
    """Say what a team keeps under version control (SPEC 6.5): what is text, not the database."""
    base, root = settings.knowledge_base, settings.project_root
    folder = base.relative_to(root).as_posix() if base.is_relative_to(root) else None
    if folder is None:
        return f"Commit {CONFIG}. The knowledge base lies outside of the project."
    return (
        f"Commit {CONFIG} and {folder}/,\nso that reports and lessons go with the project, without the database, which is\n"
        f"made again from index.yaml. Lines for .gitignore:\n"
        f"  {folder}/kr.db*\n  {folder}/kr-*.db\n  {folder}/**/*.lock\n  {folder}/.kr-settings/"
    )


def _write_config(path: Path, settings: Settings, persona: str) -> State:
    from kr.settings.model import render_config

    default = settings.project_root / "_bmad-output" / "knowledge-base"
    base = settings.knowledge_base
    # Teams commit the file: what lies within the project is named from there.
    named = base.relative_to(settings.project_root) if base.is_relative_to(settings.project_root) else base
    chosen = None if base == default else str(named)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(render_config(persona=persona, knowledge_base_path=chosen))
    except FileExistsError:
        if path.is_file():  # somebody else has just written it
            return "exists"
        raise ConfigError(f"{path}: exists and is not a file; move it away and run kr init again") from None
    except OSError as error:
        raise ConfigError(f"{path}: can't be written: {error.strerror}") from error
    return "created"
