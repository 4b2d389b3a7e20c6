"""Ecosystems of one manifest and one lock file: Python, Go, PHP (Composer), Ruby (Bundler) and Rust (Cargo)."""

import re
from collections.abc import Iterator
from typing import Any

from kr.packages.folder import Folder, fits
from kr.packages.model import Declared, Inventory, Lock, collect


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what the files of these ecosystems say; a workspace's own members are left out."""
    for ecosystem in (_find_python, _find_go, _find_composer, _find_ruby, _find_cargo):
        ecosystem(folder, inventory)


def _find_go(folder: Folder, inventory: Inventory) -> None:
    """go.mod: versions are exact; ``// indirect`` marks what others asked for."""
    module = folder.text("go.mod") or ""
    replaced = _replacements(module)
    for words, comment in go_directives(module, "require"):
        if len(words) >= 2:
            version = replaced.get((words[0], words[1]), replaced.get((words[0], "")))
            if version != "":
                inventory.add("go", words[0], version or words[1], "go.mod", direct="indirect" not in comment)


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


_CARGO_SECTIONS = ("dependencies", "dev-dependencies", "build-dependencies")


def _crate(name: str) -> str:
    return name.lower().replace("_", "-")


def _find_cargo(folder: Folder, inventory: Inventory) -> None:
    """Cargo.toml with Cargo.lock, and the members of a workspace; crates of the workspace itself are left out."""
    file = "Cargo.toml"
    root = folder.document(file)
    if root is None:
        collect(inventory, "cargo", [], _cargo_lock(folder, "", frozenset()))
        return
    up, top = _cargo_top(folder, root)
    workspace = folder.table(f"{up}{file}", top, "workspace")
    shared = folder.table(f"{up}{file}", workspace, "dependencies")
    manifests = {file: root}
    if not up:
        excluded = [f"!{e}" for e in folder.items(file, workspace, "exclude")]
        for member in folder.members([*folder.items(file, workspace, "members"), *excluded], file):
            manifest = folder.document(f"{member}/{file}")
            if manifest is not None:
                manifests[f"{member}/{file}"] = manifest
    declared = [
        dependency
        for name, manifest in manifests.items()
        for table, dev in _cargo_tables(folder, name, manifest)
        for dependency in _crates(folder, name, table, shared, dev=dev)
    ]
    if not up:
        declared += _crates(folder, file, shared, {})
    own = frozenset(_own_crates(folder, manifests | {f"{up}{file}": top}))
    declared = [d for d in declared if _crate(d.package) not in own]
    lock = (_cargo_lock(folder, up, own) if up else None) or _cargo_lock(folder, "", own)
    collect(inventory, "cargo", declared, lock)


def _cargo_top(folder: Folder, root: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the way to the workspace that the crate belongs to, as Cargo finds it, and its manifest."""
    if "workspace" in root:
        return "", root
    for up, here in folder.above():
        file = f"{up}Cargo.toml"
        manifest = folder.document(file)
        if manifest is not None and "workspace" in manifest:
            excluded = folder.items(file, folder.table(file, manifest, "workspace"), "exclude")
            if fits(here, [p for e in excluded for p in (e, f"{e}/**")]):
                break
            return up, manifest
    return "", root


def _own_crates(folder: Folder, manifests: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the folded names of the crates that stand in the project: members, and what a path leads to."""
    for file, manifest in manifests.items():
        name = folder.table(file, manifest, "package").get("name")
        if isinstance(name, str):
            yield _crate(name)
        workspace = folder.table(file, manifest, "workspace")
        for table in (
            *(t for t, _ in _cargo_tables(folder, file, manifest)),
            folder.table(file, workspace, "dependencies"),
        ):
            for key, entry in table.items():
                if isinstance(entry, dict) and "path" in entry:
                    yield _crate(str(entry.get("package", key)))


def _cargo_tables(
    folder: Folder, file: str, manifest: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], bool]]:
    targets = folder.table(file, manifest, "target")
    for owner in (manifest, *(folder.table(file, targets, name) for name in targets)):
        for section in _CARGO_SECTIONS:
            yield folder.table(file, owner, section), section != "dependencies"


