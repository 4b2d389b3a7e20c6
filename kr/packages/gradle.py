"""build.gradle and build.gradle.kts, gradle.properties, libs.versions.toml and gradle.lockfile.

A build script is a program; what is read here are the plain forms that nearly every build uses: string
and map notation, and versions kept in simple variables.

The statements of a script: comments are left out; one goes on over lines while a bracket is open or a comma waits, and ends where a
block begins or ends.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from kr.packages.folder import MAX_MEMBERS, Folder
from kr.packages.maven import SPRING_BOOT
from kr.packages.model import Declared, Inventory, Lock, collect

MAX_CHARACTERS = 512 * 1024
_MOST_PARTS = 100_000
_LONGEST_STATEMENT = 20_000

_TOKEN = re.compile(
    r"""(?P<long>\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z))"""
    r"""|(?P<string>"(?:\\[^\n]|\$\{[^}\n]{0,200}\}|[^"\\\n])*+"?|'(?:\\[^\n]|[^'\\\n])*+'?)"""
    r"""|(?P<comment>/\*.*?(?:\*/|\Z)|//[^\n]*)"""
    r"""|(?P<end>[{};\n])"""
    r"""|[^"'/{};\n]+|/""",
    re.DOTALL,
)
"""A string over lines; one to the end of its line at most; a comment; what parts statements. Each is read once."""
_STATES_DEPENDENCIES = re.compile(r"\b(?:dependencies|imports|resolutionStrategy)\b")
_SCRIPTS = ("build.gradle", "build.gradle.kts")
_CATALOG = "gradle/libs.versions.toml"
_LONGEST_LINE = 1_000
_LONGEST_VERSION = 200
_COORDINATES = re.compile(
    r"""["']([\w.-]+):([\w.-]+)(?::((?:\$\{[^}]{0,200}\}|\$(?!\{)|[^"':@$])+))?(?:[:@][^"']*)?["']"""
    r"""(?:\s?\+\s?([\w.]+))?"""
)
_MAP = re.compile(r"""\b(group|name|version)\s?[:=]\s?(?:["']([^"']+)["']|([A-Za-z_][\w.]*))""")
_VARIABLE = re.compile(
    r"""^\s*(?:(?:def|val|var|const\s+val|String|set|private|ext|extra)\b[\s.(]*)*"""
    r"""(?:\[\s*)?["']?([A-Za-z_][\w.]*)["']?(?:\s*\])?(?:\s*:\s*String)?(?:\s+by\s+extra\s*\(|\s*[=,])\s*["']([^"'$]{1,100})["']"""
)
_BLOCK_VARIABLE = re.compile(r"""(?:val|var)\s+(\w{1,100})(?:\s*:\s*String)?\s+by\s+extra""")
_ENTRY = re.compile(r"""[\[,]\s?["']?([A-Za-z_]\w{0,99})["']?\s?:\s?["']([^"'$]{1,100})["']""")
"""One entry of a Groovy map: ``versions = [spring: '6.1', junit: '5.10']``."""
_PLUGIN = re.compile(r"""\bid\s?\(?\s?["']([\w.-]+)["']\s?\)?\s?version\s?\(?\s?["']([^"']+)["']""")
_CONSTRAINT = re.compile(
    r"""(strictly|require|prefer)\s?\(?\s?(?:["']([^"']{1,200})["']|([A-Za-z_][\w.]*))"""
)
_ACCESSOR = re.compile(r"\blibs\.([\w.]+)")
_INCLUDE = re.compile(r"""["']:?([\w.:/-]+)["']""")


