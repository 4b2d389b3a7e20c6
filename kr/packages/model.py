"""What a project depends on: bounded reading of its files, the rows, and how a lock file and ranges give their versions."""

import codecs
import json
import operator
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from kr.frameworks import is_language_or_product, named_by_group
from kr.text import one_line

T = TypeVar("T")

Ecosystem = Literal["npm", "python", "maven", "go", "cargo", "composer", "ruby", "language"]
"""Where a package's name belongs to. Gradle builds take their packages from Maven repositories. ``language``
is no package but what a manifest says of its language: ``go 1.22`` of a go.mod."""

UNKNOWN = "unknown"
"""The version of a dependency whose file gives none (managed elsewhere, a branch, no specifier)."""

REQUIREMENTS = r".*requirements.*\.(?:txt|in|lock)"
"""How pip's files are named."""
_LONGEST_NAME = 300
_LONGEST_VERSION = 200
MOST_DEPENDENCIES = 20_000
_MAX_BYTES = 16 * 1024 * 1024
"""Lock files of large workspaces reach some ten megabytes."""
_MAX_WARNINGS = 50
MAX_MEMBERS = 200
_MAX_LEVELS = 6
"""Folders upwards to the root of a repository, or downwards to a workspace's members."""
_MOST_PATTERNS = 50
_SKIPPED_FOLDERS = frozenset({"node_modules", "bower_components", "__pycache__", "site-packages"})
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

Stamp = tuple[int, int, int, int] | None


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


@dataclass(slots=True)
class Lock:
    """The packages of one lock file: ``fold(name)`` to its spelling and its versions. ``local`` are names of the project's own folders."""

    ecosystem: Ecosystem
    file: str = ""
    fold: Callable[[str], str] = str
    packages: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    local: set[str] = field(default_factory=set)

    def add(self, package: object, version: object) -> None:
        """Take one package in; anything that is no text is passed over."""
        if isinstance(package, str) and isinstance(version, str) and package and version:
            self.packages.setdefault(self.fold(package), (package, []))[1].append(version)

    def version(self, one: Dependency) -> str | None:
        """Return the exact version of a dependency whose own is a range: of several the highest that it allows."""
        _, versions = self.packages.get(self.fold(one.package), ("", []))
        fitting = [it for it in versions if satisfies(it, one.version)]
        return max(fitting or versions, key=_numbers, default=None)

    def fitness(self, declared: Iterable[Dependency]) -> int:
        """Count the direct dependencies whose range allows what this file has: the way to choose among lock files."""
        found = ((one.version, exact) for one in declared if (exact := self.version(one)))
        return sum(not spec or satisfies(exact, spec) for spec, exact in found)

    def resolve(
        self,
        declared: Iterable[Dependency],
        installed: Callable[[Dependency], tuple[str, str] | None] = lambda _: None,
    ) -> Iterator[Dependency]:
        """Yield what manifests declare: as installed (version and place), else as locked, else as declared; then the other packages."""
        taken: set[tuple[str, str | None]] = set()
        for one in declared:
            locked, name, there = self.version(one), self.fold(one.package), installed(one)
            if name not in self.local or locked or there:
                taken.add((name, locked))
                version, file = there or ((locked, self.file) if locked else (one.version, one.file))
                yield replace(one, version=version, file=file, manifest=one.file)
        for name, (package, versions) in self.packages.items():
            for version in versions:
                # A second version of a direct package is there because something else asked for it.
                if (name, version) not in taken:
                    yield Dependency(self.ecosystem, package, version, self.file, direct=False)


def choose(
    locks: Mapping[str, Lock | None], named: Iterable[str], declared: Iterable[Dependency], none: Lock
) -> Lock:
    """Return the lock of the package manager that a manifest names, else of several the one that fits best."""
    there = {manager: lock for manager, lock in locks.items() if lock is not None}
    wanted = [there[manager] for manager in named if manager in there]
    return max(
        wanted if len(wanted) == 1 else there.values(), key=lambda lock: lock.fitness(declared), default=none
    )


