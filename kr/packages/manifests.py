"""Every dependency file of a folder: which there are, who reads them; npm, Go, Composer, Bundler and Cargo themselves."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from fnmatch import translate
from pathlib import Path
from typing import Any

from kr.packages.files import Folder, items, names_in, table, tables, upwards
from kr.packages.installed import node_package, python_environment
from kr.packages.java import read_gradle, read_maven
from kr.packages.model import Declared, Dependency, Lock, resolve

PYTHON_FILES = (
    *("pyproject.toml", "uv.lock", "poetry.lock", "pylock.toml", "setup.cfg"),
    *("*requirements*.txt", "*requirements*.in", "*requirements*.lock", "requirements"),
)
FILES = (
    *PYTHON_FILES,
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"),
    *(
        "pnpm-workspace.yaml",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "settings.gradle.kts",
    ),
    *("go.mod", "go.work", "composer.json", "composer.lock", "Gemfile.lock", "Cargo.toml", "Cargo.lock"),
)
"""The files that are read, by their names in a project's folder."""
UNREAD = tuple(
    (
        "setup.py Pipfile Pipfile.lock pdm.lock environment.yml environment.yaml pixi.toml bun.lock bun.lockb deno.json deno.jsonc Gemfile "
        "gradle.lockfile build.sbt ivy.xml deps.edn project.clj *.sln *.slnx *.??proj packages.lock.json packages.config "
        "Directory.Packages.props paket.dependencies Package.swift Podfile Cartfile pubspec.yaml mix.exs rebar.config gleam.toml "
        "stack.yaml *.cabal conanfile.txt conanfile.py vcpkg.json build.zig.zon shard.yml elm.json bower.json Project.toml renv.lock "
        "cpanfile MODULE.bazel Gopkg.toml"
    ).split()
)
"""Dependency files that are not read; each that is there is named."""


def _patterns(*names: str) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, names)))


_PYTHON = _patterns(*PYTHON_FILES)
_UNREAD = _patterns(*UNREAD)
_ANY = _patterns(*(name for name in (*FILES, *UNREAD) if name != "requirements"))


def is_project(place: Path) -> bool:
    """Tell whether a folder holds a dependency file, read or not."""
    names = names_in(place)
    listed = "requirements" in names and any(n.endswith(".txt") for n in names_in(place / "requirements"))
    return listed or any(map(_ANY.match, names))


def read_project(folder: Folder, environ: Mapping[str, str]) -> Iterator[Dependency]:
    """Yield what every dependency file of the folder names; warnings are kept in ``folder``."""
    names = folder.names()
    for read in (read_npm, read_maven, read_gradle, read_go, read_composer, read_ruby, read_cargo):
        yield from read(folder)
    if any(map(_PYTHON.match, names)):
        from kr.packages.python import (
            read_python,
        )  # heavy: packaging costs as much as a hit at the command line

        yield from read_python(folder, python_environment((folder.root,), environ))
    for name in filter(_UNREAD.match, names):
        # A setup.py often only calls ``setup()``; what a Gemfile asks for stands in its lock.
        is_telling = "requires" in folder.text(name) if name == "setup.py" else f"{name}.lock" not in names
        if is_telling:
            folder.warn(name, "kr does not read this kind of dependency file")


# --- npm: package.json with package-lock.json (versions 1 to 3), yarn.lock or pnpm-lock.yaml ---

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
    declared = list(_declared(folder, manifests, workspace))
    locks = {
        "npm": _npm_lock(folder, "npm-shrinkwrap.json") or _npm_lock(folder, "package-lock.json"),
        "pnpm": _pnpm_lock(folder),
        "yarn": _yarn_lock(folder),
    }
    there = [lock for lock in locks.values() if lock]
    manager = root.get("packageManager") or table(root, "devEngines", "packageManager").get("name")
    named = locks.get(str(manager).partition("@")[0])
    yield from resolve(
        "npm", declared, named or max(there, key=lambda lock: lock.fitness(declared), default=None)
    )
    engine = table(root, "engines").get("node")
    if isinstance(engine, str):
        yield Dependency("language", "node", engine, "package.json")


