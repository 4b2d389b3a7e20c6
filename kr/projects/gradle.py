"""build.gradle and build.gradle.kts, gradle.properties, libs.versions.toml and gradle.lockfile.

A build script is a program; what is read here are the plain forms that nearly every build uses: string
and map notation, and versions kept in simple variables.
"""

import re
from collections.abc import Iterator
from typing import Any

from kr.projects.folder import MAX_MEMBERS, Folder
from kr.projects.locks import Declared, Lock, collect
from kr.projects.maven import SPRING_BOOT
from kr.projects.model import Inventory

_CATALOG = "gradle/libs.versions.toml"
_LONGEST_LINE = 1_000
_MOST_LINES = 20_000
_STRING = re.compile(
    r"""^\s*[A-Za-z]\w*\s*\(?\s*(?:\w+\s*\(\s*)?["']([\w.-]+):([\w.-]+)(?::((?:\$\{[^}]*\}|\$(?!\{)|[^"':@$])+))?(?:[:@][^"']*)?["']"""
    r"""(?:\s*\+\s*([\w.]+))?"""
)
_MAP = re.compile(r"""\b(group|name|version)\s*[:=]\s*(?:["']([^"']+)["']|([A-Za-z_][\w.]*))""")
_VARIABLE = re.compile(
    r"""^\s*(?:(?:def|val|var|const\s+val|String|set|private|ext|extra)\b[\s.(]*)*"""
    r"""(?:\[\s*)?["']?([A-Za-z_][\w.]*)["']?(?:\s*\])?(?:\s*:\s*String)?(?:\s+by\s+extra\s*\(|\s*[=,])\s*["']([^"'$]{1,100})["']"""
)
_PLUGIN = re.compile(r"""\bid\s*\(?\s*["']([\w.-]+)["']\s*\)?\s*version\s*\(?\s*["']([^"']+)["']""")
_TOKEN = re.compile(
    r"""("(?:\\[^\n]|[^"\\\n])*+"?|'(?:\\[^\n]|[^'\\\n])*+'?)|/\*.*?(?:\*/|\Z)|//[^\n]*|[{};]""", re.DOTALL
)
"""A string, to the end of its line at most; a comment; what parts statements. Each is read once."""
_INCLUDE = re.compile(r"""["']:?([\w.:/-]+)["']""")


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what the Gradle files of the project say."""
    scripts = {
        file: _code(text)
        for place in ["", *_subprojects(folder)]
        for name in ("build.gradle", "build.gradle.kts")
        if (text := folder.text(file := f"{place}/{name}".lstrip("/"))) is not None
    }
    variables = _properties(folder)
    plugins: dict[str, str] = {}
    for lines in scripts.values():
        for line in lines:
            if found := _VARIABLE.search(line):
                variables.setdefault(found[1].rpartition(".")[2], found[2])
            if plugin := _PLUGIN.search(line):
                plugins[plugin[1]] = plugin[2]
    declared = [d for file, lines in scripts.items() for d in _declared(file, lines, variables)]
    declared += _catalog(folder)
    # Spring's plugin brings the versions of its own starters.
    boot = plugins.get(SPRING_BOOT)
    declared = [
        Declared(d.package, boot, d.file) if d.spec is None and d.package.startswith(f"{SPRING_BOOT}:") else d
        for d in declared
    ]
    collect(inventory, "maven", declared, _lock(folder))


def _code(text: str) -> list[str]:
    """Return the statements, each on a line of its own, without comments; what stands in a string is none."""
    bare = _TOKEN.sub(lambda found: found[1] or ("\n" if found[0] in "{};" else " "), text)
    return [line[:_LONGEST_LINE] for line in bare.splitlines()[:_MOST_LINES]]


def _subprojects(folder: Folder) -> list[str]:
    names: list[str] = []
    for file in ("settings.gradle", "settings.gradle.kts"):
        text = folder.text(file)
        if text is None:
            continue
        is_list = False
        for line in _code(text):
            if re.match(r"\s*include\b", line) or is_list:
                names += [name.replace(":", "/") for name in _INCLUDE.findall(line)]
                is_list = line.rstrip().endswith((",", "("))
    return [inside for name in names[:MAX_MEMBERS] if (inside := folder.inside(name)) and inside != "."]


def _properties(folder: Folder) -> dict[str, str]:
    text = folder.text("gradle.properties") or ""
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {k.strip(): v.strip() for k, sign, v in pairs if sign and len(v) < 200}


def _declared(file: str, lines: list[str], variables: dict[str, str]) -> Iterator[Declared]:
    def variable(name: str | None) -> str | None:
        return variables.get(name.rpartition(".")[2]) if name else None

    for line in lines:
        if found := _STRING.search(line):
            version = found[3] or variable(found[4])
            yield Declared(f"{found[1]}:{found[2]}", _fill(version, variables), file)
            continue
        parts = {m[1]: m[2] or variable(m[3]) for m in _MAP.finditer(line)}
        if parts.get("group") and parts.get("name"):
            package = f"{parts['group']}:{parts['name']}"
            yield Declared(package, _fill(parts.get("version"), variables), file)


def _fill(version: str | None, variables: dict[str, str]) -> str | None:
    """Put variables in: ``$x``, ``${x}``, ``${rootProject.ext.x}``, ``${property("x")}``."""
    if version is None or "$" not in version:
        return version
    pattern = r"""\$(?:\{\s*(?:[\w.]*\(\s*)?["']?([\w.]+)["']?\s*\)?\s*\}|(\w+))"""
    filled = re.sub(
        pattern,
        lambda m: variables.get((m[1] or m[2]).rpartition(".")[2]) or variables.get(m[1] or m[2], "$"),
        version,
    )
    return None if "$" in filled else filled


def _catalog(folder: Folder) -> list[Declared]:
    data = folder.document(_CATALOG)
    if data is None:
        return []
    versions = folder.table(_CATALOG, data, "versions")
    declared = []
    for value in folder.table(_CATALOG, data, "libraries").values():
        if isinstance(value, str):
            group, _, rest = value.partition(":")
            artifact, _, version = rest.partition(":")
            declared.append(Declared(f"{group}:{artifact}", version or None, _CATALOG))
        elif isinstance(value, dict):
            module = value.get("module") or f"{value.get('group')}:{value.get('name')}"
            if isinstance(module, str):
                declared.append(Declared(module, _catalog_version(value.get("version"), versions), _CATALOG))
    return declared


def _catalog_version(value: Any, versions: dict[str, Any]) -> str | None:
    for _ in range(2):
        if isinstance(value, dict):
            reference = value.get("ref")
            value = (
                versions.get(reference)
                if isinstance(reference, str)
                else next((value[k] for k in ("prefer", "require", "strictly") if k in value), None)
            )
    return value if isinstance(value, str) else None


def _lock(folder: Folder) -> Lock | None:
    file = "gradle.lockfile"
    text = folder.text(file)
    if text is None:
        return None
    lock = Lock(file)
    for line in text.splitlines():
        if found := re.match(r"([^:#=\s]+:[^:=\s]+):([^:=\s]+)=", line[:_LONGEST_LINE]):
            lock.add(found[1], found[2])
    return lock
