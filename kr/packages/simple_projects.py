"""Ecosystems of one manifest and one lock file: Go, PHP (Composer), Ruby (Bundler) and Rust (Cargo).

Also the languages that a project is written in, with the version that it pins or asks for (SPEC 6.4).
"""

import re
from collections.abc import Iterator
from typing import Any

from kr.packages.folder import MAX_MEMBERS, Folder, fits
from kr.packages.model import Declared, Inventory, Lock, collect


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what the files of these ecosystems say; a workspace's own members are left out."""
    for ecosystem in (_find_go, _find_composer, _find_ruby, _find_cargo):
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


_TOOL_NAMES = {"nodejs": "node", "golang": "go"}
"""How asdf calls what has another name here."""


def find_languages(folder: Folder, inventory: Inventory) -> None:
    """Add each language once, by the file that says most exactly which version: a pin before a range.

    A pin may lie above the folder, up to the repository's root; what manifests say counts for their own folder.
    """
    ups = ["", *(up for up, _ in folder.above())]
    known: set[str] = set()
    for language, version, file in [*_pins(folder, ups), *_manifests(folder)]:
        if language not in known:
            known.add(language)
            inventory.add("language", language, version, file, direct=True)


def _pins(folder: Folder, ups: list[str]) -> Iterator[tuple[str, str, str]]:
    for up in ups:
        for language, names in _VERSION_FILES.items():
            for name in names:
                lines = (folder.text(f"{up}{name}") or "").splitlines()
                line = next((text for each in lines if (text := each.partition("#")[0].strip())), None)
                if line:
                    yield language, _number(line), f"{up}{name}"
        for language, version, file in _tool_versions(folder, up):
            yield _TOOL_NAMES.get(language, language), _number(version), file


_VERSION_FILES = {
    "python": (".python-version", "runtime.txt"),
    "node": (".nvmrc", ".node-version"),
    "java": (".java-version",),
    "php": (".php-version",),
    "ruby": (".ruby-version",),
    "rust": ("rust-toolchain",),
    "go": (".go-version",),
}
_LANGUAGES = frozenset(_VERSION_FILES)


def _number(text: str) -> str:
    """Return ``3.12.4`` of ``python-3.12.4`` and ``v3.12.4``, ``21.0.2`` of ``temurin-21.0.2+13``; other texts as they are."""
    found = re.fullmatch(r"(?:[a-z][a-z-]*-|v|[a-z]+)?(\d+(?:\.\w+)*)(?:[+-].*)?", text.strip())
    return found[1] if found else text.strip()


def _tool_versions(folder: Folder, up: str) -> Iterator[tuple[str, str, str]]:
    file = f"{up}.tool-versions"
    for line in (folder.text(file) or "").splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1 and _TOOL_NAMES.get(words[0], words[0]) in _LANGUAGES:
            yield words[0], words[1], file


def _manifests(folder: Folder) -> Iterator[tuple[str, str, str]]:
    """Yield what the manifests ask for: a line of theirs is enough to tell it."""
    for file, language, *patterns in _STATED:
        text = folder.text(file) or ""
        found = (re.search(pattern, text, re.MULTILINE) for pattern in patterns)
        if version := next((f[1].strip() for f in found if f), ""):
            yield language, version, file


_GRADLE = (
    r"JavaLanguageVersion\.of\(\s?[\"']?(\d{1,3})",
    r"\bjvmToolchain\(\s?(\d{1,3})\s?\)",
    r"\b(?:source|target)Compatibility\s?=\s?(?:JavaVersion\.VERSION_|[\"'])?(\d{1,3})",
)
_STATED = (
    (
        "package.json",
        "node",
        r'"volta"\s*:\s*\{[^{}]*"node"\s*:\s*"([^"\n]{1,50})"',
        r'"engines"\s*:\s*\{[^{}]*"node"\s*:\s*"([^"\n]{1,50})"',
    ),
    (
        "pyproject.toml",
        "python",
        r"^requires-python\s*=\s*[\"']([^\"'\n]{1,50})",
        r"^python\s*=\s*[\"']([^\"'\n]{1,50})",
    ),
    (
        "composer.json",
        "php",
        r'"platform"\s*:\s*\{[^{}]*"php"\s*:\s*"([^"\n]{1,50})"',
        r'"php"\s*:\s*"([^"\n]{1,50})"',
    ),
    ("go.mod", "go", r"^go (\S{1,50})"),
    ("rust-toolchain.toml", "rust", r'^channel\s*=\s*"([^"\n]{1,50})"'),
    ("Cargo.toml", "rust", r'^rust-version\s*=\s*"([^"\n]{1,50})"'),
    (
        "pom.xml",
        "java",
        *(
            rf"<{name}>\s*(\d[\d.]{{0,20}})"
            for name in ("maven.compiler.release", "java.version", "maven.compiler.source")
        ),
    ),
    ("build.gradle", "java", *_GRADLE),
    ("build.gradle.kts", "java", *_GRADLE),
    ("Gemfile", "ruby", r"^ruby [\"']([^\"'\n]{1,50})[\"']"),
    ("Gemfile.lock", "ruby", r"^RUBY VERSION\n +ruby (\d[\d.]{0,30})"),
)
"""A manifest, its language, and what finds the version in it, the better one first."""
