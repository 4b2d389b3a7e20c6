"""What a project depends on (SPEC 6.4): the rows, the collector that every ecosystem fills, and lock files."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Ecosystem = Literal["npm", "python", "maven", "go", "cargo", "composer", "ruby"]
"""Where a package's name belongs to; Gradle builds take their packages from Maven repositories."""

UNKNOWN = "unknown"
"""The version of a dependency whose file doesn't tell one (managed elsewhere, a URL, no specifier)."""

_LONGEST_NAME = 300
_LONGEST_VERSION = 200
_MOST_DEPENDENCIES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One package that the project uses.

    ``framework`` is the short name and ``package`` the full one; ``version`` is exact where a lock file
    tells it, else the range as written, else ``unknown``. ``file`` is the file that told the version,
    relative to the folder that was asked about, with forward slashes. ``dev``: it is declared for development alone.
    """

    framework: str
    version: str
    package: str
    file: str
    direct: bool
    ecosystem: Ecosystem
    dev: bool = False


class Found(NamedTuple):
    """All dependencies, direct ones first, and one sentence per file that could not be used."""

    dependencies: tuple[Dependency, ...]
    warnings: tuple[str, ...]


def short_name(ecosystem: Ecosystem, package: str) -> str:
    """Return what people call the package (SPEC 6.4).

    Maven: the artifact. Go: the last element of the path without ``/vN`` (or gopkg.in's ``.vN``).
    Composer: the part after the vendor, but the vendor of ``laravel/framework``. All others: the name itself, an
    npm package's scope included, since ``core`` alone belongs to many scopes.
    """
    if ecosystem == "maven":
        return package.rpartition(":")[2]
    if ecosystem == "go":
        return re.sub(r"\.v\d+$", "", re.sub(r"/v\d+$", "", package)).rpartition("/")[2] or package
    if ecosystem == "composer":
        vendor, _, name = package.partition("/")
        return vendor if name in {"", "framework"} else name
    return package


def printable(text: str, *, limit: int) -> str:
    """Return ``text`` on one line, odd characters replaced by ``?``, cut at ``limit`` characters."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line)[:limit]


@dataclass(frozen=True, slots=True)
class Declared:
    """A direct dependency as a manifest states it. ``spec`` is the range's text, None where it has none."""

    package: str
    spec: str | None
    file: str
    dev: bool = False


class Inventory:
    """Collects dependencies; the same package and version counts once, direct if it is so anywhere."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], Dependency] = {}

    def add(
        self,
        ecosystem: Ecosystem,
        package: str,
        version: object,
        file: str,
        *,
        direct: bool,
        dev: bool = False,
    ) -> None:
        """Add one. A name that no registry would take is left out; an odd version is ``unknown``."""
        if not _is_name(package) or len(self._rows) >= _MOST_DEPENDENCIES:
            return
        text = _version_text(version)
        key = (ecosystem, package, text)
        known = self._rows.get(key)
        if known is None or (known.direct, not known.dev) < (direct, not dev):
            self._rows[key] = Dependency(
                framework=short_name(ecosystem, package),
                version=text,
                package=package,
                file=file,
                direct=direct,
                ecosystem=ecosystem,
                dev=dev,
            )

    def ecosystems(self) -> frozenset[str]:
        """Return the ecosystems that something was found of."""
        return frozenset(ecosystem for ecosystem, _, _ in self._rows)

    def dependencies(self) -> tuple[Dependency, ...]:
        """Return the rows: direct first, then by name; several versions in the order they were found."""
        rows = self._rows.values()
        return tuple(sorted(rows, key=lambda d: (not d.direct, d.framework.casefold(), d.package)))


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and not any(c.isspace() for c in name)


def _version_text(version: object) -> str:
    if not isinstance(version, str):
        return UNKNOWN
    text = " ".join(version.split())
    if not text or len(text) > _LONGEST_VERSION or not text.isprintable():
        return UNKNOWN
    return text


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
        version, file = (
            (dependency.spec, dependency.file) if lock is None or exact is None else (exact, lock.file)
        )
        inventory.add(ecosystem, dependency.package, version, file, direct=True, dev=dependency.dev)
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
