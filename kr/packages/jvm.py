"""Projects of the JVM: pom.xml with its parents and modules; build.gradle and build.gradle.kts with what they read.

Of Maven: properties, dependencyManagement, the parent and the modules inside the project. Of Gradle also gradle.properties.
A build script is a program; what is read here are the plain forms that nearly every build
uses: string and map notation, and versions kept in simple variables. The statements of a script: comments are left out; one goes
on over lines while a bracket is open or a comma waits, and ends where a block begins or ends.
"""

import posixpath
import re
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from kr.packages.folder import MAX_MEMBERS, Folder
from kr.packages.model import UNKNOWN, Declared, Inventory, collect

_LONGEST = 300
"""Characters of a coordinate or of a property that stands in one; anything longer is neither."""
_MAX_PARENTS = 5

SPRING_BOOT = "org.springframework.boot"


@dataclass(slots=True)
class Model:
    """What a pom hands down to its modules: its coordinates, properties and managed versions."""

    group: str = ""
    artifact: str = ""
    version: str = ""
    properties: ChainMap[str, str] = field(default_factory=ChainMap)
    managed: ChainMap[str, str] = field(default_factory=ChainMap)
    groups: dict[str, str] = field(default_factory=dict)
    """Versions that hold for a whole group; only Spring Boot's BOM is known to be numbered like its parts."""

    def child(self) -> "Model":
        """Return a model that inherits from this one."""
        return Model(
            group=self.group,
            version=self.version,
            properties=self.properties.new_child(),
            managed=self.managed.new_child(),
            groups=dict(self.groups),
        )

    def resolve(self, text: str, *, depth: int = 8) -> str:
        """Fill ``${...}`` in; ``unknown`` where a property is not to be found."""
        for _ in range(depth):
            if "${" not in text or len(text) > _LONGEST:
                break
            text = re.sub(r"\$\{([^${}]*)\}", lambda m: self._property(m[1].strip()), text)
        return UNKNOWN if "\0" in text or "${" in text or len(text) > _LONGEST else text.strip()

    def _property(self, name: str) -> str:
        if name in {"project.version", "pom.version", "version"}:
            return self.version
        return self.group if name == "project.groupId" else self.properties.get(name, "\0")


def find_maven(folder: Folder, inventory: Inventory) -> None:
    """Add what pom.xml and the poms of its modules say; the project's own modules are no dependencies."""
    own: set[str] = set()
    queue: list[tuple[str, Model]] = [("pom.xml", _inherited(folder, own))]
    done: set[str] = set()
    rows: list[tuple[str, str, str]] = []
    while queue and len(done) < MAX_MEMBERS:
        file, inherited = queue.pop(0)
        if file in done:
            continue
        done.add(file)
        root = folder.xml(file)
        if root is None:
            continue
        model = _model(root, inherited)
        own.add(f"{model.group}:{model.artifact}")
        rows += [(package, version, file) for package, version in _dependencies(root, model)]
        for module in _modules(root):
            path = folder.inside(f"{file.rpartition('/')[0]}/{module}".lstrip("/"))
            if path is not None:
                queue.append((path if path.endswith(".xml") else f"{path}/pom.xml", model))
    for package, version, file in rows:
        if package not in own:
            inventory.add("maven", package, version, file, direct=True)


def _inherited(folder: Folder, own: set[str]) -> Model:
    """Return what the poms above hand down to a module's folder; their coordinates go into ``own``."""
    levels = len(list(folder.above()))
    chain: list[Element] = []
    file = "pom.xml"
    while len(chain) <= _MAX_PARENTS and levels:
        root = folder.xml(file)
        if root is None or (chain and not _is_parent(root, chain[-1])):
            break
        chain.append(root)
        parent = root.find("parent")
        stated = parent.find("relativePath") if parent is not None else None
        relative = (stated.text or "").strip() if stated is not None else "../pom.xml"
        file = posixpath.normpath(posixpath.join(posixpath.dirname(file), relative))
        if parent is None or not relative or len(relative) > _LONGEST or not file.startswith("../"):
            break
        if relative.startswith("/") or file.split("/").count("..") > levels:
            break
        file = file if file.endswith(".xml") else f"{file}/pom.xml"
    model = Model()
    for root in reversed(chain[1:]):
        model = _model(root, model)
        own.add(f"{model.group}:{model.artifact}")
    return model


def _is_parent(root: Element, child: Element) -> bool:
    """Tell whether ``root`` is the pom that ``child`` names as its parent."""
    named = child.find("parent")
    group = _text(root, "groupId") or _text(root, "parent/groupId")
    return named is not None and (group, _text(root, "artifactId")) == (
        _text(named, "groupId"),
        _text(named, "artifactId"),
    )


