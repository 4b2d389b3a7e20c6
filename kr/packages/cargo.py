"""Cargo.toml with Cargo.lock, and the workspace's members."""

from collections.abc import Iterator
from typing import Any

from kr.packages.folder import Folder, fits
from kr.packages.model import Declared, Inventory, Lock, collect

_SECTIONS = ("dependencies", "dev-dependencies", "build-dependencies")


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what the Cargo files of the project say; crates of the workspace itself are left out."""
    file = "Cargo.toml"
    root = folder.document(file)
    if root is None:
        collect(inventory, "cargo", [], _lock(folder, "", frozenset()))
        return
    up, top = _top(folder, root)
    workspace = folder.table(f"{up}{file}", top, "workspace")
    shared = folder.table(f"{up}{file}", workspace, "dependencies")
    manifests = {file: root}
    if not up:
        excluded = [f"!{e}" for e in folder.items(file, workspace, "exclude")]
        for member in folder.members([*folder.items(file, workspace, "members"), *excluded], file):
            manifest = folder.document(f"{member}/{file}")
            if manifest is not None:
                manifests[f"{member}/{file}"] = manifest
    declared = [
        dependency
        for name, manifest in manifests.items()
        for table, dev in _tables(folder, name, manifest)
        for dependency in _declared(folder, name, table, shared, dev=dev)
    ]
    if not up:
        declared += _declared(folder, file, shared, {})
    own = frozenset(_own(folder, manifests | {f"{up}{file}": top}))
    declared = [d for d in declared if _folded(d.package) not in own]
    lock = (_lock(folder, up, own) if up else None) or _lock(folder, "", own)
    collect(inventory, "cargo", declared, lock)


def _top(folder: Folder, root: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the way to the workspace that the crate belongs to, as Cargo finds it, and its manifest."""
    if "workspace" in root:
        return "", root
    for up, here in folder.above():
        file = f"{up}Cargo.toml"
        manifest = folder.document(file)
        if manifest is not None and "workspace" in manifest:
            excluded = folder.items(file, folder.table(file, manifest, "workspace"), "exclude")
            if fits(here, [p for e in excluded for p in (e, f"{e}/**")]):
                break
            return up, manifest
    return "", root


def _own(folder: Folder, manifests: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the folded names of the crates that stand in the project: members, and what a path leads to."""
    for file, manifest in manifests.items():
        name = folder.table(file, manifest, "package").get("name")
        if isinstance(name, str):
            yield _folded(name)
        workspace = folder.table(file, manifest, "workspace")
        for table in (
            *(t for t, _ in _tables(folder, file, manifest)),
            folder.table(file, workspace, "dependencies"),
        ):
            for key, entry in table.items():
                if isinstance(entry, dict) and "path" in entry:
                    yield _folded(str(entry.get("package", key)))


def _tables(folder: Folder, file: str, manifest: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    targets = folder.table(file, manifest, "target")
    for owner in (manifest, *(folder.table(file, targets, name) for name in targets)):
        for section in _SECTIONS:
            yield folder.table(file, owner, section), section != "dependencies"


def _declared(
    folder: Folder, file: str, table: dict[str, Any], shared: dict[str, Any], *, dev: bool = False
) -> Iterator[Declared]:
    for name, value in table.items():
        entry: Any = value
        if isinstance(entry, dict) and entry.get("workspace") is True:
            # What the workspace doesn't tell is unknown, but a dependency all the same.
            entry = shared.get(name, {})
        if isinstance(entry, str):
            entry = {"version": entry}
        if not isinstance(entry, dict):
            folder.warn(file, f"the version of {name} is not a text")
            continue
        package, spec = entry.get("package", name), entry.get("version")
        if "path" in entry and spec is None:
            continue
        if isinstance(package, str):
            exact = spec.removeprefix("=").strip() if isinstance(spec, str) else None
            yield Declared(package, exact, file, dev)


def _lock(folder: Folder, up: str, own: frozenset[str]) -> Lock | None:
    file = f"{up}Cargo.lock"
    data = folder.document(file, "toml")
    if data is None:
        return None
    lock = Lock(file, fold=_folded)
    for package in folder.items(file, data, "package"):
        if not isinstance(package, dict):
            continue
        # A crate of the project itself has no source either; of a workspace above not all names are known.
        if "source" in package or (not up and _folded(str(package.get("name"))) not in own):
            lock.add(package.get("name"), package.get("version"))
    return lock
