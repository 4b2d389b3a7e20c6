"""The configuration of one invocation: found, merged, expanded and checked.

The user's own file lies below the project's, key by key; ``KR_*`` variables override both, and what the command line names
overrides all. The first wrong value is a ``ConfigError`` that names file or variable, key and what is allowed.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import eq
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
from kr.settings.trust import guarded, is_trusted
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
    warnings: tuple[str, ...] = ()
    """What was passed over; first what the project's file says and the user does not trust, one line a setting."""

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
    """Read the configuration; paths of the arguments are relative to ``cwd``. Raises ``ConfigError`` for the first wrong value."""
    here, given = Path(cwd), None if knowledge_base is None else Path(knowledge_base)
    project = find_project(config=None if config is None else Path(config), environ=environ, cwd=here)
    written = _Written(project, environ)
    written.add_files()
    written.add_variables()
    written.expand_variables()
    roles = _mapping(written.data, _PERSONA[:1])
    if isinstance(persona := roles.get(_PERSONA[1]), str):
        roles[_PERSONA[1]] = written.fill(persona, _PERSONA, project.root)
    written.warn_of_unknown_keys()
    return Settings(
        **vars(written.checked()),
        knowledge_base=_knowledge_base(written, given, here),
        project_root=project.root,
        config_file=project.file.path if project.file else None,
        # A base that is named holds its own database: with another's index its reports would seem lost.
        database_url=None if given is not None else written.database_url(),
        names_persona=_PERSONA[1] in roles,
        warnings=tuple(dict.fromkeys(written.warnings)),
    )


def _knowledge_base(written: "_Written", given: Path | None, cwd: Path) -> Path:
    """Return the folder, absolute and resolved; it need not exist, and is not made."""
    try:
        base = _named_base(written, given, cwd)
        nearest = next((place for place in (base, *base.parents) if os.path.lexists(place)), base)
        is_none = os.path.lexists(nearest) and not nearest.is_dir()
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
        raise written.error(_BASE, "must be the path of a folder") from None
    if is_none:
        raise ConfigError(f"{base}: can't be the knowledge base: {nearest} is no folder; name one with --kb")
    return base


def _named_base(written: "_Written", given: Path | None, cwd: Path) -> Path:
    project, environ = written.project, written.environ
    if given is not None:
        return locate(given, environ, cwd).resolve()
    value = _mapping(written.data, _BASE[:1]).get(_BASE[1])
    is_variable = _BASE in written.variables
    base = cwd if is_variable else project.base
    if base is None:
        raise ConfigError(
            "there is no project here and no home folder (HOME): name the knowledge base with --kb"
        )
    text = value if isinstance(value, str) and value.strip() else project.default
    place = locate(Path(written.fill(text, _BASE, project.base or cwd)), environ, base).resolve()
    if text == project.default != "." and not is_variable and not project.holds(place):
        why = f"a link leads out of the project, to {place}"
        raise ConfigError(
            f"{base / text}: can't be the knowledge base: {why}; if it is yours, name it with --kb"
        )
    return place