class Statement(NamedTuple):
    """One statement. ``depth`` counts the blocks it stands in; ``states`` tells that one is of dependencies."""

    text: str
    depth: int
    states: bool


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what the Gradle files of the project say."""
    scripts = {
        file: code
        for place in ["", *_subprojects(folder)]
        for name in _SCRIPTS
        if (code := _code(folder, file := f"{place}/{name}".lstrip("/")))
    }
    up = _top(folder) if scripts else ""
    variables = _properties(folder, "")
    plugins: dict[str, str] = {}
    for code in scripts.values():
        _read_variables(code, variables)
        plugins |= {found[1]: found[2] for s in code for found in _PLUGIN.finditer(s.text)}
    if up:
        variables = _properties(folder, up) | variables
        for name in _SCRIPTS:
            _read_variables(_code(folder, f"{up}{name}"), variables)
    declared = [d for file, code in scripts.items() for d in _declared(file, code, variables)]
    declared += _catalog(folder, [s for code in scripts.values() for s in code] if up else None, up)
    # Spring's plugin brings the versions of its own starters.
    boot = plugins.get(SPRING_BOOT)
    declared = [
        Declared(d.package, boot, d.file) if d.spec is None and d.package.startswith(f"{SPRING_BOOT}:") else d
        for d in declared
    ]
    collect(inventory, "maven", declared, _lock(folder))


def _top(folder: Folder) -> str:
    """Return the way to the nearest build above, whose subproject this is; empty for a build of its own."""
    for up in ("", *(up for up, _ in folder.above())):
        if any(folder.text(f"{up}settings.{kind}") is not None for kind in ("gradle", "gradle.kts")):
            return up
    return ""


def _code(folder: Folder, file: str) -> list[Statement]:
    text = folder.text(file) or ""
    if len(text) > MAX_CHARACTERS:
        folder.warn(file, f"it is longer than {MAX_CHARACTERS // 1024} Ki characters; the rest is not read")
    return list(statements(text))


def _subprojects(folder: Folder) -> list[str]:
    names: list[str] = []
    for file in ("settings.gradle", "settings.gradle.kts"):
        for statement in _code(folder, file):
            if re.match(r"include\b", statement.text):
                names += [name.replace(":", "/") for name in _INCLUDE.findall(statement.text)]
    return [inside for name in names[:MAX_MEMBERS] if (inside := folder.inside(name)) and inside != "."]


def _read_variables(code: list[Statement], variables: dict[str, str]) -> None:
    """Take in simple variables, the entries of maps, and Kotlin's ``val x by extra { "1.0" }``."""
    opened = None
    for statement in code:
        text = statement.text
        if found := _VARIABLE.search(text[:_LONGEST_LINE]):
            variables.setdefault(found[1].rpartition(".")[2], found[2])
        elif not statement.states and re.search(r"=\s?\[", text):
            for entry in _ENTRY.finditer(text):
                variables.setdefault(entry[1], entry[2])
        if opened and (value := re.fullmatch(r"""["']([^"'$]{1,100})["']""", text)):
            variables.setdefault(opened[1], value[1])
        opened = _BLOCK_VARIABLE.fullmatch(text)


def _properties(folder: Folder, up: str) -> dict[str, str]:
    text = folder.text(f"{up}gradle.properties") or ""
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {k.strip(): v.strip() for k, sign, v in pairs if sign and len(v) < 200}


def _declared(file: str, code: list[Statement], variables: dict[str, str]) -> Iterator[Declared]:
    """Yield what the statements about dependencies name; ``{ version { strictly '1' } }`` tells of its call."""
    known: list[Declared] = []
    depth = 0
    ranks = ("strictly", "require", "prefer")
    rank = -1
    for statement in code:
        if known and statement.depth > depth:
            found = _CONSTRAINT.match(statement.text)
            if found and ranks.index(found[1]) > rank:
                rank = ranks.index(found[1])
                version = _fill(found[2], variables) or _variable(found[3], variables)
                known = [replace(d, spec=version or d.spec) for d in known]
            continue
        yield from known
        known, depth, rank = [], statement.depth, -1
        if statement.states:
            known = [
                Declared(f"{group}:{name}", _plain(_fill(version, variables)), file)
                for group, name, version in _named(statement.text, variables)
            ]
    yield from known


def _named(text: str, variables: dict[str, str]) -> Iterator[tuple[str, str, str | None]]:
    """Yield the ``(group, name, version)`` of every coordinate and map of a statement."""
    for match in _COORDINATES.finditer(text):
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
    return variables.get(name.rpartition(".")[2]) if name else None


def _plain(version: str | None) -> str | None:
    """Return ``1.2`` of ``1.2!!``, which is short for strictly, and ``1.7`` of ``[1.5,2[!!1.7``."""
    strict, _, preferred = (version or "").partition("!!")
    return preferred or strict or None


