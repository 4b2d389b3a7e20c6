"""Every dependency file of a folder: which there are, who reads them; Go, Composer, Bundler and Cargo themselves."""

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from pathlib import Path
from typing import Any

from kr.packages.environments import PythonEnvironment, python_environment
from kr.packages.files import Folder, names_in
from kr.packages.gradle import read_gradle
from kr.packages.maven import read_maven
from kr.packages.model import Declared, Dependency, Lock, dependency, resolve
from kr.packages.npm import read_npm

FILES: dict[str, tuple[str, ...]] = {
    "npm": (
        *("package.json", "package-lock.json", "npm-shrinkwrap.json"),
        *("yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml", "bun.lock"),
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
UNREAD = tuple(
    (
        "setup.py Pipfile Pipfile.lock pdm.lock environment.yml environment.yaml pixi.toml bun.lockb deno.json deno.jsonc Gemfile "
        "gradle.lockfile build.sbt ivy.xml deps.edn project.clj *.sln *.slnx *.??proj packages.lock.json packages.config "
        "Directory.Packages.props paket.dependencies Package.swift Podfile Cartfile pubspec.yaml mix.exs rebar.config gleam.toml "
        "stack.yaml *.cabal conanfile.txt conanfile.py vcpkg.json build.zig.zon shard.yml elm.json bower.json Project.toml renv.lock "
        "cpanfile MODULE.bazel Gopkg.toml"
    ).split()
)
"""Dependency files that are not read; each that is there is named."""


def _patterns(*names: str) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, names)))


_READ = {kind: _patterns(*files) for kind, files in FILES.items()}
_UNREAD = _patterns(*UNREAD)
_ANY = _patterns(*(name for files in (*FILES.values(), UNREAD) for name in files if name != "requirements"))


def is_project(place: Path) -> bool:
    """Tell whether a folder holds a dependency file, read or not."""
    names = names_in(place)
    listed = "requirements" in names and any(n.endswith(".txt") for n in names_in(place / "requirements"))
    return listed or any(map(_ANY.match, names))


def read_project(
    folder: Folder, environ: Mapping[str, str], *, without: frozenset[str] = frozenset()
) -> Iterator[Dependency]:
    """Yield what every dependency file of the folder names, but those of the kinds ``without``; warnings are kept in ``folder``."""
    names = folder.names()
    readers: dict[str, Callable[[Folder], Iterator[Dependency]]] = {
        "npm": read_npm,
        "maven": read_maven,
        "gradle": read_gradle,
        "go": read_go,
        "composer": read_composer,
        "ruby": read_ruby,
        "cargo": read_cargo,
        "python": lambda it: _python(it, python_environment((it.root,), environ)),
    }
    for kind, read in readers.items():
        if kind not in without and any(map(_READ[kind].match, names)):
            yield from read(folder)
    for name in filter(_UNREAD.match, names):
        # A setup.py often only calls ``setup()``; what a Gemfile asks for stands in its lock.
        is_telling = "requires" in folder.text(name) if name == "setup.py" else f"{name}.lock" not in names
        if is_telling:
            folder.warn(name, "kr does not read this kind of dependency file")


def _python(folder: Folder, environment: PythonEnvironment) -> Iterator[Dependency]:
    from kr.packages.python import read_python  # heavy: packaging costs as much as a hit at the command line

    folder.saw(*environment.sites, *(folder.root / name for name in (".venv", "venv", ".python-version")))
    place = environment.root
    # Outside the project it is shown by its whole path.
    is_inside = place is not None and place.is_relative_to(folder.root)
    shown = place.relative_to(folder.root) if place and is_inside else place
    yield from read_python(folder, environment, shown.as_posix() if shown else "")


def read_go(folder: Folder) -> Iterator[Dependency]:
    """go.mod, and those that a go.work uses: versions are exact; ``// indirect`` marks what others asked for."""
    uses = [words[0] for words, _ in _directives(folder.text("go.work"), "use")]
    insides = [inside for use in uses if (inside := folder.inside(use))]
    files = dict.fromkeys(["go.mod", *(f"{inside}/go.mod" for inside in insides if inside != ".")])
    modules = {file: text for file in files if (text := folder.text(file))}
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
    file, data = "composer.json", folder.document("composer.lock", "json")
    manifest = folder.document(file)
    lock = Lock("composer.lock", fold=str.lower)
    for package in (
        one for key in ("packages", "packages-dev") for one in folder.tables(lock.file, data, key)
    ):
        dist, name = package.get("dist"), package.get("name")
        if isinstance(dist, dict) and dist.get("type") == "path":
            lock.local.add(str(name).lower())
        else:
            lock.add(name, package.get("version"))
    declared = []
    for section in ("require", "require-dev"):
        for name, spec in folder.table(file, manifest, section).items():
            text = spec if isinstance(spec, str) else None
            if text is None:
                folder.warn(file, f"{section}.{name} is not a text")
            if name == "php" and text:
                yield dependency("language", "php", text, file)
            elif "/" in name:
                declared.append(Declared(package=name, spec=text, file=file, dev=section != "require"))
    yield from resolve("composer", declared, lock)


