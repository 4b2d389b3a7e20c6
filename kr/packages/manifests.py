"""Every dependency file of a folder: which there are, who reads them; Go, Composer, Bundler and Cargo themselves."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase, translate
from pathlib import Path
from typing import Any

from kr.packages.environments import PythonEnvironment, names_in, python_environment
from kr.packages.files import Folder, fits
from kr.packages.gradle import read_gradle
from kr.packages.maven import read_maven
from kr.packages.model import Declared, Dependency, Lock, dependency, resolve
from kr.packages.npm import read_npm

FILES: dict[str, tuple[str, ...]] = {
    "npm": (
        *("package.json", "package-lock.json", "npm-shrinkwrap.json"),
        *("yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml"),
    ),
    "python": (
        *("pyproject.toml", "uv.lock", "poetry.lock", "pylock.toml", "setup.cfg"),
        *("*requirements*.txt", "*requirements*.in", "*requirements*.lock", "requirements"),
    ),
    "maven": ("pom.xml",),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "go": ("go.mod", "go.work"),
    "composer": ("composer.json", "composer.lock"),
    "ruby": ("Gemfile.lock",),
    "cargo": ("Cargo.toml", "Cargo.lock"),
}
"""The files that are read, by their names in a project's folder."""
UNREAD = (
    *("setup.py", "Pipfile", "Pipfile.lock", "pdm.lock", "environment.yml", "environment.yaml", "pixi.toml"),
    *(
        "bun.lock",
        "bun.lockb",
        "deno.json",
        "deno.jsonc",
        "Gemfile",
        "gradle.lockfile",
        "build.sbt",
        "ivy.xml",
    ),
    *("deps.edn", "project.clj", "*.sln", "*.slnx", "*.??proj", "packages.lock.json", "packages.config"),
    *("Directory.Packages.props", "paket.dependencies", "Package.swift", "Podfile", "Cartfile"),
    *("pubspec.yaml", "mix.exs", "rebar.config", "gleam.toml", "stack.yaml", "*.cabal"),
    *("conanfile.txt", "conanfile.py", "vcpkg.json", "build.zig.zon", "shard.yml", "elm.json", "bower.json"),
    *("Project.toml", "renv.lock", "cpanfile", "MODULE.bazel", "Gopkg.toml"),
)
"""Dependency files that are not read; each that is there is named."""
_LOCKS_OF = {"Gemfile": "Gemfile.lock"}
_ALL = [pattern for files in (*FILES.values(), UNREAD) for pattern in files if pattern != "requirements"]
_NAMES = frozenset(pattern for pattern in _ALL if not re.search(r"[*?]", pattern))
_PATTERNS = re.compile("|".join(translate(pattern) for pattern in _ALL if pattern not in _NAMES))


def is_project(place: Path) -> bool:
    """Tell whether a folder holds a dependency file, read or not."""
    names = names_in(place)
    listed = "requirements" in names and any(n.endswith(".txt") for n in names_in(place / "requirements"))
    return listed or any(name in _NAMES or _PATTERNS.fullmatch(name) for name in names)


def read_project(folder: Folder, environ: Mapping[str, str]) -> Iterator[Dependency]:
    """Yield what every dependency file of the folder names; warnings about them are kept in ``folder``."""
    names = folder.names()
    present = {kind for kind, files in FILES.items() if any(_is_one_of(name, files) for name in names)}
    readers: dict[str, Callable[[Folder], Iterator[Dependency]]] = {
        "npm": read_npm,
        "maven": read_maven,
        "gradle": read_gradle,
        "go": read_go,
        "composer": read_composer,
        "ruby": read_ruby,
        "cargo": read_cargo,
    }
    for kind, read in readers.items():
        if kind in present:
            yield from read(folder)
    if "python" in present:
        yield from _python(folder, python_environment((folder.root,), environ))
    for name in names:
        if _is_one_of(name, UNREAD) and _has_dependencies(folder, name, names):
            folder.warn(name, "kr does not read this kind of dependency file")


def _python(folder: Folder, environment: PythonEnvironment) -> Iterator[Dependency]:
    from kr.packages.python import read_python  # heavy: packaging costs as much as a hit at the command line

    for site in environment.sites:
        folder.saw(site)
    for place in (folder.root / ".venv", folder.root / "venv", folder.root / ".python-version"):
        folder.saw(place)
    yield from read_python(folder, environment, _shown(environment.root, folder.root))


def _shown(place: Path | None, root: Path) -> str:
    """Name an environment as ``Dependency.file`` does; outside the project by its whole path."""
    if place is None:
        return ""
    try:
        return place.relative_to(root).as_posix()
    except ValueError:
        return place.as_posix()


