"""package.json with package-lock.json (versions 1 to 3), yarn.lock or pnpm-lock.yaml, and workspaces."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kr.packages.environments import node_package
from kr.packages.files import Folder, fits
from kr.packages.model import Declared, Dependency, Lock, dependency, resolve

_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_LOCAL = ("workspace:", "file:", "link:", "portal:")
_LOCK_FILES = {
    "npm": ("package-lock.json", "npm-shrinkwrap.json"),
    "pnpm": ("pnpm-lock.yaml",),
    "yarn": ("yarn.lock",),
}
_MAX_LEVELS = 6
_LONGEST_SPEC = 500


@dataclass(slots=True)
class _Tree(Lock):
    """A lock file that also knows which version each folder of the workspace gets."""

    placed: dict[tuple[str, str], str] = field(default_factory=dict)
    """``(member folder, name)`` or ``("", name@spec)`` to the exact version."""
    local: set[str] = field(default_factory=set)
    """Names that are folders of the project itself."""

    def placed_version(self, member: str, name: str, spec: str) -> str | None:
        """Look the version up as node does: in the member's folder, then in each folder above."""
        exact = self.placed.get(("", f"{name}@{spec}"))
        while exact is None:
            exact = self.placed.get((member, name))
            if not member:
                break
            member = member.rpartition("/")[0]
        return exact


def read_npm(folder: Folder) -> Iterator[Dependency]:
    """Yield what the npm files of a project name. The workspace's own members are left out."""
    root = top = folder.document("package.json")
    workspace = folder.document("pnpm-workspace.yaml") or {}
    patterns, locks, here = _workspaces(folder, root, workspace), _locks(folder, ""), ""
    if root is not None and not locks and not patterns:
        up, here, workspace = _top(folder, workspace)
        locks, top = (_locks(folder, up), folder.document(f"{up}package.json")) if up else ([], root)
    manifests = folder.manifests("package.json", patterns)
    named = [lock for lock in locks if lock.file.endswith(_lock_files(top or {}))] or locks
    fitness = [lock.fitness(_declared(folder, manifests, workspace, lock, here)) for lock in named]
    lock = named[fitness.index(max(fitness))] if named else None
    yield from resolve("npm", _declared(folder, manifests, workspace, lock, here), lock)
    engine = folder.table("package.json", root, "engines").get("node")
    if isinstance(engine, str):
        yield dependency("language", "node", engine, "package.json", direct=True)


