"""A package in ``node_modules``, searched upwards as node does."""

import re
from pathlib import Path
from typing import Any

from kr.naming import sha256_of
from kr.packages.folder import Unreadable, parse_json, read_text
from kr.packages.installed import InstalledPackage, github_repository, repository_of_npm, walk
from kr.packages.model import printable
from kr.packages.witness import saw_file, saw_place

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
    shelves, homes = _shelves(project_dir)
    for candidate in names:
        package = _find(candidate, shelves, homes)
        if package is not None:
            return package
    return None


def _shelves(start: Path) -> tuple[list[Path], list[Path]]:
    """Return the ``node_modules`` from a folder upwards, and where they really lie."""
    try:
        start = start.resolve()
        for place in (start, *start.parents):
            saw_place(place / "node_modules")
        shelves = [shelf for place in (start, *start.parents) if (shelf := place / "node_modules").is_dir()]
        return shelves, [shelf.resolve() for shelf in shelves]
    except (OSError, RuntimeError):
        return [], []


def _find(name: str, shelves: list[Path], homes: list[Path]) -> InstalledPackage | None:
    return next((found for shelf in shelves if (found := _read(shelf / name, homes)) is not None), None)


def _read(folder: Path, homes: list[Path]) -> InstalledPackage | None:
    saw_file(folder / "package.json")
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
        files=tuple(files),
        requires=tuple(_required(manifest, name)),
        fingerprint=sha256_of(
            repr((sorted(manifest.items(), key=str), files)).encode(errors="surrogateescape")
        ),
        repository=repository_of_npm(manifest.get("repository"))
        or (github_repository(homepage) if isinstance(homepage, str) else None),
    )


def _required(manifest: dict[str, Any], name: str) -> list[str]:
    """Return the packages that a package needs, and first the one that declares its types."""
    listed = (manifest.get(key) for key in ("dependencies", "peerDependencies"))
    named = [one for found in listed if isinstance(found, dict) for one in found]
    return list(dict.fromkeys([types_package(name), *named]))


def types_package(name: str) -> str:
    """Return the name under which DefinitelyTyped keeps the declarations of a package."""
    return f"@types/{name.removeprefix('@').replace('/', '__')}"


def _manifest(root: Path) -> dict[str, Any]:
    path = root / "package.json"
    if path.is_symlink():
        return {}
    try:
        parsed = parse_json(read_text(path, limit=_MAX_MANIFEST) or "")
    except Unreadable:
        return {}
    return parsed if isinstance(parsed, dict) else {}
