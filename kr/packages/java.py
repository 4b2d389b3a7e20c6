"""Maven and Gradle: pom.xml with its modules and parents; build.gradle and build.gradle.kts with subprojects and version catalogs.

A build script is a program; what is read here are the plain forms that nearly every build uses: string and map
notation, accessors of a version catalog, and versions kept in simple variables.
"""

import posixpath
import re
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, ParseError

from defusedxml.ElementTree import fromstring

from kr.packages.files import MAX_MEMBERS, Folder, items, table
from kr.packages.model import UNKNOWN, Dependency

SPRING_BOOT = "org.springframework.boot"
_LONGEST = 300
"""Characters of a coordinate or of a property that stands in one; anything longer is neither."""
_JAVA = ("maven.compiler.release", "java.version", "maven.compiler.target", "maven.compiler.source")
_MANAGED = "dependencyManagement/dependencies/dependency"


@dataclass(slots=True)
class _Model:
    """What a pom hands down to its modules: its coordinates, properties and managed versions, as they are written.

    Properties are filled in where a version is used, so that a child's property overrides its parent's. What is managed under a
    group alone holds for all of it; only Spring Boot's BOM is known to be numbered like its parts.
    """

    group: str = ""
    artifact: str = ""
    version: str = ""
    properties: ChainMap[str, str] = field(default_factory=ChainMap)
    managed: ChainMap[str, str] = field(default_factory=ChainMap)

    def resolve(self, text: str) -> str:
        """Fill ``${...}`` in; ``unknown`` where a property is not to be found."""
        for _ in range(8):
            if "${" not in text or len(text) > _LONGEST:
                break
            text = re.sub(r"\$\{([^${}]*)\}", lambda m: self._property(m[1].strip()), text)
        return UNKNOWN if "\0" in text or "${" in text or len(text) > _LONGEST else text.strip()

    def _property(self, name: str) -> str:
        if name in {"project.version", "pom.version", "version"}:
            return self.version
        return self.group if name == "project.groupId" else self.properties.get(name, "\0")

    def package(self, entry: Element) -> str:
        """Return ``group:artifact`` of a dependency."""
        return f"{self.resolve(_text(entry, 'groupId'))}:{self.resolve(_text(entry, 'artifactId'))}"


def read_maven(folder: Folder) -> Iterator[Dependency]:
    """Yield what pom.xml and the poms of its modules say; the project's own modules are no dependencies."""
    models: dict[str, _Model] = {}
    rows: list[Dependency] = []
    queue, done = ["pom.xml"], set[str]()
    while queue and len(done) < MAX_MEMBERS:
        file = queue.pop(0)
        root = folder.load(file, _parse) if file not in done else None
        done.add(file)
        if root is None:
            continue
        rows += _dependencies(root, _model(folder, root, file, models), file)
        for module in (*root.iterfind("modules/module"), *root.iterfind("profiles/profile/modules/module")):
            path = posixpath.join(posixpath.dirname(file), _text(module, "."))
            if (inside := folder.inside(path)) is not None:
                queue.append(_pom_at(inside))
    own = {f"{model.group}:{model.artifact}" for model in models.values()}
    yield from (row for row in rows if row.package not in own)


def _pom_at(path: str) -> str:
    return path if path.endswith(".xml") else posixpath.normpath(f"{path}/pom.xml")


def _parse(data: bytes) -> Element:
    """Return the root of a pom, in the encoding that it declares, its tags without namespaces. Raises ``ValueError``, also for a DTD."""
    try:
        root: Element = fromstring(data, forbid_dtd=True)
    except (ParseError, LookupError) as exc:
        raise ValueError(f"it is not valid XML: {exc}") from exc
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    return root


def _model(folder: Folder, root: Element, file: str, models: dict[str, _Model]) -> _Model:
    """Return the model of a pom, made once: what its parents in the repository hand down, with its own over it."""
    if file in models:
        return models[file]
    inherited = _parent(folder, root, file, models)
    above = _text(root, "parent/version") or inherited.version
    model = models[file] = _Model(
        group=_text(root, "groupId") or _text(root, "parent/groupId") or inherited.group,
        artifact=_text(root, "artifactId"),
        version=_text(root, "version") or above,
        properties=inherited.properties.new_child({"project.parent.version": above, "parent.version": above}),
        managed=inherited.managed.new_child(),
    )
    for item in root.iterfind("properties/*"):
        value = (item.text or "").strip()
        model.properties[str(item.tag)] = value if len(value) <= _LONGEST else "\0"
    model.version = model.resolve(model.version) if model.version else ""
    if _text(root, "parent/groupId") == SPRING_BOOT:
        model.managed[SPRING_BOOT] = above
    for entry in root.iterfind(_MANAGED):
        package, version = model.package(entry), _text(entry, "version")
        model.managed[package] = version
        if _text(entry, "scope") == "import" and package.startswith(f"{SPRING_BOOT}:"):
            model.managed[SPRING_BOOT] = version
    return model


