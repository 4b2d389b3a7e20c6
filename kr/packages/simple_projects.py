"""Ecosystems of one manifest and one lock file: Go, PHP (Composer), Ruby (Bundler), Dart (pub), Elixir (Mix) and .NET (NuGet)."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element

from kr.packages.folder import MAX_MEMBERS, Folder
from kr.packages.model import Declared, Inventory, Lock, collect


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what the files of these ecosystems say; a workspace's own members are left out."""
    for ecosystem in (_find_go, _find_composer, _find_ruby, _find_pub, _find_mix, _find_nuget):
        ecosystem(folder, inventory)


def _find_go(folder: Folder, inventory: Inventory) -> None:
    """go.mod and the modules of go.work: versions are exact; ``// indirect`` marks what others asked for."""
    places = [""]
    for words, _ in go_directives(folder.text("go.work") or "", "use"):
        inside = folder.inside(words[0])
        if inside is not None and inside != ".":
            places.append(inside)
    modules = {
        file: module
        for place in places[:MAX_MEMBERS]
        if (module := folder.text(file := f"{place}/go.mod".lstrip("/"))) is not None
    }
    own = {words[0] for module in modules.values() for words, _ in go_directives(module, "module")}
    for file, module in modules.items():
        replaced = _replacements(module)
        for words, comment in go_directives(module, "require"):
            if len(words) >= 2 and words[0] not in own:
                version = replaced.get((words[0], words[1]), replaced.get((words[0], "")))
                if version != "":
                    inventory.add("go", words[0], version or words[1], file, direct="indirect" not in comment)


def _replacements(text: str) -> dict[tuple[str, str], str]:
    """Map ``(path, version or "")`` to the version that stands in; empty for a folder: the project's own module."""
    found: dict[tuple[str, str], str] = {}
    for words, _ in go_directives(text, "replace"):
        if "=>" in words:
            arrow = words.index("=>")
            old, new = words[:arrow], words[arrow + 1 :]
            if old and new:
                found[old[0], old[1] if len(old) > 1 else ""] = new[1] if len(new) > 1 else ""
    return found