def _declared(folder: Folder, manifests: dict[str, Any], workspace: dict[str, Any]) -> Iterator[Declared]:
    """Yield what the manifests state, with what is installed for the member that states it."""
    members = {file: manifest.get("name") for file, manifest in manifests.items()}
    for file, manifest in manifests.items():
        member = posixpath.dirname(file)
        siblings = {name for other, name in members.items() if other != file}
        stated: dict[str, tuple[str, str]] = {}
        for section in _SECTIONS:
            stated = {name: (section, str(spec)) for name, spec in table(manifest, section).items()} | stated
        for name, (section, text) in stated.items():
            spec = _from_catalog(text, name, workspace)
            package, wanted = _real(name, spec)
            if not spec.startswith(_LOCAL):
                yield Declared(
                    package=package,
                    spec=wanted,
                    file=file,
                    dev=section == "devDependencies",
                    member=member,
                    name=f"{name}@{spec}",
                    installed=_installed(folder, member, name),
                    is_sibling=name in siblings,
                )


def _installed(folder: Folder, member: str, name: str) -> tuple[str, str] | None:
    """Return the version in ``node_modules``, as node finds it from the member's folder, and the place."""
    start = folder.root / member
    folder.saw(*((level / "node_modules" / name).parent for level in upwards(start)))
    package = node_package(name, start)
    if package is None:
        return None
    folder.saw(package.root / "package.json")
    return package.version, f"node_modules/{name}"


def _from_catalog(spec: str, name: str, workspace: dict[str, Any]) -> str:
    """Resolve pnpm's ``catalog:`` and ``catalog:name``."""
    if not spec.startswith("catalog:"):
        return spec
    key = spec.removeprefix("catalog:")
    catalog = table(workspace, "catalog") if key in {"", "default"} else table(workspace, "catalogs", key)
    return str(catalog.get(name, ""))


def _real(name: str, spec: str) -> tuple[str, str | None]:
    """Return the package behind an alias, and the range; a URL gives one by ``#semver:``, a tag or an archive's name."""
    if len(spec) > _LONGEST_SPEC:
        return name, None
    if alias := re.fullmatch(r"npm:(@?[^@]+)(?:@(.*))?", spec):
        return alias[1], alias[2]
    of_tag = r"#(?:semver:|.*@)?([v^~<>=]*\d+(?:\.\w+)+.*)$"
    of_archive = r"://.*[-/]v?(\d+\.\d+[\w.-]*?)\.(?:tgz|tar\.gz)$"
    if tag := re.search(of_tag, spec) or re.search(of_archive, spec):
        return name, tag[1]
    return name, None if "/" in spec or ":" in spec else spec


def _bare(name: str) -> str:
    """Return the name in ``name@range``."""
    return name[:1] + name[1:].partition("@")[0]


def _npm_lock(folder: Folder, file: str) -> Lock | None:
    """Versions 2 and 3 have one flat mapping of folders; ``packages/app/node_modules/x`` is the app's own x.

    Version 1 nests each package's own ``dependencies`` below it: its names are read as those folders.
    """
    data = folder.document(file)
    lock = Lock(file, fold=_bare)
    folders = table(data, "packages")
    levels = [] if folders else [("", table(data, "dependencies"))]
    while levels:
        around, tree = levels.pop()
        for name, entry in tree.items():
            place = f"{around}node_modules/{name}"
            package, exact = _real(name, str(table(entry).get("version", "")))
            folders[place] = {"name": package, "version": exact}
            levels.append((f"{place}/", table(entry, "dependencies")))
    for path, entry in folders.items():
        member, found, name = path.rpartition("node_modules/")
        fields = table(entry)
        if found and fields.get("link") is True:
            lock.local.add(name)
        elif found and isinstance(version := fields.get("version"), str):
            lock.add(fields.get("name") or name, version)
            lock.chosen[member.rstrip("/"), name] = version
    return lock if data else None


