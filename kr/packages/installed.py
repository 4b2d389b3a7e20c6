"""The packages installed for a project: their files, what they need, and their repository (SPEC 3.5.2, 3.5.6)."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from kr.naming import sha256_of
from kr.packages.model import printable
from kr.packages.witness import saw_file, saw_names, saw_place

if TYPE_CHECKING:
    from email.message import Message


_MOST_ENTRIES = 20_000
_OWNER_REPO = r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100})"
_SHORTHAND = re.compile(rf"(?:github:)?{_OWNER_REPO}")
_URL = re.compile(
    rf"(?:git\+)?(?:https?|ssh|git)://(?:[\w.-]+@)?(?:www\.)?github\.com[:/]{_OWNER_REPO}(?:[/#?].*)?",
    re.IGNORECASE,
)
_SCP = re.compile(rf"(?:git\+)?git@github\.com:{_OWNER_REPO}(?:[/#?].*)?", re.IGNORECASE)
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
    """Its files, relative to ``root``, with forward slashes. They may be links to anywhere: ``contained`` tells."""
    requires: tuple[str, ...] = ()
    """Names of the packages that it needs itself."""
    fingerprint: str = ""
    """Differs between two installations whose files differ, as far as their record tells."""
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


def github_repository(reference: str, *, shorthand: bool = False) -> str | None:
    """Return ``owner/repo`` of a GitHub URL; with ``shorthand`` also of npm's ``owner/repo``. Else None."""
    text = reference.strip()
    if len(text) > 500 or not text.isprintable():
        return None
    found = _URL.fullmatch(text) or _SCP.fullmatch(text)
    if found is None and shorthand:
        found = _SHORTHAND.fullmatch(text)
    if found is None:
        return None
    owner, repo = found[1], found[2].removesuffix(".git")
    if repo in {"", ".", ".."} or owner.casefold() in _NO_OWNERS or owner.endswith("-"):
        return None
    return f"{owner}/{repo}"


def repository_of_urls(urls: Iterable[tuple[str, str]]) -> str | None:
    """Return the repository of Python's ``(label, URL)`` pairs; labels compare without case, dash and space."""
    folded = [(re.sub(r"[^a-z]", "", label.lower()), url) for label, url in urls]
    for wanted in _LABELS:
        for label, url in folded:
            if label == wanted and (found := github_repository(url)):
                return found
    return None


def repository_of_npm(value: object) -> str | None:
    """Return the repository of package.json's ``repository``: a text or a mapping with ``url``."""
    reference = value.get("url") if isinstance(value, dict) else value
    return github_repository(reference, shorthand=True) if isinstance(reference, str) else None


_LONGEST_NAME = 214


def find_installed(
    framework: str, projects: Sequence[Path], environ: Mapping[str, str]
) -> list[InstalledPackage]:
    """Return the packages of this name, node's before Python's; an empty list when there is none.

    ``framework`` is a package's name (any spelling that PEP 503 takes as equal, or a Python import name), or
    ``owner/repo``, which must then be the repository of the package found, or another usual name of the framework
    (``jinja`` finds Jinja2). A name that no registry would take finds nothing. ``projects`` are folders inside projects, the first that has the package wins.
    All is read from the file system: no interpreter is started.
    """
    from kr.frameworks import packages_named

    name = framework.strip()
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        return []
    found = (_of_name(it, projects, environ) for it in (name, *packages_named(name)))
    return next((packages for packages in found if packages), [])


def _of_name(name: str, projects: Sequence[Path], environ: Mapping[str, str]) -> list[InstalledPackage]:
    from kr.packages.installed_node import find_node_package

    repository = github_repository(name, shorthand=True) if not name.startswith("@") else None
    wanted = repository.partition("/")[2] if repository else name
    of_node = (find_node_package(wanted, project) for project in projects)
    candidates = (
        next((package for package in of_node if package is not None), None),
        find_python_package(wanted, projects, environ),
    )
    found = [package for package in candidates if package is not None]
    if repository:
        found = [p for p in found if (p.repository or "").casefold() == repository.casefold()]
    return found


def places_searched(projects: Sequence[Path], environ: Mapping[str, str]) -> str:
    """Say where ``find_installed`` looks, without a place of the machine."""
    where = "the working directory" + (", of the configuration's folder" if len(projects) > 1 else "")
    python = environment_of(projects, environ)[1]
    return f"node_modules of {where} and of the folders above; {python}"


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|_[A-Za-z0-9_]+")
_MAX_LEVELS = 6
_LONGEST_DESCRIPTION = 2 * 1024 * 1024


