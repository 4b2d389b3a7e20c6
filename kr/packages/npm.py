"""package.json with package-lock.json (versions 1 to 3), yarn.lock, pnpm-lock.yaml or bun.lock, and workspaces."""

import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from kr.packages.environments import node_package
from kr.packages.files import Folder, upwards
from kr.packages.model import Declared, Dependency, Lock, dependency, resolve

_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_LOCAL = ("workspace:", "file:", "link:", "portal:")
_LOCK_FILES = {"npm-shrinkwrap.json": "npm", "package-lock.json": "npm", "pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun"}  # fmt: skip
_LONGEST_SPEC = 500


def read_npm(folder: Folder) -> Iterator[Dependency]:
    """Yield what the npm files of a project name. The workspace's own members are left out."""
    root, workspace = folder.document("package.json"), folder.document("pnpm-workspace.yaml")
    keys = ["packages"] if isinstance((root or {}).get("workspaces"), dict) else []
    patterns = folder.items("package.json", root, "workspaces", *keys)
    patterns += folder.items("pnpm-workspace.yaml", workspace, "packages")
    manifests = folder.manifests("npm", "package.json", patterns)
    declared = list(_declared(folder, manifests, workspace or {}))
    read = (_npm_lock, _npm_lock, _pnpm_lock, _yarn_lock, _bun_lock)
    locks = [lock for file, one in zip(_LOCK_FILES, read, strict=True) if (lock := one(folder, file))]
    manager = _manager(root or {})
    named = [lock for lock in locks if _LOCK_FILES[lock.file] == manager] or locks
    yield from resolve("npm", declared, max(named, key=lambda lock: lock.fitness(declared), default=None))
    engine = folder.table("package.json", root, "engines").get("node")
    if isinstance(engine, str):
        yield dependency("language", "node", engine, "package.json")


def _manager(root: dict[str, Any]) -> str:
    """Return the name of the package manager that a manifest names."""
    engines = root.get("devEngines")
    engine = engines.get("packageManager") if isinstance(engines, dict) else None
    named = root.get("packageManager") or (engine.get("name") if isinstance(engine, dict) else None)
    return str(named).partition("@")[0]


def _declared(folder: Folder, manifests: dict[str, Any], workspace: dict[str, Any]) -> Iterator[Declared]:
    """Yield what the manifests state, with what is installed for the member that states it."""
    members = {file: manifest.get("name") for file, manifest in manifests.items()}
    for file, manifest in manifests.items():
        member = posixpath.dirname(file)
        siblings = {name for other, name in members.items() if other != file}
        for name, text, dev in _statements(folder, file, manifest):
            spec = _from_catalog(text, name, workspace)
            package, wanted = _real(name, spec)
            if not spec.startswith(_LOCAL):
                yield Declared(
                    package=package,
                    spec=wanted,
                    file=file,
                    dev=dev,
                    member=member,
                    name=f"{name}@{spec}",
                    installed=_installed(folder, member, name),
                    is_sibling=name in siblings,
                )


