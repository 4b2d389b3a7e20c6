"""build.gradle and build.gradle.kts, with gradle.properties, subprojects and version catalogs.

A build script is a program; what is read here are the plain forms that nearly every build uses: string and map
notation, accessors of a version catalog, and versions kept in simple variables.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kr.packages.files import MAX_MEMBERS, Folder
from kr.packages.maven import SPRING_BOOT
from kr.packages.model import Dependency, dependency

MAX_CHARACTERS = 512 * 1024
_SCRIPTS = ("build.gradle", "build.gradle.kts")
_SETTINGS = ("settings.gradle", "settings.gradle.kts")
_LONGEST_VERSION = 200
_LONG = r"\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)"
_STRING = r"\"(?:\\[^\n]|\$\{(?:[^}\"\n]|\"[^\"\n]*\"){0,200}\}|[^\"\\\n])*+\"?|'(?:\\[^\n]|[^'\\\n])*+'?"
_COMMENT = re.compile(rf"{_LONG}|{_STRING}|(?P<comment>/\*.*?(?:\*/|\Z)|//[^\n]*)", re.DOTALL)
_TOKEN = re.compile(
    rf"(?P<opens>\b(?:dependencies|dependencyManagement|constraints|resolutionStrategy)\b[^\n{{}}\"';]{{0,200}}\{{)"
    rf"|(?P<brace>[{{}}])|{_LONG}|{_STRING}",
    re.DOTALL,
)
_COORDINATES = re.compile(
    r"""["']([\w.-]+):([\w.-]+)(?::((?:\$\{[^}]{0,200}\}|\$(?!\{)|[^"':@$\s])+))?(?:[:@][^"'\s]*)?["']"""
    r"""(?:\s?\+\s?([\w.]+))?"""
)
_MAP = re.compile(r"""\b(group|name|version)\s{0,9}[:=]\s{0,9}(?:["']([^"'\n]+)["']|([A-Za-z_][\w.]*))""")
_ASSIGNED = re.compile(
    r"""([A-Za-z_][\w.]{0,99})["']?\]?(?:\s?:\s?String)?\s{0,9}(?:=|by\s+extra\s?\()\s{0,9}["']([^"'$\n]{1,100})["']"""
    r"""|\bset\(\s?["'](\w{1,99})["']\s?,\s?["']([^"'$\n]{1,100})["']"""
    r"""|[\[,]\s{0,9}["']?([A-Za-z_]\w{0,99})["']?\s?:\s?["']([^"'$\n]{1,100})["']"""
)
"""``name = "1"``, ``extra["name"] = "1"``, ``set("name", "1")``, and the entries of a Groovy map."""
_APPLIED = re.compile(
    r"""\bapply\s?\(?\s?from\s?[:=]\s?(?:file\()?["'](?:\$\{?(?:rootDir|rootProject\.projectDir)\}?/)?([\w./-]{1,200})["']"""
)
_INCLUDED = re.compile(r"""\binclude\b((?:[\s(,]*["'][^"'\n]{1,200}["'])+)""")
_PLUGIN = re.compile(
    r"""\b(?:id\s?\(?\s?["']([\w.-]+)["']|kotlin\(["']([\w.-]+)["'])\s?\)?\s?version\s?\(?\s?["']([^"']+)["']"""
)
_KOTLIN = "org.jetbrains.kotlin."
_JAVA = re.compile(
    r"JavaLanguageVersion\.of\(\s*(\d+)|jvmToolchain\(\s*(\d+)|sourceCompatibility\s*=\s*[\w.'\"]*?(\d[\w.]*)"
)
_FILL = re.compile(
    r"""\$(?:\{\s*(?:[\w.]*[(\[]\s*)?["']?([\w.]+?)(?:\.get\(\))?["']?\s*[)\]]?(?:\s*as\s+String)?\s*\}"""
    r"""|(\w+)((?:\.[A-Za-z_]\w*)*))"""
)
"""``$x``, ``${x}``, ``${rootProject.ext.x}``, ``${property("x")}``, ``${extra["x"]}``, ``${libs.versions.x.get()}``."""


