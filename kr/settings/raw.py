"""Gathers the configuration without validating it: file, overrides (``KR_*``, SPEC 7), variables, paths.

Everything here is cheap to import. What is wrong is collected with its place, so that one error can name all of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kr.settings import BMM_CONFIG, DEFAULT_KNOWLEDGE_BASE
from kr.settings.discovery import (
    MAIN_SECTION,
    Content,
    Found,
    UnreadableError,
    find_config,
    is_file,
    locate,
    parse,
    read_bytes,
    read_overrides,
    read_own,
)
from kr.settings.kinds import Problem
from kr.settings.trust import guarded, is_trusted, leave_out, merge, own_file
from kr.tree import KeyPath, Tree, show_path

if TYPE_CHECKING:
    from _typeshed import StrPath


_DEFAULT_OUTPUT = "_bmad-output"
_KNOWLEDGE_BASE = (MAIN_SECTION, "knowledge_base_path")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_-]+)\}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_DATABASE_URL = re.compile(r"(?:sqlite|postgresql)(?:\+\w+)?://")


@dataclass(slots=True, kw_only=True)
class RawSettings:
    """The configuration as text. ``variables`` maps a key's path to the environment variable that set it."""

    data: dict[str, Tree]
    found: Found
    knowledge_base: Path
    database_url: str | None = field(repr=False)
    variables: dict[KeyPath, str]
    problems: list[Problem]
    warnings: list[str]
    own_file: Path | None = None
    own: Content = field(default_factory=Content)
    """The user's own configuration, which lies below the project's (SPEC 7)."""
    left_out: list[str] = field(default_factory=list)

    def origin(self, path: KeyPath) -> str:
        """Say where a key got its value: a variable (of a key within it, too), or a line of the file, its own or an outer key's."""
        for length in range(len(path), 0, -1):
            here = path[:length]
            if here in self.variables:
                return self.variables[here]
            if here in self.found.content.lines:
                return f"{self.found.file}, line {self.found.content.lines[here]}"
            if here in self.own.lines:
                return f"{self.own_file}, line {self.own.lines[here]}"
            if length == len(path) and (within := self._variable_within(path)):
                return within
        return str(self.found.file or "the configuration")

    def _variable_within(self, path: KeyPath) -> str | None:
        return next((name for key, name in self.variables.items() if key[: len(path)] == path), None)

    def sentence(self, problem: Problem) -> str:
        return f"{self.origin(problem.path)}: {show_path(problem.path)} {problem.message}"


def read_raw(
    *,
    config: "StrPath | None",
    knowledge_base: "StrPath | None",
    environ: Mapping[str, str],
    cwd: "StrPath",
) -> RawSettings:
    """Read file and environment. Raises ``ConfigError`` when the file itself can't be read."""
    here = Path(cwd)
    named = None if knowledge_base is None else Path(knowledge_base)
    found = find_config(config=None if config is None else Path(config), environ=environ, cwd=here)
    raw = RawSettings(
        data=found.content.data,
        found=found,
        knowledge_base=Path(),
        # A base that is named holds its own database: with another's index its reports would seem lost.
        database_url=None if named is not None else environ.get("KR_DATABASE_URL", "").strip() or None,
        variables={},
        problems=[],
        warnings=[*found.warnings],
        own_file=own_file(environ),
    )
    raw.own = read_own(raw.own_file)
    _leave_out_untrusted(raw, environ)
    for path in found.content.doubles:
        raw.warnings.append(
            f"{raw.origin(path)}: {show_path(path)} is given more than once; the last one counts"
        )
    data = merge(raw.own.data, raw.data)
    raw.data = data if isinstance(data, dict) else {}
    _check_database_url(raw)
    _apply_overrides(raw, environ)
    raw.knowledge_base = _knowledge_base(raw, named, environ, here)
    return raw


def _leave_out_untrusted(raw: RawSettings, environ: Mapping[str, str]) -> None:
    """Leave out, and name, what needs a trust that the project's file has not (SPEC 7)."""
    found = raw.found
    if found.file is None or found.is_named or _is_same(found.file, raw.own_file):
        return
    settings = list(guarded(raw.data))
    if not settings or is_trusted(found.file, found.content.sha256, environ):
        return
    for setting in settings:
        raw.left_out.append(
            f"{raw.origin(setting.path)}: {show_path(setting.path)} is left out until you trust this file: `kr trust` shows it"
        )
    for setting in settings:
        leave_out(raw.data, setting.path)
        for line in [key for key in found.content.lines if key[: len(setting.path)] == setting.path]:
            del found.content.lines[line]
    raw.warnings += raw.left_out


def _is_same(one: Path, other: Path | None) -> bool:
    return other is not None and one.resolve() == other.resolve()


def _check_database_url(raw: RawSettings) -> None:
    """Refuse what is no URL of a database that kr knows; it may hold a password and is never shown."""
    if raw.database_url is not None and _DATABASE_URL.match(raw.database_url) is None:
        raw.variables["database_url",] = "KR_DATABASE_URL"
        raw.problems.append(
            Problem(
                ("database_url",),
                "must begin with sqlite:/// (it is not shown here)",
            )
        )


