"""Where a project is, which configuration file is its own, and where its knowledge base stands.

Nothing here makes a folder, and no git process is started.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kr.errors import BrokenYaml, ConfigError
from kr.text import Tree, digest

CONFIG = "kr.yaml"
MAIN_SECTION = "knowledge_research"
MANIFESTS = (
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    for marks in ((".git", *_BMAD), MANIFESTS):
        for folder in (start, *start.parents):
            if any(os.path.lexists(folder / mark) for mark in marks):
                return folder
    return None


def main_checkout(root: Path) -> Path:
    """Return the folder that stands for ``root`` in the repository's main checkout; ``root`` itself outside of a worktree."""
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)
    gitdir = _linked(top / ".git") if top is not None else None
    common = _common_of(gitdir) if gitdir is not None else None
    if top is None or common is None:
        return root
    is_main = common.name == ".git" or _linked(common.parent / ".git") == common
    if not is_main:  # a bare repository has no checkout
        return root
    same = common.parent / root.relative_to(top)
    return same if same.is_dir() else common.parent


def _linked(git: Path) -> Path | None:
    """Return the folder that a ``.git`` file names; None where ``.git`` is a folder."""
    text = _start_of(git, 4096).decode(errors="replace")
    if not text.startswith("gitdir:") or "\0" in text:
        return None
    return (git.parent / text.removeprefix("gitdir:").strip()).resolve()


def _common_of(gitdir: Path) -> Path | None:
    """Return the repository that a worktree's git folder belongs to, where it lies among that one's worktrees."""
    text = _start_of(gitdir / "commondir", 4096).decode(errors="replace").strip()
    if not text or "\0" in text:
        return None
    common = (gitdir / text).resolve()
    return common if gitdir.parent == common / "worktrees" else None


def output_folder(root: Path, written: Tree, environ: Mapping[str, str], warn: Callable[[str], None]) -> Path:
    """Return BMAD's output folder, absolute: as ``written`` in kr's own file, else as BMAD's files say, else ``_bmad-output``."""
    folder = root / "_bmad-output"
    for name in _BMAD_FILES:
        try:
            folder = _above(folder, _bmad_setting(root / "_bmad" / name), root, environ)
        except ConfigError as error:
            warn(f"{error}; it is passed over")
    return _above(folder, written, root, environ)


def _above(folder: Path, text: object, root: Path, environ: Mapping[str, str]) -> Path:
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        return folder
    return locate(Path(fill(text, root, lambda: folder)), environ, root)


def _bmad_setting(file: Path) -> object:
    if not is_file(file):
        return None
    if file.suffix == ".yaml":
        return read_config(file).data.get("output_folder")
    import tomllib  # heavy: for BMAD alone

    try:
        data: dict[str, Any] = tomllib.loads(_read(file).decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ConfigError(f"{file}: is not valid TOML: {exc}") from exc
    core = data.get("core")
    return core.get("output_folder") if isinstance(core, dict) else data.get("output_folder")


def fill(text: str, root: Path, output: Callable[[], Path]) -> str:
    """Put paths in the place of ``{project-root}`` and ``{output_folder}``; an absolute path behind the root stays absolute."""
    if "{output_folder}" in text:
        text = text.replace("{output_folder}", str(output()))
    return text.replace("{project-root}//", "/").replace("{project-root}", str(root))
