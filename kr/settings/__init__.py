"""The configuration of one invocation: found, merged, expanded and checked.

The user's own file lies below the project's, key by key; ``KR_*`` variables override both, and what the command line names
overrides all. Everything that is wrong is told in one ``ConfigError``, each line with file or variable, key and what is allowed.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kr.errors import BrokenYaml, ConfigError
from kr.settings.model import (
    Configuration,
    Defaults,
    E2EInspection,
    Invalid,
    KnowledgeResearch,
    RoleMapping,
    Server,
    kinds_of,
    read_section,
)
from kr.settings.project import (
    MAIN_SECTION,
    ConfigFile,
    Project,
    fill,
    find_project,
    is_file,
    locate,
    output_folder,
    read_config,
    user_folder,
)
from kr.settings.trust import guarded, is_trusted, leave_out
from kr.text import KeyPath, Tree, nearest, read_json, show_path

if TYPE_CHECKING:
    from _typeshed import StrPath

OWN_NAMES = frozenset(
    f"KR_{name}"
    for name in (
        *("CONFIG", "DATABASE_URL", "FORMAT", "OUTPUT", "PHASE", "PYTHON"),
        *("SERVER", "STORY_KEY", "TOKEN", "REVIEW_TOKEN", "VENV"),
    )
)
"""Variables that are no keys: kr's own, and those of the scripts in the repository."""

_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}"
_DATABASES = ("sqlite:", "sqlite+", "postgresql:", "postgresql+")
_URLS = frozenset({"url", "base_url"})
_BASE = (MAIN_SECTION, "knowledge_base_path")
_PERSONA = ("role_mapping", "knowledge_researcher_persona")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The configuration; paths are absolute. ``database_url`` is as given, None for ``kr.db`` in the knowledge base."""

    knowledge_research: KnowledgeResearch
    role_mapping: RoleMapping
    defaults: Defaults
    e2e_inspection: E2EInspection
    knowledge_base: Path
    project_root: Path
    config_file: Path | None
    database_url: str | None = field(default=None, repr=False)
    names_persona: bool = False
    """The persona was chosen, it is not the default."""
    left_out: tuple[str, ...] = ()
    """What the project's file says and the user does not trust, one line a setting."""
    warnings: tuple[str, ...] = ()

    @property
    def lessons_file(self) -> Path:
        """The append-only file of lessons."""
        return self.knowledge_base / "lessons" / "_lessons-learned.md"

    @property
    def overall_timeout(self) -> int:
        """Seconds that one research may take altogether."""
        return self.defaults.agent_timeout_seconds.knowledge_research


def load_settings(
    *,
    config: "StrPath | None",
    knowledge_base: "StrPath | None",
    environ: Mapping[str, str],
    cwd: "StrPath",
) -> Settings:
    """Read the configuration; paths of the arguments are relative to ``cwd``. Raises ``ConfigError``, one line per wrong value."""
    here, given = Path(cwd), None if knowledge_base is None else Path(knowledge_base)
    project = find_project(config=None if config is None else Path(config), environ=environ, cwd=here)
    written = _Written(project, environ)
    written.add_files()
    written.add_variables()
    written.expand_variables()
    base = _knowledge_base(written, given, here)
    roles = _at(written.data, _PERSONA[:1]) or {}
    if isinstance(persona := roles.get(_PERSONA[1]), str):
        roles[_PERSONA[1]] = written.fill(persona, _PERSONA, project.root)
    written.warn_of_unknown_keys()
    return Settings(
        **vars(written.checked()),
        knowledge_base=base,
        project_root=project.root,
        config_file=project.file.path if project.file else None,
        # A base that is named holds its own database: with another's index its reports would seem lost.
        database_url=None if given is not None else written.database_url(),
        names_persona=_PERSONA[1] in roles,
        left_out=tuple(written.left_out),
        warnings=tuple(dict.fromkeys(written.warnings)),
    )


def _knowledge_base(written: "_Written", given: Path | None, cwd: Path) -> Path:
    """Return the folder, absolute and resolved; it need not exist, and is not made."""
    base = _named_base(written, given, cwd)
    nearest = next((place for place in (base, *base.parents) if os.path.lexists(place)), base)
    if os.path.lexists(nearest) and not nearest.is_dir():
        raise ConfigError(f"{base}: can't be the knowledge base: {nearest} is no folder; name one with --kb")
    return base


def _named_base(written: "_Written", given: Path | None, cwd: Path) -> Path:
    project, environ = written.project, written.environ
    try:
        if given is not None:
            return locate(given, environ, cwd).resolve()
        value = (_at(written.data, _BASE[:1]) or {}).get(_BASE[1])
        base = cwd if _BASE in written.variables else project.base
        if base is None:
            raise ConfigError(
                "there is no project here and no home folder (HOME): name the knowledge base with --kb"
            )
        text = value if isinstance(value, str) and value.strip() else project.default
        filled = written.fill(text, _BASE, project.base or cwd)
        place = locate(Path(filled), environ, base).resolve()
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
        written.problems.append((_BASE, "must be the path of a folder"))
        return cwd
    is_default = text == project.default and _BASE not in written.variables
    if is_default and project.default != "." and not project.holds(place):
        why = f"a link leads out of the project, to {place}"
        raise ConfigError(
            f"{base / text}: can't be the knowledge base: {why}; if it is yours, name it with --kb"
        )
    return place