@dataclass(slots=True)
class _Catalog:
    """A version catalog: libraries by accessor (``ktor.client``), what each bundle holds, versions of plugins by id."""

    file: str
    libraries: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    bundles: dict[str, list[str]] = field(default_factory=dict)
    plugins: dict[str, str] = field(default_factory=dict)

    def find(self, accessor: str) -> list[tuple[str, str | None]]:
        """Return the libraries behind ``ktor.client`` or ``bundles.net``; ``.get()`` and the like may follow."""
        parts = accessor.split(".")
        for end in range(len(parts), 0, -1):
            key = ".".join(parts[:end])
            names = (
                self.bundles.get(key.removeprefix("bundles."), ()) if key.startswith("bundles.") else [key]
            )
            if found := [self.libraries[name] for name in names if name in self.libraries]:
                return found
        return []


def read_gradle(folder: Folder) -> Iterator[Dependency]:
    """Yield what the Gradle files of a project name. What only a catalog holds, no script, is no direct dependency."""
    scripts = _scripts(folder)
    variables = _properties(folder)
    for assigned in _ASSIGNED.finditer("\n".join(scripts.values())):
        name, value = filter(None, assigned.groups())
        variables.setdefault(name.rpartition(".")[2], value)
    catalogs = _catalogs(folder, variables)
    plugins = {name: version for one in catalogs.values() for name, version in one.plugins.items()}
    for found in _PLUGIN.finditer("\n".join(scripts.values())):
        plugins[found[1] or f"{_KOTLIN}{found[2]}"] = found[3]
    kotlin = next((version for name, version in plugins.items() if name.startswith(_KOTLIN)), None)
    if version := plugins.get(SPRING_BOOT):
        places = [
            file for file, code in scripts.items() if SPRING_BOOT in {it[1] for it in _PLUGIN.finditer(code)}
        ]
        places += [one.file for one in catalogs.values() if SPRING_BOOT in one.plugins]
        yield dependency("maven", f"{SPRING_BOOT}:spring-boot-gradle-plugin", version, places[0])
    for script, code in scripts.items():
        for package, version, file in _declared(script, code, variables, catalogs):
            # Spring's plugin brings the versions of its own starters.
            managed = plugins.get(SPRING_BOOT) if package.startswith(f"{SPRING_BOOT}:") else None
            yield dependency("maven", package, version or managed, file, manifest=script)
        if java := _JAVA.search(code):
            number = next(filter(None, java.groups())).replace("_", ".")
            yield dependency("language", "java", number, script)
        if kotlin and "kotlin" in code:
            yield dependency("language", "kotlin", kotlin, script)
    for catalog in catalogs.values():
        for package, version in catalog.libraries.values():
            yield dependency("maven", package, version, catalog.file, direct=False)


def _scripts(folder: Folder) -> dict[str, str]:
    """Return the scripts of the build and its subprojects, and those that they apply, without comments."""
    named = [
        name.replace(":", "/").strip("/")
        for file in _SETTINGS
        for included in _INCLUDED.findall(_code(folder, file))
        for name in re.findall(r"""["']([^"']+)["']""", included)
    ]
    inner = [inside for name in named[:MAX_MEMBERS] if (inside := folder.inside(name)) and inside != "."]
    # A folder with settings of its own is another build.
    members = [one for one in inner if not set(_SETTINGS) & set(folder.names(one))]
    folder.members |= {("gradle", one) for one in members}
    files = [posixpath.join(place, name) for place in ("", *members) for name in _SCRIPTS]
    scripts = {file: code for file in files if (code := _code(folder, file))}
    applied = _APPLIED.findall("\n".join(scripts.values()))
    for inside in filter(None, map(folder.inside, applied[:MAX_MEMBERS])):
        scripts |= {inside: code} if (code := _code(folder, inside)) else {}
    return scripts


def _code(folder: Folder, file: str) -> str:
    """Return a script without its comments."""
    text = folder.text(file)
    if len(text) > MAX_CHARACTERS:
        folder.warn(file, f"it is longer than {MAX_CHARACTERS // 1024} Ki characters; the rest is not read")
    return _COMMENT.sub(lambda found: " " if found["comment"] else found[0], text[:MAX_CHARACTERS])


def _properties(folder: Folder) -> dict[str, str]:
    lines = folder.text("gradle.properties").splitlines()
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {k.strip(): v.strip() for k, sign, v in pairs if sign and len(v) < _LONGEST_VERSION}


def _declared(
    file: str, code: str, variables: dict[str, str], catalogs: dict[str, _Catalog]
) -> Iterator[tuple[str, str | None, str]]:
    """Yield what the blocks about dependencies name: package, version, and the file that gives it."""
    for block in _blocks(code):
        for group, name, version in _named(block, variables):
            yield f"{group}:{name}", _fill(version, variables), file
        for found in re.finditer(r"\b([a-z]\w*)((?:\.\w+)+)", block):
            if catalog := catalogs.get(found[1]):
                yield from ((*library, catalog.file) for library in catalog.find(found[2].lstrip(".")))