def _yarn_lock(folder: Folder) -> Lock | None:
    """Both formats of yarn.lock: unindented descriptors, then an indented ``version``."""
    lock = Lock("yarn.lock")
    descriptors: list[str] = []
    for line in folder.text(lock.file).splitlines():
        if line and not line[0].isspace() and line.rstrip().endswith(":"):
            descriptors = [d.strip().strip('"') for d in line.rstrip()[:-1].strip('"').split(",")[:200]]
        version = re.fullmatch(r'  version:?\s+"?([^"\s]{1,200})"?', line[:300].rstrip())
        if not version or not descriptors:
            continue
        # ``name@range``; of yarn 2 and later ``name@npm:range``, ``name@npm:real@range`` and ``name@workspace:path``.
        names = [f"{_bare(d)}@{d[len(_bare(d)) + 1 :].removeprefix('npm:')}" for d in descriptors]
        if any("@workspace:" in d or f"@{_LOCAL[1]}" in d for d in descriptors):
            lock.local |= {*names}
        else:
            package, spec = _bare(descriptors[0]), descriptors[0][len(_bare(descriptors[0])) + 1 :]
            lock.add(_real(package, spec)[0] if "@" in spec[5:] else package, version[1])
            lock.chosen |= {("", one): version[1] for one in (*names, *descriptors)}
        descriptors = []
    return lock if lock.packages or lock.local else None


def _pnpm_lock(folder: Folder) -> Lock | None:
    lock = Lock("pnpm-lock.yaml", fold=_bare)
    data = folder.document(lock.file)
    for key in table(data, "packages"):
        now, earlier = r"/?(@?[^@/]+(?:/[^@/]+)?)@([^(]+)", r"/((?:@[^/]+/)?[^/]+)/([^/_(]+)"
        if found := re.match(now, key) or re.match(earlier, key):
            lock.add(found[1], found[2])
    for place, importer in (table(data, "importers") or {".": data}).items():
        for name, entry in (row for section in _SECTIONS for row in table(importer, section).items()):
            version = str(entry.get("version", "") if isinstance(entry, dict) else entry)
            # The peers that a version was resolved with stand in brackets, once after an underscore.
            exact = re.match(r"(?:.*?[^/]@)??(\d[^(_]*)", version)
            if version.startswith(_LOCAL):
                lock.local.add(name)
            elif exact and "/" not in exact[1]:
                lock.chosen["" if place == "." else place, name] = exact[1]
    return lock if data else None


# --- Go, Composer, Bundler, Cargo ---


def read_go(folder: Folder) -> Iterator[Dependency]:
    """go.mod, and those that a go.work uses: versions are exact; ``// indirect`` marks what others asked for."""
    uses = [folder.inside(words[0]) for words, _ in _directives(folder.text("go.work"), "use")]
    files = dict.fromkeys(["go.mod", *(f"{inside}/go.mod" for inside in uses if inside and inside != ".")])
    modules = {file: text for file in files if (text := folder.text(file))}
    own = {words[0] for text in modules.values() for words, _ in _directives(text, "module")}
    for file, text in modules.items():
        replaced = _replacements(text)
        for words, comment in _directives(text, "require"):
            if len(words) >= 2 and words[0] not in own:
                version = replaced.get((words[0], words[1]), replaced.get((words[0], ""), words[1]))
                if version:  # a folder that stands in is the project's own module
                    yield Dependency("go", words[0], version, file, direct="indirect" not in comment)
        for words, _ in list(_directives(text, "go"))[:1]:
            yield Dependency("language", "go", words[0], file)


def _replacements(text: str) -> dict[tuple[str, str], str]:
    """Map ``(path, version or "")`` to the version that stands in; empty for a folder."""
    found = {}
    for words, _ in _directives(text, "replace"):
        old, _, new = " ".join(words).partition(" => ")
        path, _, version = old.partition(" ")
        found[path, version] = new.partition(" ")[2]
    return found


