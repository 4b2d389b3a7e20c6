"""Where a project, its configuration file and its knowledge base are, and what of that file the user must trust first.

Nothing here makes a folder, and no git process is started.

A cloned repository brings its own ``kr.yaml``. Programs to start, variables to expand, keys, endpoints, private addresses and
folders outside of the project are left out of it until ``kr trust``: else opening a folder would run its programs, hand out
keys, and replace what other projects know. Trust is remembered for one path with one content, and for the folders that it
leads to: who changes the file or a link makes it untrusted again.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kr.errors import BrokenYaml, ConfigError, KrError
from kr.models import DEFAULT_SERVERS
from kr.text import KeyPath, Tree, digest, show_path

CONFIG = "kr.yaml"
MAIN_SECTION = "knowledge_research"
_MANIFESTS = (
    *("package.json", "pyproject.toml", "requirements.txt", "setup.cfg", "setup.py", "pom.xml"),
    *("build.gradle", "build.gradle.kts", "go.mod", "Cargo.toml", "composer.json", "Gemfile"),
)
"""Dependency files that make a folder a project."""
_BMAD = ("_bmad", "_bmad-output")
_BMAD_FILES = (
    *("core/config.yaml", "bmm/config.yaml", "config.toml", "config.user.toml"),
    *("custom/config.toml", "custom/config.user.toml"),
)
"""Below ``_bmad``: where BMAD keeps ``output_folder``; a later one counts before an earlier one."""
_LIMIT = 1024 * 1024
_GUARDED = (
    *(("web_search", key) for key in ("url", "api_key_env", "allow_private_addresses")),
    *(("llm", key) for key in ("base_url", "api_key_env")),
)


def user_folder(environ: Mapping[str, str], variable: str, default: str) -> Path | None:
    """Return a folder of the user's by the XDG rules: the variable's absolute path, else below ``HOME``; None without one."""
    named, home = environ.get(variable, ""), environ.get("HOME", "")
    if Path(named).is_absolute():
        return Path(named)
    return Path(home, default) if Path(home).is_absolute() else None


def tracked_name(path: Path) -> Path | None:
    """Return a file's name within the repository around it, where git tracks it; None where it does not."""
    for folder in path.parents:
        index = folder / ".git" / "index"
        if index.is_file():
            name = path.relative_to(folder)
            return name if os.fsencode(name) + b"\0" in index.read_bytes() else None
    return None


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """A configuration as it was read: all scalars are the text that was written."""

    path: Path
    data: dict[str, Tree]
    sha256: str


