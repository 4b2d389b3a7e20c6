"""What a project depends on: the rows, version ranges, and the packages of a lock file."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from kr.frameworks import framework_key, named_by_group

Ecosystem = Literal["npm", "python", "maven", "go", "cargo", "composer", "ruby", "language"]
"""Where a package's name belongs to. Gradle builds take their packages from Maven repositories. ``language``
is no package but what a manifest says of its language: ``go 1.22`` of a go.mod."""

UNKNOWN = "unknown"
"""The version of a dependency whose file gives none (managed elsewhere, a branch, no specifier)."""

_LANGUAGES = (
    "c c++ c# clojure dart elixir erlang f# go haskell java javascript julia kotlin lua node perl php "
    "python r ruby rust scala sql swift zig"
)
_PRODUCTS = (
    "activemq ansible aws azure bigquery cassandra chroma clickhouse cockroachdb consul couchbase couchdb docker "
    "dynamodb elasticsearch envoy firebase firestore flink gcp git github gitlab grafana hadoop haproxy hive "
    "influxdb istio jenkins kafka keycloak kibana kubernetes linux loki mariadb memcached milvus mongodb mysql "
    "nats neo4j nginx nomad opensearch oracle podman postgis postgresql prometheus pulsar qdrant rabbitmq redis "
    "redshift rocketmq s3 snowflake solr spark sqlite sqlserver terraform timescaledb trino valkey vault weaviate"
)
_LONGEST_NAME = 300
_LONGEST_VERSION = 200
MOST_DEPENDENCIES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One package that the project uses.

    ``framework`` is the short name and ``package`` the full one. ``version`` is exact where an installation or a
    lock file gives it, else the range as written, else ``unknown``. ``file`` is the place that gave the version,
    ``manifest`` the file that states the dependency, both relative to the folder that was asked about, with forward
    slashes. ``dev``: declared for development alone.
    """

    framework: str
    version: str
    package: str
    file: str
    direct: bool
    ecosystem: Ecosystem
    dev: bool = False
    manifest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A direct dependency as a manifest states it. ``spec`` is the range's text, None where it has none.

    ``member`` and ``name`` are what a lock file knows it by: the workspace's folder or crate, and the name there where
    it is another than the package's. ``installed`` is the version that is installed for it, and the place that has it.
    ``is_sibling``: another member of the workspace has this name, which is meant unless the package is locked or installed.
    """

    package: str
    spec: str | None
    file: str
    dev: bool = False
    member: str = ""
    name: str = ""
    installed: tuple[str, str] | None = None
    is_sibling: bool = False


def is_language_or_product(name: str) -> bool:
    """Tell whether a name is never meant for a package whose full name only ends with it (``go``, ``postgresql``)."""
    return framework_key(name) in _no_packages()


@cache
def _no_packages() -> frozenset[str]:
    return frozenset(map(framework_key, f"{_LANGUAGES} {_PRODUCTS}".split()))


def short_name(ecosystem: Ecosystem, package: str) -> str:
    """Return what people call the package.

    Maven: the artifact, or the framework that its group is (``spring-boot``, ``testcontainers``). Go: the last element of the path without ``/vN`` (or gopkg.in's ``.vN``). Composer: the part
    after the vendor, but the vendor of ``laravel/framework``. All others: the name itself, an npm package's scope
    included. Where that part is the name of a language or product (json-iterator/go), it is the full name.
    """
    name = package
    if ecosystem == "maven":
        name = named_by_group(package) or package.rpartition(":")[2]
    elif ecosystem == "go":
        name = re.sub(r"\.v\d+$", "", re.sub(r"/v\d+$", "", package)).rpartition("/")[2]
    elif ecosystem == "composer":
        vendor, _, last = package.partition("/")
        name = vendor if last in {"", "framework"} else last
    return package if not name or (name != package and is_language_or_product(name)) else name


def dependency(
    ecosystem: Ecosystem,
    package: str,
    version: object,
    file: str,
    *,
    direct: bool = True,
    dev: bool = False,
    manifest: str = "",
) -> Dependency:
    """Make a row; an odd version is ``unknown``."""
    text = " ".join(version.split()) if isinstance(version, str) else ""
    is_odd = not text or len(text) > _LONGEST_VERSION or not text.isprintable()
    return Dependency(
        framework=short_name(ecosystem, package),
        version=UNKNOWN if is_odd else text,
        package=package,
        file=file,
        direct=direct,
        ecosystem=ecosystem,
        dev=dev,
        manifest=manifest or file,
    )


def merged(rows: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Return the rows, direct ones first, then by name. A package and version counts once: direct if it is so anywhere.

    Names that no registry would take are left out, and so is what exceeds 20,000 rows.
    """
    kept: dict[tuple[str, str, str], Dependency] = {}
    for row in rows:
        key = (row.ecosystem, row.package, row.version)
        known = kept.get(key)
        if known is None and (not _is_name(row.package) or len(kept) >= MOST_DEPENDENCIES):
            continue
        if known is None or (known.direct, not known.dev) < (row.direct, not row.dev):
            kept[key] = row
    return tuple(sorted(kept.values(), key=lambda d: (not d.direct, d.framework.casefold(), d.package)))


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and not any(c.isspace() for c in name)


@dataclass(slots=True)
class Lock:
    """The packages of one lock file: ``fold(name)`` to its spelling and its versions, in the file's order.

    ``chosen`` holds what the file says that a member takes: ``(member, name)`` to the version, the member being a folder
    of the workspace or a crate, and empty for the project itself. ``local`` are names that the project's own folders
    have. For ``bare`` see ``satisfies``.
    """

    file: str
    fold: Callable[[str], str] = str
    packages: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    chosen: dict[tuple[str, str], str] = field(default_factory=dict)
    local: set[str] = field(default_factory=set)
    bare: str = ""

    def add(self, package: object, version: object) -> None:
        """Take one package in; anything that is no text is passed over."""
        if isinstance(package, str) and isinstance(version, str) and package and version:
            self.packages.setdefault(self.fold(package), (package, []))[1].append(version)

    def version(self, one: Declared) -> str | None:
        """Return the exact version of a dependency: the chosen one, else of several the highest that its range allows.

        It is looked up as node does: for the member, then for each folder above it.
        """
        name, member = self.fold(one.name or one.package), one.member
        exact = self.chosen.get((member, name))
        while exact is None and member:
            member = member.rpartition("/")[0]
            exact = self.chosen.get((member, name))
        _, versions = self.packages.get(self.fold(one.package), ("", []))
        if exact is not None or not versions:
            return exact
        fitting = [it for it in versions if one.spec and satisfies(it, one.spec, bare=self.bare)]
        return max(fitting or versions, key=_order)

    def fitness(self, declared: Iterable[Declared]) -> int:
        """Count the direct dependencies whose range allows what this file has: the way to choose among lock files."""
        found = ((one.spec, exact) for one in declared if (exact := self.version(one)))
        return sum(not spec or satisfies(exact, spec, bare=self.bare) for spec, exact in found)


def resolve(ecosystem: Ecosystem, declared: Iterable[Declared], lock: Lock | None) -> Iterator[Dependency]:
    """Yield the direct dependencies: as installed, else as locked, else as declared; then the lock's other packages."""
    lock = lock or Lock("")
    taken: set[tuple[str, str | None]] = set()
    for one in declared:
        locked = lock.version(one)
        is_own = one.is_sibling or lock.fold(one.name or one.package) in lock.local
        if is_own and not locked and not one.installed:
            continue
        taken.add((lock.fold(one.package), locked))
        version, file = one.installed or ((locked, lock.file) if locked else (one.spec, one.file))
        yield dependency(ecosystem, one.package, version, file, dev=one.dev, manifest=one.file)
    for key, (package, versions) in lock.packages.items():
        for version in versions:
            # A second version of a direct package is there because something else asked for it.
            if (key, version) not in taken:
                yield dependency(ecosystem, package, version, lock.file, direct=False)


_PART = re.compile(r"(\^|~>|~=|~|>=|<=|===?|!=|=|>|<)?\s*v?(\d[\w.*+!-]*|[*xX])")


def satisfies(version: str, spec: str, *, bare: str = "") -> bool:
    """Tell whether a version lies in a range of npm, Cargo, Composer or Poetry; pre-releases count as their release.

    ``bare`` is the operator that a version without one has: ``^`` in Cargo, else the version and what is below it.
    """
    text = re.sub(r"(\d[\w.]*)\s+-\s+v?(\d)", r">=\1 <=\2", spec[:_LONGEST_VERSION])
    numbers = _numbers(version)
    alternatives = [_PART.findall(part) for part in re.split(r"\|\|?", text)]
    return any(
        parts and all(_holds(numbers, operator or bare, wanted) for operator, wanted in parts)
        for parts in alternatives
    )


def _holds(version: tuple[int, ...], operator: str, wanted: str) -> bool:
    limit = _numbers(wanted)
    width = len(limit)
    padded = version + (0,) * (width - len(version))
    if operator in {">=", ">", "<=", "<"}:
        longest = max(width, len(padded))
        left, right = padded + (0,) * (longest - len(padded)), limit + (0,) * (longest - width)
        is_equal = left == right
        return (left > right if ">" in operator else left < right) or (is_equal and "=" in operator)
    if operator == "!=":
        return padded[:width] != limit
    if operator in {"^", "~", "~=", "~>"}:
        return padded >= limit and padded[: _kept(operator, limit)] == limit[: _kept(operator, limit)]
    return padded[:width] == limit


def _kept(operator: str, limit: tuple[int, ...]) -> int:
    """Return how many leading numbers must stay the same."""
    if operator == "^":
        return next((place + 1 for place, number in enumerate(limit) if number), len(limit))
    if operator == "~":
        return min(2, len(limit))
    return max(1, len(limit) - 1)


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", version.strip())
    return tuple(int(number[:9]) for number in release[1].split(".")) if release else ()


def _order(version: str) -> tuple[tuple[int, ...], bool, str]:
    is_release = re.search(r"-|\d(?:a|b|rc|\.dev)\d", version) is None
    return _numbers(version), is_release, version