class _Written:
    """What files and variables say, as nested text, with the place of every key and all that is wrong."""

    def __init__(self, project: Project, environ: Mapping[str, str]) -> None:
        self.project = project
        self.environ = environ
        self.data: dict[str, Tree] = {}
        self.origins: dict[KeyPath, str] = {}
        self.variables: set[KeyPath] = set()
        self.problems: list[tuple[KeyPath, str]] = []
        self.warnings: list[str] = []
        self.left_out: list[str] = []

    def add_files(self) -> None:
        """Lay the project's file over the user's own. Raises ``ConfigError``."""
        folder = user_folder(self.environ, "XDG_CONFIG_HOME", ".config")
        own = folder / "kr" / "kr.yaml" if folder else None
        is_own = own is not None and is_file(own)
        if own is not None and is_own:
            self._add(read_config(own))
        if (file := self.project.file) is None:
            return
        if not (self.project.is_named or (own is not None and is_own and file.path.samefile(own))):
            self._leave_out_untrusted(file)
        self._add(file)

    def _add(self, file: ConfigFile) -> None:
        self.data = _merged(self.data, file.data)
        self.origins |= {path: f"{file.path}, line {line}" for path, line in file.lines.items() if path}

    def _leave_out_untrusted(self, file: ConfigFile) -> None:
        settings = list(guarded(self.project, self.environ))
        if not settings or is_trusted(self.project, self.environ):
            return
        for path, _ in settings:
            place = f"{file.path}, line {file.lines[path]}: {show_path(path)}"
            self.left_out.append(f"{place} is left out until you trust this file: `kr trust` shows it")
            leave_out(file, path)
        self.warnings += self.left_out

    def add_variables(self) -> None:
        """Lay ``KR_*`` over the files; an inner key comes after the outer one that it belongs to."""
        names = (name for name in self.environ if name.startswith("KR_") and name not in OWN_NAMES)
        for name in sorted(names, key=lambda name: (name.count("__"), name)):
            if not (text := self.environ[name].strip()):
                continue
            path = path_of(name)
            self.variables.add(path)
            self.origins = {key: place for key, place in self.origins.items() if key[: len(path)] != path}
            self.origins[path] = name
            try:
                self._put(path, _value_of(text))
            except ValueError as error:
                self.problems.append((path, str(error)))

    def _put(self, path: KeyPath, value: Tree) -> None:
        """Set a key, in mappings that are made where nothing is. Raises ``ValueError`` where something else is."""
        mapping = self.data
        for depth, step in enumerate(path[:-1], start=1):
            if mapping.get(str(step)) is None:
                mapping[str(step)] = {}
            inner = mapping[str(step)]
            if not isinstance(inner, dict):
                raise ValueError(f"can't be set, for {show_path(path[:depth])} is not a mapping")  # noqa: TRY004
            mapping = inner
        mapping[str(path[-1])] = value

    def expand_variables(self) -> None:
        """Expand ``${NAME}`` and ``${NAME:-default}``.

        A URL without its variable is a problem; a header or variable is left out, as servers answer without a key too.
        """
        for mapping, path in list(_expandable(self.data)):
            key = str(path[-1])
            expanded, missing = _expand(str(mapping[key]), self.environ)
            needs = f"needs the environment variable {' and '.join(missing)}, which is not set"
            if not missing:
                mapping[key] = expanded
            elif key in _URLS:
                self.problems.append((path, needs))
            else:
                del mapping[key]
                self.warnings.append(f"{self._sentence(path, needs)}; it is left out")

    def fill(self, text: str, path: KeyPath, root: Path) -> str:
        """Put paths in the place of ``{project-root}`` and ``{output_folder}``."""
        written = self.data.get("output_folder")
        filled = fill(text, root, lambda: output_folder(root, written, self.environ, self.warnings.append))
        if unknown := re.search(r"\{[A-Za-z_-]+\}", filled):
            told = "only {project-root} and {output_folder} are expanded"
            self.problems.append((path, f"holds {unknown[0]}; {told}"))
        return filled

    def database_url(self) -> str | None:
        return self.environ.get("KR_DATABASE_URL", "").strip() or None

    def warn_of_unknown_keys(self) -> None:
        """Name what may be a slip. Beside kr's own section other programs have keys too."""
        for path, known in _unknown(Configuration, self.data, ()):
            if path[0] == MAIN_SECTION:
                hint = "".join(f"; did you mean {near}?" for near in nearest(str(path[-1]), known))
                self.warnings.append(self._sentence(path, f"is not a setting of kr{hint}"))

    def checked(self) -> Configuration:
        """Return the sections. Raises ``ConfigError`` with all that is wrong."""
        url = self.database_url()
        if url is not None and not url.startswith(_DATABASES):  # it may hold a password
            self.origins["database_url",] = "KR_DATABASE_URL"
            self.problems.append((("database_url",), "must begin with sqlite:/// or postgresql://"))
        configuration = Configuration()
        try:
            configuration = read_section(Configuration, self.data)
        except Invalid as error:
            known = {path for path, _ in self.problems}
            self.problems += [(path, message) for path, message in error.problems if path not in known]
        if self.problems:
            raise ConfigError("\n".join(self._sentence(path, message) for path, message in self.problems))
        return configuration

    def _sentence(self, path: KeyPath, message: str) -> str:
        return f"{self._origin(path)}: {show_path(path)} {message}"

    def _origin(self, path: KeyPath) -> str:
        """Say where a key got its value: its own place, that of a key within it, or that of the key around it."""
        within = (place for key, place in self.origins.items() if key[: len(path)] == path)
        around = (self.origins.get(path[:length]) for length in range(len(path) - 1, 0, -1))
        file = self.project.file.path if self.project.file else "the environment"
        return self.origins.get(path) or next(within, None) or next(filter(None, around), str(file))


