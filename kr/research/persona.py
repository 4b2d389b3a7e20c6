"""The persona under which research is judged: found, and read from BMAD's two formats (F1, step 4).

Headless: files are read, nothing is run, greeted or asked. Persona files are hand-written; one with something wrong in it
is a file without a persona, never an error.
"""

import logging
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kr.settings import Settings
from kr.text import one_line, strip_invisible

logger = logging.getLogger(__name__)

LEAN = "lean"
"""The id of the built-in persona."""
LOAD_FAILED = "persona_load_failed: using lean persona"

_MAX_CHARS = 262_144
_MAX_TEXT = 2000
_BMAD_ID = re.compile(r"bmad:([a-z0-9][a-z0-9-]{0,63}):agents:([a-z0-9][a-z0-9-]{0,63})", re.IGNORECASE)
_SKILLS = (".claude/skills", ".agents/skills", ".agent/skills")
_SKILL = "SKILL.md"
_OLDER = ("_bmad", ".bmad", "bmad")
_AGENT_NAME = re.compile(r"""<agent\b[^<>]{0,4096}?\bname\s*=\s*["']([^"']*)["']""")
_SECTION = re.compile(r"^#{1,3}[ \t]([^\n]{1,80})$", re.MULTILINE)
_TRAITS = ("role", "identity", "communication_style", "principles")


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """Who judges; ``traits`` are lines such as ``role: Architect``."""

    name: str
    traits: tuple[str, ...]


LEAN_PERSONA = Persona(
    name=LEAN,
    traits=(
        "role: researches frameworks for other agents and reports what the sources say",
        "principles: every statement names its source; a gap is told as a gap, never filled with a guess",
    ),
)


def chosen_persona(settings: Settings, home: Path) -> tuple[Persona, str | None]:
    """Load the persona of the settings. One that nobody chose is missed only where a configured project has BMAD."""
    root = settings.project_root
    persona, note = load_persona(settings.role_mapping.knowledge_researcher_persona, root, home)
    has_bmad = settings.config_file is not None and any((root / folder).is_dir() for folder in _OLDER)
    return persona, note if settings.names_persona or has_bmad else None


def load_persona(persona_id: str, project_root: Path, home: Path) -> tuple[Persona, str | None]:
    """Return the persona of ``bmad:<module>:agents:<name>``, a file in the project or ``lean``, else the lean one with a note."""
    if persona_id.strip().casefold() == LEAN:
        return LEAN_PERSONA, None
    for path in _candidates(persona_id.strip(), project_root, home):
        name = path.parent.name if path.name == _SKILL else path.stem
        if persona := parse_persona(_read(path), _customizations(path, project_root), name):
            return persona, None
    return LEAN_PERSONA, LOAD_FAILED


def _candidates(wanted: str, project_root: Path, home: Path) -> Iterator[Path]:
    """Name the files to look at, those of the newest BMAD first (6.11 back to the alphas)."""
    found = _BMAD_ID.fullmatch(wanted)
    if found:
        module, name = found[1].lower(), found[2].lower()
        for base in (*(project_root / folder for folder in _SKILLS), home / _SKILLS[0]):
            yield base / f"bmad-agent-{name}" / _SKILL
        for folder in _OLDER:
            yield project_root / folder / module / "agents" / f"{name}.md"
        return
    try:
        path = (project_root / wanted).resolve()
        if path.is_relative_to(project_root.resolve()):
            yield path
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links, a name that is too long
        return


def _customizations(path: Path, project_root: Path) -> Iterator[dict[str, Any]]:
    """Give the ``[agent]`` tables of a skill's customizations, the weakest first; a broken one is passed over with a warning."""
    custom = project_root / "_bmad" / "custom"
    skill = path.parent.name
    files = (path.parent / "customize.toml", custom / f"{skill}.toml", custom / f"{skill}.user.toml")
    for file in files if path.name == _SKILL else ():
        try:
            agent = tomllib.loads(_read(file)).get("agent")
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            logger.warning("%s was passed over: it is not valid TOML: %s", file, error)
            continue
        if isinstance(agent, dict):
            yield agent


def parse_persona(text: str, customizations: Iterable[Mapping[str, Any]], name: str) -> Persona | None:
    """Read a persona's file: an ``<agent>`` with a ``<persona>`` (BMAD 6.0 to 6.2.0), or a skill with its sections (6.2.1 on).

    Of the customizations scalars replace and arrays append. ``name`` is for one without its own. None where the file has no persona.
    """
    text = strip_invisible(text)
    merged: dict[str, Any] = {}
    for customization in customizations:
        for key, value in customization.items():
            held = merged.get(key)
            merged[key] = [*held, *value] if isinstance(held, list) and isinstance(value, list) else value
    named = _AGENT_NAME.search(text)
    own = {**_sections(text), **_elements(text), "name": named[1] if named else name}
    fields = {key: _line(value) for key, value in {**own, **merged}.items() if key in {"name", *_TRAITS}}
    traits = tuple(f"{key}: {fields[key]}" for key in _TRAITS if fields.get(key))
    return Persona(name=fields["name"] or name, traits=traits) if traits else None


def _line(value: object) -> str:
    """Return a text, or the texts of a list, as one line."""
    texts = value if isinstance(value, list) else [value]
    return one_line(" ".join(text for text in texts if isinstance(text, str)), _MAX_TEXT)


def _sections(text: str) -> dict[str, str]:
    parts = _SECTION.split(text)
    names = (heading.strip(" \t#").casefold().replace(" ", "_") for heading in parts[1::2])
    return dict(zip(names, parts[2::2], strict=True))


def _elements(text: str) -> dict[str, str]:
    """Read the elements of ``<persona>``. Not as XML: a bare ``&`` or ``<tool>`` in the prose is common."""
    persona = _between(text, "persona")
    found = {name: _between(persona, name) for name in _TRAITS}
    return {name: re.sub(r"<[^<>]*>", " ", body) for name, body in found.items() if body.strip()}


def _between(text: str, name: str) -> str:
    """Return what stands in an element; empty where one of its tags is missing."""
    inner, end, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return inner if end else ""


def _read(path: Path) -> str:
    """Return the text of a regular file, at most 256 KiB of it; empty where it can't be read as UTF-8."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_MAX_CHARS).decode("utf-8-sig")
    except (OSError, ValueError):
        return ""