def _fill(version: str | None, variables: dict[str, str]) -> str | None:
    """Put variables in: ``$x``, ``${x}``, ``${rootProject.ext.x}``, ``${property("x")}``, ``${extra["x"]}``."""
    if version is None or len(version) > _LONGEST_VERSION or "$" not in version:
        return version
    pattern = (
        r"""\$(?:\{\s*(?:[\w.]*[(\[]\s*)?["']?([\w.]+)["']?\s*[)\]]?(?:\s*as\s+String)?\s*\}"""
        r"""|(\w+)((?:\.[A-Za-z_]\w*)*))"""
    )

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2] + found[3]
        known = _variable(name, variables) or variables.get(name)
        # ``$x.y`` is x's y in Groovy, and x before a literal ``.y`` in Kotlin.
        return known or (variables.get(found[2], "$") + found[3] if found[2] else "$")

    filled = re.sub(pattern, value, version)
    return None if "$" in filled else filled


def _catalog(folder: Folder, code: list[Statement] | None, up: str) -> list[Declared]:
    """Return the libraries of the catalog; with ``code`` those alone whose accessors stand there."""
    file = f"{up}{_CATALOG}"
    data = folder.document(file)
    if data is None:
        return []
    used = None if code is None else {u for s in code for u in _ACCESSOR.findall(s.text)}
    bundles = folder.table(file, data, "bundles")
    if used is not None:
        used |= {
            _accessor(library)
            for name in bundles
            if f"bundles.{_accessor(name)}" in used
            for library in folder.items(file, bundles, name)
            if isinstance(library, str)
        }
    versions = folder.table(file, data, "versions")
    declared = []
    for name, value in folder.table(file, data, "libraries").items():
        if used is not None and _accessor(name) not in used:
            continue
        if isinstance(value, str):
            group, _, rest = value.partition(":")
            artifact, _, version = rest.partition(":")
            declared.append(Declared(f"{group}:{artifact}", version or None, file))
        elif isinstance(value, dict):
            module = value.get("module") or f"{value.get('group')}:{value.get('name')}"
            if isinstance(module, str):
                declared.append(Declared(module, _catalog_version(value.get("version"), versions), file))
    return declared


def _accessor(name: str) -> str:
    """Return how scripts write a catalog's name: ``ktor-server_core`` is ``libs.ktor.server.core``."""
    return re.sub(r"[-_]", ".", name)


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


def statements(script: str) -> Iterator[Statement]:
    """Yield the statements of the script's first ``MAX_CHARACTERS``, in time that is linear in its length."""
    blocks: list[bool] = []
    header = ""
    for text, end in islice(_parts(script[:MAX_CHARACTERS]), _MOST_PARTS):
        inside = bool(blocks and blocks[-1])
        if text:
            header = text
            yield Statement(text, len(blocks), inside or _STATES_DEPENDENCIES.match(text) is not None)
        if end == "{":
            blocks.append(inside or _STATES_DEPENDENCIES.search(header) is not None)
        elif end == "}" and blocks:
            blocks.pop()
        if end in {"{", "}"}:
            header = ""


def _parts(script: str) -> Iterator[tuple[str, str]]:
    """Yield each statement's text, which may be empty, and the character that ends it."""
    pieces: list[str] = []
    brackets = length = 0
    for token in _TOKEN.finditer(script + "\n}"):
        text = token[0]
        if token.lastgroup == "end":
            if text != "\n" or not (brackets or _goes_on(pieces)):
                yield "".join(pieces).strip(), text
                pieces, brackets, length = [], 0, 0
                continue
            text = " "
        elif token.lastgroup == "comment":
            text = " "
        elif token.lastgroup == "long":
            text = f'"{" ".join(text.strip(text[0]).split())}"'
        elif token.lastgroup is None:
            brackets = max(0, brackets + len(re.findall(r"[(\[]", text)) - len(re.findall(r"[)\]]", text)))
            text = re.sub(r"\s+", " ", text)
        if length + len(text) <= _LONGEST_STATEMENT and not (text == " " and pieces[-1:] == [" "]):
            pieces.append(text)
            length += len(text)


def _goes_on(pieces: list[str]) -> bool:
    last = next((p for p in reversed(pieces[-2:]) if p != " "), "").rstrip()
    return last.endswith((",", "+", "="))