def read_config(path: Path) -> ConfigFile:
    """Read a YAML file of at most 1 MiB. Raises ``ConfigError``, with the line that is wrong."""
    from kr.yaml_io import read_yaml  # heavy: PyYAML, which a folder without a configuration does without

    data = _read(path)
    try:
        tree, _ = read_yaml(data.decode("utf-8-sig"))
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {exc.start})") from exc
    except BrokenYaml as exc:
        raise ConfigError(f"{path}: is not valid YAML: {exc}") from exc
    if tree is not None and not isinstance(tree, dict):
        raise ConfigError(f"{path}: must be a mapping of keys to values")
    return ConfigFile(path=path, data=tree or {}, sha256=digest(data))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(_LIMIT + 1)
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        raise ConfigError(f"{path}: can't be read: {getattr(exc, 'strerror', None) or exc}") from exc
    if len(data) > _LIMIT:
        raise ConfigError(f"{path}: is larger than {_LIMIT} bytes")
    return data


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project and its configuration file. ``root`` is resolved; it is the working directory where there is no project.

    ``base`` is what ``knowledge_base_path`` is relative to (None: there is neither a project nor a home folder), and ``default``
    that path where no setting names one.
    """

    root: Path
    base: Path | None
    default: str
    file: ConfigFile | None = None
    is_named: bool = False
    """``--config`` or ``KR_CONFIG`` named the file."""

    def holds(self, place: Path) -> bool:
        """Tell whether a resolved path lies in the project, or where its knowledge base is by default."""
        return any(place.is_relative_to(folder) for folder in (self.root, self.base) if folder is not None)


def find_project(*, config: Path | None, environ: Mapping[str, str], cwd: Path) -> Project:
    """Read the file that ``--config`` or ``KR_CONFIG`` names, else the nearest upwards. Raises ``ConfigError``."""
    named = config or (Path(environ["KR_CONFIG"]) if environ.get("KR_CONFIG") else None)
    if named is not None:
        file: ConfigFile | None = read_config(locate(named, environ, cwd))
    else:
        file = next(_own_files(cwd.resolve()), None)
    if file is not None:  # the folder above ``_bmad``, or the one that holds the file
        above = (folder.parent for folder in file.path.parents if folder.name == "_bmad")
        root: Path | None = next(above, file.path.parent).resolve()
    else:
        root = _find_root(cwd.resolve())
    if root is None:
        data = user_folder(environ, "XDG_DATA_HOME", ".local/share")
        return Project(root=cwd.resolve(), base=data / "kr" if data else None, default=".")
    base = main_checkout(root)
    if file is None and base != root:  # kr.yaml may not be committed
        file = next(_own_files(base), None)
    is_bmad = any((base / name).is_dir() for name in _BMAD)
    default = "_bmad-output/knowledge-base" if is_bmad else ".kr"
    return Project(root=root, base=base, default=default, file=file, is_named=named is not None)


def locate(path: Path, environ: Mapping[str, str], base: Path) -> Path:
    """Make a path absolute: a leading ``~`` is the home folder, relative means relative to ``base``."""
    home = environ.get("HOME")
    if path.parts[:1] == ("~",) and home:
        path = Path(home, *path.parts[1:])
    return base / path


def is_file(path: Path) -> bool:
    """Tell whether there is a file; what lies in a folder that may not be entered is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _own_files(start: Path) -> Iterator[ConfigFile]:
    """Yield the configuration files of kr upwards. A ``config.yaml`` without kr's section is another program's."""
    for folder in (start, *start.parents):
        for name in (CONFIG, "_bmad/bso/config.yaml"):
            if is_file(folder / name):
                yield read_config(folder / name)
        other = folder / "config.yaml"
        if is_file(other) and MAIN_SECTION.encode() in _start_of(other, _LIMIT):
            file = read_config(other)
            if MAIN_SECTION in file.data:
                yield file


def _start_of(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError:
        return b""


def _find_root(start: Path) -> Path | None:
    """Return the nearest folder upwards that is a checkout or has BMAD, else the nearest with a dependency file."""
    for marks in ((".git", *_BMAD), _MANIFESTS):
        for folder in (start, *start.parents):
            if any(os.path.lexists(folder / mark) for mark in marks):
                return folder
    return None


def main_checkout(root: Path) -> Path:
    """Return the folder that stands for ``root`` in the repository's main checkout; ``root`` itself outside of a worktree."""
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), root)
    gitdir = _linked(top)
    if gitdir is None or gitdir.parent.name != "worktrees" or not (gitdir / "commondir").is_file():
        return root
    common = gitdir.parent.parent
    if common.name != ".git" and _linked(common.parent) != common:  # a bare repository has no checkout
        return root
    same = common.parent / root.relative_to(top)
    return same if same.is_dir() else common.parent


def _linked(checkout: Path) -> Path | None:
    """Return the folder that a checkout's ``.git`` file names; None where ``.git`` is a folder, or no such file."""
    text = _start_of(checkout / ".git", 4096).decode(errors="replace")
    if not text.startswith("gitdir:") or "\0" in text:
        return None
    return (checkout / text.removeprefix("gitdir:").strip()).resolve()


def fill(text: str, root: Path, output: Tree, environ: Mapping[str, str]) -> str:
    """Put paths in the place of ``{project-root}`` and ``{output_folder}``; an absolute path behind the root stays absolute.

    BMAD's output folder is ``output``, which kr's own file says, else what BMAD's files say, else ``_bmad-output``. Raises
    ``ConfigError`` where those are broken.
    """
    if "{output_folder}" in text:
        folder = root / "_bmad-output"
        for written in (*(_bmad_setting(root / "_bmad" / name) for name in _BMAD_FILES), output):
            if isinstance(written, str) and written.strip():
                named = written.replace("{output_folder}", str(folder))
                folder = locate(Path(fill(named, root, None, environ)), environ, root)
        text = text.replace("{output_folder}", str(folder))
    return text.replace("{project-root}//", "/").replace("{project-root}", str(root))