def read_ruby(folder: Folder) -> Iterator[Dependency]:
    """Gemfile.lock: its DEPENDENCIES are direct, gems from a PATH are the project's own."""
    lock = Lock("Gemfile.lock")
    declared: list[Declared] = []
    section = ""
    for line in folder.text(lock.file).splitlines():
        if line and not line[0].isspace():
            section = line.strip()
        elif section == "DEPENDENCIES":
            if found := re.match(r"  ([^\s!(]+)(?: \(([^)]*)\))?", line[:500]):
                declared.append(Declared(package=found[1], spec=found[2], file=lock.file))
        elif section == "RUBY VERSION":
            if found := re.match(r"\s+ruby (\d[\w.]*?)(?:p\d+)?$", line[:500]):
                yield dependency("language", "ruby", found[1], lock.file)
        elif section != "CHECKSUMS" and (found := re.match(r"    ([^\s(]+) \(([^)\s]+)\)$", line[:500])):
            if section == "PATH":
                lock.local.add(found[1])
            else:
                # ``1.16.0`` of ``1.16.0-x86_64-linux``; a gem's pre-release is written with dots.
                lock.add(found[1], found[2].partition("-")[0])
    yield from resolve("ruby", declared, lock)


_CARGO = "Cargo.toml"


def _crate(name: object) -> str:
    return str(name).lower().replace("_", "-")


def read_cargo(folder: Folder) -> Iterator[Dependency]:
    """Cargo.toml with Cargo.lock, and the members of a workspace; what lies at a path is the workspace's own."""
    workspace = folder.table(_CARGO, folder.document(_CARGO), "workspace")
    shared = folder.table(_CARGO, workspace, "dependencies")
    excluded = [f"!{one}" for one in folder.items(_CARGO, workspace, "exclude")]
    manifests = folder.manifests("cargo", _CARGO, [*folder.items(_CARGO, workspace, "members"), *excluded])
    declared: list[Declared] = []
    own: set[str] = set()
    for file, manifest in manifests.items():
        package = folder.table(file, manifest, "package")
        own.add(_crate(package.get("name")))
        for table, dev in _cargo_tables(folder, file, manifest):
            declared += _crates(folder, file, table, shared, own, member=_crate(package.get("name")), dev=dev)
        if isinstance(rust := package.get("rust-version"), str):
            yield dependency("language", "rust", rust, file)
    named = {_crate(one.package) for one in declared}
    unused = _crates(folder, _CARGO, shared, {}, own)
    declared += [one for one in unused if _crate(one.package) not in named]
    yield from resolve("cargo", declared, _cargo_lock(folder, own))


def _cargo_tables(
    folder: Folder, file: str, manifest: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], bool]]:
    targets = folder.table(file, manifest, "target")
    for owner in (manifest, *(folder.table(file, targets, name) for name in targets)):
        for section in ("dependencies", "dev-dependencies", "build-dependencies"):
            yield folder.table(file, owner, section), section != "dependencies"


def _crates(
    folder: Folder,
    file: str,
    table: dict[str, Any],
    shared: dict[str, Any],
    own: set[str],
    *,
    member: str = "",
    dev: bool = False,
) -> Iterator[Declared]:
    """Yield what a table of dependencies states; what lies at a path goes into ``own``."""
    for name, value in table.items():
        # What the workspace doesn't state is unknown, but a dependency all the same.
        is_shared = isinstance(value, dict) and value.get("workspace") is True
        entry: Any = shared.get(name, {}) if is_shared else value
        entry = {"version": entry} if isinstance(entry, str) else entry
        if not isinstance(entry, dict):
            folder.warn(file, f"the version of {name} is not a text")
            continue
        package, spec, tag = entry.get("package", name), entry.get("version"), entry.get("tag")
        if "path" in entry:
            own.add(_crate(package))
            continue
        of_tag = re.search(r"(\d+(?:\.\w+)+)$", tag[-100:]) if isinstance(tag, str) else None
        exact = spec.removeprefix("=").strip() if isinstance(spec, str) else of_tag[1] if of_tag else None
        yield Declared(package=str(package), spec=exact or None, file=file, dev=dev, member=member)


def _cargo_lock(folder: Folder, own: set[str]) -> Lock | None:
    """Read the crates from elsewhere, and which version each of the project's ``own`` crates takes where there are several."""
    data = folder.document("Cargo.lock", "toml")
    if data is None:
        return None
    lock = Lock("Cargo.lock", fold=_crate, bare="^")
    for package in folder.tables(lock.file, data, "package"):
        name, listed = _crate(package.get("name")), package.get("dependencies")
        if "source" in package or name not in own:
            lock.add(package.get("name"), package.get("version"))
            continue
        for parts in (str(one).split() for one in (listed if isinstance(listed, list) else [])):
            if len(parts) > 1:
                lock.chosen[name, _crate(parts[0])] = parts[1]
    return lock
