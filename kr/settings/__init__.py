"""The configuration of one invocation: found, trusted, merged, expanded and checked.

The user's own file lies below the project's, key by key; ``KR_*`` variables override both, and what the command line names
overrides all. The first wrong value is a ``ConfigError`` that names file or variable, key and what is allowed.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kr.errors import BrokenYaml, ConfigError
from kr.settings.model import Configuration, Invalid, KnowledgeResearch
from kr.settings.project import (
    CONFIG,
    MAIN_SECTION,
    ConfigFile,
    Project,
    fill,
    find_project,
    guarded,
    is_file,
    is_trusted,
    locate,
    mapping_at,
    read_config,
    user_folder,
)
from kr.text import KeyPath, Tree, nearest, show_path

if TYPE_CHECKING:
    from _typeshed import StrPath

OWN_NAMES = frozenset(
    "KR_CONFIG KR_DATABASE_URL KR_FORMAT KR_PHASE KR_PYTHON KR_REVIEW_TOKEN KR_SERVER KR_STORY_KEY KR_TOKEN KR_VENV".split()
)
"""Variables that are no keys: kr's own, and those of the scripts in the repository."""

_BASE = (MAIN_SECTION, "knowledge_base_path")
_PERSONA = ("role_mapping", "knowledge_researcher_persona")
_SERVERS = (MAIN_SECTION, "servers")
_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}"
_URLS = frozenset({"url", "base_url"})


class Settings(Configuration):
    """The configuration; paths are absolute. ``database_url`` is as given, None for ``kr.db`` in the knowledge base."""

    knowledge_base: Path
    project_root: Path
    config_file: Path | None
    database_url: str | None = None
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
    roles = mapping_at(written.data, _PERSONA[:1])
    persona = roles.get(_PERSONA[1])
    if isinstance(persona, str):
        roles[_PERSONA[1]] = written.fill(persona, _PERSONA, project.root)
    url = environ.get("KR_DATABASE_URL", "").strip()
    if not re.match(r"(?:sqlite|postgresql)[:+]|$", url):  # it may hold a password
        raise ConfigError("KR_DATABASE_URL: must begin with sqlite:/// or postgresql://")
    return Settings(
        **vars(written.checked()),
        knowledge_base=written.knowledge_base(given, here),
        project_root=project.root,
        config_file=project.file.path if project.file else None,
        # A base that is named holds its own database: with another's index its reports would seem lost.
        database_url=url if url and given is None else None,
        names_persona=persona is not None,
        warnings=tuple(dict.fromkeys(written.warnings)),
    )