def _bmad_setting(file: Path) -> Tree:
    """Return the output folder that a file of BMAD names: in YAML at its top, in TOML also below ``core``."""
    if not is_file(file):
        return None
    if file.suffix == ".yaml":
        return read_config(file).data.get("output_folder")
    import tomllib  # heavy: for BMAD alone

    try:
        data = tomllib.loads(_read(file).decode("utf-8-sig"))
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{file}: is not valid TOML: {exc}") from exc
    return {**data, **mapping_at(data, ("core",))}.get("output_folder")


def mapping_at(data: Tree, path: KeyPath) -> dict[str, Tree]:
    """Return the mapping at a path; an empty one where there is none."""
    for step in path:
        data = data.get(str(step)) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


# --- trust


def guarded(project: Project, environ: Mapping[str, str]) -> list[tuple[KeyPath, Tree]]:
    """Return the settings of a project's file that need trust, each with what it says; a server is one. The shipped servers need none.

    Of a folder outside of the project it is the place that it leads to: texts go from there into reports, or are replaced.
    """
    data = project.file.data if project.file else {}
    section = mapping_at(data, (MAIN_SECTION,))
    sources, base = section.get("sources"), section.get("knowledge_base_path")
    owned = [mapping_at(one, ()).get("folder") for one in sources] if isinstance(sources, list) else []
    places = [("sources", _outside(project, folder, project.root, environ)) for folder in owned]
    start = project.base or project.root
    text = fill(base, start, data.get("output_folder"), environ) if isinstance(base, str) else None
    places.append(("knowledge_base_path", _outside(project, text, start, environ)))
    found: list[tuple[KeyPath, Tree]] = [((MAIN_SECTION, name), place) for name, place in places if place]
    for name, server in mapping_at(section, ("servers",)).items():
        ways = {key: one for key, one in mapping_at(server, ()).items() if one and key != "type"}
        is_shipped = isinstance(server, dict) and ways in ({}, {"url": DEFAULT_SERVERS.get(name)})
        if server is not None and not is_shipped:
            found.append(((MAIN_SECTION, "servers", name), server))
    for name, key in _GUARDED:
        value = mapping_at(section, (name,)).get(key)
        if value is not None and str(value).lower() not in {"false", "no", "off"}:
            found.append(((MAIN_SECTION, name, key), value))
    return found


def _outside(project: Project, folder: Tree, start: Path, environ: Mapping[str, str]) -> str | None:
    """Return the place that a folder leads to; None where that is in the project, or no folder is named."""
    if not isinstance(folder, str) or not folder.strip():
        return None
    try:
        place = locate(Path(folder), environ, start).resolve()
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
        return folder
    return None if project.holds(place) else str(place)


def shown(path: KeyPath, value: Tree) -> str:
    """Show a setting as it is read, in one line and in ASCII: aliases, folded text and look-alike letters hide nothing."""
    return f"{show_path(path)}: {json.dumps(value)}"


def is_trusted(project: Project, environ: Mapping[str, str]) -> bool:
    """Tell whether the user trusts a project's file with this content."""
    mark = _mark(project, environ)
    return mark is not None and is_file(mark)


def trust(project: Project, environ: Mapping[str, str]) -> None:
    """Remember that the user trusts a project's file as long as it has this content. Raises ``KrError``."""
    mark = _mark(project, environ)
    if mark is None:
        raise KrError("there is no home folder (HOME) to remember trusted files in")
    try:
        mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.write_text(f"{project.file.path if project.file else ''}\n", "utf-8", "surrogateescape")
    except OSError as error:
        raise KrError(f"{mark}: can't be written: {error.strerror}") from error


def _mark(project: Project, environ: Mapping[str, str]) -> Path | None:
    """Return the file that stands for a trusted path with its content and the places that it leads to; None without a home folder."""
    folder = user_folder(environ, "XDG_STATE_HOME", ".local/state")
    told = [str(project.file.path.resolve()), project.file.sha256] if project.file else []
    told += [shown(*setting) for setting in guarded(project, environ)]
    return folder / "kr" / "trust" / digest(os.fsencode("\0".join(told))) if folder else None