def _parent(folder: Folder, root: Element, file: str, models: dict[str, _Model]) -> _Model:
    """Return the model of a pom's parent where it lies in the repository and is the one that is named; else an empty one."""
    parent = root.find("parent")
    stated = parent.findtext("relativePath") if parent is not None else ""
    relative = "../pom.xml" if stated is None else stated.strip()[:_LONGEST]
    path = _pom_at(posixpath.normpath(posixpath.join(posixpath.dirname(file), relative)))
    is_near = not path.startswith("/") and path.count("../") <= len(folder.above)
    if relative and is_near and path not in models and len(models) < MAX_MEMBERS:
        models[file] = _Model()  # poms that name each other end
        if (found := folder.load(path, _parse)) is not None:
            _model(folder, found, path, models)
        del models[file]
    model = models.get(path, _Model())
    named = (_text(root, "parent/groupId"), _text(root, "parent/artifactId"))
    return model if (model.group, model.artifact) == named else _Model()


def _dependencies(root: Element, model: _Model, file: str) -> Iterator[Dependency]:
    """Yield the parent, imported BOMs and the dependencies; and Java itself, where a property gives its version."""
    for entry in (
        *root.iterfind("parent"),
        *(entry for entry in root.iterfind(_MANAGED) if _text(entry, "scope") == "import"),
        *root.iterfind("dependencies/dependency"),
        *root.iterfind("profiles/profile/dependencies/dependency"),
    ):
        package = model.package(entry)
        group, _, artifact = package.partition(":")
        if group and artifact:
            managed = model.managed.get(package) or model.managed.get(group)
            version = model.resolve(_text(entry, "version") or managed or UNKNOWN)
            yield Dependency("maven", package, version, file, dev=_text(entry, "scope") == "test")
    java = next((model.properties[name] for name in _JAVA if name in model.properties), "")
    if java:
        yield Dependency("language", "java", model.resolve(java), file)


def _text(entry: Element, path: str) -> str:
    text = (entry.findtext(path) or "").strip()
    return text if len(text) <= _LONGEST else ""


# --- Gradle ---

MAX_CHARACTERS = 512 * 1024
_SCRIPTS = ("build.gradle", "build.gradle.kts")
_SETTINGS = ("settings.gradle", "settings.gradle.kts")
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
_VALUE = r"""\s{0,9}[:=]\s{0,9}(["'][^"'\n]+["']|[A-Za-z_][\w.]*)"""
_MAP = re.compile(rf"\bgroup{_VALUE}\s{{0,9}},\s{{0,9}}name{_VALUE}(?:\s{{0,9}},\s{{0,9}}version{_VALUE})?")
_ASSIGNED = re.compile(
    r"""([A-Za-z_][\w.]{0,99})["']?\]?(?:\s?:\s?String)?\s{0,9}(?:=|by\s+extra\s?\()\s{0,9}["']([^"'$\n]{1,100})["']"""
    r"""|\bset\(\s?["'](\w{1,99})["']\s?,\s?["']([^"'$\n]{1,100})["']"""
    r"""|[\[,]\s{0,9}["']?([A-Za-z_]\w{0,99})["']?\s?:\s?["']([^"'$\n]{1,100})["']"""
)
"""``name = "1"``, ``extra["name"] = "1"``, ``set("name", "1")``, and the entries of a Groovy map."""
_INCLUDED = re.compile(r"""\binclude\b((?:[\s(,]*["'][^"'\n]{1,200}["'])+)""")
_PLUGIN = re.compile(
    r"""\b(?:id\s?\(?\s?["']([\w.-]+)["']|kotlin\(["']([\w.-]+)["'])\s?\)?\s?version\s?\(?\s?["']([^"']+)["']"""
)
_KOTLIN = "org.jetbrains.kotlin."
_TOOLCHAIN = re.compile(
    r"JavaLanguageVersion\.of\(\s*(\d+)|jvmToolchain\(\s*(\d+)|sourceCompatibility\s*=\s*[\w.'\"]*?(\d[\w.]*)"
)
_FILL = re.compile(r"\$\{([^}]{0,200})\}|\$(\w+)((?:\.[A-Za-z_]\w*)*)")
"""``$x``, ``${x}``, ``${rootProject.ext.x}``, ``${property("x")}``, ``${extra["x"]}``, ``${libs.versions.x.get()}``."""