def go_directives(text: str, verb: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words and the comment of each ``verb`` line of go.mod or go.work, in a block or on its own."""
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


def _find_composer(folder: Folder, inventory: Inventory) -> None:
    """composer.json with composer.lock; PHP itself and its extensions are no packages."""
    file = "composer.json"
    manifest = folder.document(file) or {}
    lock, own = _composer_lock(folder)
    declared = []
    for section in ("require", "require-dev"):
        for name, spec in folder.table(file, manifest, section).items():
            if "/" not in name or name.lower() in own:
                continue
            if not isinstance(spec, str):
                folder.warn(file, f"{section}.{name} is not a text")
            text = spec if isinstance(spec, str) else None
            declared.append(Declared(name, text, file, dev=section != "require"))
    collect(inventory, "composer", declared, lock)


def _composer_lock(folder: Folder) -> tuple[Lock | None, set[str]]:
    """Return the lock, and the names of the project's own packages, which a ``path`` repository gives."""
    file = "composer.lock"
    data = folder.document(file, "json")
    own: set[str] = set()
    if data is None:
        return None, own
    lock = Lock(file, fold=str.lower)
    for section in ("packages", "packages-dev"):
        for package in folder.items(file, data, section):
            if not isinstance(package, dict):
                continue
            dist, name = package.get("dist"), package.get("name")
            if isinstance(dist, dict) and dist.get("type") == "path" and isinstance(name, str):
                own.add(name.lower())
            else:
                lock.add(name, package.get("version"))
    return lock, own


def _find_ruby(folder: Folder, inventory: Inventory) -> None:
    """Gemfile.lock: its DEPENDENCIES are direct, gems from a PATH are the project's own."""
    file = "Gemfile.lock"
    text = folder.text(file)
    if text is None:
        return
    lock = Lock(file)
    local: set[str] = set()
    declared: list[Declared] = []
    section = ""
    for line in text.splitlines():
        if line and not line[0].isspace():
            section = line.strip()
        elif section == "DEPENDENCIES":
            if found := re.match(r"  ([^\s!(]+)(?: \(([^)]*)\))?", line[:500]):
                declared.append(Declared(found[1], found[2], file))
        elif section == "CHECKSUMS":
            continue
        elif found := re.match(r"    ([^\s(]+) \(([^)\s]+)\)$", line[:500]):
            if section == "PATH":
                local.add(found[1])
            else:
                # ``1.16.0`` of ``1.16.0-x86_64-linux``; a gem's pre-release is written with dots.
                lock.add(found[1], found[2].partition("-")[0])
    collect(inventory, "ruby", [d for d in declared if d.package not in local], lock)


def _find_pub(folder: Folder, inventory: Inventory) -> None:
    """pubspec.yaml with pubspec.lock; what an SDK or a path gives has no version of its own."""
    file = "pubspec.yaml"
    manifest = folder.document(file) or {}
    lock, direct = _pub_lock(folder)
    declared = list(direct)
    known = {d.package for d in direct}
    for section in ("dependencies", "dev_dependencies"):
        for name, value in folder.table(file, manifest, section).items():
            spec = value.get("version") if isinstance(value, dict) else value
            is_elsewhere = isinstance(value, dict) and value.keys() & {"sdk", "path"}
            if name not in known and not is_elsewhere:
                text = spec if isinstance(spec, str) and spec else None
                declared.append(Declared(name, text, file, dev=section != "dependencies"))
    collect(inventory, "pub", declared, lock)


def _pub_lock(folder: Folder) -> tuple[Lock | None, list[Declared]]:
    """Return the lock, and what it calls ``direct main`` or ``direct dev``."""
    file = "pubspec.lock"
    data = folder.document(file, "yaml")
    direct: list[Declared] = []
    if data is None:
        return None, direct
    lock = Lock(file)
    for name, entry in folder.table(file, data, "packages").items():
        if not isinstance(entry, dict) or entry.get("source") in {"sdk", "path"}:
            continue
        lock.add(name, entry.get("version"))
        kind = str(entry.get("dependency"))
        if kind.startswith("direct"):
            direct.append(Declared(name, None, file, dev=kind.endswith("dev")))
    return lock, direct


_MIX_LOCKED = re.compile(
    r'^\s*"([^"\s]{1,100})": \{:(hex|git), :?"?([^",\s]{1,300})"?, "([^"\s]{1,100})"', re.MULTILINE
)
_MIX_DECLARED = re.compile(r'\{:(\w{1,100}),(?:\s*"([^"\n]{1,100})")?([^{}\n]{0,300})')


def _find_mix(folder: Folder, inventory: Inventory) -> None:
    """mix.exs, a program of which the plain ``{:name, "~> 1.0"}`` of ``deps`` are read, with mix.lock."""
    file = "mix.exs"
    code = re.sub(r"#[^\n]*", "", folder.text(file) or "")
    lock = _mix_lock(folder)
    body = re.search(r"\bdefp? deps\b.*?\n  end\b", code, re.DOTALL)
    declared = [
        Declared(found[1], found[2], file, dev=_is_for_development(found[3]))
        for found in _MIX_DECLARED.finditer(body[0] if body else "")
        if not re.search(r"\b(?:path|in_umbrella):", found[3])
    ]
    collect(inventory, "hex", declared, lock)


def _is_for_development(options: str) -> bool:
    only: Any = re.search(r"\bonly: (?:\[([^\]]*)\]|(:\w+))", options)
    return only is not None and ":prod" not in (only[1] or only[2])


def _mix_lock(folder: Folder) -> Lock | None:
    """Read ``"name": {:hex, :package, "1.2.3", ...}``; of a Git dependency only the commit is told, which is no version."""
    text = folder.text("mix.lock")
    if text is None:
        return None
    lock = Lock("mix.lock")
    for name, kind, _, version in _MIX_LOCKED.findall(text):
        if kind == "hex":
            lock.add(name, version)
    return lock


_PROJECTS = (".csproj", ".fsproj", ".vbproj")
_MARKS = ("*.sln", "*.slnx", "*.??proj", "Directory.*.props")
"""One of these stands at the top of every .NET solution and project; elsewhere no folder is walked for it."""
_CENTRAL = "Directory.Packages.props"


def _find_nuget(folder: Folder, inventory: Inventory) -> None:
    """Add the packages of every project below the folder; a project that another one refers to is no package."""
    if not any(next(folder.root.glob(pattern), None) for pattern in _MARKS):
        return
    central = _central(folder)
    for file in islice(folder.files(*_PROJECTS), MAX_MEMBERS):
        root = folder.xml(file)
        place = PurePosixPath(file).parent
        declared = list(_declared(root, file, central)) if root is not None else []
        declared += _old_packages(folder, place)
        collect(inventory, "nuget", declared, _lock(folder, place))


def _declared(root: Element, file: str, central: dict[str, tuple[str, str]]) -> Iterator[Declared]:
    for item in root.iter("PackageReference"):
        name = item.get("Include") or item.get("Update")
        if not name or "$(" in name:
            continue
        own = item.get("Version") or item.get("VersionOverride") or (item.findtext("Version") or "").strip()
        version, told_by = (own, file) if own else central.get(name.lower(), ("", file))
        # What is referred to for the build alone (analyzers, source links) says so.
        is_private = (item.get("PrivateAssets") or item.findtext("PrivateAssets") or "").lower() == "all"
        yield Declared(name, None if "$(" in version else version or None, told_by, is_private)


def _central(folder: Folder) -> dict[str, tuple[str, str]]:
    """Map each package to the version that the nearest Directory.Packages.props gives it, and to that file."""
    for up in ("", *(up for up, _ in folder.above())):
        root = folder.xml(file := f"{up}{_CENTRAL}")
        if root is not None:
            items = [*root.iter("PackageVersion"), *root.iter("GlobalPackageReference")]
            return {i.get("Include", "").lower(): (i.get("Version", ""), file) for i in items}
    return {}


def _old_packages(folder: Folder, place: PurePosixPath) -> Iterator[Declared]:
    file = (place / "packages.config").as_posix()
    root = folder.xml(file)
    for item in root.iter("package") if root is not None else ():
        if name := item.get("id"):
            yield Declared(name, item.get("version"), file, item.get("developmentDependency") == "true")


def _lock(folder: Folder, place: PurePosixPath) -> Lock | None:
    """Read ``dependencies: {framework: {package: {type, resolved}}}``; a ``Project`` is the solution's own."""
    file = (place / "packages.lock.json").as_posix()
    data = folder.document(file)
    if data is None:
        return None
    lock = Lock(file, fold=str.lower)
    frameworks = folder.table(file, data, "dependencies")
    for framework in frameworks:
        for name, entry in folder.table(file, frameworks, framework).items():
            if isinstance(entry, dict) and entry.get("type") != "Project":
                lock.add(name, entry.get("resolved"))
    return lock
