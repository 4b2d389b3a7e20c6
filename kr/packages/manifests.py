"""Every dependency file of a folder: which there are, who reads them; npm, Go, Composer, Bundler and Cargo themselves."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kr.packages.installed import node_package, python_environment
from kr.packages.model import (
    REQUIREMENTS,
    Dependency,
    Folder,
    Lock,
    choose,
    items,
    names_in,
    table,
    upwards,
)

PYTHON_FILES = ("pyproject.toml", "uv.lock", "poetry.lock", "setup.cfg", "requirements")
JAVA_FILES = ("pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
FILES = (
    *PYTHON_FILES,
    *JAVA_FILES,
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"),
    *("pnpm-workspace.yaml", "go.mod", "composer.json", "composer.lock", "Gemfile.lock"),
    *("Cargo.toml", "Cargo.lock"),
)
"""The files that are read, by their names in a project's folder; and what ``REQUIREMENTS`` fits."""
UNREAD = frozenset(
    (
        "setup.py Pipfile Pipfile.lock pdm.lock pylock.toml environment.yml environment.yaml pixi.toml bun.lock bun.lockb deno.json deno.jsonc Gemfile "
        "gradle.lockfile build.sbt ivy.xml deps.edn project.clj packages.lock.json packages.config "
        "Directory.Packages.props paket.dependencies Package.swift Podfile Cartfile pubspec.yaml mix.exs rebar.config gleam.toml "
        "stack.yaml conanfile.txt conanfile.py vcpkg.json build.zig.zon shard.yml elm.json bower.json Project.toml renv.lock "
        "cpanfile MODULE.bazel Gopkg.toml go.work"
    ).split()
)
"""Dependency files that are not read; each that is there is named, and so are solutions and projects of .NET and Cabal."""
_UNREAD_KINDS = r".*\.(?:slnx?|..proj|cabal)"


def _is_unread(name: str) -> bool:
    return name in UNREAD or re.fullmatch(_UNREAD_KINDS, name) is not None


def is_project(place: Path) -> bool:
    """Tell whether a folder holds a dependency file, read or not."""
    names = {*names_in(place)}
    if "requirements" in names and any(name.endswith(".txt") for name in names_in(place / "requirements")):
        return True
    names.discard("requirements")
    return any(name in FILES or re.fullmatch(REQUIREMENTS, name) or _is_unread(name) for name in names)


def read_project(folder: Folder, environ: Mapping[str, str]) -> Iterator[Dependency]:
    """Yield what every dependency file of the folder names; warnings are kept in ``folder``."""
    names = folder.names()
    for read in (read_npm, read_go, read_composer, read_ruby, read_cargo):
        yield from read(folder)
    if any(name in JAVA_FILES for name in names):
        from kr.packages.java import read_gradle, read_maven  # heavy: XML

        yield from read_maven(folder)
        yield from read_gradle(folder)
    if any(name in PYTHON_FILES or re.fullmatch(REQUIREMENTS, name) for name in names):
        from kr.packages.python import read_python  # heavy: packaging, which costs as much as a hit

        yield from read_python(folder, python_environment((folder.root,), environ))
    for name in filter(_is_unread, names):
        # A setup.py often only calls ``setup()``; what a Gemfile asks for stands in its lock.
        is_telling = "requires" in folder.text(name) if name == "setup.py" else f"{name}.lock" not in names
        if is_telling:
            folder.warn(name, "kr does not read this kind of dependency file")


# --- npm: package.json with package-lock.json, yarn.lock or pnpm-lock.yaml ---

_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_LOCAL = ("workspace:", "file:", "link:", "portal:")
_LONGEST_SPEC = 500


def read_npm(folder: Folder) -> Iterator[Dependency]:
    """Yield what the npm files of a project name. The workspace's own members are left out."""
    root, workspace = folder.document("package.json"), folder.document("pnpm-workspace.yaml")
    patterns = [
        *items(root, "workspaces"),
        *items(root, "workspaces", "packages"),
        *items(workspace, "packages"),
    ]
    manifests = folder.manifests("package.json", patterns)
    declared = [one for file, manifest in manifests.items() for one in _declared(file, manifest)]
    locks = {
        "npm": _npm_lock(folder, "npm-shrinkwrap.json") or _npm_lock(folder, "package-lock.json"),
        "pnpm": _pnpm_lock(folder),
        "yarn": _yarn_lock(folder),
    }
    manager = root.get("packageManager") or table(root, "devEngines", "packageManager").get("name")
    lock = choose(locks, [str(manager).partition("@")[0]], declared, Lock("npm"))
    lock.local |= {str(manifest.get("name")) for manifest in manifests.values()}
    yield from lock.resolve(declared, partial(_installed, folder))
    engine = table(root, "engines").get("node")
    if isinstance(engine, str):
        yield Dependency("language", "node", engine, "package.json")