def _statements(folder: Folder, file: str, manifest: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    seen: set[str] = set()
    for section in _SECTIONS:
        for name, spec in folder.table(file, manifest, section).items():
            if not isinstance(spec, str):
                folder.warn(file, f"{section}.{name} is not a text")
            elif name not in seen:
                seen.add(name)
                yield name, spec, section == "devDependencies"


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
    key, catalogs = spec.removeprefix("catalog:"), workspace.get("catalogs")
    named = catalogs.get(key) if isinstance(catalogs, dict) else None
    catalog = workspace.get("catalog") if key in {"", "default"} else named
    found = catalog.get(name) if isinstance(catalog, dict) else None
    return found if isinstance(found, str) else ""


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
    """Versions 2 and 3 have one flat mapping of folders; ``packages/app/node_modules/x`` is the app's own x."""
    data = folder.document(file)
    if data is None:
        return None
    lock = Lock(file, fold=_bare)
    packages = folder.table(file, data, "packages")
    for path, entry in packages.items():
        member, found, name = path.rpartition("node_modules/")
        if found and isinstance(entry, dict) and entry.get("link") is True:
            lock.local.add(name)
        elif found and isinstance(entry, dict):
            lock.add(entry.get("name") or name, entry.get("version"))
            lock.chosen[member.rstrip("/"), name] = str(entry.get("version", ""))
    if not packages:
        _read_nested(lock, folder.table(file, data, "dependencies"))
    return lock


def _read_nested(lock: Lock, top: dict[str, Any]) -> None:
    """Version 1: each package with its own ``dependencies`` below it; the upper ones are the project's."""
    levels = [top]
    while levels:
        tree = levels.pop()
        for name, entry in tree.items():
            version = entry.get("version") if isinstance(entry, dict) else None
            package, exact = _real(name, version if isinstance(version, str) else "")
            lock.add(package, exact)
            if tree is top and exact:
                lock.chosen["", name] = exact
            if isinstance(entry, dict) and isinstance(entry.get("dependencies"), dict):
                levels.append(entry["dependencies"])


def _yarn_lock(folder: Folder, file: str) -> Lock | None:
    """Both formats of yarn.lock: unindented descriptors, then an indented ``version``."""
    lock = Lock(file)
    descriptors: list[str] = []
    for line in folder.text(file).splitlines():
        if line and not line[0].isspace() and line.rstrip().endswith(":"):
            descriptors = [d.strip().strip('"') for d in line.rstrip()[:-1].strip('"').split(",")[:200]]
        version = re.fullmatch(r'  version:?\s+"?([^"\s]{1,200})"?', line[:300].rstrip())
        # ``name@range``; of yarn 2 and later ``name@npm:range``, ``name@npm:real@range`` and ``name@workspace:path``.
        names = [f"{_bare(d)}@{d[len(_bare(d)) + 1 :].removeprefix('npm:')}" for d in descriptors]
        if version and any("@workspace:" in d or f"@{_LOCAL[1]}" in d for d in descriptors):
            lock.local |= {*names}
        elif version and names:
            package, spec = _bare(descriptors[0]), descriptors[0][len(_bare(descriptors[0])) + 1 :]
            lock.add(_real(package, spec)[0] if "@" in spec[5:] else package, version[1])
            lock.chosen |= {("", one): version[1] for one in (*names, *descriptors)}
        if version:
            descriptors = []
    return lock if lock.packages or lock.local else None


def _pnpm_lock(folder: Folder, file: str) -> Lock | None:
    data = folder.document(file)
    if data is None:
        return None
    lock = Lock(file, fold=_bare)
    for key in folder.table(file, data, "packages"):
        now, earlier = r"/?(@?[^@/]+(?:/[^@/]+)?)@([^(]+)", r"/((?:@[^/]+/)?[^/]+)/([^/_(]+)"
        if found := re.match(now, key) or re.match(earlier, key):
            lock.add(found[1], found[2])
    for place, importer in (folder.table(file, data, "importers") or {".": data}).items():
        sections = [importer.get(section) for section in _SECTIONS] if isinstance(importer, dict) else []
        for name, entry in (row for table in sections if isinstance(table, dict) for row in table.items()):
            version = entry.get("version") if isinstance(entry, dict) else entry
            if not isinstance(version, str):
                continue
            if version.startswith(_LOCAL):
                lock.local.add(name)
            # The peers that a version was resolved with stand in brackets, once after an underscore.
            aliased = version.rpartition("@")[2] if "@" in version.partition("(")[0] else version
            exact = re.split(r"[(_]", aliased)[0]
            if exact and "/" not in exact and not version.startswith(_LOCAL):
                lock.chosen["" if place == "." else place, name] = exact
    return lock


def _bun_lock(folder: Folder, file: str) -> Lock | None:
    """bun.lock is JSON with commas at the ends of lists; ``app/vue`` is the vue of the package or member ``app``."""
    try:
        data = json.loads(re.sub(r",(?=\s*[}\]])", "", folder.text(file)) or "null")
    except (ValueError, RecursionError):
        folder.warn(file, "it is not valid JSON")
        return None
    if not isinstance(data, dict):
        return None
    lock = Lock(file, fold=_bare)
    members = {str(one.get("name")): place for place, one in folder.table(file, data, "workspaces").items() if isinstance(one, dict)}  # fmt: skip
    for key, entry in folder.table(file, data, "packages").items():
        found = re.fullmatch(r"(@?[^@]+)@(.+)", str(entry[0])) if isinstance(entry, list) and entry else None
        name = re.search(r"(?:@[^/]+/)?[^/]+$", key)
        if found and name and found[2].startswith(_LOCAL):
            lock.local.add(name[0])
        elif found and name:
            lock.add(found[1], found[2])
            lock.chosen[members.get(key[: name.start()].rstrip("/"), key[: name.start()]), name[0]] = found[2]
    return lock
