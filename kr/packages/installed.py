"""The packages installed for a project, as documentation is read from them: files, needs, and repository."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, cast

from kr.frameworks import packages_named
from kr.packages.environments import NodePackage, node_package, python_environment
from kr.packages.files import printable

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
class Description:
    """The text that the distribution carries about itself. ``content_type`` is a media type such as ``text/markdown``."""

    text: str
    content_type: str


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
    fingerprint: str = ""
    """Differs between two installations whose files differ, as far as their record says."""
    description: Description | None = None
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
    return next((packages for packages in found if packages), [])


def _of_name(name: str, projects: Sequence[Path], environ: Mapping[str, str]) -> list[InstalledPackage]:
    repository = github_repository(name, shorthand=True) if not name.startswith("@") else None
    wanted = repository.partition("/")[2] if repository else name
    of_node = (find_node_package(wanted, project) for project in projects)
    candidates = (next(filter(None, of_node), None), find_python_package(wanted, projects, environ))
    found = [package for package in candidates if package is not None]
    if repository:
        found = [p for p in found if (p.repository or "").casefold() == repository.casefold()]
    return found


def places_searched(projects: Sequence[Path], environ: Mapping[str, str]) -> str:
    """Say where ``find_installed`` looks, without a place of the machine."""
    where = "the working directory" + (", of the configuration's folder" if len(projects) > 1 else "")
    return f"node_modules of {where} and of the folders above; {python_environment(projects, environ).label}"


def github_repository(reference: str, *, shorthand: bool = False) -> str | None:
    """Return ``owner/repo`` of a GitHub URL; with ``shorthand`` also of npm's ``owner/repo``. Else None."""
    text = reference.strip()
    if len(text) > 500 or not text.isprintable():
        return None
    found = _URL.fullmatch(text) or (_SHORTHAND.fullmatch(text) if shorthand else None)
    if found is None:
        return None
    owner, repo = found[1], found[2].removesuffix(".git")
    if repo in {"", ".", ".."} or owner.casefold() in _NO_OWNERS or owner.endswith("-"):
        return None
    return f"{owner}/{repo}"


def _repository_of_urls(urls: Iterable[tuple[str, str]]) -> str | None:
    """Return the repository of Python's ``(label, URL)`` pairs; labels compare without case, dash and space."""
    folded = [(re.sub(r"[^a-z]", "", label.lower()), url) for label, url in urls]
    found = (github_repository(url) for wanted in _LABELS for label, url in folded if label == wanted)
    return next(filter(None, found), None)


def find_node_package(name: str, project: Path) -> InstalledPackage | None:
    """Return the package ``name``, else ``@name/core``, that node would find from ``project``."""
    names = dict.fromkeys((name, name.lower(), *([] if "/" in name else [f"@{name.lower()}/core"])))
    found = next(filter(None, (node_package(one, project) for one in names)), None)
    return _node_package(found) if found else None


def _node_package(found: NodePackage) -> InstalledPackage:
    manifest, name = found.manifest, str(found.manifest["name"])
    files = list(walk(found.root, skipped=frozenset({"node_modules", "test", "tests"})))
    listed = (manifest.get(key) for key in ("dependencies", "peerDependencies"))
    needed = [one for table in listed if isinstance(table, dict) for one in table]
    homepage = manifest.get("homepage")
    return InstalledPackage(
        name=name,
        version=found.version,
        ecosystem="npm",
        root=found.root,
        files=tuple(files),
        requires=tuple(dict.fromkeys([types_package(name), *needed])),
        fingerprint=_digest(repr((sorted(manifest.items(), key=str), files))),
        repository=_repository_of_npm(manifest.get("repository"))
        or (github_repository(homepage) if isinstance(homepage, str) else None),
    )


def types_package(name: str) -> str:
    """Return the name under which DefinitelyTyped keeps the declarations of a package."""
    return f"@types/{name.removeprefix('@').replace('/', '__')}"


def _repository_of_npm(value: Any) -> str | None:
    """Return the repository of package.json's ``repository``: a text or a mapping with ``url``."""
    reference = value.get("url") if isinstance(value, dict) else value
    return github_repository(reference, shorthand=True) if isinstance(reference, str) else None


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
    except (OSError, ValueError, KeyError, UnicodeError):  # a damaged distribution documents nothing
        return None


def _python_package(distribution: metadata.Distribution) -> InstalledPackage | None:
    # An email message in fact, whose ``get`` is silent about what is missing on every Python.
    about = cast("Message", distribution.metadata)
    name, version = about.get("Name"), about.get("Version")
    root = Path(str(distribution.locate_file(""))).resolve()
    if not name or not version or not _NAME.fullmatch(name) or not root.is_dir():
        return None
    files = list(_files(distribution)) or list(_files_on_disk(distribution, root))
    urls = [entry.partition(",") for entry in about.get_all("Project-URL") or ()]
    labelled = [(label.strip(), url.strip()) for label, _, url in urls]
    record = distribution.read_text("RECORD") or "\n".join(files)
    return InstalledPackage(
        name=name,
        version=printable(version, limit=100),
        ecosystem="python",
        root=root,
        files=tuple(f for f in files if not re.match(r"[^/]+\.(?:dist|egg)-info/", f)),
        requires=_requires(distribution),
        fingerprint=_digest(record),
        description=_description(about),
        repository=_repository_of_urls([*labelled, ("Homepage", about.get("Home-page") or "")]),
    )


def _files(distribution: metadata.Distribution) -> Iterator[str]:
    for file in distribution.files or ():
        if file.parts and ".." not in file.parts and not file.is_absolute():
            yield "/".join(file.parts)


def _files_on_disk(distribution: metadata.Distribution, root: Path) -> Iterator[str]:
    """Yield the files of a distribution without a record of them."""
    for name in sorted((distribution.read_text("top_level.txt") or "").split()):
        if name.isidentifier():
            yield f"{name}.py"
            yield from (f"{name}/{file}" for file in walk(root / name))


def _requires(distribution: metadata.Distribution) -> tuple[str, ...]:
    """Return the names of what a distribution needs, without what only an extra needs."""
    named = (
        re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", one)
        for one in distribution.requires or ()
        if "extra ==" not in one
    )
    return tuple(dict.fromkeys(found[1] for found in named if found))


def _description(about: Message) -> Description | None:
    body = about.get("Description") or about.get_payload()
    if not isinstance(body, str) or not body.strip():
        return None
    content_type = str(about.get("Description-Content-Type") or "text/x-rst").partition(";")[0]
    return Description(text=body[:_LONGEST_DESCRIPTION], content_type=content_type.strip().lower())


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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
