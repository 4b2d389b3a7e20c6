"""Maven and Gradle: pom.xml with its modules and parents; build.gradle and build.gradle.kts with subprojects and version catalog.

A build script is a program; what is read here are the plain forms that nearly every build uses: coordinates in quotes,
accessors of the version catalog, and versions kept in simple variables.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, ParseError

from defusedxml.ElementTree import fromstring

from kr.packages.model import MAX_MEMBERS, UNKNOWN, Dependency, Folder, table

SPRING_BOOT = "org.springframework.boot"
_LONGEST = 300
"""Characters of a coordinate or of a property that stands in one; anything longer is neither."""
_JAVA = ("maven.compiler.release", "java.version", "maven.compiler.target", "maven.compiler.source")
_MANAGED = "dependencyManagement/dependencies/dependency"


@dataclass(slots=True)
class _Model:
    """What a pom hands down to its modules, as it is written: its name, properties and managed versions.

    Properties are filled in where a version is used, so that a child's property overrides its parent's. What is managed under a
    group alone holds for all of it; only Spring Boot's BOM is known to be numbered like its parts.
    """

    name: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    managed: dict[str, str] = field(default_factory=dict)

    def resolve(self, text: str) -> str:
        """Fill ``${...}`` in; ``unknown`` where a property is not to be found."""
        for _ in range(8):
            if "${" not in text or len(text) > _LONGEST:
                break
            text = re.sub(r"\$\{([^${}]*)\}", lambda m: self.properties.get(m[1].strip(), "\0"), text)
        return UNKNOWN if "\0" in text or "${" in text or len(text) > _LONGEST else text.strip()

    def package(self, entry: Element) -> str:
        """Return ``group:artifact`` of a dependency."""
        return f"{self.resolve(_text(entry, 'groupId'))}:{self.resolve(_text(entry, 'artifactId'))}"


def read_maven(folder: Folder) -> Iterator[Dependency]:
    """Yield what pom.xml and the poms of its modules say; the project's own modules are no dependencies."""
    models: dict[str, _Model] = {}
    rows: list[Dependency] = []
    queue = ["pom.xml"]
    while queue and len(models) < MAX_MEMBERS:
        file = queue.pop(0)
        root = folder.load(file, _parse) if file not in models else None
        if root is not None:
            models[file] = _model(root, file, models)
            rows += _dependencies(root, models[file], file)
            queue += [_beside(file, _text(module, ".")) for module in root.iterfind(".//modules/module")]
    folder.members |= {posixpath.dirname(file) for file in models}
    own = {model.name for model in models.values()}
    yield from (row for row in rows if row.package not in own)


