"""Which versions are installed for a project: its Python environment and its ``node_modules``.

All is read from the layout of folders: no interpreter is started, and no installed package imported.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kr.packages.files import Stamp, Unreadable, decode, names_in, printable, read_bytes, stamp, upwards

_MAX_MANIFEST = 1024 * 1024
_NODE_NAME = re.compile(r"(?:@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*")
_NO_NODE_NAMES = frozenset({"node_modules", "favicon.ico"})
_INFO = re.compile(r"([A-Za-z0-9][\w.-]*?)-(\d[^-]*|v\d[^-]*)(?:-py\d[\w.-]*)?\.(?:dist|egg)-info")


def normalised(name: str) -> str:
    """Return a Python distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """The virtual environment in use: its site-packages folders, its root (None where there is none), its Python."""

    sites: tuple[Path, ...]
    root: Path | None
    python: str
    label: str

    def installed(self, name: str) -> str | None:
        """Return the version of a distribution, by the names of the folders that keep their metadata."""
        found = (_distributions(site, stamp(site)).get(normalised(name)) for site in self.sites)
        return next(filter(None, found), None)


@lru_cache(maxsize=32)
def _distributions(site: Path, _changed: Stamp) -> dict[str, str]:
    """Return the versions of what is installed in a site-packages folder, read once as long as its names stay."""
    read = filter(None, map(_INFO.fullmatch, names_in(site)))
    return {normalised(info[1]): printable(info[2], limit=100) for info in read}


def _text(path: Path) -> str:
    try:
        return decode(read_bytes(path, limit=_MAX_MANIFEST) or b"")
    except Unreadable:
        return ""


def python_environment(projects: Sequence[Path], environ: Mapping[str, str]) -> PythonEnvironment:
    """Return the environment of ``VIRTUAL_ENV``, else ``.venv`` or ``venv`` of a project or of a folder above it in its repository.

    kr's own environment counts only where it is the project's, too. Without an environment the Python is the one that
    ``.python-version`` names, else kr's own, which matters for environment markers.
    """
    if active := environ.get("VIRTUAL_ENV"):
        root = Path(active)
        is_ours = _is_own(root) and not any(_is_in(root, project) for project in projects)
        if not is_ours and (sites := _sites(root)):
            return _environment(root, sites, "the Python environment of VIRTUAL_ENV")
    for project in projects:
        for place in upwards(project):
            for root in (place / ".venv", place / "venv"):
                sites = _sites(root)
                if sites and not (_is_own(root) and not _is_in(root, place)):
                    return _environment(root, sites, f"the project's Python environment {root.name}")
    named = (_named_python(place) for project in projects for place in upwards(project))
    own = ".".join(map(str, sys.version_info[:3]))
    return PythonEnvironment((), None, next(filter(None, named), own), "no Python environment")


def _environment(root: Path, sites: tuple[Path, ...], label: str) -> PythonEnvironment:
    config = _text(root / "pyvenv.cfg")
    stated = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", config, re.MULTILINE)
    of_folder = re.search(r"python(\d+\.\d+)", str(sites[0].parent.name))
    own = ".".join(map(str, sys.version_info[:3]))
    return PythonEnvironment(sites, root, stated[1] if stated else of_folder[1] if of_folder else own, label)


def _sites(root: Path) -> tuple[Path, ...]:
    try:
        if not root.is_dir():
            return ()
        found = [*root.glob("lib/python3*/site-packages"), *root.glob("Lib/site-packages")]
        return tuple(sorted(folder for folder in found if folder.is_dir()))
    except (OSError, ValueError):
        return ()


def _is_own(root: Path) -> bool:
    try:
        return root.resolve() == Path(sys.prefix).resolve()
    except (OSError, ValueError, RuntimeError):
        return False


def _is_in(root: Path, project: Path) -> bool:
    return root.resolve().is_relative_to(project.resolve())


def _named_python(place: Path) -> str | None:
    named = re.match(r"\s*(?:cpython-)?(3\.\d+(?:\.\d+)?)", _text(place / ".python-version"))
    return named[1] if named else None


@dataclass(frozen=True, slots=True)
class NodePackage:
    """A package in ``node_modules``: where it really lies, and its package.json."""

    root: Path
    manifest: dict[str, Any]

    @property
    def version(self) -> str:
        return printable(str(self.manifest["version"]), limit=100)


def node_package(name: str, start: Path) -> NodePackage | None:
    """Return the package that node would find under exactly this name from ``start``.

    The package's folder must really lie in one of the ``node_modules`` searched (pnpm's links do); a link that leads
    elsewhere is not followed, and a shelf itself or the folder of a scope is no package.
    """
    if not _NODE_NAME.fullmatch(name) or name.lower() in _NO_NODE_NAMES:
        return None
    try:
        start = start.resolve()
        shelves = [shelf for place in (start, *start.parents) if (shelf := place / "node_modules").is_dir()]
        homes = [shelf.resolve() for shelf in shelves]
    except (OSError, ValueError, RuntimeError):
        return None
    found = (_read_node(shelf / name, homes) for shelf in shelves)
    return next((package for package in found if package is not None), None)


def _read_node(folder: Path, homes: list[Path]) -> NodePackage | None:
    try:
        root = folder.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    if not any(root.is_relative_to(home) and root != home for home in homes) or not root.is_dir():
        return None
    path = root / "package.json"
    try:
        manifest = json.loads("{}" if path.is_symlink() else _text(path))
    except (ValueError, RecursionError):
        return None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("version"), str):
        return None
    name = manifest.get("name")
    is_whole = isinstance(name, str) and _NODE_NAME.fullmatch(name) is not None
    return NodePackage(root, manifest) if is_whole else None
