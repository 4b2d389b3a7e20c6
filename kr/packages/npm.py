"""package.json with package-lock.json (versions 1 to 3), yarn.lock or pnpm-lock.yaml, and workspaces."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kr.packages.folder import Folder, fits
from kr.packages.model import Declared, Inventory, Lock, collect

_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_LOCAL = ("workspace:", "file:", "link:", "portal:")


@dataclass(slots=True)
class _Tree(Lock):
    """A lock file that also knows which version each folder of the workspace gets."""

    placed: dict[tuple[str, str], str] = field(default_factory=dict)
    """``(member folder, name or name@spec)`` to the exact version."""
    local: set[str] = field(default_factory=set)
    """Names that are folders of the project itself."""


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what the npm files of the project say; the workspace's own members are left out."""
    root = folder.document("package.json")
    workspace = folder.document("pnpm-workspace.yaml") or {}
    lock = _read_lock(folder, "")
    patterns, here = _workspaces(folder, root, workspace), ""
    if root is not None and lock is None and not patterns:
        up, here, workspace = _top(folder, workspace)
        lock = _read_lock(folder, up) if up else None
    manifests = {"package.json": root} if root is not None else {}
    for member in folder.members(patterns, "package.json"):
        file = f"{member}/package.json"
        manifest = folder.document(file)
        if manifest is not None:
            manifests[file] = manifest
    own = {n for m in manifests.values() if isinstance(n := m.get("name"), str)}
    own |= lock.local if lock else set()
    rest: list[Declared] = []
    for file, manifest in manifests.items():
        member = f"{here}/{file}".strip("/").rpartition("/")[0]
        for declared in _declared(folder, file, manifest, workspace):
            name, spec = declared.package, declared.spec or ""
            if name in own or spec.startswith(_LOCAL):
                continue
            package, wanted = _real(name, spec)
            exact = _placed(lock, member, name, spec) if lock else None
            if lock and exact:
                inventory.add("npm", package, exact, lock.file, direct=True, dev=declared.dev)
            else:
                rest.append(replace(declared, package=package, spec=wanted))
    collect(inventory, "npm", rest, lock)


def _top(folder: Folder, workspace: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return the way to the nearest workspace that has this folder, its name there, and pnpm-workspace.yaml."""
    for up, here in folder.above():
        top = folder.document(f"{up}package.json")
        above = folder.document(f"{up}pnpm-workspace.yaml") or {}
        if fits(here, _workspaces(folder, top, above, up)):
            return up, here, above
    return "", "", workspace


def _workspaces(
    folder: Folder, root: dict[str, Any] | None, workspace: dict[str, Any], up: str = ""
) -> list[Any]:
    patterns = folder.items(f"{up}pnpm-workspace.yaml", workspace, "packages")
    if root is not None and isinstance(root.get("workspaces"), dict):
        return patterns + folder.items(f"{up}package.json", root, "workspaces", "packages")
    return patterns + folder.items(f"{up}package.json", root or {}, "workspaces")


def _read_lock(folder: Folder, up: str) -> _Tree | None:
    readers = (_npm_lock, _pnpm_lock, _yarn_lock)
    return next((lock for read in readers if (lock := read(folder, up))), None)


def _declared(
    folder: Folder, file: str, manifest: dict[str, Any], workspace: dict[str, Any]
) -> Iterator[Declared]:
    seen: set[str] = set()
    for section in _SECTIONS:
        for name, spec in folder.table(file, manifest, section).items():
            if not isinstance(spec, str):
                folder.warn(file, f"{section}.{name} is not a text")
            elif name not in seen:
                seen.add(name)
                yield Declared(
                    name, _from_catalog(spec, name, workspace), file, dev=section == "devDependencies"
                )


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
    """Return the package behind an alias, and the range; a URL tells none but in ``#semver:`` or a tag."""
    alias = re.fullmatch(r"npm:(@?[^@]+)(?:@(.*))?", spec)
    if alias:
        return alias[1], alias[2]
    tag = re.search(r"#(?:semver:)?([v^~<>=]*\d+(?:\.\w+)+.*)$", spec)
    if tag:
        return name, tag[1]
    return name, None if "/" in spec or ":" in spec else spec


def _placed(lock: _Tree, member: str, name: str, spec: str) -> str | None:
    """Look the version up as node does: in the member's folder, then in each folder above."""
    exact = lock.placed.get(("", f"{name}@{spec}"))
    while exact is None:
        exact = lock.placed.get((member, name))
        if not member:
            break
        member = member.rpartition("/")[0]
    return exact


def _npm_lock(folder: Folder, up: str) -> _Tree | None:
    for name in ("package-lock.json", "npm-shrinkwrap.json"):
        file = f"{up}{name}"
        data = folder.document(file)
        if data is None:
            continue
        lock = _Tree(file)
        _read_packages(lock, folder.table(file, data, "packages"))
        return lock
    return None


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


def _yarn_lock(folder: Folder, up: str) -> _Tree | None:
    """Both formats of yarn.lock: unindented descriptors, then an indented ``version``."""
    file = f"{up}yarn.lock"
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
    for index, descriptor in enumerate(descriptors[:200]):
        name, at, spec = descriptor.rpartition("@")
        if ":" in descriptor:  # yarn 2 and later: name@npm:spec, name@npm:real@spec, name@workspace:path
            name, at, spec = descriptor[0] + descriptor[1:].partition("@")[0], "@", ""
            spec = descriptor[len(name) + 1 :]
        if not at or not name:
            continue
        if spec.startswith(_LOCAL):
            lock.local.add(name)
            return
        plain = spec.removeprefix("npm:")
        package = _real(name, spec)[0] if "@" in plain[1:] else name
        lock.placed["", f"{name}@{plain}"] = lock.placed["", f"{name}@{spec}"] = version
        if index == 0:
            lock.add(package, version)


def _pnpm_lock(folder: Folder, up: str) -> _Tree | None:
    file = f"{up}pnpm-lock.yaml"
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
                entries = importer.get(section)
                _read_importer(lock, "" if place == "." else place, entries)
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