def _crates(
    folder: Folder, file: str, table: dict[str, Any], shared: dict[str, Any], *, dev: bool = False
) -> Iterator[Declared]:
    for name, value in table.items():
        entry: Any = value
        if isinstance(entry, dict) and entry.get("workspace") is True:
            # What the workspace doesn't tell is unknown, but a dependency all the same.
            entry = shared.get(name, {})
        if isinstance(entry, str):
            entry = {"version": entry}
        if not isinstance(entry, dict):
            folder.warn(file, f"the version of {name} is not a text")
            continue
        package, spec = entry.get("package", name), entry.get("version")
        if "path" in entry and spec is None:
            continue
        if isinstance(package, str):
            exact = spec.removeprefix("=").strip() if isinstance(spec, str) else None
            yield Declared(package, exact, file, dev)


def _cargo_lock(folder: Folder, up: str, own: frozenset[str]) -> Lock | None:
    file = f"{up}Cargo.lock"
    data = folder.document(file, "toml")
    if data is None:
        return None
    lock = Lock(file, fold=_crate)
    for package in folder.items(file, data, "package"):
        if not isinstance(package, dict):
            continue
        # A crate of the project itself has no source either; of a workspace above not all names are known.
        if "source" in package or (not up and _crate(str(package.get("name"))) not in own):
            lock.add(package.get("name"), package.get("version"))
    return lock


_TOML_LOCKS = ("uv.lock", "poetry.lock")
_OWN_SOURCES = frozenset({"virtual", "editable", "directory"})
"""Where uv and poetry say that a locked package is a folder of the project itself."""
_DEVELOPMENT = re.compile(r"dev|test|lint|docs|typing|type-?check|format", re.IGNORECASE)
"""Names of groups and files that hold tools and not what the product is built from."""
_MOST_FILES = 50
_MOST_LINES = 20_000


def normalised(name: str) -> str:
    """Return a Python project name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _find_python(folder: Folder, inventory: Inventory) -> None:
    """Add what the Python files of the project say. An exact requirement wins over a range."""
    root = folder.document("pyproject.toml")
    local: set[str] = set()
    declared: list[Declared] = []
    for file, manifest in _manifests(folder, root):
        project = folder.table(file, manifest, "project")
        poetry = folder.table(file, manifest, "tool", "poetry")
        local |= {normalised(n) for n in (project.get("name"), poetry.get("name")) if isinstance(n, str)}
        local |= _sources(folder, file, manifest)
        declared += _pep621(folder, file, manifest, project)
        declared += _poetry(folder, file, poetry)
    declared += _requirements(folder)
    lock = _read_lock(folder, root)
    collect(inventory, "python", _best(d for d in declared if normalised(d.package) not in local), lock)


def _manifests(folder: Folder, root: dict[str, Any] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    if root is None:
        return
    yield "pyproject.toml", root
    workspace = folder.table("pyproject.toml", root, "tool", "uv", "workspace")
    patterns = folder.items("pyproject.toml", workspace, "members") if workspace else []
    excluded = folder.items("pyproject.toml", workspace, "exclude") if workspace else []
    for member in folder.members([*patterns, *(f"!{e}" for e in excluded)], "pyproject.toml"):
        file = f"{member}/pyproject.toml"
        manifest = folder.document(file)
        if manifest is not None:
            yield file, manifest


def _top(folder: Folder) -> str:
    """Return the way to the nearest uv workspace that has this folder; empty when there is none."""
    for up, here in folder.above():
        file = f"{up}pyproject.toml"
        workspace = folder.table(file, folder.document(file) or {}, "tool", "uv", "workspace")
        excluded = [f"!{e}" for e in folder.items(file, workspace, "exclude")]
        if fits(here, [*folder.items(file, workspace, "members"), *excluded]):
            return up
    return ""


def _sources(folder: Folder, file: str, manifest: dict[str, Any]) -> set[str]:
    """Return the names that uv takes from folders: the project's own packages, no dependencies."""
    sources = folder.table(file, manifest, "tool", "uv", "sources")
    return {
        normalised(name)
        for name, source in sources.items()
        if isinstance(source, dict) and (source.get("workspace") is True or "path" in source)
    }