def find_python_package(
    name: str, projects: Sequence[Path], environ: Mapping[str, str]
) -> InstalledPackage | None:
    """Return the distribution ``name`` (PEP 503), else the one that provides the import name ``name``."""
    if not _NAME.fullmatch(name):
        return None
    folders = [str(folder) for folder in site_folders(projects, environ)]
    _saw_distributions(name, folders)
    try:
        found = next(iter(metadata.distributions(name=name, path=folders)), None)
        found = found or _provider(name, folders)
        return _read(found) if found is not None else None
    except (OSError, ValueError, KeyError, UnicodeError):  # a damaged distribution documents nothing
        return None


def installed_version(name: str, folders: Sequence[Path]) -> tuple[str, Path] | None:
    """Return the version of a distribution in these site-packages folders, and which of them has it."""
    try:
        for folder in folders:
            for found in metadata.distributions(name=name, path=[str(folder)]):
                if version := cast("Message", found.metadata).get("Version"):
                    return printable(version, limit=100), folder
    except (OSError, ValueError, KeyError, UnicodeError):
        return None
    return None


def _saw_distributions(name: str, folders: list[str]) -> None:
    for folder in folders:
        saw_names(folder)
        # An editable installation is renewed in place, under the same name.
        pattern = (
            "[-_.]+".join(re.escape(part) for part in re.split("[-_.]+", name)) + r"[-.].*(?:dist|egg)-info"
        )
        for found in _names(folder):
            if re.fullmatch(pattern, found, re.IGNORECASE):
                saw_file(f"{folder}/{found}/METADATA")
                saw_file(f"{folder}/{found}/PKG-INFO")


def _names(folder: str) -> list[str]:
    try:
        return [found.name for found in Path(folder).iterdir()]
    except OSError:
        return []


def site_folders(projects: Sequence[Path], environ: Mapping[str, str]) -> list[Path]:
    """Return the site-packages folders in use: ``VIRTUAL_ENV``'s, else those of an environment in a project, else of PATH's python.

    All of them are read from their layout; no interpreter is started.
    """
    return environment_of(projects, environ)[0] or _of_path(environ)


def environment_of(projects: Sequence[Path], environ: Mapping[str, str]) -> tuple[list[Path], str]:
    """Return the site-packages folders of the virtual environment in use, and what it is in words."""
    active = environ.get("VIRTUAL_ENV")
    if active and (folders := _layout(Path(active))):
        return folders, "the Python environment of VIRTUAL_ENV"
    for environment in (it for project in projects for it in _environments(project)):
        if folders := _layout(environment):
            return folders, f"the project's Python environment {printable(environment.name, limit=80)}"
    return [], "the python on PATH"


def _environments(project: Path) -> Iterator[Path]:
    """Yield ``.venv`` of each folder upwards, and then whatever in it says that it is an environment (``venv``, ``env``).

    Above the folder that is asked about, that counts in its repository alone: who knows whose ``/tmp/venv`` is.
    """
    places = list(_upwards(project))
    for place in places:
        yield place / ".venv"
        if place == project or os.path.lexists(places[-1] / ".git"):
            saw_names(place)
            names = sorted(_names(str(place)), key=lambda name: (name not in {"venv", "env"}, name))
            yield from (place / name for name in names if (place / name / "pyvenv.cfg").is_file())


