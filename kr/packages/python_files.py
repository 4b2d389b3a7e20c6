"""pyproject.toml with uv.lock or poetry.lock, and requirements*.txt."""

import re
from collections.abc import Iterator
from typing import Any

from kr.packages.folder import Folder, fits
from kr.packages.locks import Declared, Lock, collect
from kr.packages.model import Inventory
from kr.packages.requirements import find_requirements, parse_requirement


def normalised(name: str) -> str:
    """Return a Python project name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what the Python files of the project say. An exact requirement wins over a range."""
    root = folder.document("pyproject.toml")
    local: set[str] = set()
    declared: list[Declared] = []
    for file, manifest in _manifests(folder, root):
        project = folder.table(file, manifest, "project")
        poetry = folder.table(file, manifest, "tool", "poetry")
        local |= {normalised(n) for n in (project.get("name"), poetry.get("name")) if isinstance(n, str)}
        local |= _sources(folder, file, manifest)
        declared += _pep621(folder, file, manifest, project)
        declared += _poetry(folder, file, poetry)
    declared += find_requirements(folder)
    lock = _lock(folder, "uv.lock") or _lock(folder, "poetry.lock")
    if root is not None and lock is None and (up := _top(folder)):
        lock = _lock(folder, f"{up}uv.lock")
    collect(inventory, "python", _best(d for d in declared if normalised(d.package) not in local), lock)


def _manifests(folder: Folder, root: dict[str, Any] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    if root is None:
        return
    yield "pyproject.toml", root
    workspace = folder.table("pyproject.toml", root, "tool", "uv", "workspace")
    patterns = folder.items("pyproject.toml", workspace, "members") if workspace else []
    excluded = folder.items("pyproject.toml", workspace, "exclude") if workspace else []
    for member in folder.members([*patterns, *(f"!{e}" for e in excluded)], "pyproject.toml"):
        file = f"{member}/pyproject.toml"
        manifest = folder.document(file)
        if manifest is not None:
            yield file, manifest


def _top(folder: Folder) -> str:
    """Return the way to the nearest uv workspace that has this folder; empty when there is none."""
    for up, here in folder.above():
        file = f"{up}pyproject.toml"
        workspace = folder.table(file, folder.document(file) or {}, "tool", "uv", "workspace")
        excluded = [f"!{e}" for e in folder.items(file, workspace, "exclude")]
        if fits(here, [*folder.items(file, workspace, "members"), *excluded]):
            return up
    return ""


def _sources(folder: Folder, file: str, manifest: dict[str, Any]) -> set[str]:
    """Return the names that uv takes from folders of the workspace: the project's own, no dependencies."""
    sources = folder.table(file, manifest, "tool", "uv", "sources")
    return {normalised(n) for n, s in sources.items() if isinstance(s, dict) and s.get("workspace") is True}


def _pep621(
    folder: Folder, file: str, manifest: dict[str, Any], project: dict[str, Any]
) -> Iterator[Declared]:
    lists = [folder.items(file, project, "dependencies")]
    for table in (
        folder.table(file, project, "optional-dependencies"),
        folder.table(file, manifest, "dependency-groups"),
        folder.table(file, manifest, "tool", "pdm", "dev-dependencies"),
    ):
        lists += [folder.items(file, table, group) for group in table]
    lists.append(folder.items(file, folder.table(file, manifest, "tool", "uv"), "dev-dependencies"))
    for entry in (e for entries in lists for e in entries):
        if isinstance(entry, dict):  # {include-group = "..."}: that group is read on its own
            continue
        requirement = parse_requirement(entry) if isinstance(entry, str) else None
        if requirement is None:
            folder.warn(file, f"{str(entry)[:80]!r} is no requirement")
        else:
            yield Declared(requirement[0], requirement[1], file)


def _poetry(folder: Folder, file: str, poetry: dict[str, Any]) -> Iterator[Declared]:
    tables = [folder.table(file, poetry, "dependencies"), folder.table(file, poetry, "dev-dependencies")]
    groups = folder.table(file, poetry, "group")
    tables += [folder.table(file, groups, group, "dependencies") for group in groups]
    for name, value in ((n, v) for table in tables for n, v in table.items()):
        first = value[0] if isinstance(value, list) and value else value
        spec = first.get("version") if isinstance(first, dict) else first
        local = isinstance(first, dict) and "path" in first
        if name.lower() == "python" or local:
            continue
        if spec is not None and not isinstance(spec, str):
            folder.warn(file, f"the version of {name} is not a text")
            spec = None
        exact = re.fullmatch(r"==\s*([\w.+!-]+)", spec or "")
        yield Declared(name, exact[1] if exact else spec, file)


def _lock(folder: Folder, file: str) -> Lock | None:
    """Read uv.lock and poetry.lock alike: an array of ``[[package]]``. The project's own folders are left out."""
    data = folder.document(file, "toml")
    if data is None:
        return None
    lock = Lock(file, fold=normalised)
    for package in folder.items(file, data, "package"):
        if not isinstance(package, dict):
            continue
        source = package.get("source")
        if isinstance(source, dict) and source.keys() & {"virtual", "editable", "directory"}:
            continue
        lock.add(package.get("name"), package.get("version"))
    return lock


def _best(declared: Iterator[Declared]) -> list[Declared]:
    """Keep one statement per package: an exact version before a range before none, then the first."""
    best: dict[str, Declared] = {}
    for dependency in declared:
        known = best.get(normalised(dependency.package))
        if known is None or _exactness(dependency) < _exactness(known):
            best[normalised(dependency.package)] = dependency
    return list(best.values())


def _exactness(dependency: Declared) -> int:
    if dependency.spec is None:
        return 2
    return 0 if re.fullmatch(r"v?\d[\w.+!-]*", dependency.spec) else 1