def _top(folder: Folder, workspace: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return the way to the nearest workspace that has this folder, its name there, and pnpm-workspace.yaml."""
    for up, here in folder.above():
        above = folder.document(f"{up}pnpm-workspace.yaml") or {}
        if fits(here, _workspaces(folder, folder.document(f"{up}package.json"), above, up)):
            return up, here, above
    return "", "", workspace


def _workspaces(
    folder: Folder, root: dict[str, Any] | None, workspace: dict[str, Any], up: str = ""
) -> list[Any]:
    patterns = folder.items(f"{up}pnpm-workspace.yaml", workspace, "packages")
    if root is not None and isinstance(root.get("workspaces"), dict):
        return patterns + folder.items(f"{up}package.json", root, "workspaces", "packages")
    return patterns + folder.items(f"{up}package.json", root, "workspaces")


def _locks(folder: Folder, up: str) -> list[_Tree]:
    """Read the lock files there are, of npm's two the one that npm itself reads first."""
    npm = _npm_lock(folder, f"{up}npm-shrinkwrap.json") or _npm_lock(folder, f"{up}package-lock.json")
    found = (npm, _pnpm_lock(folder, f"{up}pnpm-lock.yaml"), _yarn_lock(folder, f"{up}yarn.lock"))
    return [lock for lock in found if lock is not None]


def _lock_files(top: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the lock files of the package manager that a manifest names."""
    engines = top.get("devEngines")
    engine = engines.get("packageManager") if isinstance(engines, dict) else None
    named = top.get("packageManager") or (engine.get("name") if isinstance(engine, dict) else None)
    return _LOCK_FILES.get(str(named).partition("@")[0], ())


def _declared(
    folder: Folder, manifests: dict[str, Any], workspace: dict[str, Any], lock: _Tree | None, here: str
) -> Iterator[Declared]:
    """Yield what the manifests state, with the versions that are locked and installed for the member that states it."""
    members = {file: manifest.get("name") for file, manifest in manifests.items()}
    for file, manifest in manifests.items():
        siblings = {name for other, name in members.items() if other != file}
        place = file.rpartition("/")[0]
        for name, text, dev in _statements(folder, file, manifest):
            spec = _from_catalog(text, name, workspace)
            locked = lock.placed_version(f"{here}/{place}".strip("/"), name, spec) if lock else None
            installed = _installed(folder, place, name)
            is_own = name in siblings and not locked and not installed
            if spec.startswith(_LOCAL) or is_own or (lock and name in lock.local and not locked):
                continue
            package, wanted = _real(name, spec)
            yield Declared(package, wanted, file, dev, locked, installed)


def _statements(folder: Folder, file: str, manifest: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    seen: set[str] = set()
    for section in _SECTIONS:
        for name, spec in folder.table(file, manifest, section).items():
            if not isinstance(spec, str):
                folder.warn(file, f"{section}.{name} is not a text")
            elif name not in seen:
                seen.add(name)
                yield name, spec, section == "devDependencies"


def _installed(folder: Folder, place: str, name: str) -> tuple[str, str] | None:
    """Return the version in ``node_modules``, as node finds it from the member's folder, and the place."""
    start = folder.root / place
    for level in [start, *start.parents][:_MAX_LEVELS]:
        folder.saw((level / "node_modules" / name).parent)
    package = node_package(name, start)
    if package is None:
        return None
    folder.saw(package.root / "package.json")
    return package.version, f"node_modules/{name}"


def _from_catalog(spec: str, name: str, workspace: dict[str, Any]) -> str:
    """Resolve pnpm's ``catalog:`` and ``catalog:name``."""
    if not spec.startswith("catalog:"):
        return spec
    catalogs = workspace.get("catalogs")
    key = spec.removeprefix("catalog:")
    named = catalogs.get(key) if isinstance(catalogs, dict) else None
    catalog = workspace.get("catalog") if key in {"", "default"} else named
    found = catalog.get(name) if isinstance(catalog, dict) else None
    return found if isinstance(found, str) else ""


def _real(name: str, spec: str) -> tuple[str, str | None]:
    """Return the package behind an alias, and the range; a URL gives one by ``#semver:``, a tag or an archive's name."""
    if len(spec) > _LONGEST_SPEC:
        return name, None
    alias = re.fullmatch(r"npm:(@?[^@]+)(?:@(.*))?", spec)
    if alias:
        return alias[1], alias[2]
    tag = re.search(r"#(?:semver:|.*@)?([v^~<>=]*\d+(?:\.\w+)+.*)$", spec) or re.search(
        r"://.*[-/]v?(\d+\.\d+[\w.-]*?)\.(?:tgz|tar\.gz)$", spec
    )
    if tag:
        return name, tag[1]
    return name, None if "/" in spec or ":" in spec else spec


def _npm_lock(folder: Folder, file: str) -> _Tree | None:
    data = folder.document(file)
    if data is None:
        return None
    lock = _Tree(file)
    if packages := folder.table(file, data, "packages"):
        _read_packages(lock, packages)
    else:
        _read_nested(lock, folder.table(file, data, "dependencies"))
    return lock


def _read_packages(lock: _Tree, packages: dict[str, Any]) -> None:
    """Versions 2 and 3: one flat mapping of folders; ``packages/app/node_modules/x`` is the app's own x."""
    for path, entry in packages.items():
        member, found, name = path.rpartition("node_modules/")
        if not found or not isinstance(entry, dict):
            continue
        if entry.get("link") is True:
            lock.local.add(name)
            continue
        real, version = entry.get("name"), entry.get("version")
        lock.add(real if isinstance(real, str) else name, version)
        if isinstance(version, str):
            lock.placed[member.rstrip("/"), name] = version


def _read_nested(lock: _Tree, dependencies: dict[str, Any]) -> None:
    """Version 1: each package with its own ``dependencies`` below it; the upper ones are the project's."""
    levels = [(dependencies, True)]
    while levels:
        tree, is_top = levels.pop()
        for name, entry in tree.items():
            version = entry.get("version") if isinstance(entry, dict) else None
            if isinstance(version, str):
                package, exact = _real(name, version)
                lock.add(package, exact)
                if is_top and exact:
                    lock.placed["", name] = exact
            if isinstance(entry, dict) and isinstance(entry.get("dependencies"), dict):
                levels.append((entry["dependencies"], False))


def _yarn_lock(folder: Folder, file: str) -> _Tree | None:
    """Both formats of yarn.lock: unindented descriptors, then an indented ``version``."""
    text = folder.text(file)
    if text is None:
        return None
    lock = _Tree(file)
    descriptors: list[str] = []
    for line in text.splitlines():
        if line and not line[0].isspace() and line.rstrip().endswith(":"):
            descriptors = [d.strip().strip('"') for d in line.rstrip()[:-1].strip('"').split(",")]
        version = re.fullmatch(r'  version:?\s+"?([^"\s]{1,200})"?', line[:300].rstrip())
        if version and descriptors:
            _read_descriptors(lock, descriptors, version[1])
            descriptors = []
    return lock


def _read_descriptors(lock: _Tree, descriptors: list[str], version: str) -> None:
    """Take in ``name@range``; of yarn 2 and later ``name@npm:range``, ``name@npm:real@range`` and ``name@workspace:path``."""
    parted = [
        (d[:1] + name, spec) for d in descriptors[:200] for name, _, spec in [d[1:].partition("@")] if spec
    ]
    if any(spec.startswith(_LOCAL) for _, spec in parted):
        lock.local |= {name for name, _ in parted}
        return
    for name, spec in parted:
        for text in (spec, spec.removeprefix("npm:")):
            lock.placed["", f"{name}@{text}"] = version
    for name, spec in parted[:1]:
        lock.add(_real(name, spec)[0] if "@" in spec[5:] else name, version)


def _pnpm_lock(folder: Folder, file: str) -> _Tree | None:
    data = folder.document(file)
    if data is None:
        return None
    lock = _Tree(file)
    for key in folder.table(file, data, "packages"):
        found = re.match(r"/?(@?[^@/]+(?:/[^@/]+)?)@([^(]+)", key) or re.match(
            r"/((?:@[^/]+/)?[^/]+)/([^/_(]+)", key
        )
        if found:
            lock.add(found[1], found[2])
    for place, importer in (folder.table(file, data, "importers") or {".": data}).items():
        if isinstance(importer, dict):
            for section in _SECTIONS:
                _read_importer(lock, "" if place == "." else place, importer.get(section))
    return lock


def _read_importer(lock: _Tree, place: str, entries: object) -> None:
    for name, entry in (entries if isinstance(entries, dict) else {}).items():
        version = entry.get("version") if isinstance(entry, dict) else entry
        if not isinstance(version, str):
            continue
        if version.startswith(_LOCAL):
            lock.local.add(name)
            continue
        # The peers that a version was resolved with stand in brackets, once after an underscore.
        exact = re.split(r"[(_]", version.rpartition("@")[2] if "@" in version.partition("(")[0] else version)
        if exact[0] and "/" not in exact[0]:
            lock.placed[place, name] = exact[0]
