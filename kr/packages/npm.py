"""package.json with package-lock.json (versions 1 to 3), yarn.lock or pnpm-lock.yaml, and workspaces."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from kr.packages.files import Folder, items, table, upwards
from kr.packages.installed import node_package
from kr.packages.model import Declared, Dependency, Lock, resolve

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
