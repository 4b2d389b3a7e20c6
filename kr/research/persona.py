"""Finds and reads persona files (SPEC 3.6; seed 000, step 4).

Headless: files are read, nothing is run, greeted or asked.
"""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kr.reports.persona import LEAN_PERSONA, MAX_CHARS, Persona, parse_agent, parse_skill

if TYPE_CHECKING:
    from kr.settings import Settings

logger = logging.getLogger(__name__)

DEFAULT_PERSONA = "bmad:bmm:agents:architect"
LEAN = "lean"
"""The id of the built-in persona, which ``kr init`` writes on a machine without BMAD."""
LOAD_FAILED = "persona_load_failed: using lean persona"

_BMAD_ID = re.compile(r"bmad:([a-z0-9][a-z0-9-]{0,63}):agents:([a-z0-9][a-z0-9-]{0,63})", re.IGNORECASE)
_SKILLS = (".claude/skills", ".agents/skills", ".agent/skills")
_OLDER = ("_bmad", ".bmad", "bmad")


def load_persona(persona_id: str | None, project_root: Path, home: Path) -> tuple[Persona, str | None]:
    """Return the persona of ``bmad:<module>:agents:<name>``, a file in the project or ``lean``, else the lean one with a note."""
    wanted = (persona_id or LEAN).strip()
    if wanted.casefold() in {"", LEAN}:
        return LEAN_PERSONA, None
    for path in _candidates(wanted, project_root, home):
        persona = _read_persona(path, project_root)
        if persona:
            return persona, None
    return LEAN_PERSONA, LOAD_FAILED


def chosen_persona(settings: "Settings", home: Path) -> tuple[Persona, str | None]:
    """Load the persona of the settings. One that nobody chose is missed only where a configured project has BMAD."""
    root, details = settings.project_root, settings.details
    persona, note = load_persona(details.role_mapping.knowledge_researcher_persona, root, home)
    has_bmad = details.config_file is not None and any((root / folder).is_dir() for folder in _OLDER)
    return persona, note if details.names_persona or has_bmad else None


def fitting_persona(project_root: Path, home: Path) -> str:
    """Return the id that ``kr init`` should write: BMAD's architect where it can be read, else ``lean``."""
    _, note = load_persona(DEFAULT_PERSONA, project_root, home)
    return LEAN if note else DEFAULT_PERSONA


def _candidates(wanted: str, project_root: Path, home: Path) -> Iterator[Path]:
    """Name the files to look at, those of the newest BMAD first (facts: BMAD 6.11 back to the alphas)."""
    found = _BMAD_ID.fullmatch(wanted)
    if found:
        module, name = found[1].lower(), found[2].lower()
        for base in (*(project_root / folder for folder in _SKILLS), home / _SKILLS[0]):
            yield base / f"bmad-agent-{name}" / "SKILL.md"
        for folder in _OLDER:
            yield project_root / folder / module / "agents" / f"{name}.md"
        return
    try:
        path = (project_root / wanted).resolve()
        if path.is_relative_to(project_root.resolve()):
            yield path
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links, a name that is too long
        return


def _read_persona(path: Path, project_root: Path) -> Persona | None:
    text = _read(path)
    if text is None:
        return None
    source = str(path)
    if path.name != "SKILL.md":
        agent = parse_agent(text, source)
        if agent:
            return agent
    skill = path.parent.name
    custom = project_root / "_bmad" / "custom"
    files = [path.parent / "customize.toml", custom / f"{skill}.toml", custom / f"{skill}.user.toml"]
    return parse_skill(text, [found for file in files if (found := _read_toml(file)) is not None], source)


def _read_toml(path: Path) -> str | None:
    """Return the text of a customization; what is there and no TOML is passed over with a warning."""
    import tomllib

    text = _read(path)
    try:
        if text is not None:
            tomllib.loads(text)
            return text
        problem = "can't be read as a text file" if os.path.lexists(path) else None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problem = f"is not valid TOML: {error}"
    if problem is not None:
        logger.warning("%s was passed over: it %s", path, problem)
    return None


def _read(path: Path) -> str | None:
    """Return the text of a regular file of a sensible size, else ``None``."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(MAX_CHARS).decode("utf-8-sig")
    except (OSError, ValueError):  # unreadable, or no UTF-8
        return None