def _upwards(project: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the root of its repository; without one, the fifth is the last."""
    for place in [project, *project.parents][:_MAX_LEVELS]:
        yield place
        saw_place(place / ".git")
        if os.path.lexists(place / ".git"):
            return


def _layout(environment: Path) -> list[Path]:
    saw_names(environment / "lib")
    saw_names(environment / "Lib")
    try:
        found = [*environment.glob("lib/python3*/site-packages"), *environment.glob("Lib/site-packages")]
        return sorted(f for f in found if f.is_dir())
    except (OSError, ValueError):
        return []


def _of_path(environ: Mapping[str, str]) -> list[Path]:
    """Return the site-packages folders of the first ``python`` on PATH that is a program: they lie beside it."""
    path = environ.get("PATH", "")
    for command in ("python", "python3"):
        for folder in path.split(os.pathsep):
            saw_file(Path(folder, command))
        program = shutil.which(command, path=path) if path else None
        if program is not None and not _is_script(Path(program)) and (folders := _beside(Path(program))):
            return folders
    return []


def _is_script(program: Path) -> bool:
    """Tell whether a program is a version manager's, which starts another Python for each folder."""
    try:
        with program.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def _beside(program: Path) -> list[Path]:
    saw_file(program.parent.parent / "pyvenv.cfg")
    if (program.parent.parent / "pyvenv.cfg").is_file():
        return _layout(program.parent.parent)
    try:
        real = program.resolve(strict=True)
    except (OSError, RuntimeError):
        return []
    # Debian's own packages lie in dist-packages, and what pip adds below /usr/local.
    named = real.name if re.fullmatch(r"python3\.\d+", real.name) else "python3.*"
    prefix = real.parent.parent
    patterns = (f"local/lib/{named}/dist-packages", f"lib/{named}/site-packages", "lib/python3/dist-packages")
    try:
        return [found for pattern in patterns for found in sorted(prefix.glob(pattern)) if found.is_dir()]
    except (OSError, ValueError):
        return []


def _provider(name: str, folders: list[str]) -> metadata.Distribution | None:
    """Return the distribution that installed the import package ``name`` (``yaml`` comes from PyYAML)."""
    present = [
        folder
        for folder in folders
        if name.isidentifier() and ((Path(folder) / name).is_dir() or (Path(folder) / f"{name}.py").is_file())
    ]
    for distribution in metadata.distributions(path=present):
        if name in _top_level(distribution):
            return distribution
    return None


def _top_level(distribution: metadata.Distribution) -> set[str]:
    listed = distribution.read_text("top_level.txt")
    if listed:
        return set(listed.split())
    return {parts[0].removesuffix(".py") for parts in _parts(distribution) if parts[-1].endswith(".py")}


def _parts(distribution: metadata.Distribution) -> Iterator[tuple[str, ...]]:
    for file in distribution.files or ():
        if file.parts and ".." not in file.parts and not file.is_absolute():
            yield file.parts


def _read(distribution: metadata.Distribution) -> InstalledPackage | None:
    # An email message in fact, whose ``get`` is silent about what is missing on every Python.
    about = cast("Message", distribution.metadata)
    name, version = about.get("Name"), about.get("Version")
    root = Path(str(distribution.locate_file(""))).resolve()
    if not name or not version or not _NAME.fullmatch(name) or not root.is_dir():
        return None
    files = [("/".join(parts)) for parts in _parts(distribution)] or list(_walk_top_level(distribution, root))
    urls = tuple(
        (label.strip(), url.strip())
        for label, _, url in (entry.partition(",") for entry in about.get_all("Project-URL") or ())
    )
    if about.get("Home-page"):
        urls += (("Homepage", about.get("Home-page", "")),)
    record = distribution.read_text("RECORD") or "\n".join(files)
    return InstalledPackage(
        name=name,
        version=printable(version, limit=100),
        ecosystem="python",
        root=root,
        files=tuple(f for f in files if not re.match(r"[^/]+\.(?:dist|egg)-info/", f)),
        requires=_requires(distribution),
        fingerprint=sha256_of(record.encode(errors="surrogateescape")),
        description=_description(about),
        repository=repository_of_urls(urls),
    )


def _requires(distribution: metadata.Distribution) -> tuple[str, ...]:
    """Return the names of what a distribution needs, without what only an extra needs."""
    named = (
        re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", one)
        for one in distribution.requires or ()
        if "extra ==" not in one
    )
    return tuple(dict.fromkeys(found[1] for found in named if found))


def _walk_top_level(distribution: metadata.Distribution, root: Path) -> Iterator[str]:
    """Yield the files of a distribution without a record of them."""
    for name in sorted(_top_level(distribution)):
        if name.isidentifier():
            yield f"{name}.py"
            yield from (f"{name}/{file}" for file in walk(root / name))


def _description(about: "Message") -> Description | None:
    body = about.get("Description") or about.get_payload()
    if not isinstance(body, str) or not body.strip():
        return None
    content_type = (
        str(about.get("Description-Content-Type") or "text/x-rst").partition(";")[0].strip().lower()
    )
    return Description(text=body[:_LONGEST_DESCRIPTION], content_type=content_type)
