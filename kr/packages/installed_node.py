"""A package in ``node_modules``, searched upwards as node does, and where its documentation lies.

``exports`` with their ``types`` conditions, ``types`` and ``typings`` lead to the declarations; ``export * from`` and its
kin lead on, into other packages too (``vue`` to ``@vue/runtime-core``). A package without declarations is told by
``@types/name``; what a JavaScript package hands on (``exports.json = bodyParser.json``) by the package it comes from.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kr.packages.folder import Unreadable, parse_json, read_bytes, read_text
from kr.packages.installed import (
    InstalledPackage,
    choose_documents,
    choose_sources,
    choose_templates,
    contained,
    github_repository,
    repository_of_npm,
    walk,
)
from kr.packages.model import printable
from kr.packages.witness import saw_file, saw_place

MAX_FILES = 300
MAX_FILE = 4 * 1024 * 1024
_MAX_BYTES = 8 * 1024 * 1024
_MAX_ENTRIES = 40
_MAX_STEPS = 8
_MAX_BY_PATH = 100
_TRIED_OUT = re.compile(r"experimental|canary|internal|legacy|unstable|package\.json")
_BUILT = re.compile(r"lib|dist|build|out|esm?|cjs|umd|src|types|typings")
_OFTEN = 3  # one use is a detail of some type
_DECLARATION = (".d.ts", ".d.mts", ".d.cts")
_FROM = re.compile(
    r"""\bfrom\s*["']([^"'\n]{1,300})["']|\bimport\s*\(?\s*["']([^"'\n]{1,300})["']|<reference\s+path=["']([^"'\n]{1,300})["']"""
)
_EXPORT_FROM = re.compile(
    r"""\bexport\s+(?:type\s+)?(\*|\{[^}]{0,20000}\})(?:\s*as\s+\w+)?\s*from\s*["']([^"'\n]{1,300})["']"""
)
_NAMESPACE = re.compile(
    r"""\bimport\s+(?:type\s+)?(?:\*\s*as\s+)?(\w+)\s*(?:from|=\s*require\()\s*["']([^"'\n]{1,300})["']"""
)
_CLAUSE = re.compile(r"\bexport\s+(?:type\s+)?\{([^}]{0,20000})\}")
_DIRECT = re.compile(
    r"^[ \t]*export\s+(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function|class|const|let|var|interface|type|enum|namespace)\s+([A-Za-z_$][\w$]*)",
    re.MULTILINE,
)
_WHOLE = re.compile(r"^[ \t]*export\s*(?:=|as\s+namespace\b)", re.MULTILINE)
_REQUIRED = re.compile(r"""\b(?:var|let|const)\s+(\w+)\s*=\s*require\(\s*["']([^"'\n]{1,300})["']\s*\)""")
_HANDED_ON = re.compile(
    r"""\bexports\.\w+\s*=\s*(?:require\(\s*["']([^"'\n]{1,300})["']\s*\)|(\w+)(?:\.\w+)*\s*;?\s*$)""",
    re.MULTILINE,
)
_ANY_REQUIRED = re.compile(r"""\brequire\(\s*["']([^"'\n]{1,300})["']\s*\)""")
_LOCAL_REQUIRE = re.compile(r"""\brequire\(\s*["'](\.{1,2}/[^"'\n]{1,300})["']\s*\)""")


@dataclass(slots=True)
class Entry:
    """What was found. ``declarations`` in the order of reading; ``packages``: names whose documentation belongs to it.

    ``offered`` are the names that the package's main entry exports; None where it exports one object, of which all
    members count.
    """

    declarations: list[Path] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    offered: frozenset[str] | None = frozenset()
    is_open: bool = False
    """Whether the manifest leaves it to users which files they import."""


def read_entry(root: Path, manifest: dict[str, Any]) -> Entry:
    """Return what the package in ``root`` (a real path) offers, and where it is declared."""
    found = Entry()
    queue = [path for name in _entries(manifest) if (path := _resolved(root, root, name))]
    mains, reached = set(queue[:1]), set(queue[:1])
    size = 0
    while queue and len(found.declarations) < MAX_FILES and size < _MAX_BYTES:
        path = queue.pop(0)
        if path in found.declarations or _is_twin(path, found.declarations):
            continue
        text = _text(path)
        size += len(text)
        found.declarations.append(path)
        for name in _mentioned(text):
            if name.startswith("."):
                target = _resolved(path.parent, root, name)
                if target is not None and target not in found.declarations:
                    queue.append(target)
                    reached |= {target} if path in reached else set()
        if path in reached:
            found.packages += [name for name in _handed_on(text) if name not in found.packages]
        if path in mains:
            names = _offered(text)
            found.offered = None if names is None or found.offered is None else found.offered | names
            mains |= {
                target
                for star, name in _EXPORT_FROM.findall(text)
                if star == "*" and name.startswith(".") and (target := _resolved(path.parent, root, name))
            }
    found.is_open = "exports" not in manifest
    if not found.declarations:
        found.packages += _required(root, manifest)
    return found


def _is_twin(path: Path, others: Sequence[Path]) -> bool:
    """Tell whether another file says the same for another module system (``index.d.cts`` beside ``index.d.mts``).

    One that only hands the other's names on is much smaller.
    """
    stem = re.sub(r"\.d\.[cm]?ts$", "", str(path))
    twins = (other.stat().st_size for other in others if str(other).startswith(f"{stem}.d."))
    return any(0.8 < size / (path.stat().st_size + 1) < 1.25 for size in twins)


def types_package(name: str) -> str:
    """Return the name under which DefinitelyTyped keeps the declarations of a package."""
    return f"@types/{name.removeprefix('@').replace('/', '__')}"


def _offered(text: str) -> frozenset[str] | None:
    """Return the names that a declaration file exports; None where it exports one object."""
    if _WHOLE.search(text):
        return None
    clauses = (
        part.replace("type ", " ").split() for clause in _CLAUSE.findall(text) for part in clause.split(",")
    )
    return frozenset([*_DIRECT.findall(text), *(words[-1] for words in clauses if words)])


def _entries(manifest: dict[str, Any]) -> list[str]:
    """Return the paths of the manifest's declarations, the main entry's first."""
    found: list[str] = []
    exports = manifest.get("exports")
    if isinstance(exports, dict) and any(str(key).startswith(".") for key in exports):
        names = [str(key) for key in exports if key != "."]
        main, others = exports.get("."), [exports[name] for name in names]
    else:
        names, main, others = [], exports, []
    found += _conditions(main)[:2]
    found += [str(manifest[key]) for key in ("types", "typings") if isinstance(manifest.get(key), str)]
    main_file = manifest.get("main")
    found += [main_file] if isinstance(main_file, str) else []
    found += ["index.d.ts"]
    # What a package offers besides is read; what it tries out (``react/experimental``) is not what is asked about.
    for name, other in zip(names, others, strict=True):
        found += [] if _TRIED_OUT.search(name) else _conditions(other)[:1]
    return list(dict.fromkeys(found))[:_MAX_ENTRIES]


def _conditions(target: object, *, is_types: bool = False) -> list[str]:
    """Return the declaration files that a part of ``exports`` names, ``types`` before others."""
    if isinstance(target, str):
        return [target] if is_types or target.endswith((*_DECLARATION, ".js", ".mjs", ".cjs")) else []
    if isinstance(target, list):
        return [path for item in target for path in _conditions(item, is_types=is_types)]
    if not isinstance(target, dict):
        return []
    named = [
        path
        for key, value in target.items()
        if str(key).startswith("types")
        for path in _conditions(value, is_types=True)
    ]
    rest = [
        path
        for key, value in target.items()
        if not str(key).startswith("types")
        for path in _conditions(value, is_types=is_types)
    ]
    return [*named, *rest]


def _resolved(base: Path, root: Path, name: str) -> Path | None:
    """Return the declaration file that ``name`` means, seen from ``base``; None when there is none in ``root``."""
    if "*" in name or "\x00" in name:
        return None
    candidates = [name] if name.endswith(_DECLARATION) else []
    # "./add.js" is the script that is run, "./add.ts" its source before it was compiled.
    ending = re.search(r"\.([cm]?)[jt]s$", name)
    stem = name[: ending.start()] if ending else name
    candidates += [f"{stem}.d.{ending[1]}ts"] if ending else []
    candidates += [f"{stem}{suffix}" for suffix in _DECLARATION] + [f"{name}/index.d.ts"]
    for candidate in candidates:
        if (path := contained(base / candidate, root)) is not None:
            return path
    return None


def _text(path: Path) -> str:
    try:
        return (read_bytes(path, limit=MAX_FILE) or b"").decode("utf-8", errors="replace")
    except Unreadable:
        return ""


def _mentioned(text: str) -> Iterator[str]:
    for found in _FROM.findall(text):
        yield next(name for name in found if name)


def _handed_on(text: str) -> Iterator[str]:
    """Yield the packages whose names a declaration file exports as its own."""
    for _, name in _EXPORT_FROM.findall(text):
        if _is_package(name):
            yield _package(name)
    for ident, name in _NAMESPACE.findall(text) if _WHOLE.search(text) else ():
        # ``var json: typeof bodyParser.json`` and ``interface Request extends core.Request``
        if _is_package(name) and len(re.findall(rf"\b(?:typeof|extends)\s+{ident}\.", text)) >= _OFTEN:
            yield _package(name)


def _required(root: Path, manifest: dict[str, Any]) -> list[str]:
    """Return the packages that a JavaScript package hands on (``exports.static = require('serve-static')``)."""
    main = manifest.get("main")
    names = [main] if isinstance(main, str) else []
    queue = [path for name in [*names, "index.js"] if (path := _script(root, root, name))][:1]
    seen: list[Path] = []
    found: list[str] = []
    while queue and len(seen) < _MAX_STEPS:
        path = queue.pop(0)
        if path in seen:
            continue
        seen.append(path)
        text = _text(path)
        required = dict(_REQUIRED.findall(text))
        handed_on = [direct or required.get(ident, "") for direct, ident in _HANDED_ON.findall(text)]
        # ``pg`` gives its pools and its types as members of one object: kin by name.
        kin = [name for name in _ANY_REQUIRED.findall(text) if name.startswith(f"{manifest.get('name')}-")]
        for name in (*handed_on, *kin):
            if _is_package(name) and _package(name) not in found:
                found.append(_package(name))
        if len(seen) <= 2:
            queue += [
                target
                for name in _LOCAL_REQUIRE.findall(text)
                if (target := _script(path.parent, root, name))
            ]
    return found


def _script(base: Path, root: Path, name: str) -> Path | None:
    candidates = (name, f"{name}.js", f"{name}.cjs", f"{name}/index.js")
    return next((path for one in candidates if (path := contained(base / one, root))), None)


def _is_package(name: str) -> bool:
    return bool(re.match(r"@?[A-Za-z0-9]", name)) and ":" not in name


def _package(name: str) -> str:
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])


_NAME = re.compile(r"(?:@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*")
_MAX_MANIFEST = 1024 * 1024
_MAX_RELATED = 12  # @inquirer/prompts hands on ten
_RESERVED = frozenset({"node_modules", "favicon.ico"})


def find_node_package(name: str, project_dir: Path) -> InstalledPackage | None:
    """Return the package ``name``, else ``@name/core``, that node would find from ``project_dir``.

    The package's folder must really lie in one of the ``node_modules`` searched (pnpm's links do); a link
    that leads elsewhere is not followed.
    """
    if not _NAME.fullmatch(name) or name.lower() in _RESERVED:
        return None
    names = dict.fromkeys((name, name.lower(), *([] if "/" in name else [f"@{name.lower()}/core"])))
    shelves, homes = _shelves(project_dir)
    for candidate in names:
        package = _find(candidate, shelves, homes)
        if package is not None:
            return package
    return None


def _shelves(start: Path) -> tuple[list[Path], list[Path]]:
    """Return the ``node_modules`` from a folder upwards, and where they really lie."""
    try:
        start = start.resolve()
        for place in (start, *start.parents):
            saw_place(place / "node_modules")
        shelves = [shelf for place in (start, *start.parents) if (shelf := place / "node_modules").is_dir()]
        return shelves, [shelf.resolve() for shelf in shelves]
    except (OSError, RuntimeError):
        return [], []


def _find(name: str, shelves: list[Path], homes: list[Path]) -> InstalledPackage | None:
    return next((found for shelf in shelves if (found := _read(shelf / name, homes)) is not None), None)


def with_declarations(package: InstalledPackage, projects: Sequence[Path]) -> InstalledPackage:
    """Return a package with the declarations that its entry leads to, and with the packages whose names it hands on.

    Theirs come too, and the types that are a package of their own (``@types/name``).
    """
    entry = read_entry(package.root, _manifest(package.root))
    package, declares = _declared(package, entry), bool(entry.declarations)
    found: dict[str, InstalledPackage] = {}
    queue = [types_package(package.name), *entry.packages]
    searched = [_shelves(place) for place in (package.root, *projects)]
    shelves, homes = ([path for pair in searched for path in pair[at]] for at in (0, 1))
    while queue and len(found) < _MAX_RELATED:
        name = queue.pop(0)
        if name in found or name == package.name or not _NAME.fullmatch(name):
            continue
        related = _find(name, shelves, homes)
        if related is None:
            continue
        entry = read_entry(related.root, _manifest(related.root))
        queue += entry.packages
        # The README of a package of types says where it comes from, and no more.
        is_types = name.startswith("@types/")
        found[name] = _declared(replace(related, documents=()) if is_types else related, entry)
        if is_types and not declares:
            package = replace(package, sources=())  # the same comments, without types
    return replace(package, related=tuple(found.values()))


def _declared(package: InstalledPackage, entry: Entry) -> InstalledPackage:
    if not entry.declarations:
        return package

    def top(path: Path) -> str:
        return path.relative_to(package.root).parts[0]

    reached = {top(path) for path in entry.declarations}
    # Beside the folder of its own major version (``zod/v4``) that of another one is what its users are to leave behind.
    own = f"v{package.version.partition('.')[0]}"
    outdated = {one for one in reached if own in reached and re.fullmatch(r"v\d+", one)} - {own}
    # Whatever lies in the package can be imported (``dayjs/plugin/utc``); a folder of the main entry it leads into itself.
    others = [
        path
        for path in (package.sources if entry.is_open else ())
        if path.name.endswith(_DECLARATION) and top(path) not in reached and not _BUILT.fullmatch(top(path))
    ]
    return replace(
        package,
        sources=tuple(path for path in entry.declarations if top(path) not in outdated),
        by_path=tuple(others[:_MAX_BY_PATH]),
        offered=entry.offered,
    )


def _read(folder: Path, homes: list[Path]) -> InstalledPackage | None:
    saw_file(folder / "package.json")
    try:
        root = folder.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    # A shelf itself or the folder of a scope is no package.
    if not any(root.is_relative_to(home) and root != home for home in homes) or not root.is_dir():
        return None
    manifest = _manifest(root)
    name, version = manifest.get("name"), manifest.get("version")
    if not isinstance(name, str) or not isinstance(version, str) or not _NAME.fullmatch(name):
        return None
    files = list(walk(root, skipped=frozenset({"node_modules", "test", "tests"})))
    homepage = manifest.get("homepage")
    return InstalledPackage(
        name=name,
        version=printable(version, limit=100),
        ecosystem="npm",
        root=root,
        documents=choose_documents(files, root),
        sources=choose_sources(files, root, ".d.ts", ".js", ".mjs", ".cjs"),
        templates=choose_templates(files, root),
        repository=repository_of_npm(manifest.get("repository"))
        or (github_repository(homepage) if isinstance(homepage, str) else None),
    )


def _manifest(root: Path) -> dict[str, Any]:
    path = root / "package.json"
    if path.is_symlink():
        return {}
    try:
        parsed = parse_json(read_text(path, limit=_MAX_MANIFEST) or "")
    except Unreadable:
        return {}
    return parsed if isinstance(parsed, dict) else {}