def _pep621(
    folder: Folder, file: str, manifest: dict[str, Any], project: dict[str, Any]
) -> Iterator[Declared]:
    lists = [(folder.items(file, project, "dependencies"), False)]
    extras = folder.table(file, project, "optional-dependencies")
    lists += [(folder.items(file, extras, name), bool(_DEVELOPMENT.search(name))) for name in extras]
    uv = folder.table(file, manifest, "tool", "uv")
    lists.append((folder.items(file, uv, "dev-dependencies"), True))
    groups = folder.table(file, manifest, "dependency-groups")
    lists += [(folder.items(file, groups, group), True) for group in groups]
    for entry, dev in ((e, dev) for entries, dev in lists for e in entries):
        if isinstance(entry, dict):  # {include-group = "..."}: that group is read on its own
            continue
        requirement = parse_requirement(entry) if isinstance(entry, str) else None
        if requirement is None:
            folder.warn(file, f"{str(entry)[:80]!r} is no requirement")
        else:
            yield Declared(requirement[0], requirement[1], file, dev)


def _poetry(folder: Folder, file: str, poetry: dict[str, Any]) -> Iterator[Declared]:
    groups = folder.table(file, poetry, "group")
    tables = [
        (folder.table(file, poetry, "dependencies"), False),
        (folder.table(file, poetry, "dev-dependencies"), True),
        *((folder.table(file, groups, group, "dependencies"), True) for group in groups),
    ]
    for table, dev in tables:
        yield from _versions(folder, file, table, dev=dev)


def _versions(folder: Folder, file: str, table: dict[str, Any], *, dev: bool) -> Iterator[Declared]:
    """Read the ``name = version`` tables of poetry; what lies at a path is the project's own."""
    for name, value in table.items():
        first = value[0] if isinstance(value, list) and value else value
        spec = first.get("version") if isinstance(first, dict) else first
        if name.lower() == "python" or (isinstance(first, dict) and "path" in first):
            continue
        if spec is not None and not isinstance(spec, str):
            folder.warn(file, f"the version of {name} is not a text")
            spec = None
        exact = re.fullmatch(r"==\s*([\w.+!-]+)", spec or "")
        yield Declared(name, exact[1] if exact else spec, file, dev)


def _read_lock(folder: Folder, root: dict[str, Any] | None) -> Lock | None:
    lock = next((found for file in _TOML_LOCKS if (found := _toml_lock(folder, file))), None)
    if lock is None and root is not None and (up := _top(folder)):
        lock = _toml_lock(folder, f"{up}uv.lock")
    return lock


def _toml_lock(folder: Folder, file: str) -> Lock | None:
    """Read the locks of uv and poetry: arrays of tables. The project's own folders are left out."""
    data = folder.document(file, "toml")
    if data is None:
        return None
    lock = Lock(file, fold=normalised)
    for package in folder.items(file, data, "package"):
        if not isinstance(package, dict):
            continue
        source = package.get("source")
        if isinstance(source, dict) and source.keys() & _OWN_SOURCES:
            continue
        lock.add(package.get("name"), package.get("version"))
    return lock


def _best(declared: Iterator[Declared]) -> list[Declared]:
    """Keep one statement per package: an exact version before a range before none, then the first."""
    best: dict[str, Declared] = {}
    for dependency in declared:
        known = best.get(normalised(dependency.package))
        if known is None or _exactness(dependency) < _exactness(known):
            best[normalised(dependency.package)] = dependency
    return list(best.values())


def _exactness(dependency: Declared) -> int:
    if dependency.spec is None:
        return 2
    return 0 if re.fullmatch(r"v?\d[\w.+!-]*", dependency.spec) else 1


