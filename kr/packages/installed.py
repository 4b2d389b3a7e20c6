"""The packages installed for a project, as documentation is read from them: files, needs, and repository."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Literal, cast

from kr.frameworks import packages_named
from kr.packages.environments import NodePackage, node_package, python_environment
from kr.packages.files import printable, table

_MOST_ENTRIES = 20_000
_LONGEST_NAME = 214
_LONGEST_DESCRIPTION = 2 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|_[A-Za-z0-9_]+")
_OWNER_REPO = r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100})"
_SHORTHAND = re.compile(rf"(?:github:)?{_OWNER_REPO}")
_URL = re.compile(
    rf"(?:git\+)?(?:(?:https?|ssh|git)://(?:[\w.-]+@)?(?:www\.)?github\.com[:/]|git@github\.com:){_OWNER_REPO}(?:[/#?].*)?",
    re.IGNORECASE,
)
_LABELS = ("source", "sourcecode", "repository", "homepage")
_NO_OWNERS = frozenset({"sponsors", "orgs", "topics", "apps", "marketplace", "features", "settings"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPackage:
    """One installed package. Every path in it lies in ``root``, symbolic links resolved."""

    name: str
    version: str
    ecosystem: Literal["npm", "python"]
    root: Path
    """The package's folder; for Python the site-packages folder that its files are relative to."""
    files: tuple[str, ...] = ()
    """Its files, relative to ``root``, with forward slashes. They may be links to anywhere: see ``contained``."""
    requires: tuple[str, ...] = ()
    """Names of the packages that it needs itself."""
    description: str = ""
    """The text that a Python distribution carries about itself, in reStructuredText unless ``is_markdown``."""
    is_markdown: bool = False
    repository: str | None = None
    """``owner/repo`` on GitHub."""


def contained(path: Path, root: Path) -> Path | None:
    """Return the real path of the regular file ``path`` when it lies in ``root`` (a real path), else None."""
    try:
        real = path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return None
    return real if real.is_relative_to(root) and real.is_file() else None


def find_installed(
    framework: str, projects: Sequence[Path], environ: Mapping[str, str]
) -> list[InstalledPackage]:
    """Return the packages of this name, node's before Python's; an empty list when there is none.

    ``framework`` is a package's name (any spelling that PEP 503 takes as equal), another usual name of the framework
    (``jinja`` finds Jinja2), or ``owner/repo``, which must then be the repository of the package found. A name that no
    registry would take finds nothing. ``projects`` are folders inside projects, the first that has the package wins.
    """
    name = framework.strip()
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        return []
    found = (_of_name(it, projects, environ) for it in (name, *packages_named(name)))
    return next(filter(None, found), [])


def _of_name(name: str, projects: Sequence[Path], environ: Mapping[str, str]) -> list[InstalledPackage]:
    repository = github_repository(name, shorthand=True) if not name.startswith("@") else None
    wanted = repository.partition("/")[2] if repository else name
    of_node = (find_node_package(wanted, project) for project in projects)
    candidates = (next(filter(None, of_node), None), find_python_package(wanted, projects, environ))
    return [
        package
        for package in candidates
        if package and (not repository or (package.repository or "").casefold() == repository.casefold())
    ]


def places_searched(projects: Sequence[Path], environ: Mapping[str, str]) -> str:
    """Say where ``find_installed`` looks, without a place of the machine."""
    where = "the working directory" + (", of the configuration's folder" if len(projects) > 1 else "")
    return f"node_modules of {where} and of the folders above; {python_environment(projects, environ).label}"


def github_repository(reference: object, *, shorthand: bool = False) -> str | None:
    """Return ``owner/repo`` of a GitHub URL; with ``shorthand`` also of npm's ``owner/repo``. Else None."""
    text = reference.strip() if isinstance(reference, str) else ""
    found = _URL.fullmatch(text) or (_SHORTHAND.fullmatch(text) if shorthand else None)
    if found is None:
        return None
    owner, repo = found[1], found[2].removesuffix(".git")
    return None if repo in {"", ".", ".."} or owner.casefold() in _NO_OWNERS else f"{owner}/{repo}"


def find_node_package(name: str, project: Path) -> InstalledPackage | None:
    """Return the package ``name``, else ``@name/core``, that node would find from ``project``."""
    names = dict.fromkeys((name, name.lower(), *([] if "/" in name else [f"@{name.lower()}/core"])))
    found = next(filter(None, (node_package(one, project) for one in names)), None)
    return _node_package(found) if found else None


def _node_package(found: NodePackage) -> InstalledPackage:
    manifest, name = found.manifest, str(found.manifest["name"])
    needed = [*table(manifest, "dependencies"), *table(manifest, "peerDependencies")]
    stated = manifest.get("repository")
    repository = github_repository(stated.get("url") if isinstance(stated, dict) else stated, shorthand=True)
    return InstalledPackage(
        name=name,
        version=found.version,
        ecosystem="npm",
        root=found.root,
        files=tuple(walk(found.root, skipped=frozenset({"node_modules", "test", "tests"}))),
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
    if not _NAME.fullmatch(name):
        return None
    sites = [str(site) for site in python_environment(projects, environ).sites]
    try:
        found = next(iter(metadata.distributions(name=name, path=sites)), None)
        return _python_package(found) if found is not None else None
    except (OSError, ValueError, KeyError):  # a damaged distribution documents nothing
        return None


def _python_package(distribution: metadata.Distribution) -> InstalledPackage | None:
    # An email message in fact, whose ``get`` is silent about what is missing on every Python.
    about = cast("Message", distribution.metadata)
    name, version = about.get("Name"), about.get("Version")
    if not name or not version or not _NAME.fullmatch(name):
        return None
    urls = [entry.partition(",") for entry in about.get_all("Project-URL") or ()]
    body = about.get("Description") or about.get_payload()
    named = (re.match(r"\s*([\w.-]+)", one) for one in distribution.requires or () if "extra ==" not in one)
    return InstalledPackage(
        name=name,
        version=printable(version, limit=100),
        ecosystem="python",
        root=Path(str(distribution.locate_file(""))).resolve(),
        files=tuple(_files(distribution)),
        requires=tuple(dict.fromkeys(found[1] for found in named if found)),
        description=str(body or "")[:_LONGEST_DESCRIPTION],
        is_markdown="markdown" in str(about.get("Description-Content-Type")).lower(),
        repository=_repository_of_urls([*urls, ("Homepage", "", about.get("Home-page") or "")]),
    )


def _files(distribution: metadata.Distribution) -> Iterator[str]:
    for file in distribution.files or ():
        is_of_metadata = re.fullmatch(r"[^/]+\.(?:dist|egg)-info", file.parts[0] if file.parts else "")
        if not is_of_metadata and ".." not in file.parts and not file.is_absolute():
            yield "/".join(file.parts)


def _repository_of_urls(urls: Iterable[tuple[str, str, str]]) -> str | None:
    """Return the repository of Python's ``(label, comma, URL)``; labels compare without case, dash and space."""
    folded = [(re.sub(r"[^a-z]", "", label.lower()), url) for label, _, url in urls]
    found = (github_repository(url) for wanted in _LABELS for label, url in folded if label == wanted)
    return next(filter(None, found), None)


def walk(root: Path, *, skipped: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the files below ``root``, relative, with forward slashes; links to folders are not followed."""
    count = 0
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in skipped)
        place = Path(folder).relative_to(root)
        for file in sorted(files):
            count += 1
            if count > _MOST_ENTRIES:
                return
            yield (place / file).as_posix()
