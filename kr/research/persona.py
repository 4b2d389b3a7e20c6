"""The persona under which research is judged: found, and read from BMAD's two formats (SPEC 3.6; seed 000, step 4).

Headless: files are read, nothing is run, greeted or asked. Persona files are hand-written; one with something wrong is a file without a
persona, never an error.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kr.text.characters import one_line, strip_invisible

if TYPE_CHECKING:
    from kr.settings import Settings

logger = logging.getLogger(__name__)

MAX_CHARS = 262_144
"""Of one persona file."""

_MAX_TEXT = 2000
_MAX_PRINCIPLES = 20
_FRONT_MATTER = re.compile(r"\A\s*---[ \t]*\n(.{0,16384}?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_AGENT = re.compile(r"<agent\b([^<>]{0,4096})>")
_ATTRIBUTE = re.compile(r"""\b(name|title)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_PRINCIPLE_MARKS = re.compile(r"\s*\n\s*(?:[-*•]|\d+[.)])?\s*|\s*\|\s*|(?<=[.!?;])\s+[-*•]\s+|\A\s*[-*•]\s+")
_SECTION = re.compile(r"^#{1,3}[ \t]([^\n]{1,80})$", re.MULTILINE)
_BLANKS = re.compile(r"[ \t]+")
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
    name="lean",
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


def parse_agent(text: str, source: str) -> Persona | None:
    """Read the older format: Markdown that holds an ``<agent>`` with a ``<persona>`` (BMAD 6.0 to 6.2.0)."""
    text = strip_invisible(text[:MAX_CHARS])
    fields = _persona_fields(_between(text, "<persona", "</persona>"))
    if fields is None:
        return None
    agent = _AGENT.search(text)
    attributes = {name: one or other for name, one, other in _ATTRIBUTE.findall(agent[1])} if agent else {}
    return _persona({**_front_matter(text), **attributes, **fields}, source)


def parse_skill(text: str, customizations: Iterable[str], source: str) -> Persona | None:
    """Read the newer format: ``SKILL.md`` with ``customize.toml`` and its overrides, the weakest first.

    Of ``[agent]``, scalars replace and arrays append. A customization that is not valid TOML is left out. Without any,
    the sections of ``SKILL.md`` itself speak (BMAD 6.2.1 to 6.3).
    """
    text = strip_invisible(text[:MAX_CHARS])
    merged: dict[str, Any] = {}
    for customization in customizations:
        merged = _merge(merged, _agent_table(customization[:MAX_CHARS]))
    return _persona({**_front_matter(text), **_sections(text), **merged}, source)


def _persona(fields: Mapping[str, Any], source: str) -> Persona | None:
    name = _line(fields.get("name"))
    principles = _principles(fields.get("principles"))
    texts = {key: _line(fields.get(key)) for key in ("title", "role", "identity", "communication_style")}
    if not name or not (principles or texts["role"] or texts["identity"]):
        return None
    return Persona(name=name, principles=principles, source=source, **texts)


def _line(value: object) -> str:
    if isinstance(value, list):
        value = " ".join(item for item in value if isinstance(item, str))
    return one_line(value, _MAX_TEXT) if isinstance(value, str) else ""


def _principles(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    texts = [
        part
        for item in items
        if isinstance(item, str)
        for part in _PRINCIPLE_MARKS.split(_BLANKS.sub(" ", item))
    ]
    lines = (one_line(text, _MAX_TEXT) for text in texts)
    return tuple(dict.fromkeys(line for line in lines if line))[:_MAX_PRINCIPLES]


def _between(text: str, opening: str, closing: str) -> str:
    """Return the first piece from ``opening`` to ``closing``, with both; empty when there is none."""
    start = text.find(opening)
    end = text.find(closing, start) if start >= 0 else -1
    return text[start : end + len(closing)] if end >= 0 else ""


def _persona_fields(xml: str) -> dict[str, Any] | None:
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root = fromstring(xml)
    except (ParseError, DefusedXmlException, ValueError):
        # Hand-written: a bare & or <tool> in the prose is common, and the known elements still read.
        found = {name: _between(xml, f"<{name}>", f"</{name}>") for name in _ELEMENTS}
        return {name: re.sub(r"<[^<>]*>", "\n", text) for name, text in found.items() if text} or None
    return {str(child.tag): "\n".join(child.itertext()) for child in root}


def _front_matter(text: str) -> dict[str, Any]:
    import yaml

    found = _FRONT_MATTER.match(text)
    try:
        data = yaml.safe_load(found[1]) if found else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return {key: data[key] for key in ("name", "title") if key in data} if isinstance(data, dict) else {}


def _sections(text: str) -> dict[str, Any]:
    parts = _SECTION.split(text)
    found: dict[str, Any] = {}
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        key = heading.strip(" \t#").casefold().replace(" ", "_")
        if key in _ELEMENTS and body.strip():
            found[key] = body.strip()
    return found


def _agent_table(text: str) -> dict[str, Any]:
    import tomllib

    try:
        agent = tomllib.loads(text).get("agent")
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    return agent if isinstance(agent, dict) else {}


def _merge(base: dict[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    # A persona's fields are scalars and arrays: tables below them need no merging.
    merged = dict(base)
    for key, value in override.items():
        held = merged.get(key)
        merged[key] = [*held, *value] if isinstance(held, list) and isinstance(value, list) else value
    return merged


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
    root = settings.project_root
    persona, note = load_persona(settings.role_mapping.knowledge_researcher_persona, root, home)
    has_bmad = settings.config_file is not None and any((root / folder).is_dir() for folder in _OLDER)
    return persona, note if settings.names_persona or has_bmad else None


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
