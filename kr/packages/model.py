"""What a project depends on: the rows, version ranges, and the packages of a lock file."""

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, lru_cache
from pathlib import PurePosixPath
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


@dataclass(frozen=True, slots=True)
class Dependency:
    """One package that the project uses.

    ``framework`` is the short name and ``package`` the full one. ``version`` is exact where an installation or a
    lock file gives it, else the range as written, else ``unknown``. ``file`` is the place that gave the version,
    ``manifest`` the file that states the dependency where that is another, both relative to the folder that was asked
    about, with forward slashes. ``dev``: declared for development alone.
    """

    ecosystem: Ecosystem
    package: str
    version: str
    file: str
    _: KW_ONLY
    direct: bool = True
    dev: bool = False
    manifest: str = ""

    @property
    def framework(self) -> str:
        return short_name(self.ecosystem, self.package)


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


@cache
def _no_packages() -> frozenset[str]:
    return frozenset(map(framework_key, f"{_LANGUAGES} {_PRODUCTS}".split()))


def is_language_or_product(name: str) -> bool:
    """Tell whether a name is never meant for a package whose full name only ends with it (``go``, ``postgresql``)."""
    return framework_key(name) in _no_packages()


@lru_cache(maxsize=MOST_DEPENDENCIES)
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


def checked(rows: Iterable[Dependency]) -> Iterator[Dependency]:
    """Yield the rows whose names a registry would take; an odd version is ``unknown``."""
    for row in rows:
        name, version = row.package, " ".join(row.version.split())
        is_odd = not version or len(version) > _LONGEST_VERSION or not version.isprintable()
        if 0 < len(name) <= _LONGEST_NAME and name.isprintable() and not any(map(str.isspace, name)):
            yield replace(row, version=UNKNOWN if is_odd else version)


def merged(rows: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Return the rows, direct ones first, then by name. A package and version counts once: direct if it is so anywhere."""
    kept: dict[tuple[str, str, str], Dependency] = {}
    for row in sorted(rows, key=lambda row: (not row.direct, row.dev)):
        kept.setdefault((row.ecosystem, row.package, row.version), row)
    return tuple(sorted(kept.values(), key=lambda d: (not d.direct, d.framework.casefold(), d.package)))


@dataclass(slots=True)
class Lock:
    """The packages of one lock file: ``fold(name)`` to its spelling and its versions, in the file's order.

    ``chosen`` holds what the file says that a member takes: ``(member, name)`` to the version, the member being a folder
    of the workspace or a crate, and empty for the project itself. ``local`` are names that the project's own folders have.
    """

    file: str
    fold: Callable[[str], str] = str
    packages: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    chosen: dict[tuple[str, str], str] = field(default_factory=dict)
    local: set[str] = field(default_factory=set)

    def add(self, package: object, version: object) -> None:
        """Take one package in; anything that is no text is passed over."""
        if isinstance(package, str) and isinstance(version, str) and package and version:
            self.packages.setdefault(self.fold(package), (package, []))[1].append(version)

    def version(self, one: Declared) -> str | None:
        """Return the exact version of a dependency: the chosen one, else of several the highest that its range allows.

        It is looked up as node does: for the member, then for each folder above it.
        """
        name = self.fold(one.name or one.package)
        for member in (one.member, *map(str, PurePosixPath(one.member).parents)):
            if exact := self.chosen.get((member.removeprefix("."), name)):
                return exact
        _, versions = self.packages.get(self.fold(one.package), ("", []))
        fitting = [it for it in versions if one.spec and satisfies(it, one.spec)]
        return max(fitting or versions, key=_order, default=None)

    def fitness(self, declared: Iterable[Declared]) -> int:
        """Count the direct dependencies whose range allows what this file has: the way to choose among lock files."""
        found = ((one.spec, exact) for one in declared if (exact := self.version(one)))
        return sum(not spec or satisfies(exact, spec) for spec, exact in found)


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
        version, file = one.installed or ((locked, lock.file) if locked else (one.spec or "", one.file))
        yield Dependency(ecosystem, one.package, version, file, dev=one.dev, manifest=one.file)
    for key, (package, versions) in lock.packages.items():
        for version in versions:
            # A second version of a direct package is there because something else asked for it.
            if (key, version) not in taken:
                yield Dependency(ecosystem, package, version, lock.file, direct=False)


_PART = re.compile(r"(\^|~>|~=|~|>=|<=|===?|!=|=|>|<)?\s*v?(\d[\w.*+!-]*|[*xX])")
_COMPARED = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
_MOST_NUMBERS = 8


def satisfies(version: str, spec: str) -> bool:
    """Tell whether a version lies in a range of npm, Cargo, Composer or Poetry; pre-releases count as their release.

    A version without an operator is itself and what is below it.
    """
    text = re.sub(r"(\d[\w.]*)\s+-\s+v?(\d)", r">=\1 <=\2", spec[:_LONGEST_VERSION])
    alternatives = [_PART.findall(part) for part in re.split(r"\|\|?", text)]
    return any(
        parts and all(_holds(version, sign, wanted) for sign, wanted in parts) for parts in alternatives
    )


def _holds(version: str, sign: str, wanted: str) -> bool:
    limit = _numbers(wanted)
    padding = (0,) * _MOST_NUMBERS
    padded, padded_limit = (*_numbers(version), *padding)[:_MOST_NUMBERS], (*limit, *padding)[:_MOST_NUMBERS]
    if sign in _COMPARED:
        return bool(_COMPARED[sign](padded, padded_limit))
    # How many leading numbers must stay the same.
    same = len(limit)
    if sign == "^":
        same = next((place for place, number in enumerate(limit, 1) if number), same)
    elif sign == "~":
        same = min(2, same)
    elif sign in {"~=", "~>"}:
        same = max(1, same - 1)
    is_same = padded[:same] == limit[:same]
    return not is_same if sign == "!=" else is_same and padded >= padded_limit


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", version.strip())
    return tuple(int(number[:9]) for number in release[1].split(".")) if release else ()


def _order(version: str) -> tuple[tuple[int, ...], bool, str]:
    is_release = re.search(r"-|\d(?:a|b|rc|\.dev)\d", version) is None
    return _numbers(version), is_release, version
