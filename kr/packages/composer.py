"""composer.json with composer.lock."""

from kr.packages.folder import Folder
from kr.packages.locks import Declared, Lock, collect
from kr.packages.model import Inventory


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what the Composer files say; PHP itself and its extensions are no packages."""
    file = "composer.json"
    manifest = folder.document(file) or {}
    declared = []
    for section in ("require", "require-dev"):
        for name, spec in folder.table(file, manifest, section).items():
            if "/" not in name:
                continue
            if not isinstance(spec, str):
                folder.warn(file, f"{section}.{name} is not a text")
            declared.append(Declared(name, spec if isinstance(spec, str) else None, file))
    collect(inventory, "composer", declared, _lock(folder))


def _lock(folder: Folder) -> Lock | None:
    file = "composer.lock"
    data = folder.document(file, "json")
    if data is None:
        return None
    lock = Lock(file, fold=str.lower)
    for section in ("packages", "packages-dev"):
        for package in folder.items(file, data, section):
            if isinstance(package, dict):
                lock.add(package.get("name"), package.get("version"))
    return lock
