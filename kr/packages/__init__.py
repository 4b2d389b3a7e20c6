"""What a project on disk says about itself: what it depends on, and the version of one framework in it.

``installed`` has the packages that are installed for it, ``manifests`` reads its dependency files.
"""

import logging
import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from kr.frameworks import framework_key, is_language_or_product, is_usual_name, packages_named
from kr.packages.installed import find_node_package, python_environment
from kr.packages.model import (
    MOST_DEPENDENCIES,
    REQUIREMENTS,
    UNKNOWN,
    Dependency,
    Folder,
    checked,
    names_in,
    stamp,
    upwards,
)
from kr.text import fold

logger = logging.getLogger(__name__)

_MAX_HEIGHT = 12
_MOST_PROJECTS = 20
_MOST_KEPT = 50
_LANGUAGES = frozenset({"go", "java", "kotlin", "node", "nodejs", "php", "python", "ruby", "rust"})
"""Languages whose version a manifest states; a package that is named like one is never meant."""
_NO_PROJECTS = frozenset(
    {"node_modules", "vendor", "site-packages", "examples", "test", "tests", "fixtures", "_bmad-output"}
)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All dependencies, direct ones first, and one sentence per file that could not be used, or not wholly."""

    dependencies: tuple[Dependency, ...]
    warnings: tuple[str, ...]


class _Project:
    """What was read of one folder, kept in this process as long as its files are as they were."""

    def __init__(self, folder: Folder, rows: Iterable[Dependency]) -> None:
        self.folder = folder
        self.rows = tuple(islice(rows, MOST_DEPENDENCIES))
        self._versions: dict[tuple[str, str], str | None] = {}

    def dependencies(self, member: str) -> Sequence[Dependency]:
        """Return all, or what the manifest in a member's folder states."""
        if not member:
            return self.rows
        return [row for row in self.rows if posixpath.dirname(row.manifest or row.file) == member]

    def version(self, framework: str, member: str) -> str | None:
        key = (framework, member)
        if key not in self._versions:
            known = fitting(self.dependencies(member), framework)
            self._versions[key] = known[0].version if known else None
        return self._versions[key]


_kept: dict[tuple[Path, str], _Project] = {}


def find_dependencies(folder: Path, environ: Mapping[str, str]) -> Dependencies:
    """Read every dependency file of the project that ``folder`` lies in, and of its workspace's members.

    The project is the nearest folder upwards with such a file, up to the repository's root; where there is none, the
    projects in the two levels below. A member of a workspace has the versions that the workspace gives it. What is installed
    wins over a lock file, a lock file over a range. A file that can't be used, or not wholly, is a warning that names it and
    the reason; nothing is raised.
    """
    if not folder.is_dir():
        return Dependencies((), (f"{folder.name or '.'}: it is no folder",))
    start = folder.resolve()
    kept: dict[tuple[str, str, str], Dependency] = {}
    warnings: list[str] = []
    for places in [ups] if (ups := _projects_above(start)) else _projects_below(start):
        given: set[str] = set()
        for project, member in _projects(places, environ):
            rows = [row for row in project.dependencies(member) if row.ecosystem not in given]
            for row in sorted(rows, key=lambda row: (not row.direct, row.dev)):
                file = _shown(project.folder.root, row.file, start)
                kept.setdefault((row.ecosystem, row.package, row.version), replace(row, file=file))
            # What a workspace gives stands for what its member states itself.
            given |= {row.ecosystem for row in rows}
            for file, _, why in (one.partition(": ") for one in project.folder.warnings if not member):
                warnings.append(f"{_shown(project.folder.root, file, start)}: {why}")
    rows = sorted(kept.values(), key=lambda row: (not row.direct, row.framework.casefold(), row.package))
    return Dependencies(tuple(rows), tuple(warnings))


def _shown(root: Path, file: str, start: Path) -> str:
    """Name a file of a project as seen from a folder; what lies outside of the project has its whole path."""
    return file if posixpath.isabs(file) else Path(os.path.relpath(root / file, start)).as_posix()


def version_of(folder: Path, framework: str, environ: Mapping[str, str]) -> str | None:
    """Return the version of ``framework`` that the project of ``folder`` uses, None where nothing gives one.

    What is installed first (``node_modules``, the Python environment); then the lock file's exact version, then the text
    of the manifest, of projects further up when the nearest does not know the framework. ``spring-boot`` also fits its
    starters and its parent, ``angular`` also ``@angular/core``, ``mybatis-plus`` its Spring Boot starter; a longer name is
    never taken for a shorter one. A language has the version that a manifest states for it. Files that can't be used are
    named in the log.
    """
    if version := _installed_version(folder, framework, environ):
        return version
    start = folder.resolve()
    ups = _projects_above(start)
    for places in [ups[at:] for at in range(len(ups))] or _projects_below(start):
        for project, member in _projects(places, environ):
            for warning in project.folder.warnings if not member else ():
                logger.warning("%s", warning)
            if version := project.version(framework, member):
                return version
    return None


def _installed_version(folder: Path, framework: str, environ: Mapping[str, str]) -> str | None:
    """Return the version that is installed: of node's and Python's packages first that of the nearest manifest's kind."""
    name = framework.strip()
    environment = python_environment((folder,), environ)
    if framework_key(name) in _LANGUAGES:
        return environment.python if environment.root and framework_key(name) == "python" else None
    if not name or ("/" in name and not name.startswith("@")):
        return None
    names = [name, *([] if is_language_or_product(name) else packages_named(name))]
    node = (package.version for one in names if (package := find_node_package(one, folder)))
    python = (found[0] for one in names if (found := environment.find(one)))
    return next(chain(python, node) if _is_of_python(folder) else chain(node, python), None)