def _model(root: Element, inherited: Model) -> Model:
    parent = root.find("parent")
    model = inherited.child()
    if parent is not None:
        group, artifact = _text(parent, "groupId"), _text(parent, "artifactId")
        if (group, artifact) != (inherited.group, inherited.artifact):
            model = Model(group=group)
            if group == SPRING_BOOT:
                model.groups[group] = _text(parent, "version")
        model.version = _text(parent, "version") or model.version
        model.properties |= {"project.parent.version": model.version, "parent.version": model.version}
    model.group = _text(root, "groupId") or model.group
    model.artifact = _text(root, "artifactId")
    model.version = _text(root, "version") or model.version
    properties = root.find("properties")
    for item in properties if properties is not None else ():
        value = (item.text or "").strip()
        model.properties[str(item.tag)] = value if len(value) <= _LONGEST else "\0"
    model.version = model.resolve(model.version) if model.version else ""
    for name in model.groups:
        model.groups[name] = model.resolve(model.groups[name])
    for entry in root.findall("dependencyManagement/dependencies/dependency"):
        group, artifact, version = _coordinates(entry, model)
        model.managed[f"{group}:{artifact}"] = version
        if _text(entry, "scope") == "import" and group == SPRING_BOOT:
            model.groups[group] = version
    return model


def _dependencies(root: Element, model: Model) -> Iterator[tuple[str, str]]:
    """Yield ``(group:artifact, version)`` of the parent, of imported BOMs and of the dependencies."""
    entries = root.findall("parent")
    managed = root.findall("dependencyManagement/dependencies/dependency")
    entries += [entry for entry in managed if _text(entry, "scope") == "import"]
    entries += root.findall("dependencies/dependency")
    entries += root.findall("profiles/profile/dependencies/dependency")
    for entry in entries:
        group, artifact, version = _coordinates(entry, model)
        if group and artifact:
            yield f"{group}:{artifact}", version


def _coordinates(entry: Element, model: Model) -> tuple[str, str, str]:
    group = model.resolve(_text(entry, "groupId"))
    artifact = model.resolve(_text(entry, "artifactId"))
    version = _text(entry, "version")
    managed = model.managed.get(f"{group}:{artifact}") or model.groups.get(group) or UNKNOWN
    return group, artifact, model.resolve(version) if version else managed


def _modules(root: Element) -> list[str]:
    found = [*root.findall("modules/module"), *root.findall("profiles/profile/modules/module")]
    return [text for m in found[:MAX_MEMBERS] if (text := (m.text or "").strip()) and len(text) < _LONGEST]


def _text(entry: Any, name: str) -> str:
    text = (entry.findtext(name) or "").strip()
    return text if len(text) <= _LONGEST else ""


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
_ENTRY = re.compile(r"""[\[,]\s?["']?([A-Za-z_]\w{0,99})["']?\s?:\s?["']([^"'$]{1,100})["']""")
"""One entry of a Groovy map: ``versions = [spring: '6.1', junit: '5.10']``."""
_PLUGIN = re.compile(r"""\bid\s?\(?\s?["']([\w.-]+)["']\s?\)?\s?version\s?\(?\s?["']([^"']+)["']""")
_INCLUDE = re.compile(r"""["']:?([\w.:/-]+)["']""")


class Statement(NamedTuple):
    """One statement. ``depth`` counts the blocks it stands in; ``states`` tells that one is of dependencies."""

    text: str
    depth: int
    states: bool


def find_gradle(folder: Folder, inventory: Inventory) -> None:
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
    declared = [d for file, code in scripts.items() for d in _gradle_declared(file, code, variables)]
    # Spring's plugin brings the versions of its own starters.
    boot = plugins.get(SPRING_BOOT)
    declared = [
        Declared(d.package, boot, d.file) if d.spec is None and d.package.startswith(f"{SPRING_BOOT}:") else d
        for d in declared
    ]
    collect(inventory, "maven", declared, None)


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
    """Take in simple variables and the entries of maps."""
    for statement in code:
        text = statement.text
        if found := _VARIABLE.search(text[:_LONGEST_LINE]):
            variables.setdefault(found[1].rpartition(".")[2], found[2])
        elif not statement.states and re.search(r"=\s?\[", text):
            for entry in _ENTRY.finditer(text):
                variables.setdefault(entry[1], entry[2])


def _properties(folder: Folder, up: str) -> dict[str, str]:
    text = folder.text(f"{up}gradle.properties") or ""
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {k.strip(): v.strip() for k, sign, v in pairs if sign and len(v) < 200}


def _gradle_declared(file: str, code: list[Statement], variables: dict[str, str]) -> Iterator[Declared]:
    """Yield what the statements about dependencies name."""
    for statement in code:
        if statement.states:
            for group, name, version in _named(statement.text, variables):
                yield Declared(f"{group}:{name}", _fill(version, variables), file)


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
