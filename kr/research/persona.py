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

import yaml

from kr.settings import Settings
from kr.text import one_line, strip_invisible

logger = logging.getLogger(__name__)

DEFAULT_PERSONA = "bmad:bmm:agents:architect"
LEAN = "lean"
"""The id of the built-in persona."""
LOAD_FAILED = "persona_load_failed: using lean persona"

_MAX_CHARS = 262_144
_MAX_TEXT = 2000
_MAX_PRINCIPLES = 20
_BMAD_ID = re.compile(r"bmad:([a-z0-9][a-z0-9-]{0,63}):agents:([a-z0-9][a-z0-9-]{0,63})", re.IGNORECASE)
_SKILLS = (".claude/skills", ".agents/skills", ".agent/skills")
_OLDER = ("_bmad", ".bmad", "bmad")
_FRONT_MATTER = re.compile(r"\A\s*---[ \t]*\n(.{0,16384}?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_AGENT = re.compile(r"<agent\b([^<>]{0,4096})>")
_ATTRIBUTE = re.compile(r"""\b(name|title)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_SECTION = re.compile(r"^#{1,3}[ \t]([^\n]{1,80})$", re.MULTILINE)
_PRINCIPLE_MARKS = re.compile(r"\s*\n\s*(?:[-*•]|\d+[.)])?\s*|\s*\|\s*|(?<=[.!?;])\s+[-*•]\s+|\A\s*[-*•]\s+")
_TEXTS = ("title", "role", "identity", "communication_style")
_ELEMENTS = ("role", "identity", "communication_style", "principles")


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """Who judges. ``source`` names the file it was read from, or ``built-in``. All texts are single lines."""

    name: str
    title: str = ""
    role: str = ""
    identity: str = ""
    communication_style: str = ""
    principles: tuple[str, ...] = ()
    source: str = "built-in"


LEAN_PERSONA = Persona(
    name=LEAN,
    title="Technical researcher",
    role="Researches frameworks for other agents and reports what the sources say",
    identity="Careful with versions, short in words, and honest about what was not found",
    communication_style="Plain and factual; facts first, then their source",
    principles=(
        "The official documentation of the version in use goes before any other source",
        "Every statement names its source",
        "Confidence says what was verified and what was only found once",
        "A gap is told as a gap, never filled with a guess",
        "Working code goes before description",
    ),
)


def chosen_persona(settings: Settings, home: Path) -> tuple[Persona, str | None]:
    """Load the persona of the settings. One that nobody chose is missed only where a configured project has BMAD."""
    root = settings.project_root
    persona, note = load_persona(settings.role_mapping.knowledge_researcher_persona, root, home)
    has_bmad = settings.config_file is not None and any((root / folder).is_dir() for folder in _OLDER)
    return persona, note if settings.names_persona or has_bmad else None


def fitting_persona(project_root: Path, home: Path) -> str:
    """Return the id that ``kr init`` should write: BMAD's architect where it can be read, else ``lean``."""
    _, note = load_persona(DEFAULT_PERSONA, project_root, home)
    return LEAN if note else DEFAULT_PERSONA


def load_persona(persona_id: str | None, project_root: Path, home: Path) -> tuple[Persona, str | None]:
    """Return the persona of ``bmad:<module>:agents:<name>``, a file in the project or ``lean``, else the lean one with a note."""
    wanted = (persona_id or LEAN).strip()
    if wanted.casefold() in {"", LEAN}:
        return LEAN_PERSONA, None
    for path in _candidates(wanted, project_root, home):
        text = _read(path) or ""
        if persona := parse_persona(text, _customizations(path, project_root), str(path)):
            return persona, None
    return LEAN_PERSONA, LOAD_FAILED


def _candidates(wanted: str, project_root: Path, home: Path) -> Iterator[Path]:
    """Name the files to look at, those of the newest BMAD first (6.11 back to the alphas)."""
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


def _customizations(path: Path, project_root: Path) -> Iterator[dict[str, Any]]:
    """Give the ``[agent]`` tables of a skill's customizations, the weakest first; a broken one is passed over with a warning."""
    custom = project_root / "_bmad" / "custom"
    skill = path.parent.name
    files = (path.parent / "customize.toml", custom / f"{skill}.toml", custom / f"{skill}.user.toml")
    for file in files if path.name == "SKILL.md" else ():
        if not file.exists():
            continue
        text = _read(file)
        try:
            agent = tomllib.loads(text or "").get("agent")
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            logger.warning("%s was passed over: it is not valid TOML: %s", file, error)
            continue
        if text is None:
            logger.warning("%s was passed over: it can't be read as a text file", file)
        if isinstance(agent, dict):
            yield agent


def parse_persona(text: str, customizations: Iterable[Mapping[str, Any]], source: str) -> Persona | None:
    """Read a persona's file: an ``<agent>`` with a ``<persona>`` (BMAD 6.0 to 6.2.0), or a skill with its sections (6.2.1 on).

    Of the customizations scalars replace and arrays append. None where the file has no persona.
    """
    text = strip_invisible(text[:_MAX_CHARS])
    agent = _AGENT.search(text)
    attributes = {name: one or other for name, one, other in _ATTRIBUTE.findall(agent[1] if agent else "")}
    fields: dict[str, Any] = {**_front_matter(text), **_sections(text), **attributes, **_elements(text)}
    # Lists of the skill's own text are replaced, lists of customizations grow.
    merged: dict[str, Any] = {}
    for customization in customizations:
        for key, value in customization.items():
            held = merged.get(key)
            merged[key] = [*held, *value] if isinstance(held, list) and isinstance(value, list) else value
    return _persona({**fields, **merged}, source)


def _persona(fields: Mapping[str, Any], source: str) -> Persona | None:
    name = _line(fields.get("name"))
    principles = _principles(fields.get("principles"))
    texts = {key: _line(fields.get(key)) for key in _TEXTS}
    if not name or not (principles or texts["role"] or texts["identity"]):
        return None
    return Persona(name=name, principles=principles, source=source, **texts)


def _line(value: object) -> str:
    if isinstance(value, list):
        value = " ".join(item for item in value if isinstance(item, str))
    return one_line(value, _MAX_TEXT) if isinstance(value, str) else ""


def _principles(value: object) -> tuple[str, ...]:
    items = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
    parts = (part for item in items for part in _PRINCIPLE_MARKS.split(re.sub(r"[ \t]+", " ", item)))
    lines = (one_line(part, _MAX_TEXT) for part in parts)
    return tuple(dict.fromkeys(line for line in lines if line))[:_MAX_PRINCIPLES]


def _front_matter(text: str) -> dict[str, Any]:
    found = _FRONT_MATTER.match(text)
    try:
        data = yaml.safe_load(found[1]) if found else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return {key: data[key] for key in ("name", "title") if key in data} if isinstance(data, dict) else {}


def _sections(text: str) -> dict[str, str]:
    parts = _SECTION.split(text)
    found = {
        heading.strip(" \t#").casefold().replace(" ", "_"): body.strip()
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {key: body for key, body in found.items() if key in _ELEMENTS and body}


def _elements(text: str) -> dict[str, str]:
    """Read the elements of ``<persona>``. Not as XML: a bare ``&`` or ``<tool>`` in the prose is common."""
    persona = _between(text, "persona")
    found = {name: _between(persona, name) for name in _ELEMENTS}
    return {name: re.sub(r"<[^<>]*>", "\n", body) for name, body in found.items() if body.strip()}


def _between(text: str, name: str) -> str:
    """Return what stands in an element; empty where one of its tags is missing."""
    inner, end, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return inner if end else ""


def _read(path: Path) -> str | None:
    """Return the text of a regular file, at most 256 KiB of it; ``None`` where it can't be read as UTF-8."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(_MAX_CHARS).decode("utf-8-sig")
    except (OSError, ValueError):
        return None
