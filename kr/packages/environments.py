"""Which versions are installed for a project: its Python environment and its ``node_modules``.

All is read from the layout of folders: no interpreter is started, and no installed package imported.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kr.packages.files import Stamp, decode, names_in, printable, read_bytes, stamp, upwards

_MAX_MANIFEST = 1024 * 1024
_NODE_NAME = re.compile(r"(?:@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*")
_INFO = re.compile(r"([A-Za-z0-9][\w.-]*?)-(\d[^-]*|v\d[^-]*)(?:-py\d[\w.-]*)?\.(?:dist|egg)-info")
_OWN_PYTHON = ".".join(map(str, sys.version_info[:3]))


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


def python_environment(projects: Sequence[Path], environ: Mapping[str, str]) -> PythonEnvironment:
    """Return the environment of ``VIRTUAL_ENV``, else ``.venv`` or ``venv`` of a project or of a folder above it in its repository.

    kr's own environment counts only where it is the project's. Without an environment the Python is the one that
    ``.python-version`` names, else kr's own, which matters for environment markers.
    """
    active = Path(environ.get("VIRTUAL_ENV") or "/nowhere")
    places = [place for project in projects for place in upwards(project)]
    for root in (active, *(place / name for place in places for name in (".venv", "venv"))):
        sites = (*root.glob("lib/python3*/site-packages"), *root.glob("Lib/site-packages"))
        is_own = os.path.realpath(root) == os.path.realpath(sys.prefix)
        if sites and not (is_own and (root == active or root.is_symlink())):
            stated = re.search(
                r"^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", _text(root / "pyvenv.cfg"), re.MULTILINE
            )
            label = f"the project's Python environment {root.name}"
            label = "the Python environment of VIRTUAL_ENV" if root == active else label
            return PythonEnvironment(tuple(sorted(sites)), root, stated[1] if stated else _OWN_PYTHON, label)
    named = (
        re.match(r"\s*(?:cpython-)?(3\.\d+(?:\.\d+)?)", _text(place / ".python-version")) for place in places
    )
    python = next(filter(None, named), None)
    return PythonEnvironment((), None, python[1] if python else _OWN_PYTHON, "no Python environment")


def _text(path: Path) -> str:
    try:
        return decode(read_bytes(path, limit=_MAX_MANIFEST))
    except (OSError, ValueError):
        return ""


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
    elsewhere is not followed, and the folder of a scope is no package.
    """
    if not _NODE_NAME.fullmatch(name):
        return None
    start = Path(os.path.realpath(start))
    shelves = [shelf for place in (start, *start.parents) if (shelf := place / "node_modules").is_dir()]
    homes = [os.path.realpath(shelf) for shelf in shelves]
    found = (_read_node(Path(os.path.realpath(shelf / name)), homes) for shelf in shelves)
    return next(filter(None, found), None)


def _read_node(root: Path, homes: Sequence[str]) -> NodePackage | None:
    path = root / "package.json"
    if not any(root.is_relative_to(home) for home in homes) or path.is_symlink():
        return None
    try:
        manifest = json.loads(_text(path))
    except (ValueError, RecursionError):
        return None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("version"), str):
        return None
    name = manifest.get("name")
    return NodePackage(root, manifest) if isinstance(name, str) and _NODE_NAME.fullmatch(name) else None
