"""The packages installed for a project: its Python environment, its ``node_modules``, and what documentation is read from.

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
from typing import Literal

from kr.frameworks import packages_named
from kr.packages.model import Stamp, decode, names_in, read_bytes, stamp, table, upwards
from kr.text import one_line

_LONGEST_NAME = 214
_LONGEST_DESCRIPTION = 2 * 1024 * 1024
# Patterns are texts: ``re`` keeps what it compiled, and a hit compiles only what it needs.
_NODE_NAME = r"(?:@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*"
_INFO = r"([A-Za-z0-9][\w.-]*?)-(\d[^-]*|v\d[^-]*)(?:-py\d[\w.-]*)?\.(?:dist|egg)-info"
_OWN_PYTHON = ".".join(map(str, sys.version_info[:3]))
_OUTSIDE = r"/|[^/]+\.dist-info/|(?:.*/)?\.\./"
"""Files that a distribution lists and that are none of its package's."""
_OWNER_REPO = r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100})"
_HOST = r"(?:git\+)?(?:(?:https?|ssh|git)://(?:[\w.-]+@)?(?:www\.)?github\.com[:/]|git@github\.com:)"
_NO_OWNERS = frozenset({"sponsors", "orgs", "topics", "apps", "marketplace", "features", "settings"})


def normalised(name: str) -> str:
    """Return a Python distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """The virtual environment in use: its site-packages folders, its root (None where there is none), its Python."""

    sites: tuple[Path, ...]
    root: Path | None
    python: str

    def find(self, name: str) -> tuple[str, Path] | None:
        """Return the version of a distribution and the folder that keeps its metadata, by that folder's name."""
        found = (_distributions(site, stamp(site)).get(normalised(name)) for site in self.sites)
        return next(filter(None, found), None)


@lru_cache(maxsize=32)
def _distributions(site: Path, _changed: Stamp) -> dict[str, tuple[str, Path]]:
    """Return what is installed in a site-packages folder, read once as long as its names stay."""
    read = filter(None, (re.fullmatch(_INFO, name) for name in names_in(site)))
    return {normalised(info[1]): (one_line(info[2], 100), site / info[0]) for info in read}


def python_environment(projects: Sequence[Path], environ: Mapping[str, str]) -> PythonEnvironment:
    """Return the environment of ``VIRTUAL_ENV``, else ``.venv`` or ``venv`` of a project or of a folder above it in its repository.

    kr's own environment counts only where it is the project's. Without an environment the Python is kr's own, which matters for
    environment markers.
    """
    active = Path(environ.get("VIRTUAL_ENV") or "/nowhere")
    places = [place for project in projects for place in upwards(project)]
    for root in (active, *(place / name for place in places for name in (".venv", "venv"))):
        sites = (*root.glob("lib/python3*/site-packages"), *root.glob("Lib/site-packages"))
        is_own = os.path.realpath(root) == os.path.realpath(sys.prefix)
        if sites and not (is_own and (root == active or root.is_symlink())):
            stated = re.search(
                r"(?m)^version(?:_info)?\s*=\s*(\d+(?:\.\d+){1,2})", _text(root / "pyvenv.cfg")
            )
            return PythonEnvironment(tuple(sorted(sites)), root, stated[1] if stated else _OWN_PYTHON)
    return PythonEnvironment((), None, _OWN_PYTHON)


def _text(path: Path) -> str:
    try:
        return decode(read_bytes(path))
    except (OSError, ValueError):
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPackage:
    """One installed package. Every path in it lies in ``root``, symbolic links resolved."""

    name: str
    version: str
    ecosystem: Literal["npm", "python"]
    root: Path
    """The package's folder; for Python the site-packages folder that its files are relative to."""
    files: tuple[str, ...] | None = None
    """Its files, relative to ``root``, with forward slashes; None: all below it. They may be links to anywhere."""
    requires: tuple[str, ...] = ()
    """Names of the packages that it needs itself."""
    description: str = ""
    """The text that a Python distribution carries about itself, in reStructuredText unless ``is_markdown``."""
    is_markdown: bool = False
    repository: str | None = None
    """``owner/repo`` on GitHub."""


def find_installed(
    framework: str, projects: Sequence[Path], environ: Mapping[str, str]
) -> list[InstalledPackage]:
    """Return the packages of this name, node's before Python's; an empty list when there is none.

    ``framework`` is a package's name (any spelling that PEP 503 takes as equal), another usual name of the framework
    (``jinja`` finds Jinja2), or ``owner/repo``, which must then be the repository of the package found. A name that no
    registry would take finds nothing. ``projects`` are folders inside projects, the first that has the package wins.
    """
    name = framework.strip()
    found = (_of_name(it, projects, environ) for it in (name, *packages_named(name)))
    return next(filter(None, found), [])


