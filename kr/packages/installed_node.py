"""A package in ``node_modules``, searched upwards as node does."""

import re
from pathlib import Path
from typing import Any

from kr.packages.documents import choose_documents, choose_sources, walk
from kr.packages.folder import Unreadable, parse_json, read_text
from kr.packages.installed_package import InstalledPackage
from kr.packages.model import printable
from kr.packages.repository import github_repository, repository_of_npm

_NAME = re.compile(r"(?:@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*")
_MAX_MANIFEST = 1024 * 1024
_RESERVED = frozenset({"node_modules", "favicon.ico"})


def find_node_package(name: str, project_dir: Path) -> InstalledPackage | None:
    """Return the package ``name``, else ``@name/core``, that node would find from ``project_dir``.

    The package's folder must really lie in one of the ``node_modules`` searched (pnpm's links do); a link
    that leads elsewhere is not followed.
    """
    if not _NAME.fullmatch(name) or name.lower() in _RESERVED:
        return None
    names = dict.fromkeys((name, name.lower(), *([] if "/" in name else [f"@{name.lower()}/core"])))
    try:
        start = project_dir.resolve()
        shelves = [shelf for place in (start, *start.parents) if (shelf := place / "node_modules").is_dir()]
        homes = [shelf.resolve() for shelf in shelves]
    except (OSError, RuntimeError):
        return None
    for candidate in names:
        for shelf in shelves:
            package = _read(shelf / candidate, homes)
            if package is not None:
                return package
    return None


def _read(folder: Path, homes: list[Path]) -> InstalledPackage | None:
    try:
        root = folder.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    # A shelf itself or the folder of a scope is no package.
    if not any(root.is_relative_to(home) and root != home for home in homes) or not root.is_dir():
        return None
    manifest = _manifest(root)
    name, version = manifest.get("name"), manifest.get("version")
    if not isinstance(name, str) or not isinstance(version, str) or not _NAME.fullmatch(name):
        return None
    files = list(walk(root, skipped=frozenset({"node_modules", "test", "tests"})))
    homepage = manifest.get("homepage")
    return InstalledPackage(
        name=name,
        version=printable(version, limit=100),
        ecosystem="npm",
        root=root,
        documents=choose_documents(files, root),
        sources=choose_sources(files, root, ".d.ts", ".js", ".mjs", ".cjs"),
        urls=(("Homepage", homepage),) if isinstance(homepage, str) else (),
        repository=repository_of_npm(manifest.get("repository"))
        or (github_repository(homepage) if isinstance(homepage, str) else None),
    )


def _manifest(root: Path) -> dict[str, Any]:
    path = root / "package.json"
    if path.is_symlink():
        return {}
    try:
        parsed = parse_json(read_text(path, limit=_MAX_MANIFEST) or "")
    except Unreadable:
        return {}
    return parsed if isinstance(parsed, dict) else {}
