"""The packages that are installed for a project, with the documentation they ship (SPEC 3.5.5)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kr.projects.repository import github_repository

_LONGEST_NAME = 214


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
    documents: tuple[Path, ...] = ()
    """README and documentation files, the most telling first."""
    sources: tuple[Path, ...] = ()
    """Source files that carry documentation (``.py``, ``.d.ts``)."""
    description: Description | None = None
    urls: tuple[tuple[str, str], ...] = ()
    """``(label, URL)`` as the metadata names them."""
    repository: str | None = None
    """``owner/repo`` on GitHub."""

    @property
    def home(self) -> str | None:
        """Return the address of the documentation, else of the home page; None when there is neither."""
        folded = {re.sub(r"[^a-z]", "", label.lower()): url for label, url in reversed(self.urls)}
        for label in ("documentation", "docs", "homepage", "home"):
            url = folded.get(label, "")
            if re.fullmatch(r"https?://[^\s<>\"'`]{1,500}", url) and url.isprintable():
                return url
        return None


def find_installed(
    framework: str, project_dir: Path, environ: Mapping[str, str], *, timeout: float = 5.0
) -> list[InstalledPackage]:
    """Return the packages of this name, node's before Python's; an empty list when there is none.

    ``framework`` is a package's name (any spelling that PEP 503 takes as equal, or a Python import name) or
    ``owner/repo``, which must then be the repository of the package found. A name that no registry would
    take finds nothing. ``timeout`` (seconds) bounds asking the ``python`` on ``PATH`` for its folders.
    """
    from kr.projects.installed_node import find_node_package
    from kr.projects.installed_python import find_python_package

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
