"""The packages that are installed for a project, with the documentation they ship (SPEC 3.5.5)."""

from collections.abc import Mapping
from pathlib import Path

from kr.packages.installed_package import InstalledPackage
from kr.packages.repository import github_repository

_LONGEST_NAME = 214


def find_installed(
    framework: str, project_dir: Path, environ: Mapping[str, str], *, timeout: float = 5.0
) -> list[InstalledPackage]:
    """Return the packages of this name, node's before Python's; an empty list when there is none.

    ``framework`` is a package's name (any spelling that PEP 503 takes as equal, or a Python import name) or
    ``owner/repo``, which must then be the repository of the package found. A name that no registry would
    take finds nothing. ``timeout`` (seconds) bounds asking the ``python`` on ``PATH`` for its folders.
    """
    from kr.packages.installed_node import find_node_package
    from kr.packages.installed_python import find_python_package

    name = framework.strip()
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        return []
    repository = github_repository(name, shorthand=True) if not name.startswith("@") else None
    wanted = repository.partition("/")[2] if repository else name
    found = [
        package
        for package in (
            find_node_package(wanted, project_dir),
            find_python_package(wanted, project_dir, environ, timeout=timeout),
        )
        if package is not None
    ]
    if repository:
        found = [p for p in found if (p.repository or "").casefold() == repository.casefold()]
    return found
