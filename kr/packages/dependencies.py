"""The frameworks and versions that a project's dependency files name (SPEC 6.4)."""

import logging
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from kr.packages.folder import Folder
from kr.packages.model import UNKNOWN, Dependency, Found, Inventory

__all__ = ["Dependency", "Found", "find_dependencies", "fitting", "version_of"]

logger = logging.getLogger(__name__)

_LOCKS = frozenset(
    {
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "uv.lock",
        "poetry.lock",
        "gradle.lockfile",
        "Cargo.lock",
        "composer.lock",
        "Gemfile.lock",
        "go.mod",
    }
)
_SPRING_BOOT = "org.springframework.boot:spring-boot"


def find_dependencies(project_dir: Path) -> Found:
    """Read every dependency file of the project folder and of its workspace members.

    A lock file's exact version wins over a range. A file that can't be used, or not wholly, is a warning
    that names it and the reason; nothing is raised.
    """
    from kr.packages import bundler, cargo, composer, go, gradle, maven, npm, python_files

    folder = Folder(project_dir)
    if not project_dir.is_dir():
        folder.warn(project_dir.name or ".", "it is no folder")
        return Found((), tuple(folder.warnings))
    inventory = Inventory()
    for ecosystem in (npm, python_files, maven, gradle, go, cargo, composer, bundler):
        ecosystem.find(folder, inventory)
    return Found(inventory.dependencies(), tuple(folder.warnings))


def version_of(project_dir: Path, framework: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the version of ``framework`` that the project uses, None where nothing tells one.

    The exact version of a lock file first, then the text of the manifest, then the version installed in
    ``node_modules`` or the Python environment. ``spring-boot`` also fits its starters and its parent,
    ``angular`` also ``@angular/core``, ``mybatis-plus`` its Spring Boot starter; a longer name is never taken
    for a shorter one. ``environ`` tells the Python environment, the process's own when it is left out. Files
    that can't be used are told in the log.
    """
    import os

    from kr.packages.installed import find_installed

    found = find_dependencies(project_dir)
    for warning in found.warnings:
        logger.warning("%s", warning)
    known = fitting(found.dependencies, framework)
    if known:
        return known[0].version
    installed = find_installed(framework, (project_dir,), os.environ if environ is None else environ)
    return installed[0].version if installed else None


def fitting(dependencies: Iterable[Dependency], framework: str) -> list[Dependency]:
    """Return the dependencies of known version that go by the name ``framework``, the best first.

    The better name before the lesser one, direct before indirect, exact before a range; see ``version_of``.
    """
    rows = [(_fit(d, framework), not d.direct, _certainty(d), d) for d in dependencies]
    known = [row for row in rows if row[0] is not None and row[3].version != UNKNOWN]
    return [row[3] for row in sorted(known, key=lambda row: row[:3])]


def _fit(dependency: Dependency, framework: str) -> int | None:
    """Return how well the dependency's name fits: 0 is best, None not at all."""
    wanted, package = _folded(framework), _folded(dependency.package)
    if wanted in {package, _folded(dependency.framework)}:
        return 0
    if wanted.replace(".", "-") == package.replace(".", "-"):
        return 1
    if wanted == "spring-boot" and dependency.package.startswith(_SPRING_BOOT):
        return 2
    if package == f"@{wanted}/core" or _is_starter(dependency.package, wanted):
        return 3
    return None


def _is_starter(package: str, wanted: str) -> bool:
    """Tell whether a Maven artifact is the Spring Boot starter of ``wanted`` (``mybatis-plus-boot-starter``)."""
    artifact = package.rpartition(":")[2] if ":" in package else ""
    return re.fullmatch(r"-(?:spring-)?boot\d?-starter", artifact.removeprefix(wanted)) is not None


@lru_cache(maxsize=8192)
def _folded(name: str) -> str:
    import unicodedata

    text = unicodedata.normalize("NFKC", name).strip().casefold()
    # ``.`` is told apart: next.js is no spelling of a Python name, and Go paths have dots.
    return re.sub(r"[-_\s]+", "-", text)


def _certainty(dependency: Dependency) -> int:
    if dependency.file.rpartition("/")[2] in _LOCKS:
        return 0
    return 1 if re.fullmatch(r"v?\d[\w.+-]*", dependency.version) else 2