def _apply_overrides(raw: RawSettings, environ: Mapping[str, str]) -> None:
    for name, below, value, problem in read_overrides(environ):
        path: KeyPath = (MAIN_SECTION, *below)
        raw.variables[path] = name
        if problem is not None:
            raw.problems.append(Problem(path, problem))
            continue
        mapping = _mapping_at(raw, path[:-1])
        if mapping is None:
            raw.problems.append(Problem(path, f"can't be set, for {show_path(path[:-1])} is not a mapping"))
            continue
        mapping[str(path[-1])] = value
        for lines in (raw.found.content.lines, raw.own.lines):
            for stale in [key for key in lines if key[: len(path)] == path]:
                del lines[stale]


def _mapping_at(raw: RawSettings, path: KeyPath) -> dict[str, Tree] | None:
    """Return the mapping at a path, made where nothing is, or None where something else is."""
    mapping = raw.data
    for step in path:
        inner = mapping.get(str(step))
        if inner is None:
            inner = mapping[str(step)] = {}
        if not isinstance(inner, dict):
            return None
        mapping = inner
    return mapping


def _knowledge_base(raw: RawSettings, given: Path | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """Return the folder, absolute and resolved; whether it exists is not asked."""
    try:
        if given is not None:
            return locate(given, environ, cwd).resolve()
        section = raw.data.get(MAIN_SECTION)
        value = (
            section.get("knowledge_base_path", DEFAULT_KNOWLEDGE_BASE) if isinstance(section, dict) else None
        )
        # Validation tells of anything but text; until then the default keeps the path a path.
        text = value if isinstance(value, str) and value.strip() else DEFAULT_KNOWLEDGE_BASE
        base = cwd if _KNOWLEDGE_BASE in raw.variables else raw.found.root
        expanded = expand_placeholders(raw, text, _KNOWLEDGE_BASE, environ)
        return locate(Path(expanded), environ, base).resolve()
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
        raw.problems.append(Problem(_KNOWLEDGE_BASE, "must be the path of a folder"))
        return cwd


def expand_placeholders(raw: RawSettings, text: str, path: KeyPath, environ: Mapping[str, str]) -> str:
    """Put the project root and the output folder in the place of their names in braces."""

    def value(found: re.Match[str]) -> str:
        if found[1] == "project-root":
            return str(raw.found.root)
        if found[1] == "output_folder":
            return str(_output_folder(raw, environ))
        raw.problems.append(
            Problem(path, f"holds {found[0]}; only {{project-root}} and {{output_folder}} are expanded")
        )
        return found[0]

    return _PLACEHOLDER.sub(value, text)


def _output_folder(raw: RawSettings, environ: Mapping[str, str]) -> Path:
    value: Tree = raw.data.get("output_folder")
    if not isinstance(value, str) or not value.strip():
        value = _bmm_output_folder(raw)
    text = value if isinstance(value, str) and value.strip() else _DEFAULT_OUTPUT
    # Relative to the project root also when a variable asked for it: it is the project's folder.
    return locate(Path(text.replace("{project-root}", str(raw.found.root))), environ, raw.found.root)


def _bmm_output_folder(raw: RawSettings) -> Tree:
    file = raw.found.root / BMM_CONFIG
    if not is_file(file):
        return None
    try:
        return parse(read_bytes(file), sections={"output_folder"}).data.get("output_folder")
    except UnreadableError as exc:
        raw.warnings.append(f"{file} was passed over: it is {exc}")
        return None


def expand_variables(raw: RawSettings, environ: Mapping[str, str]) -> None:
    """Expand ``${NAME}`` and ``${NAME:-default}`` in headers, environments and URLs (SPEC 7).

    A URL without its variable is a problem; a header or variable is left out with a warning, as servers answer without a key too.
    """
    section = raw.data.get(MAIN_SECTION)
    if not isinstance(section, dict):
        return
    for name in ("web_search", "llm"):
        _expand_urls(raw, section.get(name), (MAIN_SECTION, name), environ)
    servers = section.get("servers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        path: KeyPath = (MAIN_SECTION, "servers", name)
        _expand_urls(raw, server, path, environ)
        for group in ("headers", "env"):
            texts = server.get(group) if isinstance(server, dict) else None
            if isinstance(texts, dict):
                _expand_or_drop(raw, texts, (*path, group), environ)


def _expand_urls(raw: RawSettings, mapping: Tree, path: KeyPath, environ: Mapping[str, str]) -> None:
    for key in ("url", "base_url"):
        value = mapping.get(key) if isinstance(mapping, dict) else None
        if isinstance(mapping, dict) and isinstance(value, str):
            mapping[key], missing = substitute(value, environ)
            if missing:
                raw.problems.append(Problem((*path, key), _needs(missing)))


def _expand_or_drop(
    raw: RawSettings, texts: dict[str, Tree], path: KeyPath, environ: Mapping[str, str]
) -> None:
    for key, value in list(texts.items()):
        if not isinstance(value, str):
            continue
        texts[key], missing = substitute(value, environ)
        if missing:
            del texts[key]
            raw.warnings.append(f"{raw.sentence(Problem((*path, key), _needs(missing)))}; it is left out")


def _needs(missing: list[str]) -> str:
    return f"needs the environment variable {' and '.join(missing)}, which is not set"


def substitute(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the expanded text, and the names of the variables that are missing or empty."""
    missing: list[str] = []

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if not environ.get(name) and default is None:
            missing.append(name)
        return environ.get(name) or default or ""

    return _VARIABLE.sub(value, text), missing