class _Written:
    """What files and variables say, as nested text, and where each key got its value."""

    def __init__(self, project: Project, environ: Mapping[str, str]) -> None:
        """Read all. Raises ``ConfigError``."""
        self.project = project
        self.environ = environ
        self.warnings: list[str] = []
        self.data: dict[str, Tree] = {}
        self._origins: dict[KeyPath, str] = {}
        self._add_files()
        self._add_variables()
        for name in ("web_search", "llm", "servers"):
            self._expand(mapping_at(self.data, (MAIN_SECTION, name)), (MAIN_SECTION, name))
        known = KnowledgeResearch.keys  # beside this section other programs have keys too
        for key in mapping_at(self.data, (MAIN_SECTION,)):
            if key not in known:
                hint = "".join(f"; did you mean {near}?" for near in nearest(key, known))
                self.warnings.append(self._sentence((MAIN_SECTION, key), f"is not a setting of kr{hint}"))

    def _add_files(self) -> None:
        """Lay the project's file over the user's own, without what the user does not trust."""
        folder, file = user_folder(self.environ, "XDG_CONFIG_HOME", ".config"), self.project.file
        own = folder / "kr" / CONFIG if folder else None
        is_own = False
        if own is not None and is_file(own):
            is_own = file is not None and file.path.samefile(own)
            self._add_file(read_config(own))
        if file is None or is_own:
            return
        settings = [] if self.project.is_named else guarded(self.project, self.environ)
        if settings and not is_trusted(self.project, self.environ):
            for path, _ in settings:
                why = "is left out until you trust this file: `kr trust` shows it"
                self.warnings.append(f"{file.path}: {show_path(path)} {why}")
                mapping_at(file.data, path[:-1]).pop(str(path[-1]), None)
        self._add_file(file)

    def _add_file(self, file: ConfigFile) -> None:
        """Lay a file over what is there; a server is one key, so that no file gets another one's headers."""
        for name in mapping_at(file.data, _SERVERS):
            mapping_at(self.data, _SERVERS).pop(name, None)
        self._lay(str(file.path), file.data, self.data)

    def _add_variables(self) -> None:
        """Lay ``KR_*`` over the files; an inner key comes after the outer one that it belongs to."""
        names = (name for name in self.environ if name.startswith("KR_") and name not in OWN_NAMES)
        for name in sorted(names, key=lambda name: (name.count("__"), name)):
            if text := self.environ[name].strip():
                path = path_of(name)
                mapping_at(self.data, path[:-1]).pop(path[-1], None)
                value: Tree = {path[-1]: self._value_of(text, name)}
                for step in reversed(path[:-1]):
                    value = {step: value}
                self._lay(name, mapping_at(value, ()), self.data)

    def _lay(
        self, origin: str, above: dict[str, Tree], below: dict[str, Tree], path: tuple[str, ...] = ()
    ) -> None:
        """Lay one configuration over another, key by key."""
        for key, value in above.items():
            here = (*path, key)
            if isinstance(value, dict):
                inner = below[key] if below.get(key) is not None else {}
                if not isinstance(inner, dict):
                    raise self._error(here, "must be a mapping")
                below[key] = inner
                self._origins[here] = origin
                self._lay(origin, value, inner, here)
            else:
                below[key] = value
                self._origins[here] = origin

    def _value_of(self, text: str, name: str) -> Tree:
        """Read a variable's value: ``null``, a YAML or JSON list or mapping, else the text."""
        if text in {"null", "~"}:
            return None
        if not text.startswith(("[", "{")) or text.startswith(("{project-root}", "{output_folder}")):
            return text
        from kr.yaml_io import read_yaml  # heavy: PyYAML, which a folder without a configuration does without

        try:
            return read_yaml(text)[0]
        except (BrokenYaml, UnicodeError):  # whose words could quote a secret
            wanted = "is not a YAML or JSON value such as [one, two] or {key: value}"
            raise ConfigError(f"{name}: {show_path(path_of(name))} {wanted}") from None

    def _expand(self, data: dict[str, Tree], path: KeyPath) -> None:
        """Expand ``${NAME}`` and ``${NAME:-default}`` in URLs, headers and variables for programs.

        A URL without its variable is an error; a header or variable is left out, as servers answer without a key too.
        """
        for key, value in list(data.items()):
            here = (*path, key)
            if isinstance(value, dict):
                self._expand(value, here)
            if not isinstance(value, str) or not (key in _URLS or path[-1] in {"headers", "env"}):
                continue
            found = re.findall(_VARIABLE, value)
            missing = [name for name, default in found if not (self.environ.get(name) or default)]
            if not missing:
                data[key] = re.sub(_VARIABLE, lambda it: self.environ.get(it[1]) or it[2], value)
                continue
            needs = f"needs the environment variable {' and '.join(missing)}, which is not set"
            if key in _URLS:
                raise self._error(here, needs)
            self.warnings.append(f"{self._sentence(here, needs)}; it is left out")
            del data[key]

    def fill(self, text: str, path: KeyPath, root: Path) -> str:
        """Put paths in the place of ``{project-root}`` and ``{output_folder}``."""
        filled = fill(text, root, self.data.get("output_folder"), self.environ)
        if unknown := re.search(r"\{[A-Za-z_-]+\}", filled):
            told = "only {project-root} and {output_folder} are expanded"
            raise self._error(path, f"holds {unknown[0]}; {told}")
        return filled

    def knowledge_base(self, given: Path | None, cwd: Path) -> Path:
        """Return the folder, absolute and resolved; it need not exist, and is not made."""
        try:
            base = self._named_base(given, cwd)
            there = next((place for place in (base, *base.parents) if os.path.lexists(place)), base)
            is_none = os.path.lexists(there) and not there.is_dir()
        except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
            raise self._error(_BASE, "must be the path of a folder") from None
        if is_none:
            raise ConfigError(
                f"{base}: can't be the knowledge base: {there} is no folder; name one with --kb"
            )
        return base

    def _named_base(self, given: Path | None, cwd: Path) -> Path:
        project, environ = self.project, self.environ
        if given is not None:
            return locate(given, environ, cwd).resolve()
        is_variable = self._origins.get(_BASE) == "KR_KNOWLEDGE_BASE_PATH"
        base = cwd if is_variable else project.base
        if base is None:
            raise ConfigError(
                "there is no project here and no home folder (HOME): name the knowledge base with --kb"
            )
        value = mapping_at(self.data, _BASE[:1]).get(_BASE[1])
        text = value if isinstance(value, str) and value.strip() else project.default
        place = locate(Path(self.fill(text, _BASE, project.base or cwd)), environ, base).resolve()
        if text == project.default != "." and not is_variable and not project.holds(place):
            why = f"a link leads out of the project, to {place}"
            raise ConfigError(
                f"{base / text}: can't be the knowledge base: {why}; if it is yours, name it with --kb"
            )
        return place

    def checked(self) -> Configuration:
        """Return the sections. Raises ``ConfigError``."""
        try:
            return Configuration.read(self.data)
        except Invalid as invalid:
            raise self._error(invalid.path, invalid.message) from None

    def _error(self, path: KeyPath, message: str) -> ConfigError:
        return ConfigError(self._sentence(path, message))

    def _sentence(self, path: KeyPath, message: str) -> str:
        """Name the variable or the file that a key got its value from, the key, and what is wrong with it."""
        around = (self._origins.get(path[:end]) for end in range(len(path), 0, -1))
        origin = next(filter(None, around), "the configuration")
        return f"{origin}: {show_path(path)} {message}"


def path_of(name: str) -> tuple[str, ...]:
    """Return the key that a variable overrides: in small letters, but for the names in a server's ``env``."""
    steps = name.removeprefix("KR_").split("__")
    kept = 3 if steps[0] == "SERVERS" and steps[2:3] == ["ENV"] else len(steps)
    return (MAIN_SECTION, *(step.lower() for step in steps[:kept]), *steps[kept:])