Library = tuple[str, str, str]
"""A package with its version, empty where there is none, and the file that gives it."""


def read_gradle(folder: Folder) -> Iterator[Dependency]:
    """Yield what the Gradle files of a project name. What only a catalog holds, no script, is no direct dependency."""
    scripts = _scripts(folder)
    properties = (line.partition("=") for line in folder.text("gradle.properties").splitlines())
    variables = {name.strip(): value.strip() for name, _, value in properties}
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
        if java := _TOOLCHAIN.search(code):
            number = next(filter(None, java.groups())).replace("_", ".")
            yield Dependency("language", "java", number, script)
        if kotlin and "kotlin" in code:
            yield Dependency("language", "kotlin", kotlin, script)
    for package, version, file in (one for found in libraries.values() for one in found):
        yield Dependency("maven", package, version, file, direct=False)


def _scripts(folder: Folder) -> dict[str, str]:
    """Return the scripts of the build and its subprojects, without comments."""
    named = [
        name.replace(":", "/").strip("/")
        for file in _SETTINGS
        for included in _INCLUDED.findall(_code(folder, file))
        for name in re.findall(r"""["']([^"']+)["']""", included)
    ]
    inner = [inside for name in named[:MAX_MEMBERS] if (inside := folder.inside(name)) and inside != "."]
    # A folder with settings of its own is another build.
    members = [one for one in inner if not set(_SETTINGS) & set(folder.names(one))]
    folder.members |= {*members}
    files = [posixpath.join(place, name) for place in ("", *members) for name in _SCRIPTS]
    return {file: code for file in files if (code := _code(folder, file))}


def _code(folder: Folder, file: str) -> str:
    """Return a script without its comments."""
    text = folder.text(file)
    if len(text) > MAX_CHARACTERS:
        folder.warn(file, f"it is longer than {MAX_CHARACTERS // 1024} Ki characters; the rest is not read")
    return _COMMENT.sub(lambda found: " " if found["comment"] else found[0], text[:MAX_CHARACTERS])


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


def _named(text: str, variables: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the ``(group, name, version)`` of every coordinate and map of a block."""
    for match in _COORDINATES.finditer(re.sub(r"\"{3}|'{3}", '"', text)):
        yield match[1], match[2], match[3] or _variable(match[4] or "", variables)
    for values in _MAP.findall(text):
        group, name, version = (
            value.strip("\"'") if value[:1] in {'"', "'"} else _variable(value, variables) for value in values
        )
        if group and name:
            yield group, name, version


def _variable(name: str, variables: dict[str, str]) -> str:
    return variables.get(name) or variables.get(name.rpartition(".")[2], "")


def _fill(version: str, variables: dict[str, str]) -> str:
    """Return a version with its variables filled in; nothing where one is not known."""

    def value(found: re.Match[str]) -> str:
        names = re.findall(r"\w[\w.]*", found[1]) if found[1] else [found[2] + found[3]]
        known = (_variable(name.removesuffix(".get"), variables) for name in reversed(names))
        # ``$x.y`` is x's y in Groovy, and x before a literal ``.y`` in Kotlin.
        literal = variables.get(found[2] or "", "$") + (found[3] or "")
        return next(filter(None, known), literal)

    filled = _FILL.sub(value, version)
    return "" if "$" in filled else filled


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
        versions = {_accessor(key): _rich(value, {}) for key, value in table(data, "versions").items()}
        variables |= {f"{root}.versions.{key}": version or "$" for key, version in versions.items()}
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
            plugins[plugin] = (version or _rich(fields.get("version"), versions), file)
    return libraries, plugins


def _rich(version: object, versions: dict[str, str]) -> str:
    """Return the version of a catalog: a text, a reference, or what ``prefer``, ``require`` or ``strictly`` say, in this order."""
    if isinstance(version, str):
        return version
    fields = table(version)
    named = (fields.get(key) for key in ("prefer", "require", "strictly"))
    referred = versions.get(_accessor(str(fields.get("ref"))))
    return referred or next((text for text in named if isinstance(text, str)), "")


def _accessor(alias: str) -> str:
    return re.sub(r"[-_.]", ".", alias)
