"""Maven and Gradle: pom.xml with its modules and parents; build.gradle and build.gradle.kts with subprojects and version catalog.

A build script is a program; what is read here are the plain forms: coordinates with a version in quotes, and accessors of
the version catalog.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element, ParseError

from defusedxml.ElementTree import fromstring

from kr.packages.model import MAX_MEMBERS, UNKNOWN, Dependency, Folder, items, table

SPRING_BOOT = "org.springframework.boot"
_LONGEST = 300
"""Characters of a coordinate or of a property that stands in one; anything longer is neither."""
_JAVA = ("maven.compiler.release", "java.version", "maven.compiler.target", "maven.compiler.source")
_MANAGED = "dependencyManagement/dependencies/dependency"


@dataclass
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
            queue += [_beside(file, _text(module, ".")) for module in root.iterfind("modules/module")]
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
    model.properties |= {"project.version": version, "project.groupId": group}
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
    imported = (entry for entry in root.iterfind(_MANAGED) if _text(entry, "scope") == "import")
    for entry in (*root.iterfind("parent"), *imported, *root.iterfind("dependencies/dependency")):
        package = model.package(entry)
        managed = model.managed.get(package) or model.managed.get(package.partition(":")[0])
        version = model.resolve(_text(entry, "version") or managed or UNKNOWN)
        if not package.startswith(":") and not package.endswith(":"):
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
    r"""["']([\w.-]+):([\w.-]+)(?::((?:\$\{[^}\n]{0,200}\}|[^"':@\s])+))?(?:[:@][^"'\s]*)?["']"""
)
_VALUE = r"""\s{0,9}[:=]\s{0,9}["']([^"'\n]+)["']"""
_MAP = re.compile(rf"\bgroup{_VALUE}\s{{0,9}},\s{{0,9}}name{_VALUE}(?:\s{{0,9}},\s{{0,9}}version{_VALUE})?")
_INCLUDED = re.compile(r"""\binclude\b((?:[\s(,]*["'][^"'\n]{1,200}["'])+)""")
_PLUGIN = re.compile(
    r"""\b(?:id\s?\(?\s?["']([\w.-]+)["']|kotlin\(["']([\w.-]+)["'])\s?\)?\s?version\s?\(?\s?["']([^"']+)["']"""
)
_KOTLIN = "org.jetbrains.kotlin."
_TOOLCHAIN = re.compile(r"(?:JavaLanguageVersion\.of|jvmToolchain)\(\s*(\d+)")


def read_gradle(folder: Folder) -> Iterator[Dependency]:
    """Yield what the Gradle files of a project name. What only the catalog holds, no script, is no direct dependency."""
    scripts = _scripts(folder)
    catalog = folder.document(_CATALOG)
    libraries = _libraries(catalog)
    plugins = {plugin: (version, _CATALOG) for plugin, version in _listed(catalog, "plugins").values()}
    for script, code in scripts.items():
        for found in _PLUGIN.finditer(code):
            plugins[found[1] or f"{_KOTLIN}{found[2]}"] = (found[3], script)
    spring, place = plugins.get(SPRING_BOOT, ("", ""))
    if spring:
        yield Dependency("maven", f"{SPRING_BOOT}:spring-boot-gradle-plugin", spring, place)
    for version, file in [at for plugin, at in plugins.items() if plugin.startswith(_KOTLIN)][:1]:
        yield Dependency("language", "kotlin", version, file)
    for script, code in scripts.items():
        for one in _coordinates(folder, script, code):
            # Spring's plugin brings the versions of its own starters.
            is_managed = not one.version and one.package.startswith(f"{SPRING_BOOT}:")
            yield replace(one, version=spring) if is_managed else one
        for accessor in re.findall(r"\blibs\.\w+(?:\.\w+)*", code):
            yield from (
                replace(one, manifest=script) for one in libraries.get(accessor.removesuffix(".get"), ())
            )
        if java := _TOOLCHAIN.search(code):
            yield Dependency("language", "java", java[1], script)
    yield from (replace(one, direct=False) for listed in libraries.values() for one in listed)


def _coordinates(folder: Folder, script: str, code: str) -> Iterator[Dependency]:
    """Yield the packages that stand in quotes, or as a map, with a group or a version."""
    for group, name, version in (*_COORDINATES.findall(code), *_MAP.findall(code)):
        is_variable = "$" in version
        if is_variable:
            folder.warn(script, "kr does not read versions that stand in variables")
        if "." in group or is_variable or re.search(r"\d|\+", version):  # not ``HH:mm``, not ``app:lib:test``
            yield Dependency("maven", f"{group}:{name}", "" if is_variable else version, script)


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


def _libraries(catalog: dict[str, object]) -> dict[str, list[Dependency]]:
    """Return the packages of a version catalog by accessor: ``libs.ktor.client``, all of a bundle by ``libs.bundles.ktor``."""
    listed = {
        alias: Dependency("maven", package, version, _CATALOG)
        for alias, (package, version) in _listed(catalog, "libraries").items()
    }
    libraries = {f"libs.{alias}": [library] for alias, library in listed.items()}
    bundles = table(catalog, "bundles")
    for alias in bundles:
        packages = (listed.get(_accessor(str(name))) for name in items(bundles, alias))
        libraries[f"libs.bundles.{_accessor(alias)}"] = [one for one in packages if one]
    return libraries


def _listed(catalog: dict[str, object], kind: str) -> dict[str, tuple[str, str]]:
    """Return the libraries or plugins of a version catalog with their versions, by the last part of their accessor."""
    found: dict[str, tuple[str, str]] = {}
    for alias, entry in table(catalog, kind).items():
        fields = table(entry)
        name, _, version = str(entry).rpartition(":")
        if fields:
            name = str(
                fields.get("module") or fields.get("id") or f"{fields.get('group')}:{fields.get('name')}"
            )
            version = _version(fields.get("version"), table(catalog, "versions"))
        found[_accessor(alias)] = (name, version)
    return found


def _version(version: object, versions: dict[str, object]) -> str:
    """Return the version of a catalog: a text, a reference, or what ``prefer``, ``require`` or ``strictly`` say, in this order."""
    fields = table(version)
    if "ref" in fields:
        return _version(versions.get(str(fields["ref"])), {})
    texts = (version, *(fields.get(key) for key in ("prefer", "require", "strictly")))
    return next((text for text in texts if isinstance(text, str)), "")


def _accessor(alias: str) -> str:
    return re.sub(r"[-_.]", ".", alias)