def _declared(file: str, manifest: dict[str, Any]) -> Iterator[Dependency]:
    """Yield what a manifest states, each package once."""
    stated: dict[str, tuple[str, str]] = {}
    for section in _SECTIONS:
        stated = {name: (section, str(spec)) for name, spec in table(manifest, section).items()} | stated
    for name, (section, spec) in stated.items():
        if not spec.startswith(_LOCAL):
            yield Dependency("npm", *_real(name, spec), file, dev=section == "devDependencies")


def _installed(folder: Folder, one: Dependency) -> tuple[str, str] | None:
    """Return the version in ``node_modules``, as node finds it from the member's folder, and the place."""
    start = folder.root / posixpath.dirname(one.file)
    folder.saw(*((level / "node_modules" / one.package).parent for level in upwards(start)))
    package = node_package(one.package, start)
    if package is None:
        return None
    folder.saw(package.root / "package.json")
    return package.version, f"node_modules/{one.package}"


def _real(name: str, spec: str) -> tuple[str, str]:
    """Return the package behind an alias, and the range; a URL gives none."""
    if alias := re.fullmatch(r"npm:(@?[^@]+)(?:@(.*))?", spec[:_LONGEST_SPEC]):
        return alias[1], alias[2] or ""
    return name, "" if "/" in spec or ":" in spec else spec


def _npm_lock(folder: Folder, file: str) -> Lock | None:
    """Versions 2 and 3 have one flat mapping of folders; of version 1 the uppermost packages are read."""
    data, lock = folder.document(file), Lock("npm", file)
    for path, entry in (table(data, "packages") or table(data, "dependencies")).items():
        fields, name = table(entry), path.rpartition("node_modules/")[2]
        if fields.get("link") is True:
            lock.local.add(name)
        elif path and not (data.get("packages") and name == path):  # neither the project nor a member
            package, version = _real(name, str(fields.get("version", "")))
            lock.add(fields.get("name") or package, version)
    return lock if data else None


def _yarn_lock(folder: Folder) -> Lock | None:
    """Both formats of yarn.lock: unindented descriptors (``name@range``, ``name@npm:real@range``), then an indented ``version``."""
    lock = Lock("npm", "yarn.lock")
    package, spec, is_local = "", "", False
    for line in folder.text(lock.file).splitlines():
        if line and not line[0].isspace() and line.rstrip().endswith(":"):
            descriptor = line[:_LONGEST_SPEC].partition(",")[0].strip('": ')
            name = descriptor[:1] + descriptor[1:].partition("@")[0]
            spec = descriptor[len(name) + 1 :]
            package = _real(name, spec)[0] if "@" in spec[5:] else name
            is_local = any(f"@{kind}" in line for kind in _LOCAL)
        version = re.fullmatch(r'  version:?\s+"?([^"\s]{1,200})"?', line[:300].rstrip())
        if version and is_local:
            lock.local.add(package)
        elif version and spec:  # the file's own version has none
            lock.add(package, version[1])
    return lock if lock.packages or lock.local else None


def _pnpm_lock(folder: Folder) -> Lock | None:
    lock = Lock("npm", "pnpm-lock.yaml")
    data = folder.document(lock.file)
    for key in table(data, "packages"):
        if found := re.match(r"/?((?:@[^@/]+/)?[^@/]+)@([^(]+)", key):
            lock.add(found[1], found[2])
    return lock if data else None


# --- Go, Composer, Bundler, Cargo ---