def _merged(below: Tree, above: Tree, path: KeyPath = ()) -> Any:
    """Lay one configuration over another, key by key; a server is one key, so that no file gets another one's headers."""
    is_server = len(path) == 3 and path[:2] == (MAIN_SECTION, "servers")
    if is_server or not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    both = {key: _merged(below[key], above[key], (*path, key)) for key in above if key in below}
    return {**below, **above, **both}


def path_of(name: str) -> KeyPath:
    """Return the key that a variable overrides: in small letters, but for the names in a server's ``env``."""
    steps = name.removeprefix("KR_").split("__")
    kept = 3 if steps[0] == "SERVERS" and steps[2:3] == ["ENV"] else len(steps)
    return (MAIN_SECTION, *(step.lower() for step in steps[:kept]), *steps[kept:])


def _value_of(text: str) -> Tree:
    """Read a variable's value: ``null``, a YAML or JSON list or mapping, else the text. Raises ``ValueError``."""
    if text in {"null", "~"}:
        return None
    if not text.startswith(("[", "{")) or text.startswith(("{project-root}", "{output_folder}")):
        return text
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        from kr.yaml_io import read_yaml  # heavy: as in read_config
    try:
        return read_yaml(text)[0]
    except (BrokenYaml, UnicodeError):  # whose words could quote a secret
        raise ValueError("is not a YAML or JSON value such as [one, two] or {key: value}") from None


def _expandable(data: Tree) -> Iterator[tuple[dict[str, Tree], KeyPath]]:
    """Yield the texts in which variables expand, each as its mapping and path."""
    yield from _texts(data, (MAIN_SECTION, "web_search"))
    yield from _texts(data, (MAIN_SECTION, "llm"))
    servers = _at(data, (MAIN_SECTION, "servers"))
    for name in servers or ():
        server = (MAIN_SECTION, "servers", name)
        for path in (server, (*server, "headers"), (*server, "env")):
            yield from _texts(data, path)


def _texts(data: Tree, path: KeyPath) -> Iterator[tuple[dict[str, Tree], KeyPath]]:
    mapping = _at(data, path) or {}
    for key, value in mapping.items():
        if isinstance(value, str) and (key in _URLS or path[-1] in {"headers", "env"}):
            yield mapping, (*path, key)


def _at(data: Tree, path: KeyPath) -> dict[str, Tree] | None:
    """Return the mapping at a path; None where there is none."""
    for step in path:
        data = data.get(str(step)) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else None


def _expand(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the expanded text, and the names of the variables that are missing or empty."""
    missing: list[str] = []

    def value(found: re.Match[str]) -> str:
        if not environ.get(found[1]) and found[2] is None:
            missing.append(found[1])
        return environ.get(found[1]) or found[2] or ""

    return re.sub(_VARIABLE, value, text), missing


def _unknown(section: type, tree: Tree, path: KeyPath) -> Iterator[tuple[KeyPath, list[str]]]:
    """Yield the path of each key that the section does not know, with those that it knows."""
    kinds = kinds_of(section)
    for key, value in tree.items() if isinstance(tree, dict) else ():
        kind, here = kinds.get(key), (*path, key)
        if kind is None:
            yield here, list(kinds)
        elif here == (MAIN_SECTION, "servers"):
            for name, server in value.items() if isinstance(value, dict) else ():
                yield from _unknown(Server, server, (*here, name))
        elif kind.section is not None:
            yield from _unknown(kind.section, value, here)
