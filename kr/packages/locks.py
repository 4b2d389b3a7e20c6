"""What a lock file says, and how it overrides the ranges that a manifest declares."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kr.packages.model import Ecosystem, Inventory


@dataclass(frozen=True, slots=True)
class Declared:
    """A direct dependency as a manifest states it. ``spec`` is the range's text, None where it has none."""

    package: str
    spec: str | None
    file: str


def same(name: str) -> str:
    """Return the name itself: most registries compare names exactly."""
    return name


@dataclass(slots=True)
class Lock:
    """The packages of one lock file: ``fold(name)`` to its spelling and its versions, in the file's order."""

    file: str
    fold: Callable[[str], str] = same
    packages: dict[str, tuple[str, list[str]]] = field(default_factory=dict)

    def add(self, package: object, version: object) -> None:
        """Take one package in; anything that is no text is passed over."""
        if isinstance(package, str) and isinstance(version, str) and package and version:
            self.packages.setdefault(self.fold(package), (package, []))[1].append(version)

    def version(self, package: str, spec: str | None) -> str | None:
        """Return the exact version of ``package``, the one that fits ``spec`` best where there are several."""
        known = self.packages.get(self.fold(package))
        return pick(known[1], spec) if known else None


def collect(
    inventory: Inventory, ecosystem: Ecosystem, declared: Iterable[Declared], lock: Lock | None
) -> None:
    """Add the direct dependencies, exact where the lock knows them, then the lock's other packages."""
    for dependency in declared:
        exact = lock.version(dependency.package, dependency.spec) if lock else None
        if lock and exact is not None:
            inventory.add(ecosystem, dependency.package, exact, lock.file, direct=True)
        else:
            inventory.add(ecosystem, dependency.package, dependency.spec, dependency.file, direct=True)
    if lock is None:
        return
    direct = {lock.fold(d.package) for d in declared}
    for key, (package, versions) in lock.packages.items():
        for version in versions:
            # A second version of a direct package is there because something else asked for it.
            if key not in direct or len(versions) > 1:
                inventory.add(ecosystem, package, version, lock.file, direct=False)


def pick(versions: list[str], spec: str | None) -> str:
    """Return the highest version, among those of the major (and, under 1.0, minor) that ``spec`` names."""
    wanted = _leading(spec) if spec else ()
    fitting = [v for v in versions if wanted and _leading(v)[: len(wanted)] == wanted]
    return max(fitting or versions, key=_order)


def _leading(text: str) -> tuple[int, ...]:
    numbers = [int(n[:9]) for n in re.findall(r"\d+", text)[:2]]
    return tuple(numbers[:2]) if numbers[:1] == [0] else tuple(numbers[:1])


def _order(version: str) -> tuple[tuple[int, ...], bool]:
    release = re.match(r"v?(\d+(?:\.\d+)*)", version)
    numbers = tuple(int(n[:9]) for n in release[1].split(".")) if release else ()
    return numbers, "-" not in version