def read_go(folder: Folder) -> Iterator[Dependency]:
    """go.mod: versions are exact; ``// indirect`` marks what others asked for, a replacement by a folder the project's own module."""
    file, block = "go.mod", ""
    rows: list[Dependency] = []
    replaced: dict[str, str] = {}
    for line in folder.text(file).splitlines():
        code, _, comment = line.partition("//")
        words = [*code.split(), "", ""]
        verb = block or words.pop(0)
        if words[0] == ")":
            block = ""
        elif words[0] == "(":
            block = verb
        elif verb == "go" and words[0]:
            rows.append(Dependency("language", "go", words[0], file))
        elif verb == "require":
            name, version = (word.strip('"`') for word in words[:2])
            rows.append(Dependency("go", name, version, file, direct="indirect" not in comment))
        elif verb == "replace" and "=>" in words:
            replaced[words[0]] = [*words[words.index("=>") :], ""][2]
    for row in rows:
        if version := replaced.get(row.package, row.version):
            yield replace(row, version=version)


def read_composer(folder: Folder) -> Iterator[Dependency]:
    """composer.json with composer.lock; extensions of PHP are no packages."""
    file, lock = "composer.json", Lock("composer", "composer.lock", fold=str.lower)
    locked, manifest = folder.document(lock.file, "json"), folder.document(file)
    for package in (*items(locked, "packages"), *items(locked, "packages-dev")):
        lock.add(table(package).get("name"), table(package).get("version"))
    declared = []
    for section in ("require", "require-dev"):
        for name, spec in table(manifest, section).items():
            if name == "php":
                yield Dependency("language", "php", str(spec), file)
            elif "/" in name:
                declared.append(Dependency("composer", name, str(spec), file, dev=section != "require"))
    yield from lock.resolve(declared)


def read_ruby(folder: Folder) -> Iterator[Dependency]:
    """Gemfile.lock: its DEPENDENCIES are direct, gems from a PATH are the project's own."""
    lock = Lock("ruby", "Gemfile.lock")
    declared: list[Dependency] = []
    section = ""
    for line in folder.text(lock.file).splitlines():
        named = re.match(r"(?: {2}| {4})([^\s!(]+)(?: \(([^)]*)\))?!?$", line[:500])
        if line and not line[0].isspace():
            section = line.strip()
        elif section == "RUBY VERSION" and (found := re.match(r"\s+ruby (\d[\w.]*?)(?:p\d+)?$", line[:500])):
            yield Dependency("language", "ruby", found[1], lock.file)
        elif section == "DEPENDENCIES" and named:
            declared.append(Dependency("ruby", named[1], named[2] or "", lock.file))
        elif section == "PATH" and named:
            lock.local.add(named[1])
        elif section in {"GEM", "GIT"} and named and named[2]:
            # ``1.16.0`` of ``1.16.0-x86_64-linux``; a gem's pre-release is written with dots.
            lock.add(named[1], named[2].partition("-")[0])
    yield from lock.resolve(declared)


def _crate(name: object) -> str:
    return str(name).lower().replace("_", "-")


def read_cargo(folder: Folder) -> Iterator[Dependency]:
    """Cargo.toml with Cargo.lock, and the members of a workspace; what lies at a path is the workspace's own."""
    file, lock = "Cargo.toml", Lock("cargo", "Cargo.lock", fold=_crate)
    workspace = table(folder.document(file), "workspace")
    excluded = [f"!{one}" for one in items(workspace, "exclude")]
    manifests = folder.manifests(file, [*items(workspace, "members"), *excluded])
    lock.local |= {_crate(table(manifest, "package").get("name")) for manifest in manifests.values()}
    shared = table(workspace, "dependencies")
    declared: list[Dependency] = []
    for place, manifest in manifests.items():
        targets = table(manifest, "target")
        for owner in (manifest, *(table(targets, name) for name in targets)):
            for section in ("dependencies", "dev-dependencies", "build-dependencies"):
                for name, value in table(owner, section).items():
                    # What the workspace doesn't state is unknown, but a dependency all the same.
                    entry = shared.get(name) if table(value).get("workspace") is True else value
                    fields = table(entry) or {"version": entry or ""}
                    crate, spec = str(fields.get("package", name)), str(fields.get("version", ""))
                    if "path" in fields:
                        lock.local.add(_crate(crate))
                    else:
                        dev = section != "dependencies"
                        declared.append(Dependency("cargo", crate, spec.strip("= "), place, dev=dev))
        if isinstance(rust := table(manifest, "package").get("rust-version"), str):
            yield Dependency("language", "rust", rust, place)
    for package in map(table, items(folder.document(lock.file, "toml"), "package")):
        if "source" in package or _crate(package.get("name")) not in lock.local:
            lock.add(package.get("name"), package.get("version"))
    yield from lock.resolve(declared)
