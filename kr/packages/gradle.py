"""build.gradle and build.gradle.kts, with gradle.properties, subprojects and version catalogs.

A build script is a program; what is read here are the plain forms that nearly every build uses: string and map
notation, accessors of a version catalog, and versions kept in simple variables.
"""

import posixpath
import re
from collections.abc import Iterator

from kr.packages.files import MAX_MEMBERS, Folder, items, table
from kr.packages.maven import SPRING_BOOT
from kr.packages.model import Dependency

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


Library = tuple[str, str | None, str]
"""A package with its version and the file that gives it."""


def read_gradle(folder: Folder) -> Iterator[Dependency]:
    """Yield what the Gradle files of a project name. What only a catalog holds, no script, is no direct dependency."""
    scripts = _scripts(folder)
    variables = _properties(folder)
    for assigned in _ASSIGNED.finditer("\n".join(scripts.values())):
        name, value = filter(None, assigned.groups())
        variables.setdefault(name.rpartition(".")[2], value)
    libraries, plugins = _catalogs(folder, variables)
    for script, code in scripts.items():
        for found in _PLUGIN.finditer(code):
            plugins[found[1] or f"{_KOTLIN}{found[2]}"] = (found[3], script)
    kotlin = next((version for name, (version, _) in plugins.items() if name.startswith(_KOTLIN)), "")
    spring, place = plugins.get(SPRING_BOOT, ("", ""))
    if spring:
        yield Dependency("maven", f"{SPRING_BOOT}:spring-boot-gradle-plugin", spring, place)
    for script, code in scripts.items():
        for package, version, file in _declared(script, code, variables, libraries):
            # Spring's plugin brings the versions of its own starters.
            managed = spring if package.startswith(f"{SPRING_BOOT}:") else ""
            yield Dependency("maven", package, version or managed, file, manifest=script)
        if java := _JAVA.search(code):
            number = next(filter(None, java.groups())).replace("_", ".")
            yield Dependency("language", "java", number, script)
        if kotlin and "kotlin" in code:
            yield Dependency("language", "kotlin", kotlin, script)
    for package, version, file in (one for found in libraries.values() for one in found):
        yield Dependency("maven", package, version or "", file, direct=False)


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
    file: str, code: str, variables: dict[str, str], libraries: dict[str, list[Library]]
) -> Iterator[Library]:
    """Yield what the blocks about dependencies name."""
    for block in _blocks(code):
        for group, name, version in _named(block, variables):
            yield f"{group}:{name}", _fill(version, variables), file
        for found in re.finditer(r"\b[a-z]\w*(?:\.\w+)+", block):
            accessor = found[0]
            while accessor and accessor not in libraries:  # ``.get()`` and the like may follow
                accessor = accessor.rpartition(".")[0]
            yield from libraries.get(accessor, ())


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


def _catalogs(
    folder: Folder, variables: dict[str, str]
) -> tuple[dict[str, list[Library]], dict[str, tuple[str, str]]]:
    """Read ``gradle/*.versions.toml``: libraries and bundles by accessor (``libs.ktor.client``), plugins with version and file by id.

    Their versions become variables (``libs.versions.ktor``).
    """
    libraries: dict[str, list[Library]] = {}
    plugins: dict[str, tuple[str, str]] = {}
    for name in folder.names("gradle"):
        if not name.endswith(".versions.toml"):
            continue
        root, file = name.removesuffix(".versions.toml"), f"gradle/{name}"
        data = folder.document(file)
        versions = {key: _rich(value, {}) for key, value in table(data, "versions").items()}
        variables |= {
            f"{root}.versions.{_accessor(key)}": version or "$" for key, version in versions.items()
        }
        for alias, entry in table(data, "libraries").items():
            fields = entry if isinstance(entry, dict) else {"module": str(entry)}
            module = fields.get("module") or f"{fields.get('group', '')}:{fields.get('name', '')}"
            group, artifact, version = [*str(module).split(":"), "", ""][:3]
            wanted = version or _rich(fields.get("version"), versions)
            libraries[f"{root}.{_accessor(alias)}"] = [(f"{group}:{artifact}", wanted, file)]
        for bundle in table(data, "bundles"):
            members = [f"{root}.{_accessor(str(one))}" for one in items(data, "bundles", bundle)]
            held = [one for member in members for one in libraries.get(member, ())]
            libraries[f"{root}.bundles.{_accessor(bundle)}"] = held
        for entry in table(data, "plugins").values():
            fields = entry if isinstance(entry, dict) else {"id": str(entry)}
            plugin, _, version = str(fields.get("id")).partition(":")
            plugins[plugin] = (version or _rich(fields.get("version"), versions) or "", file)
    return libraries, plugins


def _rich(version: object, versions: dict[str, str | None]) -> str | None:
    """Return the version of a catalog: a text, a reference, or what ``prefer``, ``require`` or ``strictly`` say, in this order."""
    if isinstance(version, dict):
        named = [versions.get(str(version.get("ref"))), *map(version.get, ("prefer", "require", "strictly"))]
        version = next((text for text in named if isinstance(text, str)), None)
    return version if isinstance(version, str) else None


def _accessor(alias: str) -> str:
    return re.sub(r"[-_.]", ".", alias)