def parse_requirement(text: str) -> tuple[str, str | None] | None:
    """Return ``(name, version)`` of one PEP 508 requirement; None when it is none.

    The version is the plain number for a single ``==``, the specifier's text otherwise, None for a URL or
    where nothing is said. Extras and markers don't matter here.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    if len(text) > 2_000:
        return None
    try:
        requirement = Requirement(text)
        specifiers = list(requirement.specifier)
    except (InvalidRequirement, ValueError, RecursionError):
        return None
    if not specifiers:
        return requirement.name, None
    only = specifiers[0]
    if len(specifiers) == 1 and only.operator in {"==", "==="} and "*" not in only.version:
        return requirement.name, only.version
    order = sorted(specifiers, key=lambda s: (s.operator in {"!=", "<", "<="}, s.version))
    return requirement.name, ",".join(str(s) for s in order)


def _requirements(folder: Folder) -> list[Declared]:
    """Read every ``requirements*.txt`` of the folder, those of a folder ``requirements``, and what they include inside the project."""
    try:
        names = sorted(p.name for p in folder.root.glob("requirements*.txt"))
        names += sorted(f"requirements/{p.name}" for p in folder.root.glob("requirements/*.txt"))
    except OSError as exc:
        folder.warn("requirements*.txt", exc.strerror or "the folder can't be listed")
        return []
    # What is called constraints is so, also where nothing includes it.
    queue = [(name, "constraint" in name) for name in names]
    done: set[str] = set()
    declared: list[Declared] = []
    constraints: dict[str, Declared] = {}
    while queue and len(done) < _MOST_FILES:
        file, is_constraint = queue.pop(0)
        if file in done:
            continue
        done.add(file)
        for kind, value in _entries(folder, file):
            if kind == "requirement":
                for dependency in _requirement(folder, file, value):
                    if is_constraint:
                        constraints.setdefault(dependency.package.lower(), dependency)
                    else:
                        declared.append(dependency)
            else:
                queue += _include(folder, file, value, is_constraint=is_constraint or kind == "constraint")
    return [constraints.get(d.package.lower(), d) if d.spec is None else d for d in declared]


def _include(folder: Folder, file: str, target: str, *, is_constraint: bool) -> list[tuple[str, bool]]:
    if "://" in target:
        return []
    included = folder.inside(f"{file.rpartition('/')[0]}/{target}".lstrip("/"))
    if target.startswith("/") or included is None:
        folder.warn(file, f"includes {target}, which is outside the project; it is not read")
        return []
    return [(included, is_constraint)]


def _requirement(folder: Folder, file: str, line: str) -> Iterator[Declared]:
    text = re.split(r"\s--?[a-z]", line, maxsplit=1)[0].strip()  # per-requirement options such as --hash
    parsed = parse_requirement(text)
    if parsed:
        yield Declared(parsed[0], parsed[1], file, bool(_DEVELOPMENT.search(file)))
        return
    egg = re.search(r"#egg=([A-Za-z0-9][\w.-]*)", text)
    if egg:
        yield Declared(egg[1], None, file)
    elif not re.match(r"[./~]|[a-z+]+://|[^\s=]+\.(?:whl|zip|tar\.gz)$", text):
        folder.warn(file, f"{text[:80]!r} is no requirement")


def _entries(folder: Folder, file: str) -> Iterator[tuple[str, str]]:
    """Yield ``("requirement" | "include" | "constraint", text)`` of each logical line."""
    text = folder.text(file)
    if text is None:
        return
    joined = ""
    for line in text.splitlines()[:_MOST_LINES]:
        if line.rstrip().endswith("\\") and len(joined) < 50_000:
            joined += line.rstrip()[:-1] + " "
            continue
        entry = re.sub(r"(^|\s)#.*$", "", joined + line).strip()
        joined = ""
        option = re.match(
            r"(-r|--requirement|-c|--constraint|-e|--editable)(?:[\s=]+|(?<=-[rce]))(.+)", entry
        )
        if option:
            name, value = option[1], option[2].strip()
            if name in {"-e", "--editable"}:
                yield "requirement", value
            else:
                yield "include" if "r" in name[:3] else "constraint", value
        elif entry and not entry.startswith("-"):
            yield "requirement", entry