class _Written:
    """What files and variables say, as nested text, and where each key got its value."""

    def __init__(self, project: Project, environ: Mapping[str, str]) -> None:
        self.project = project
        self.environ = environ
        self.data: dict[str, Tree] = {}
        self.variables: dict[KeyPath, str] = {}
        self.warnings: list[str] = []
        self._files: list[ConfigFile] = []

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
        self._files.insert(0, file)

    def _leave_out_untrusted(self, file: ConfigFile) -> None:
        settings = list(guarded(self.project, self.environ))
        if not settings or is_trusted(self.project, self.environ):
            return
        for path, _ in settings:
            self.warnings.append(
                f"{file.path}: {show_path(path)} is left out until you trust this file: `kr trust` shows it"
            )
            del _mapping(file.data, path[:-1])[str(path[-1])]

    def add_variables(self) -> None:
        """Lay ``KR_*`` over the files; an inner key comes after the outer one that it belongs to. Raises ``ConfigError``."""
        names = (name for name in self.environ if name.startswith("KR_") and name not in OWN_NAMES)
        for name in sorted(names, key=lambda name: (name.count("__"), name)):
            if not (text := self.environ[name].strip()):
                continue
            path = path_of(name)
            self.variables[path] = name
            mapping = self.data
            for depth, step in enumerate(path[:-1], start=1):
                if mapping.get(str(step)) is None:
                    mapping[str(step)] = {}
                inner = mapping[str(step)]
                if not isinstance(inner, dict):
                    raise self.error(path, f"can't be set, for {show_path(path[:depth])} is not a mapping")
                mapping = inner
            try:
                mapping[str(path[-1])] = _value_of(text)
            except ValueError as error:  # whose cause could quote a secret
                raise self.error(path, str(error)) from None

    def expand_variables(self) -> None:
        """Expand ``${NAME}`` and ``${NAME:-default}``.

        A URL without its variable is an error; a header or variable is left out, as servers answer without a key too.
        """
        for mapping, path in list(_expandable(self.data)):
            key = str(path[-1])
            expanded, missing = _expand(str(mapping[key]), self.environ)
            needs = f"needs the environment variable {' and '.join(missing)}, which is not set"
            if not missing:
                mapping[key] = expanded
            elif key in _URLS:
                raise self.error(path, needs)
            else:
                self.warnings.append(f"{self._sentence(path, needs)}; it is left out")
                del mapping[key]

    def fill(self, text: str, path: KeyPath, root: Path) -> str:
        """Put paths in the place of ``{project-root}`` and ``{output_folder}``."""
        written = self.data.get("output_folder")
        filled = fill(text, root, lambda: output_folder(root, written, self.environ, self.warnings.append))
        if unknown := re.search(r"\{[A-Za-z_-]+\}", filled):
            told = "only {project-root} and {output_folder} are expanded"
            raise self.error(path, f"holds {unknown[0]}; {told}")
        return filled

    def database_url(self) -> str | None:
        url = self.environ.get("KR_DATABASE_URL", "").strip() or None
        if url is not None and not url.startswith(_DATABASES):  # it may hold a password
            raise ConfigError("KR_DATABASE_URL: must begin with sqlite:/// or postgresql://")
        return url

    def warn_of_unknown_keys(self) -> None:
        """Name what may be a slip in kr's own section: beside it other programs have keys too."""
        known = kinds_of(KnowledgeResearch)
        for key in _mapping(self.data, (MAIN_SECTION,)):
            if key not in known:
                hint = "".join(f"; did you mean {near}?" for near in nearest(key, known))
                self.warnings.append(self._sentence((MAIN_SECTION, key), f"is not a setting of kr{hint}"))

    def checked(self) -> Configuration:
        """Return the sections. Raises ``ConfigError``."""
        try:
            return read_section(Configuration, self.data)
        except Invalid as invalid:
            raise self.error(invalid.path, invalid.message) from None

    def error(self, path: KeyPath, message: str) -> ConfigError:
        return ConfigError(self._sentence(path, message))

    def _sentence(self, path: KeyPath, message: str) -> str:
        """Name the variable or the file that a key got its value from, the key, and what is wrong with it."""
        # A variable's key is around the key, or within it.
        names = [name for key, name in self.variables.items() if all(map(eq, key, path))]
        files = [str(file.path) for file in self._files if _holds(file.data, path)]
        origin = next(iter([*reversed(names), *files]), "the configuration")
        return f"{origin}: {show_path(path)} {message}"


def _holds(data: Tree, path: KeyPath) -> bool:
    for step in path:
        if not isinstance(data, dict):  # a list, or what is wrong
            return True
        if str(step) not in data:
            return False
        data = data[str(step)]
    return True


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
    for name in _mapping(data, (MAIN_SECTION, "servers")):
        server = (MAIN_SECTION, "servers", name)
        for path in (server, (*server, "headers"), (*server, "env")):
            yield from _texts(data, path)


def _texts(data: Tree, path: KeyPath) -> Iterator[tuple[dict[str, Tree], KeyPath]]:
    mapping = _mapping(data, path)
    for key, value in mapping.items():
        if isinstance(value, str) and (key in _URLS or path[-1] in {"headers", "env"}):
            yield mapping, (*path, key)


def _mapping(data: Tree, path: KeyPath) -> dict[str, Tree]:
    """Return the mapping at a path; an empty one where there is none."""
    for step in path:
        data = data.get(str(step)) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _expand(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the expanded text, and the names of the variables that are missing or empty."""
    missing: list[str] = []

    def value(found: re.Match[str]) -> str:
        if not environ.get(found[1]) and found[2] is None:
            missing.append(found[1])
        return environ.get(found[1]) or found[2] or ""

    return re.sub(_VARIABLE, value, text), missing