def _is_of_python(folder: Path) -> bool:
    """Tell whether the nearest folder upwards with a manifest of node or Python has one of Python alone."""
    for place in upwards(folder.resolve()):
        names = names_in(place)
        if "package.json" in names:
            return False
        if any(name in {"pyproject.toml", "setup.cfg"} or re.fullmatch(REQUIREMENTS, name) for name in names):
            return True
    return False


def _projects(places: Sequence[Path], environ: Mapping[str, str]) -> Iterator[tuple[_Project, str]]:
    """Yield what gives the versions of the project at the first of ``places``; the others are the projects above it.

    A workspace that it is a member of comes first, the uppermost before others, with the member's folder in it; then the project itself.
    """
    for above in reversed(places[1:]):
        workspace, member = _project(above, environ), places[0].relative_to(above).as_posix()
        if member in workspace.folder.members:
            yield workspace, member
    yield _project(places[0], environ), ""


def _project(place: Path, environ: Mapping[str, str]) -> _Project:
    """Read a folder, unless it was read before and nothing has changed."""
    from kr.packages.manifests import read_project  # heavy: the readers of all formats

    key = (place, environ.get("VIRTUAL_ENV", ""))
    known = _kept.get(key)
    if known and all(stamp(path) == was for path, was in known.folder.seen.items()):
        return known
    folder = Folder(place)
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[key] = _Project(folder, checked(read_project(folder, environ)))
    return _kept[key]


def _projects_above(start: Path) -> list[Path]:
    """Return each folder with a manifest upwards, this one first, up to the repository's root.

    Without a repository it ends below the home folder, and after ``_MAX_HEIGHT`` levels.
    """
    from kr.packages.manifests import is_project  # heavy

    home, found = os.path.expanduser("~"), []  # noqa: PTH111 -- where there is none it stays
    for place in (start, *start.parents)[:_MAX_HEIGHT]:
        if place != start and (str(place) == home or place == place.parent):
            break
        found += [place] if is_project(place) else []
        if (place / ".git").exists():
            break
    return found


def _projects_below(start: Path) -> list[list[Path]]:
    """Return the folders with a manifest, one and two levels down; what lies inside one of them is its own affair."""
    from kr.packages.manifests import is_project  # heavy

    found: list[Path] = []
    for place in _folders_in(start):
        found += [place] if is_project(place) else filter(is_project, _folders_in(place))
    return [[place] for place in found[:_MOST_PROJECTS]]


def _folders_in(folder: Path) -> list[Path]:
    """Return the folders in a folder that may hold a project of its own."""
    names = (name for name in names_in(folder) if not name.startswith(".") and name not in _NO_PROJECTS)
    places = (folder / name for name in names)
    return [place for place in places if place.is_dir() and not place.is_symlink()]


def fitting(dependencies: Iterable[Dependency], framework: str) -> list[Dependency]:
    """Return the dependencies of known version that go by the name ``framework``, the best first.

    The better name before the lesser one, direct before indirect, exact before a range; see ``version_of``.
    """
    wanted, key = fold(framework), framework_key(framework)
    is_product = is_language_or_product(framework)
    rows = [
        (fit, not one.direct, re.fullmatch(r"v?\d[\w.+-]*", one.version) is None, one)
        for one in dependencies
        if one.version != UNKNOWN and (fit := _fit(one, wanted, key, is_product=is_product)) is not None
    ]
    return [row[3] for row in sorted(rows, key=lambda row: row[:3])]


def _fit(dependency: Dependency, wanted: str, key: str, *, is_product: bool) -> int | None:
    """Return how well the dependency's name fits: 0 is best, None not at all."""
    if dependency.ecosystem == "language" or key in _LANGUAGES:
        is_same = dependency.ecosystem == "language" and framework_key(dependency.package) == key
        return 0 if is_same and key in _LANGUAGES else None
    package, name = fold(dependency.package), fold(dependency.framework)
    if wanted in {package, name}:
        return 0
    if is_product:
        return None
    artifact = package.rpartition(":")[2]
    if artifact == wanted:
        return 1
    starter_of = re.sub(r"-(?:spring-)?boot\d?-starter$", "", artifact)
    # What has a mark in its name is a part of a framework.
    whole = [one for one in (name, artifact) if not re.search("[/:@]", one)]
    is_whole = any(framework_key(one) == key for one in dict.fromkeys(whole))
    return 2 if is_whole or wanted in {starter_of, name.removeprefix("@").removesuffix("/core")} else None


def package_aliases(dependencies: Iterable[Dependency]) -> dict[str, str]:
    """Return the last part of each direct package's full name as another name of the package.

    ``mux: github.com/gorilla/mux``, ``form-kit: @acme/ui-kit``, ``poi: org.apache.poi:poi``. A part that several packages
    end with means none of them, and neither does one that is the usual name of a framework, language or product (the
    MySQL driver of Go ends with ``mysql``), or of a package that has usual names already.
    """
    packages = defaultdict(set)
    for dependency in dependencies:
        if dependency.direct and dependency.ecosystem != "language":
            # The short name has no version at its end, but it keeps the scope of an npm package.
            last = re.split("[/:]", dependency.framework)[-1]
            packages[framework_key(last)].add(dependency.package)
    return {
        name: package
        for name, (package, *others) in packages.items()
        if not others
        and name != framework_key(package)
        and not is_language_or_product(name)
        and not any(map(is_usual_name, (name, package)))
    }
