"""The packages that are installed for a project, with the documentation they ship (SPEC 3.5.5)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kr.packages.installed_package import InstalledPackage, github_repository

_LONGEST_NAME = 214


def find_installed(
    framework: str, projects: Sequence[Path], environ: Mapping[str, str], *, timeout: float = 5.0
) -> list[InstalledPackage]:
    """Return the packages of this name, node's before Python's; an empty list when there is none.

    ``framework`` is a package's name (any spelling that PEP 503 takes as equal, or a Python import name) or
    ``owner/repo``, which must then be the repository of the package found. A name that no registry would
    take finds nothing. ``projects`` are folders inside projects, the first that has the package wins.
    ``timeout`` (seconds) bounds asking the ``python`` on ``PATH`` for its folders.
    """
    from kr.packages.installed_node import find_node_package
    from kr.packages.installed_python import find_python_package

    name = framework.strip()
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        return []
    repository = github_repository(name, shorthand=True) if not name.startswith("@") else None
    wanted = repository.partition("/")[2] if repository else name
    of_node = (find_node_package(wanted, project) for project in projects)
    candidates = (
        next((package for package in of_node if package is not None), None),
        find_python_package(wanted, projects, environ, timeout=timeout),
    )
    found = [package for package in candidates if package is not None]
    if repository:
        found = [p for p in found if (p.repository or "").casefold() == repository.casefold()]
    return found


def places_searched(projects: Sequence[Path], environ: Mapping[str, str]) -> str:
    """Say where ``find_installed`` looks, without a place of the machine."""
    from kr.packages.installed_python import environment_of

    where = "the working directory" + (", of the configuration's folder" if len(projects) > 1 else "")
    python = environment_of(projects, environ)[1]
    return f"node_modules of {where} and of the folders above; {python}"


def with_related(package: InstalledPackage, projects: Sequence[Path]) -> InstalledPackage:
    """Return a package with what leads on from it: its declarations, and the packages that document its names."""
    from kr.packages.installed_node import with_declarations

    return with_declarations(package, projects) if package.ecosystem == "npm" else package
