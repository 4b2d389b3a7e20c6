"""``kr init``: writes the configuration that fits the project, and makes an empty knowledge base. Nothing is overwritten."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kr.errors import ConfigError
from kr.naming import sha256_of
from kr.research.persona import chosen_persona, fitting_persona
from kr.settings import Settings
from kr.settings.model import render_config
from kr.settings.trust import trust
from kr.store.store import Store

CONFIG = "kr.yaml"
NEXT = ('kr research click "How do I ask for a password without showing it?"', "kr warm", "kr doctor")
"""What to try after the first time."""


def initialize(settings: Settings, store: Store, *, environ: Mapping[str, str]) -> dict[str, Any]:
    """Make what is missing: ``{files: [{path, state}], hints, next}``. Raises ``ConfigError`` or a ``StoreError``."""
    home = Path(environ.get("HOME") or "/nonexistent")
    persona = fitting_persona(settings.project_root, home)
    hints: list[str] = []
    if settings.config_file is None:
        config = settings.project_root / CONFIG
        is_new = _write_config(config, settings, persona)
        if is_new:
            trust(config, sha256_of(config.read_bytes()), environ)
    else:
        config, is_new = settings.config_file, False
        _, problem = chosen_persona(settings, home)
        if problem is not None:
            hints.append(
                f"{config}: no persona was found for role_mapping.knowledge_researcher_persona. Add:\n"
                f"  role_mapping:\n    knowledge_researcher_persona: {persona}"
            )
    had_database = store.exists()
    with store.write() as unit:
        unit.entries.count()
    files = [(str(config), is_new), (store.place, not had_database)]
    return {
        "files": [{"path": path, "state": "created" if made else "exists"} for path, made in files],
        "hints": [*hints, _what_to_commit(settings)],
        "next": list(NEXT),
    }


def _what_to_commit(settings: Settings) -> str:
    base, root = settings.knowledge_base, settings.project_root
    if not base.is_relative_to(root):
        return f"Commit {CONFIG}. The knowledge base lies outside of the project."
    folder = base.relative_to(root).as_posix()
    return (
        f"Commit {CONFIG} and {folder}/,\nso that reports and lessons go with the project, without the database, which is\n"
        f"made again from index.yaml. Lines for .gitignore:\n"
        f"  {folder}/kr.db*\n  {folder}/kr-*.db\n  {folder}/**/*.lock\n  {folder}/.kr-settings/"
    )


def _write_config(path: Path, settings: Settings, persona: str) -> bool:
    """Write the configuration; False where somebody else has just written it. Raises ``ConfigError``."""
    default = settings.project_root / "_bmad-output" / "knowledge-base"
    base = settings.knowledge_base
    # Teams commit the file: what lies within the project is named from there.
    named = base.relative_to(settings.project_root) if base.is_relative_to(settings.project_root) else base
    text = render_config(persona=persona, knowledge_base_path=None if base == default else str(named))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as exc:
        if path.is_file():
            return False
        raise ConfigError(f"{path}: exists and is not a file; move it away and run kr init again") from exc
    except OSError as exc:
        raise ConfigError(f"{path}: can't be written: {exc.strerror}") from exc
    return True