_PART = r"(\^|~>|~=|~|>=|<=|===?|!=|=|>|<)?\s*v?(\d[\w.*+!-]*|[*xX])"
_COMPARED = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt, "!=": operator.ne}
_MOST_NUMBERS = 8


def satisfies(version: str, spec: str) -> bool:
    """Tell whether a version lies in a range of npm, Cargo, Composer or Poetry; pre-releases count as their release.

    A version without an operator is itself and what is below it.
    """
    text = re.sub(r"(\d[\w.]*)\s+-\s+v?(\d)", r">=\1 <=\2", spec[:_LONGEST_VERSION])
    alternatives = [re.findall(_PART, part) for part in re.split(r"\|\|?", text)]
    return any(
        parts and all(_holds(version, sign, wanted) for sign, wanted in parts) for parts in alternatives
    )


def _holds(version: str, sign: str, wanted: str) -> bool:
    limit, padding = _numbers(wanted), (0,) * _MOST_NUMBERS
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
    return padded[:same] == limit[:same] and padded >= padded_limit


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", version.strip())
    return tuple(int(number[:9]) for number in release[1].split(".")) if release else ()


# --- files: whatever is wrong with one becomes a warning that names it


def stamp(path: Path) -> Stamp:
    """Return what changes when a file, or the list of names in a folder, does; None when there is nothing."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none when it can't be listed."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 -- names, not paths
    except (OSError, ValueError):
        return []


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes. Raises ``OSError``, and ``ValueError`` for what is larger, or no regular file (a pipe is not waited for)."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"it is larger than {_MAX_BYTES // 1024**2} MiB")
    return data


def decode(data: bytes) -> str:
    """Return a text: UTF-8, or what a byte order mark says (PowerShell writes UTF-16). Raises ``ValueError``."""
    return data.decode(next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8"))


def _parse_toml(text: str) -> object:
    import tomllib  # heavy: a hit mostly has no such file to read

    return tomllib.loads(text)


def _parse_yaml(text: str) -> object:
    import yaml  # heavy: as above

    try:
        return [None, *yaml.load_all(text, Loader=yaml.CBaseLoader)][-1]
    except yaml.YAMLError as exc:
        raise ValueError(str(exc)) from exc


_PARSERS: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": _parse_toml, "yaml": _parse_yaml}


def parse(kind: str, text: str) -> dict[str, Any]:
    """Return the mapping that JSON, TOML or YAML holds. Raises ``ValueError``.

    YAML scalars stay as written. Of several YAML documents the last counts: pnpm 11 and later write what pnpm itself needs as
    a first one into its lock file.
    """
    try:
        parsed = _PARSERS[kind](text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"it is not valid {kind.upper()}: {exc}") from exc
    if not isinstance(parsed, dict):
        raise ValueError("its top level is no mapping")  # noqa: TRY004 -- a fault of the file
    return parsed


def table(data: object, *keys: str) -> dict[str, Any]:
    """Return the mapping under ``keys``; an empty one where there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return {k: v for k, v in data.items() if isinstance(k, str)} if isinstance(data, dict) else {}


def items(data: object, *keys: str) -> list[Any]:
    """Return the list under ``keys``; an empty one where there is none."""
    found = table(data, *keys[:-1]).get(keys[-1])
    return found if isinstance(found, list) else []