def _of_name(name: str, projects: Sequence[Path], environ: Mapping[str, str]) -> list[InstalledPackage]:
    repository = github_repository(name, shorthand=True) if not name.startswith("@") else None
    wanted = repository.partition("/")[2] if repository else name
    of_node = (find_node_package(wanted, project) for project in projects)
    of_python = find_python_package(wanted, projects, environ)
    found = [package for package in (next(filter(None, of_node), None), of_python) if package]
    return [
        one for one in found if not repository or repository.casefold() == (one.repository or "").casefold()
    ]


def github_repository(reference: object, *, shorthand: bool = False) -> str | None:
    """Return ``owner/repo`` of a GitHub URL; with ``shorthand`` also of npm's ``owner/repo``. Else None."""
    text = reference.strip() if isinstance(reference, str) else ""
    found = re.fullmatch(rf"(?i){_HOST}{_OWNER_REPO}(?:[/#?].*)?", text)
    if shorthand and found is None:
        found = re.fullmatch(rf"(?:github:)?{_OWNER_REPO}", text)
    if found is None:
        return None
    owner, repo = found[1], found[2].removesuffix(".git")
    return None if repo in {"", ".", ".."} or owner.casefold() in _NO_OWNERS else f"{owner}/{repo}"


def find_node_package(name: str, project: Path) -> InstalledPackage | None:
    """Return the package ``name``, else ``@name/core``, that node would find from ``project``."""
    names = dict.fromkeys((name, name.lower(), *([] if "/" in name else [f"@{name.lower()}/core"])))
    return next(filter(None, (node_package(one, project) for one in names)), None)


def node_package(name: str, start: Path) -> InstalledPackage | None:
    """Return the package that node would find under exactly this name from ``start``.

    The package's folder must really lie in one of the ``node_modules`` searched (pnpm's links do); a link that leads
    elsewhere is not followed, and the folder of a scope is no package.
    """
    if len(name) > _LONGEST_NAME or not re.fullmatch(_NODE_NAME, name):
        return None
    start = Path(os.path.realpath(start))
    shelves = [shelf for place in (start, *start.parents) if (shelf := place / "node_modules").is_dir()]
    homes = [os.path.realpath(shelf) for shelf in shelves]
    found = (_read_node(Path(os.path.realpath(shelf / name)), homes) for shelf in shelves)
    return next(filter(None, found), None)


def _read_node(root: Path, homes: Sequence[str]) -> InstalledPackage | None:
    path = root / "package.json"
    if not any(root.is_relative_to(home) for home in homes) or path.is_symlink():
        return None
    try:
        manifest = table(json.loads(_text(path)))
    except (ValueError, RecursionError):
        return None
    name, version, stated = map(manifest.get, ("name", "version", "repository"))
    if not isinstance(version, str) or not isinstance(name, str) or not re.fullmatch(_NODE_NAME, name):
        return None
    needed = [*table(manifest, "dependencies"), *table(manifest, "peerDependencies")]
    repository = github_repository(stated.get("url") if isinstance(stated, dict) else stated, shorthand=True)
    return InstalledPackage(
        name=name,
        version=one_line(version, 100),
        ecosystem="npm",
        root=root,
        requires=tuple(dict.fromkeys([types_package(name), *needed])),
        repository=repository or github_repository(manifest.get("homepage")),
    )


def types_package(name: str) -> str:
    """Return the name under which DefinitelyTyped keeps the declarations of a package."""
    return f"@types/{name.removeprefix('@').replace('/', '__')}"


def find_python_package(
    name: str, projects: Sequence[Path], environ: Mapping[str, str]
) -> InstalledPackage | None:
    """Return the distribution ``name`` of the Python environment in use, names compared as PEP 503 does."""
    from email import message_from_string  # heavy

    found = python_environment(projects, environ).find(name)
    if found is None:
        return None
    version, folder = found
    about = message_from_string(_text(folder / "METADATA"))
    if not about["Name"] or not about["Version"]:  # a damaged distribution documents nothing
        return None
    files = [line.rsplit(",", 2)[0].strip('"') for line in _text(folder / "RECORD").splitlines()]
    stated = [one for one in about.get_all("Requires-Dist", ()) if "extra ==" not in one]
    needs = [needed[0] for one in stated if (needed := re.match(r"[\w.-]+", one.strip()))]
    links = [entry.rpartition(",")[2] for entry in about.get_all("Project-URL", ())]
    return InstalledPackage(
        name=one_line(about["Name"], _LONGEST_NAME),
        version=version,
        ecosystem="python",
        root=folder.parent.resolve(),
        files=tuple(file for file in files if not re.match(_OUTSIDE, file)),
        requires=tuple(dict.fromkeys(needs)),
        description=str(about["Description"] or about.get_payload())[:_LONGEST_DESCRIPTION],
        is_markdown="markdown" in str(about["Description-Content-Type"]).lower(),
        repository=next(filter(None, map(github_repository, [*links, about["Home-page"]])), None),
    )