def _beside(file: str, path: str) -> str:
    """Return the pom at a path that stands in another one."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
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


def _model(root: Element, file: str, models: dict[str, _Model]) -> _Model:
    """Return the model of a pom: what its parent hands down, where that was read and is the one that is named, with its own over it."""
    parent = f"{_text(root, 'parent/groupId')}:{_text(root, 'parent/artifactId')}"
    above = models.get(_beside(file, root.findtext("parent/relativePath", "../pom.xml")), _Model())
    if above.name != parent:
        above = _Model()
    group, version = (_text(root, tag) or _text(root, f"parent/{tag}") for tag in ("groupId", "version"))
    model = _Model(f"{group}:{_text(root, 'artifactId')}", {**above.properties}, {**above.managed})
    for item in root.iterfind("properties/*"):
        model.properties[str(item.tag)] = (item.text or "").strip()[: _LONGEST + 1]
    model.properties |= {"project.version": version, "version": version, "project.groupId": group}
    model.properties["project.parent.version"] = _text(root, "parent/version")
    if _text(root, "parent/groupId") == SPRING_BOOT:
        model.managed[SPRING_BOOT] = _text(root, "parent/version")
    for entry in root.iterfind(_MANAGED):
        package = model.package(entry)
        is_spring = _text(entry, "scope") == "import" and package.startswith(f"{SPRING_BOOT}:")
        model.managed[SPRING_BOOT if is_spring else package] = _text(entry, "version")
    return model


def _dependencies(root: Element, model: _Model, file: str) -> Iterator[Dependency]:
    """Yield the parent, imported BOMs and the dependencies; and Java itself, where a property gives its version."""
    for entry in (
        *root.iterfind("parent"),
        *(entry for entry in root.iterfind(_MANAGED) if _text(entry, "scope") == "import"),
        *root.iterfind("dependencies/dependency"),
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

_MAX_CHARACTERS = 512 * 1024
_SCRIPTS = ("build.gradle", "build.gradle.kts")
_CATALOG = "gradle/libs.versions.toml"
_COMMENT = re.compile(r"(\"[^\"\n]*\"|'[^'\n]*')|/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_COORDINATES = re.compile(
    r"""["']([\w.-]+):([\w.-]+)(?::((?:\$\{[^}\n]{0,200}\}|\$(?!\{)|[^"':@$\s])+))?(?:[:@][^"'\s]*)?["']"""
)
_VALUE = r"""\s{0,9}[:=]\s{0,9}["']([^"'\n]+)["']"""
_MAP = re.compile(rf"\bgroup{_VALUE}\s{{0,9}},\s{{0,9}}name{_VALUE}(?:\s{{0,9}},\s{{0,9}}version{_VALUE})?")
_ASSIGNED = re.compile(
    r"""(\w{1,99})["']?\]?(?:\s?:\s?String)?\s{0,9}(?:[=:,]|by\s+extra\s?\()\s{0,9}["']([^"'$\n]{1,100})["']"""
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

Library = tuple[str, str, str]
"""A package with its version, empty where there is none, and the file that gives it."""


def read_gradle(folder: Folder) -> Iterator[Dependency]:
    """Yield what the Gradle files of a project name. What only the catalog holds, no script, is no direct dependency."""
    scripts = _scripts(folder)
    properties = (line.partition("=") for line in folder.text("gradle.properties").splitlines())
    variables = {name.strip(): value.strip() for name, _, value in properties}
    for name, value in _ASSIGNED.findall("\n".join(scripts.values())):
        variables.setdefault(name, value)
    libraries, plugins = _catalog(folder, variables)
    for script, code in scripts.items():
        for found in _PLUGIN.finditer(code):
            plugins[found[1] or f"{_KOTLIN}{found[2]}"] = (found[3], script)
    kotlin = next((version for name, (version, _) in plugins.items() if name.startswith(_KOTLIN)), "")
    spring, place = plugins.get(SPRING_BOOT, ("", ""))
    if spring:
        yield Dependency("maven", f"{SPRING_BOOT}:spring-boot-gradle-plugin", spring, place)
    for script, code in scripts.items():
        for package, version, file in _named(script, code, variables, libraries):
            # Spring's plugin brings the versions of its own starters.
            managed = spring if package.startswith(f"{SPRING_BOOT}:") else ""
            yield Dependency("maven", package, version or managed, file, manifest=script)
        if java := _TOOLCHAIN.search(code):
            number = next(filter(None, java.groups())).replace("_", ".")
            yield Dependency("language", "java", number, script)
        if kotlin and "kotlin" in code:
            yield Dependency("language", "kotlin", kotlin, script)
    for package, version, file in libraries.values():
        yield Dependency("maven", package, version, file, direct=False)


def _scripts(folder: Folder) -> dict[str, str]:
    """Return the scripts of the build and its subprojects, without comments."""
    settings = _code(folder, "settings.gradle") + _code(folder, "settings.gradle.kts")
    named = re.findall(r"""["']([^"']+)["']""", "".join(_INCLUDED.findall(settings)))
    members = [posixpath.normpath(name.replace(":", "/").strip("/")) for name in named]
    folder.add_members(members, "settings.gradle")
    files = [posixpath.join(place, name) for place in ("", *members[:MAX_MEMBERS]) for name in _SCRIPTS]
    return {file: code for file in files if (code := _code(folder, file))}


def _code(folder: Folder, file: str) -> str:
    """Return a script without its comments."""
    text = folder.text(file)
    if len(text) > _MAX_CHARACTERS:
        folder.warn(file, f"it is longer than {_MAX_CHARACTERS // 1024} Ki characters; the rest is not read")
    return _COMMENT.sub(lambda found: found[1] or " ", text[:_MAX_CHARACTERS])


def _named(
    file: str, code: str, variables: dict[str, str], libraries: dict[str, Library]
) -> Iterator[Library]:
    """Yield the packages of a script: coordinates and maps with a group or a version, and accessors of the catalog."""
    for group, name, version in (*_COORDINATES.findall(code), *_MAP.findall(code)):
        if "." in group or re.search(r"[\d$+]", version):  # neither ``HH:mm`` nor ``app:lib:test``
            yield f"{group}:{name}", _filled(version, variables), file
    for accessor in re.findall(r"\blibs\.\w+(?:\.\w+)*", code):
        name = accessor
        while name and name not in libraries:  # ``.get()`` and the like may follow
            name = name.rpartition(".")[0]
        if name:
            yield libraries[name]


def _filled(version: str, variables: dict[str, str]) -> str:
    """Fill ``$x``, ``${rootProject.ext.x}``, ``${property("x")}`` and ``${libs.versions.x.get()}`` in; nothing where one is unknown."""

    def value(found: re.Match[str]) -> str:
        names = re.findall(r"\w[\w.]*", found[0].replace(".get()", ""))
        name = names[-1] if names else ""
        return variables.get(name) or variables.get(name.rpartition(".")[2], "$")

    filled = re.sub(r"\$\{[^}]{0,200}\}|\$\w+(?:\.\w+)*", value, version)
    return "" if "$" in filled else filled


def _catalog(
    folder: Folder, variables: dict[str, str]
) -> tuple[dict[str, Library], dict[str, tuple[str, str]]]:
    """Read the version catalog: libraries by accessor (``libs.ktor.client``), plugins with version and file by id.

    Its versions become variables (``libs.versions.ktor``).
    """
    data = folder.document(_CATALOG)
    versions = {_accessor(key): _version(value, {}) for key, value in table(data, "versions").items()}
    variables |= {f"libs.versions.{key}": version for key, version in versions.items()}
    libraries: dict[str, Library] = {}
    for alias, entry in table(data, "libraries").items():
        fields = entry if isinstance(entry, dict) else {"module": str(entry)}
        module = fields.get("module") or f"{fields.get('group', '')}:{fields.get('name', '')}"
        group, artifact, version = [*str(module).split(":"), "", ""][:3]
        wanted = version or _version(fields.get("version"), versions)
        libraries[f"libs.{_accessor(alias)}"] = (f"{group}:{artifact}", wanted, _CATALOG)
    plugins: dict[str, tuple[str, str]] = {}
    for entry in table(data, "plugins").values():
        fields = entry if isinstance(entry, dict) else {"id": str(entry)}
        plugin, _, version = str(fields.get("id")).partition(":")
        plugins[plugin] = (version or _version(fields.get("version"), versions), _CATALOG)
    return libraries, plugins


def _version(version: object, versions: dict[str, str]) -> str:
    """Return the version of a catalog: a text, a reference, or what ``prefer``, ``require`` or ``strictly`` say, in this order."""
    if isinstance(version, str):
        return version
    fields = table(version)
    named = (fields.get(key) for key in ("prefer", "require", "strictly"))
    referred = versions.get(_accessor(str(fields.get("ref"))))
    return referred or next((text for text in named if isinstance(text, str)), "")


def _accessor(alias: str) -> str:
    return re.sub(r"[-_.]", ".", alias)