def upwards(place: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the root of its repository; without one, the sixth is the last."""
    for folder in [place, *place.parents][:_MAX_LEVELS]:
        yield folder
        if os.path.lexists(folder / ".git"):
            return


class Folder:
    """One project folder. Files are named relative to it, with forward slashes.

    ``seen`` holds what was looked at, ``warnings`` a sentence for each file that could not be used, or not wholly, ``members`` the
    folders of the workspace's members that were read. Nothing is read from outside of the repository, or of the folder without one.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.warnings: list[str] = []
        self.seen: dict[Path, Stamp] = {}
        self.members: set[str] = set()
        marks = [place / ".git" for place in upwards(self.root)]
        self.saw(*marks)
        self._home = marks[-1].parent if os.path.lexists(marks[-1]) else self.root

    def saw(self, *paths: Path) -> None:
        """Remember, before they are read, how files or folders are now."""
        for path in paths:
            self.seen.setdefault(path, stamp(path))

    def names(self, place: str = "") -> list[str]:
        """Return the names in this folder or one below, sorted; none when it can't be listed."""
        self.saw(self.root / place)
        return names_in(self.root / place)

    def warn(self, file: str, reason: str) -> None:
        """Remember that ``file`` could not be used, or not wholly."""
        sentence = f"{one_line(file, 200)}: {one_line(reason, 300)}"
        if len(self.warnings) < _MAX_WARNINGS and sentence not in self.warnings:
            self.warnings.append(sentence)

    def load(self, file: str, read: Callable[[bytes], T]) -> T | None:
        """Return what ``read`` makes of a file's bytes; None, with a warning unless it is absent, where that can't be done."""
        path = self.root / file
        self.saw(path)
        try:
            if path.resolve().is_relative_to(self._home):
                return read(read_bytes(path))
            self.warn(file, "it lies outside of the project, and is not read")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, RuntimeError) as exc:
            self.warn(file, (isinstance(exc, OSError) and exc.strerror) or str(exc))
        return None

    def text(self, file: str) -> str:
        """Return the text of ``file``; empty where there is none that can be read."""
        return self.load(file, decode) or ""

    def document(self, file: str, kind: str = "") -> dict[str, Any]:
        """Return the mapping that a JSON, TOML or YAML file holds; empty where there is none that can be read."""
        return self.load(file, lambda data: parse(kind or file.rpartition(".")[2], decode(data))) or {}

    def add_members(self, places: Iterable[str], manifest: str) -> list[str]:
        """Remember folders as the workspace's members, at most ``MAX_MEMBERS``; return the manifests of all, this folder's first."""
        members = [place for place in dict.fromkeys(places) if place not in {"", "."}]
        if len(members) > MAX_MEMBERS:
            self.warn(manifest, f"the workspace has more than {MAX_MEMBERS} members; the rest is left out")
        self.members |= {*members[:MAX_MEMBERS]}
        return [manifest, *(f"{place}/{manifest}" for place in members[:MAX_MEMBERS])]

    def manifests(self, name: str, patterns: Iterable[object]) -> dict[str, dict[str, Any]]:
        """Return the manifest of this folder and those of the members below that fit the workspace patterns, by file.

        ``!pattern`` takes out. Folders of installed packages and hidden ones are left out.
        """
        members: set[str] = set()
        left_out: set[str] = set()
        written = [one for one in patterns if isinstance(one, str) and one.isprintable() and len(one) <= 200]
        for pattern in written[:_MOST_PATTERNS]:
            places = self._fitting(pattern.removeprefix("!"), name)
            (left_out if pattern.startswith("!") else members).update(places)
        files = self.add_members(sorted(members - left_out), name)
        return {file: found for file in files if (found := self.document(file))}

    def _fitting(self, pattern: str, name: str) -> Iterator[str]:
        """Yield the folders below that hold a file and fit a pattern; ``**`` stands for three levels at most."""
        head, deep, tail = pattern.partition("**")
        self.saw(self.root / head.partition("*")[0])
        for levels in range(4 if deep else 1):
            glob = PurePosixPath(head, *"*" * levels, re.sub(r"\*+", "*", tail).strip("/"))
            if ".." in glob.parts or glob.is_absolute() or len(glob.parts) > _MAX_LEVELS:
                continue
            for file in islice(self.root.glob(f"{glob}/{name}"), 2 * MAX_MEMBERS):
                place = file.parent.relative_to(self.root)
                self.saw(*(self.root / above for above in place.parents))
                if not any(part.startswith(".") or part in _SKIPPED_FOLDERS for part in place.parts):
                    yield place.as_posix()