def _directives(text: str, verb: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words and the comment of each ``verb`` line of go.mod, in a block or on its own."""
    block = ""
    for line in text.splitlines():
        code, _, comment = line.partition("//")
        words = re.sub(r"[\"`]", "", code).replace("(", " ( ").split()
        if words == [")"]:
            block = ""
        elif words[1:] == ["("]:
            block = words[0]
        elif words and block == verb:
            yield words, comment
        elif not block and words[:1] == [verb] and words[1:]:
            yield words[1:], comment


def read_composer(folder: Folder) -> Iterator[Dependency]:
    """composer.json with composer.lock; extensions of PHP are no packages, what a ``path`` repository gives is the project's."""
    file, lock = "composer.json", Lock("composer.lock", fold=str.lower)
    locked, manifest = folder.document(lock.file, "json"), folder.document(file)
    for package in [*tables(locked, "packages"), *tables(locked, "packages-dev")]:
        if table(package, "dist").get("type") == "path":
            lock.local.add(str(package.get("name")).lower())
        else:
            lock.add(package.get("name"), package.get("version"))
    declared = []
    for section in ("require", "require-dev"):
        for name, spec in table(manifest, section).items():
            if name == "php":
                yield Dependency("language", "php", str(spec), file)
            elif "/" in name:
                declared.append(Declared(package=name, spec=str(spec), file=file, dev=section != "require"))
    yield from resolve("composer", declared, lock)


def read_ruby(folder: Folder) -> Iterator[Dependency]:
    """Gemfile.lock: its DEPENDENCIES are direct, gems from a PATH are the project's own."""
    lock = Lock("Gemfile.lock")
    declared: list[Declared] = []
    section = ""
    for line in folder.text(lock.file).splitlines():
        named = re.match(r"(?: {2}| {4})([^\s!(]+)(?: \(([^)]*)\))?!?$", line[:500])
        if line and not line[0].isspace():
            section = line.strip()
        elif section == "RUBY VERSION" and (found := re.match(r"\s+ruby (\d[\w.]*?)(?:p\d+)?$", line[:500])):
            yield Dependency("language", "ruby", found[1], lock.file)
        elif section == "DEPENDENCIES" and named:
            declared.append(Declared(package=named[1], spec=named[2], file=lock.file))
        elif section == "PATH" and named:
            lock.local.add(named[1])
        elif section in {"GEM", "GIT"} and named and named[2]:
            # ``1.16.0`` of ``1.16.0-x86_64-linux``; a gem's pre-release is written with dots.
            lock.add(named[1], named[2].partition("-")[0])
    yield from resolve("ruby", declared, lock)


_CARGO = "Cargo.toml"


def _crate(name: object) -> str:
    return str(name).lower().replace("_", "-")


def read_cargo(folder: Folder) -> Iterator[Dependency]:
    """Cargo.toml with Cargo.lock, and the members of a workspace; what lies at a path is the workspace's own."""
    workspace = table(folder.document(_CARGO), "workspace")
    excluded = [f"!{one}" for one in items(workspace, "exclude")]
    manifests = folder.manifests(_CARGO, [*items(workspace, "members"), *excluded])
    own = {_crate(table(manifest, "package").get("name")) for manifest in manifests.values()}
    declared: list[Declared] = []
    for file, manifest in manifests.items():
        package = table(manifest, "package")
        for name, fields, dev in _crates(manifest, table(workspace, "dependencies")):
            crate, tag = (
                str(fields.get("package", name)),
                re.search(r"\d+(?:\.\w+)+$", str(fields.get("tag"))[-100:]),
            )
            version = str(fields.get("version") or (tag[0] if tag else ""))
            if "path" in fields:
                own.add(_crate(crate))
            else:
                spec, member = version.removeprefix("=").strip() or None, _crate(package.get("name"))
                declared.append(Declared(package=crate, spec=spec, file=file, dev=dev, member=member))
        if isinstance(rust := package.get("rust-version"), str):
            yield Dependency("language", "rust", rust, file)
    yield from resolve("cargo", declared, _cargo_lock(folder, own))


def _crates(manifest: dict[str, Any], shared: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield name, fields and whether it is for development of what a manifest depends on, those of the workspace filled in."""
    targets = table(manifest, "target")
    for owner in (manifest, *(table(targets, name) for name in targets)):
        for section in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, value in table(owner, section).items():
                # What the workspace doesn't state is unknown, but a dependency all the same.
                is_shared = isinstance(value, dict) and value.get("workspace") is True
                entry = shared.get(name) if is_shared else value
                fields = {"version": entry} if isinstance(entry, str) else table(entry)
                yield name, fields, section != "dependencies"


def _cargo_lock(folder: Folder, own: set[str]) -> Lock:
    """Read the crates from elsewhere, and which version each of the project's ``own`` crates takes where there are several."""
    lock = Lock("Cargo.lock", fold=_crate)
    for package in tables(folder.document(lock.file, "toml"), "package"):
        name = _crate(package.get("name"))
        if "source" in package or name not in own:
            lock.add(package.get("name"), package.get("version"))
            continue
        for crate, version in (
            str(one).split()[:2] for one in items(package, "dependencies") if " " in str(one)
        ):
            lock.chosen[name, _crate(crate)] = version
    return lock
