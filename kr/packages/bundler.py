"""Gemfile.lock."""

import re

from kr.packages.folder import Folder
from kr.packages.locks import Declared, Lock, collect
from kr.packages.model import Inventory


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what Gemfile.lock says: its DEPENDENCIES are direct, gems from a PATH are the project's own."""
    file = "Gemfile.lock"
    text = folder.text(file)
    if text is None:
        return
    lock = Lock(file)
    local: set[str] = set()
    declared: list[Declared] = []
    section = ""
    for line in text.splitlines():
        if line and not line[0].isspace():
            section = line.strip()
        elif section == "DEPENDENCIES":
            if found := re.match(r"  ([^\s!(]+)(?: \(([^)]*)\))?", line[:500]):
                declared.append(Declared(found[1], found[2], file))
        elif found := re.match(r"    ([^\s(]+) \(([^)\s]+)\)$", line[:500]):
            if section == "PATH":
                local.add(found[1])
            else:
                lock.add(found[1], _without_platform(found[2]))
    collect(inventory, "ruby", [d for d in declared if d.package not in local], lock)


def _without_platform(version: str) -> str:
    """Return ``1.16.0`` of ``1.16.0-x86_64-linux``; a gem's pre-release is written with dots."""
    return version.partition("-")[0]