def _is_one_of(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _has_dependencies(folder: Folder, name: str, names: list[str]) -> bool:
    """Tell whether a file that is not read may say more than what is: a setup.py often only calls ``setup()``."""
    if name == "setup.py":
        return "requires" in (folder.text(name) or "")
    return _LOCKS_OF.get(name) not in names


def read_go(folder: Folder) -> Iterator[Dependency]:
    """go.mod, and those that a go.work uses: versions are exact; ``// indirect`` marks what others asked for."""
    uses = [words[0] for words, _ in _directives(folder.text("go.work") or "", "use")]
    insides = [inside for use in uses if (inside := folder.inside(use))]
    files = dict.fromkeys(["go.mod", *(f"{inside}/go.mod" for inside in insides if inside != ".")])
    modules = {file: text for file in files if (text := folder.text(file)) is not None}
    own = {words[0] for text in modules.values() for words, _ in _directives(text, "module")}
    for file, text in modules.items():
        replaced = _replacements(text)
        for words, comment in _directives(text, "require"):
            if len(words) >= 2 and words[0] not in own:
                version = replaced.get((words[0], words[1]), replaced.get((words[0], ""), words[1]))
                if version:  # a folder that stands in is the project's own module
                    yield dependency("go", words[0], version, file, direct="indirect" not in comment)
        for words, _ in list(_directives(text, "go"))[:1]:
            yield dependency("language", "go", words[0], file, direct=True)


def _replacements(text: str) -> dict[tuple[str, str], str]:
    """Map ``(path, version or "")`` to the version that stands in; empty for a folder."""
    found: dict[tuple[str, str], str] = {}
    for words, _ in _directives(text, "replace"):
        if "=>" in words:
            arrow = words.index("=>")
            old, new = words[:arrow], words[arrow + 1 :]
            if old and new:
                found[old[0], old[1] if len(old) > 1 else ""] = new[1] if len(new) > 1 else ""
    return found


def _directives(text: str, verb: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words and the comment of each ``verb`` line of go.mod, in a block or on its own."""
    block = ""
    for line in text.splitlines():
        code, _, comment = line[:2_000].partition("//")
        words = [word.strip('"`') for word in code.split()]
        if not words:
            continue
        if block:
            if words[0] == ")":
                block = ""
            elif block == verb:
                yield words, comment
        elif opened := re.match(r"\s*(\w+)\s*\(\s*$", code):
            block = opened[1]
        elif words[0] == verb and len(words) > 1:
            yield words[1:], comment


def read_composer(folder: Folder) -> Iterator[Dependency]:
    """composer.json with composer.lock; extensions of PHP are no packages, what a ``path`` repository gives is the project's."""
    file = "composer.json"
    manifest = folder.document(file)
    lock, own = _composer_lock(folder)
    declared = []
    for section in ("require", "require-dev"):
        for name, spec in folder.table(file, manifest, section).items():
            text = spec if isinstance(spec, str) else None
            if text is None:
                folder.warn(file, f"{section}.{name} is not a text")
            if name == "php" and text:
                yield dependency("language", "php", text, file, direct=True)
            elif "/" in name and name.lower() not in own:
                declared.append(Declared(name, text, file, dev=section != "require"))
    yield from resolve("composer", declared, lock)


def _composer_lock(folder: Folder) -> tuple[Lock | None, set[str]]:
    file = "composer.lock"
    data = folder.document(file, "json")
    own: set[str] = set()
    lock = Lock(file, fold=str.lower)
    packages = [*folder.items(file, data, "packages"), *folder.items(file, data, "packages-dev")]
    for package in (package for package in packages if isinstance(package, dict)):
        dist, name = package.get("dist"), package.get("name")
        if isinstance(dist, dict) and dist.get("type") == "path" and isinstance(name, str):
            own.add(name.lower())
        else:
            lock.add(name, package.get("version"))
    return (None if data is None else lock), own


def read_ruby(folder: Folder) -> Iterator[Dependency]:
    """Gemfile.lock: its DEPENDENCIES are direct, gems from a PATH are the project's own."""
    file = "Gemfile.lock"
    lock = Lock(file)
    local: set[str] = set()
    declared: list[Declared] = []
    section = ""
    for line in (folder.text(file) or "").splitlines():
        if line and not line[0].isspace():
            section = line.strip()
        elif section == "DEPENDENCIES":
            if found := re.match(r"  ([^\s!(]+)(?: \(([^)]*)\))?", line[:500]):
                declared.append(Declared(found[1], found[2], file))
        elif section == "RUBY VERSION":
            if found := re.match(r"\s+ruby (\d[\w.]*?)(?:p\d+)?$", line[:500]):
                yield dependency("language", "ruby", found[1], file, direct=True)
        elif section != "CHECKSUMS" and (found := re.match(r"    ([^\s(]+) \(([^)\s]+)\)$", line[:500])):
            if section == "PATH":
                local.add(found[1])
            else:
                # ``1.16.0`` of ``1.16.0-x86_64-linux``; a gem's pre-release is written with dots.
                lock.add(found[1], found[2].partition("-")[0])
    yield from resolve("ruby", [d for d in declared if d.package not in local], lock)


_CARGO = "Cargo.toml"
_CARGO_SECTIONS = ("dependencies", "dev-dependencies", "build-dependencies")


def _crate(name: str) -> str:
    return name.lower().replace("_", "-")


def read_cargo(folder: Folder) -> Iterator[Dependency]:
    """Cargo.toml with Cargo.lock, and the members of a workspace; what lies at a path is the workspace's own."""
    root = folder.document(_CARGO)
    up, top = _cargo_top(folder, root) if root is not None else ("", {})
    workspace = folder.table(f"{up}{_CARGO}", top, "workspace")
    shared = folder.table(f"{up}{_CARGO}", workspace, "dependencies")
    excluded = [f"!{e}" for e in folder.items(_CARGO, workspace, "exclude")]
    patterns = [*folder.items(_CARGO, workspace, "members"), *excluded] if not up else []
    manifests = folder.manifests(_CARGO, patterns)
    own = _own_crates(folder, manifests, shared)
    lock, taken = (
        (_cargo_lock(folder, up, None) if up else None) or _cargo_lock(folder, "", own) or (None, {})
    )
    declared: list[Declared] = []
    for file, manifest in manifests.items():
        package = folder.table(file, manifest, "package")
        wanted = taken.get(_crate(str(package.get("name"))), {})
        for table, dev in _cargo_tables(folder, file, manifest):
            found = _crates(folder, file, table, shared, dev=dev)
            declared += [replace(d, locked=wanted.get(_crate(d.package))) for d in found]
        if isinstance(rust := package.get("rust-version"), str):
            yield dependency("language", "rust", rust, file, direct=True)
    named = {_crate(d.package) for d in declared}
    unused = _crates(folder, _CARGO, shared, {}, dev=False) if not up else ()
    yield from resolve("cargo", [*declared, *(d for d in unused if _crate(d.package) not in named)], lock)


def _cargo_top(folder: Folder, root: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the way to the workspace that the crate belongs to, as Cargo finds it, and its manifest."""
    for up, here in folder.above() if "workspace" not in root else ():
        file = f"{up}{_CARGO}"
        manifest = folder.document(file)
        if manifest is not None and "workspace" in manifest:
            excluded = folder.items(file, manifest, "workspace", "exclude")
            if fits(here, [p for e in excluded for p in (e, f"{e}/**")]):
                break
            return up, manifest
    return "", root


def _own_crates(folder: Folder, manifests: dict[str, dict[str, Any]], shared: dict[str, Any]) -> set[str]:
    """Return the crates that stand in the project: its members, and what a path leads to."""
    own = {_crate(str(folder.table(file, one, "package").get("name"))) for file, one in manifests.items()}
    tables = [table for file, one in manifests.items() for table, _ in _cargo_tables(folder, file, one)]
    entries = (pair for table in (*tables, shared) for pair in table.items())
    paths = ((name, entry) for name, entry in entries if isinstance(entry, dict) and "path" in entry)
    return own | {_crate(str(entry.get("package", name))) for name, entry in paths}


def _cargo_tables(
    folder: Folder, file: str, manifest: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], bool]]:
    targets = folder.table(file, manifest, "target")
    for owner in (manifest, *(folder.table(file, targets, name) for name in targets)):
        for section in _CARGO_SECTIONS:
            yield folder.table(file, owner, section), section != "dependencies"


def _crates(
    folder: Folder, file: str, table: dict[str, Any], shared: dict[str, Any], *, dev: bool
) -> Iterator[Declared]:
    for name, value in table.items():
        entry: Any = value
        if isinstance(entry, dict) and entry.get("workspace") is True:
            # What the workspace doesn't state is unknown, but a dependency all the same.
            entry = shared.get(name, {})
        if isinstance(entry, str):
            entry = {"version": entry}
        if not isinstance(entry, dict):
            folder.warn(file, f"the version of {name} is not a text")
            continue
        package, spec, tag = entry.get("package", name), entry.get("version"), entry.get("tag")
        of_tag = re.search(r"(\d+(?:\.\w+)+)$", tag[-100:]) if isinstance(tag, str) else None
        if "path" not in entry:
            exact = spec.removeprefix("=").strip() if isinstance(spec, str) else None
            yield Declared(str(package), exact or (of_tag[1] if of_tag else None), file, dev)


def _cargo_lock(
    folder: Folder, up: str, own: set[str] | None
) -> tuple[Lock, dict[str, dict[str, str]]] | None:
    """Return the crates from elsewhere, and which version each of the project's own crates takes where there are several.

    ``own`` are the project's crates where all are known: what has no source is then from elsewhere, too, when not of them.
    """
    file = f"{up}Cargo.lock"
    data = folder.document(file, "toml")
    if data is None:
        return None
    lock = Lock(file, fold=_crate, bare="^")
    taken: dict[str, dict[str, str]] = {}
    for package in folder.items(file, data, "package"):
        if not isinstance(package, dict):
            continue
        name = _crate(str(package.get("name")))
        if "source" in package or (own is not None and name not in own):
            lock.add(package.get("name"), package.get("version"))
            continue
        listed = package.get("dependencies")
        parts = [str(one).split() for one in (listed if isinstance(listed, list) else [])]
        taken[name] = {_crate(p[0]): p[1] for p in parts if len(p) > 1}
    return lock, taken
