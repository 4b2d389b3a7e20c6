"""A package in ``node_modules``, searched upwards as node does."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kr.packages.folder import Unreadable, parse_json, read_text
from kr.packages.installed_package import (
    InstalledPackage,
    choose_documents,
    choose_sources,
    choose_templates,
    github_repository,
    repository_of_npm,
    walk,
)
from kr.packages.model import printable
from kr.packages.node_entry import Entry, read_entry, types_package
from kr.packages.witness import saw_file, saw_place

_NAME = re.compile(r"(?:@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*")
_MAX_MANIFEST = 1024 * 1024
_MAX_RELATED = 8
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


def with_declarations(package: InstalledPackage, projects: Sequence[Path]) -> InstalledPackage:
    """Return a package with the declarations that its entry leads to, and with the packages whose names it hands on.

    Theirs come too, and the types that are a package of their own (``@types/name``).
    """
    entry = read_entry(package.root, _manifest(package.root))
    package, declares = _declared(package, entry), bool(entry.declarations)
    found: dict[str, InstalledPackage] = {}
    queue = [types_package(package.name), *entry.packages]
    searched = [_shelves(place) for place in (package.root, *projects)]
    shelves, homes = ([path for pair in searched for path in pair[at]] for at in (0, 1))
    while queue and len(found) < _MAX_RELATED:
        name = queue.pop(0)
        if name in found or name == package.name or not _NAME.fullmatch(name):
            continue
        related = _find(name, shelves, homes)
        if related is None:
            continue
        entry = read_entry(related.root, _manifest(related.root))
        queue += entry.packages
        # The README of a package of types says where it comes from, and no more.
        is_types = name.startswith("@types/")
        found[name] = _declared(replace(related, documents=()) if is_types else related, entry)
        if is_types and not declares:
            package = replace(package, sources=())  # the same comments, without types
    return replace(package, related=tuple(found.values()))


def _declared(package: InstalledPackage, entry: Entry) -> InstalledPackage:
    if not entry.declarations:
        return package
    return replace(package, sources=tuple(entry.declarations), offered=entry.offered)


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
        documents=choose_documents(files, root),
        sources=choose_sources(files, root, ".d.ts", ".js", ".mjs", ".cjs"),
        templates=choose_templates(files, root),
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
