"""The frameworks and versions that a project's dependency files name (SPEC 6.4), the project of a folder, and how much its code uses each."""

import logging
import os
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

from kr.frameworks import canonical, is_usual_name
from kr.packages.folder import Folder, Unreadable, read_bytes
from kr.packages.model import UNKNOWN, Dependency, Found, Inventory
from kr.packages.witness import saw_names, warned

__all__ = [
    "Dependency",
    "Found",
    "count_imports",
    "find_dependencies",
    "fitting",
    "package_aliases",
    "project_aliases",
    "project_root",
    "version_of",
]

logger = logging.getLogger(__name__)

_LOCKS = frozenset(
    {
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"),
        *("uv.lock", "poetry.lock", "go.mod", "Cargo.lock", "composer.lock", "Gemfile.lock"),
    }
)
_MANIFESTS = frozenset(
    {
        *("package.json", "pnpm-workspace.yaml", "pyproject.toml", "pom.xml"),
        *("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
        *("Cargo.toml", "composer.json"),
    }
)
_MANIFEST = re.compile(r"requirements.*\.txt|.+\.(?:sln|..proj|cabal)")
_UNREAD = {
    "setup.py": "python",
    "setup.cfg": "python",
    "Pipfile": "pipenv",
    "environment.yml": "conda",
    "pylock.toml": "python",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "pubspec.yaml": "dart",
    "mix.exs": "elixir",
    "*.sln": "dotnet",
    "*.??proj": "dotnet",
    "packages.lock.json": "dotnet",
    "Gemfile": "ruby",
    "deno.json": "deno",
    "Package.swift": "swift",
    "Podfile": "cocoapods",
    "build.sbt": "sbt",
    "deps.edn": "clojure",
    "project.clj": "clojure",
    "rebar.config": "erlang",
    "stack.yaml": "haskell",
    "*.cabal": "haskell",
    "conanfile.txt": "conan",
    "conanfile.py": "conan",
    "vcpkg.json": "vcpkg",
    "build.zig.zon": "zig",
    "gleam.toml": "gleam",
    "shard.yml": "crystal",
    "elm.json": "elm",
    "Project.toml": "julia",
    "renv.lock": "r",
}
"""Dependency files that kr does not read, with their ecosystem; they are named unless others tell of the same one."""
_SPRING_BOOT = "org.springframework.boot:spring-boot"
_MAX_HEIGHT = 12
_MOST_PROJECTS = 20
_NO_PROJECTS = frozenset(
    {"node_modules", "vendor", "site-packages", "examples", "test", "tests", "fixtures", "_bmad-output"}
)


def find_dependencies(folder: Path) -> Found:
    """Read every dependency file of the project that ``folder`` lies in, and of its workspace's members.

    The project is the nearest folder upwards with a manifest, up to the repository's root; where there is none, the
    projects in the two levels below. A lock file's exact version wins over a range. A file that can't be
    used, or not wholly, is a warning that names it and the reason; nothing is raised.
    """
    if not folder.is_dir():
        return Found((), (f"{folder.name or '.'}: it is no folder",))
    return next(_found(folder))


def project_root(folder: Path) -> Path:
    """Return the folder of the project that ``folder`` lies in; ``folder`` itself where there is none."""
    return folder / next(_projects_above(folder), "")


def version_of(folder: Path, framework: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the version of ``framework`` that the project of ``folder`` uses, None where nothing tells one.

    The exact version of a lock file first, then the text of the manifest, then the version installed in
    ``node_modules`` or the Python environment. Projects further up are asked when the nearest does not know the
    framework. ``spring-boot`` also fits its starters and its parent, ``angular`` also ``@angular/core``,
    ``mybatis-plus`` its Spring Boot starter; a longer name is never taken for a shorter one. ``environ`` tells the
    Python environment, the process's own when it is left out. Files that can't be used are told in the log.
    """
    from kr.packages.installed import find_installed

    for found in _found(folder):
        for warning in found.warnings:
            logger.warning("%s", warning)
            warned(warning)
        if known := fitting(found.dependencies, framework):
            return known[0].version
    installed = find_installed(framework, (folder,), os.environ if environ is None else environ)
    return installed[0].version if installed else None


def with_installed(
    dependencies: Sequence[Dependency], folder: Path, environ: Mapping[str, str]
) -> list[Dependency]:
    """Give what is declared without a version the one that is installed, as ``version_of`` does; ``file`` is then where that is."""
    from kr.packages.installed import installed_version, site_folders
    from kr.packages.installed_node import find_node_package

    sites: list[Path] | None = None
    rows = []
    for row in dependencies:
        found: tuple[str, Path] | None = None
        if row.version == UNKNOWN and row.ecosystem == "python":
            sites = site_folders((folder,), environ) if sites is None else sites
            found = installed_version(row.package, sites)
        elif row.version == UNKNOWN and row.ecosystem == "npm":
            package = find_node_package(row.package, folder)
            found = (package.version, package.root) if package is not None else None
        rows.append(row if found is None else replace(row, version=found[0], file=_shown(found[1], folder)))
    return rows


def _shown(place: Path, folder: Path) -> str:
    """Name an environment, or a folder of packages, as ``Dependency.file`` does; outside the project by its whole path."""
    place = next((above for above in place.parents[:3] if (above / "pyvenv.cfg").is_file()), place).resolve()
    inside = place.is_relative_to(folder.resolve())
    return Path(os.path.relpath(place, folder.resolve())).as_posix() if inside else place.as_posix()


def _found(folder: Path) -> Iterator[Found]:
    """Yield what each project upwards names, else what those below name, and something in any case."""
    ups = list(_projects_above(folder))
    below = [] if ups else list(islice(_projects_below(folder), _MOST_PROJECTS))
    if below:
        yield _merged(folder, below)
    else:
        yield from (_read(folder, up) for up in ups or [""])


def _projects_above(folder: Path) -> Iterator[str]:
    """Yield the way to each folder with a manifest, this one first, up to the repository's root.

    Without a repository it ends below the home folder, and after ``_MAX_HEIGHT`` levels.
    """
    try:
        place, home = folder.resolve(), Path.home()
    except (OSError, RuntimeError):
        return
    for height in range(_MAX_HEIGHT):
        if height and place in {home, place.parent}:
            return
        if _is_project(place):
            yield "../" * height
        if (place / ".git").exists():
            return
        place = place.parent


def _is_project(place: Path) -> bool:
    saw_names(place)
    try:
        names = {path.name for path in place.iterdir()}
    except OSError:
        return False
    if "requirements" in names:
        saw_names(place / "requirements")
    if names & _MANIFESTS or names & _LOCKS or names & _UNREAD.keys():
        return True
    is_listed = "requirements" in names and next((place / "requirements").glob("*.txt"), None) is not None
    return is_listed or any(_MANIFEST.fullmatch(name) for name in names)


def _read(asked: Path, up: str) -> Found:
    """Read the project at ``up``; files are named as they are reached from ``asked``."""
    from kr.packages import jvm, npm, simple_projects

    folder = Folder(asked / up)
    inventory = Inventory()
    for read in (npm.find, jvm.find_maven, jvm.find_gradle, simple_projects.find):
        read(folder, inventory)
    _name_unread(folder, inventory.ecosystems())
    rows = inventory.dependencies()
    if not up:
        return Found(rows, tuple(folder.warnings))
    told = tuple(replace(row, file=posixpath.normpath(f"{up}{row.file}")) for row in rows)
    return Found(told, tuple(f"{up}{warning}" for warning in folder.warnings))


def _name_unread(folder: Folder, known: frozenset[str]) -> None:
    for pattern, ecosystem in _UNREAD.items():
        for path in islice(folder.root.glob(pattern), 1):
            if ecosystem not in known:
                folder.warn(path.name, "kr does not read this kind of dependency file")


def _merged(folder: Path, names: Iterable[str]) -> Found:
    """Read the projects of a repository that has none at its top."""
    rows: list[Dependency] = []
    warnings: list[str] = []
    for name in names:
        found = _read(folder / name, "")
        rows += [replace(row, file=f"{name}/{row.file}") for row in found.dependencies]
        warnings += [f"{name}/{warning}" for warning in found.warnings]
    rows.sort(key=lambda d: (not d.direct, d.framework.casefold(), d.package))
    return Found(tuple(rows), tuple(warnings))


def _projects_below(folder: Path, depth: int = 2) -> Iterator[str]:
    """Yield the folders with a manifest, one and two levels down; what lies inside one of them is its own affair."""
    saw_names(folder)
    try:
        inner = sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink())
    except OSError:
        return
    for place in inner:
        if place.name.startswith(".") or place.name in _NO_PROJECTS:
            continue
        if _is_project(place):
            yield place.name
        elif depth > 1:
            yield from (f"{place.name}/{name}" for name in _projects_below(place, depth - 1))


def fitting(dependencies: Iterable[Dependency], framework: str) -> list[Dependency]:
    """Return the dependencies of known version that go by the name ``framework``, the best first.

    The better name before the lesser one, direct before indirect, exact before a range; see ``version_of``.
    """
    rows = [(_fit(d, framework), not d.direct, _certainty(d), d) for d in dependencies]
    known = [row for row in rows if row[0] is not None and row[3].version != UNKNOWN]
    return [row[3] for row in sorted(known, key=lambda row: row[:3])]


def _fit(dependency: Dependency, framework: str) -> int | None:
    """Return how well the dependency's name fits: 0 is best, None not at all."""
    wanted, package = _folded(framework), _folded(dependency.package)
    if wanted in {package, _folded(dependency.framework)}:
        return 0
    if wanted.replace(".", "-") == package.replace(".", "-") or _is_other_name(dependency.package, framework):
        return 1
    if wanted == "spring-boot" and dependency.package.startswith(_SPRING_BOOT):
        return 2
    if package == f"@{wanted}/core" or _is_starter(dependency.package, wanted):
        return 3
    return None


def _is_other_name(package: str, framework: str) -> bool:
    """Tell whether ``framework`` is another usual name of a package (``next.js``); a part of it has a mark in its name."""
    return not re.search("[/:@]", package) and _key(package) == _key(framework)


def _is_starter(package: str, wanted: str) -> bool:
    """Tell whether a Maven artifact is the Spring Boot starter of ``wanted`` (``mybatis-plus-boot-starter``)."""
    artifact = package.rpartition(":")[2] if ":" in package else ""
    return re.fullmatch(r"-(?:spring-)?boot\d?-starter", artifact.removeprefix(wanted)) is not None


@lru_cache(maxsize=8192)
def _key(name: str) -> str:
    return canonical(name)


@lru_cache(maxsize=8192)
def _folded(name: str) -> str:
    import unicodedata

    text = unicodedata.normalize("NFKC", name).strip().casefold()
    # ``.`` is told apart: next.js is no spelling of a Python name, and Go paths have dots.
    return re.sub(r"[-_\s]+", "-", text)


def _certainty(dependency: Dependency) -> int:
    if dependency.file.rpartition("/")[2] in _LOCKS:
        return 0
    return 1 if re.fullmatch(r"v?\d[\w.+-]*", dependency.version) else 2


def project_aliases(folder: Path) -> dict[str, str]:
    """Read the dependency files of a project and return ``other name: package``, see :func:`package_aliases`.

    It costs reading and parsing every dependency file: ask when the cache has no entry under the name itself.
    """
    return package_aliases(find_dependencies(folder).dependencies)


def package_aliases(dependencies: Iterable[Dependency]) -> dict[str, str]:
    """Return the last part of each direct package's full name as another name of the package (SPEC 3.2, "Candidates").

    ``mux: github.com/gorilla/mux``, ``form-kit: @acme/ui-kit``, ``poi: org.apache.poi:poi``. A part that several packages end
    with says nothing, and neither does one that is the usual name of a framework (the MySQL driver of Go ends
    with ``mysql``) or of a package that has usual names already.
    """
    packages = defaultdict(set)
    for dependency in dependencies:
        if dependency.direct:
            # The short name has no version at its end, but it keeps the scope of an npm package.
            last = re.split("[/:]", dependency.framework)[-1]
            packages[canonical(last)].add(dependency.package)
    return {
        name: package
        for name, (package, *others) in packages.items()
        if not others
        and name != canonical(package)
        and not is_usual_name(name)
        and not is_usual_name(package)
    }


_MOST_FILES = 3_000
_MOST_BYTES = 1024 * 1024
_SKIPPED = re.compile(
    r"\..*|node_modules|vendor|third_party|site-packages|dist|build|target|out|tests?|specs?|__tests__"
)
"""Folders that hold no code of the product: tests import their tools, and bundles import everything."""
_TEST_FILE = re.compile(r"(?:test_|conftest\b).*|.*(?:[._]test|[._-]spec|Tests?)\.\w+")

_SCRIPT = r"""(?:\bfrom|\bimport|\brequire\(|\bimport\()\s*["']([^"'.\s][^"'\s]*)["']"""
_LANGUAGES = (
    ("python", ".py", r"^\s*(?:from|import)\s+([A-Za-z]\w*)"),
    ("npm", ".js .mjs .cjs .jsx .ts .mts .tsx .vue .svelte .astro", _SCRIPT),
    ("go", ".go", r"""^\s*(?:import\s+)?(?:[\w.]+\s+)?"([\w.-]+\.[\w.-]+/[^"\s]+)"$"""),
    ("cargo", ".rs", r"^\s*(?:pub\s+)?(?:use|extern\s+crate)\s+(?:::)?(\w+)"),
    ("maven", ".java .kt .kts .scala .groovy", r"^\s*import\s+(?:static\s+)?([a-z][\w.]+)"),
    ("composer", ".php", r"^use\s+\\?(\w+)"),
    ("ruby", ".rb", r"""^\s*require\s+["']([\w-]+)"""),
)
_STATEMENTS = {
    suffix: (ecosystem, re.compile(pattern, re.MULTILINE))
    for ecosystem, suffixes, pattern in _LANGUAGES
    for suffix in suffixes.split()
}
_BROAD = frozenset({"com.google", "com.github", "org.apache", "io.github", "com.amazonaws", "com.microsoft"})
"""Maven groups whose first two parts say only whose house it is."""


def count_imports(folder: Path, dependencies: Sequence[Dependency]) -> Counter[str]:
    """Count the files of a project that import each package; keys are the packages' full names.

    At most ``_MOST_FILES`` files are looked into; tests, bundles and installed packages are not.
    """
    tests = [(d, _test(d)) for d in dependencies]

    @cache
    def owners(ecosystem: str, name: str) -> frozenset[str]:
        return frozenset(d.package for d, fits in tests if d.ecosystem == ecosystem and fits(name))

    counted: Counter[str] = Counter()
    for path in islice(_sources(folder), _MOST_FILES):
        ecosystem, statement = _STATEMENTS[path.suffix]
        try:
            text = (read_bytes(path, limit=_MOST_BYTES) or b"").decode("utf-8", "replace")
        except Unreadable:
            continue
        names = set(statement.findall(text))
        counted.update(frozenset().union(*(owners(ecosystem, name) for name in names)))
    return counted


def _sources(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not _SKIPPED.fullmatch(name))
        yield from (Path(place, name) for name in sorted(files) if _is_code(name))


def _is_code(name: str) -> bool:
    return Path(name).suffix in _STATEMENTS and not _TEST_FILE.fullmatch(name)


def _test(dependency: Dependency) -> Callable[[str], bool]:
    """Return what tells whether an imported name belongs to the package, by the habits of its ecosystem."""
    package = dependency.package
    if dependency.ecosystem in {"npm", "go"}:
        return lambda name: name == package or name.startswith(f"{package}/")
    if dependency.ecosystem == "maven":
        parts = package.partition(":")[0].split(".")
        group = ".".join(parts[: 3 if ".".join(parts[:2]) in _BROAD else 2])
        return lambda name: name == group or name.startswith(f"{group}.")
    if dependency.ecosystem == "composer":
        own = {canonical(part) for part in package.split("/")}
        return lambda name: canonical(name) in own
    key, plain = canonical(package), _plain(package)
    # PyYAML and python-dateutil are imported without what says that they are for Python.
    spellings = {plain, plain.removeprefix("python"), plain.removeprefix("py")}
    return lambda name: _plain(name) in spellings or canonical(name) == key


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()
