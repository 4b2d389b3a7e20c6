"""What ``kr init`` does: a configuration that fits the machine, and an empty knowledge base (SPEC 3.6, 6.5)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from kr.errors import ConfigError
from kr.research.persona import fitting_persona, load_persona
from kr.settings import Settings
from kr.settings.template import render_config
from kr.store.store import Store

CONFIG = "kr.yaml"

NEXT = (
    'kr research click "How do I ask for a password without showing it?"',
    "kr warm",
    "kr doctor",
)
"""What to try after the first time."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A file or folder, and whether it was made now or stood there before."""

    path: str
    state: Literal["created", "exists"]


def initialize(settings: Settings, store: Store, *, environ: Mapping[str, str]) -> dict[str, Any]:
    """Make what is missing; never overwrite. ``{files: [{path, state}], hints: [text], next: [command]}``.

    Raises ``ConfigError`` where the configuration can't be written, or a ``StoreError``.
    """
    home = Path(environ.get("HOME") or "/nonexistent")
    persona = fitting_persona(settings.project_root, home)
    files: list[Touched] = []
    hints: list[str] = []
    if settings.config_file is None:
        files.append(_write_config(settings.project_root / CONFIG, settings, persona))
    else:
        files.append(Touched(str(settings.config_file), "exists"))
        _, problem = load_persona(
            settings.role_mapping.knowledge_researcher_persona, settings.project_root, home
        )
        if problem is not None:
            hints.append(
                f"{settings.config_file}: no persona was found for role_mapping.knowledge_researcher_persona. Add:\n"
                f"  role_mapping:\n    knowledge_researcher_persona: {persona}"
            )
    existed = store.exists()
    with store.write() as unit:
        unit.entries.count()
    files.append(Touched(store.place, "exists" if existed else "created"))
    hints.append(_versioned(settings))
    return {"files": [asdict(item) for item in files], "hints": hints, "next": list(NEXT)}


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


def _write_config(path: Path, settings: Settings, persona: str) -> Touched:
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
            return Touched(str(path), "exists")
        raise ConfigError(f"{path}: exists and is not a file; move it away and run kr init again") from None
    except OSError as error:
        raise ConfigError(f"{path}: can't be written: {error.strerror}") from error
    return Touched(str(path), "created")