def _blocks(code: str) -> Iterator[str]:
    """Yield the text of each outermost block about dependencies, in time that is linear in the script's length."""
    start = depth = opened = 0
    for token in _TOKEN.finditer(code):
        if token["opens"] or token["brace"] == "{":
            depth += 1
            if token["opens"] and not opened:
                opened, start = depth, token.end()
        elif token["brace"]:
            if depth == opened:
                yield code[start : token.start()]
                opened = 0
            depth = max(0, depth - 1)
    if opened:
        yield code[start:]


def _named(text: str, variables: dict[str, str]) -> Iterator[tuple[str, str, str | None]]:
    """Yield the ``(group, name, version)`` of every coordinate and map of a block."""
    for match in _COORDINATES.finditer(re.sub(r"\"{3}|'{3}", '"', text)):
        yield match[1], match[2], match[3] or _variable(match[4], variables)
    parts: dict[str, str | None] = {}
    for found in (*_MAP.finditer(text), None):
        if found is None or found[1] in parts:
            group, name = parts.get("group"), parts.get("name")
            if group and name:
                yield group, name, parts.get("version")
            parts = {}
        if found is not None:
            parts[found[1]] = found[2] or _variable(found[3], variables)


def _variable(name: str | None, variables: dict[str, str]) -> str | None:
    return (variables.get(name) or variables.get(name.rpartition(".")[2])) if name else None


def _fill(version: str | None, variables: dict[str, str]) -> str | None:
    if version is None or len(version) > _LONGEST_VERSION or "$" not in version:
        return version

    def value(found: re.Match[str]) -> str:
        known = _variable(found[1] or found[2] + found[3], variables)
        # ``$x.y`` is x's y in Groovy, and x before a literal ``.y`` in Kotlin.
        return known or (variables.get(found[2], "$") + found[3] if found[2] else "$")

    filled = _FILL.sub(value, version)
    return None if "$" in filled else filled


def _catalogs(folder: Folder, variables: dict[str, str]) -> dict[str, _Catalog]:
    """Read ``gradle/*.versions.toml``; their versions become variables (``libs.versions.ktor``)."""
    found = {}
    for name in folder.names("gradle"):
        if name.endswith(".versions.toml"):
            file, accessor = f"gradle/{name}", name.removesuffix(".versions.toml")
            data = folder.document(file) or {}
            versions = {key: _rich(value, {}) for key, value in folder.table(file, data, "versions").items()}
            found[accessor] = _catalog(folder, file, data, versions)
            variables |= {
                f"{accessor}.versions.{_accessor(key)}": version or "$" for key, version in versions.items()
            }
    return found


def _catalog(folder: Folder, file: str, data: dict[str, Any], versions: dict[str, str | None]) -> _Catalog:
    catalog = _Catalog(file)
    for alias, entry in folder.table(file, data, "libraries").items():
        fields = entry if isinstance(entry, dict) else {"module": str(entry)}
        module = fields.get("module") or f"{fields.get('group', '')}:{fields.get('name', '')}"
        group, name, version = [*str(module).split(":"), "", ""][:3]
        if group and name:
            wanted = version or _rich(fields.get("version"), versions)
            catalog.libraries[_accessor(alias)] = (f"{group}:{name}", wanted)
    for entry in folder.table(file, data, "plugins").values():
        fields = entry if isinstance(entry, dict) else {}
        id_, _, version = str(fields.get("id", entry)).partition(":")
        catalog.plugins[id_] = version or _rich(fields.get("version"), versions) or ""
    for bundle in folder.table(file, data, "bundles"):
        members = folder.items(file, data, "bundles", bundle)
        catalog.bundles[_accessor(bundle)] = [_accessor(str(member)) for member in members]
    return catalog


def _rich(version: object, versions: dict[str, str | None]) -> str | None:
    """Return the version of a catalog: a text, a reference, or what ``prefer``, ``require`` or ``strictly`` say, in this order."""
    if isinstance(version, dict):
        named = [versions.get(str(version.get("ref"))), *map(version.get, ("prefer", "require", "strictly"))]
        version = next((text for text in named if isinstance(text, str)), None)
    return version if isinstance(version, str) else None


def _accessor(alias: str) -> str:
    return re.sub(r"[-_.]", ".", alias)
