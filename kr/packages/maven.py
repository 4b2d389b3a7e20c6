"""pom.xml with its modules, and its parents inside the repository: properties and dependencyManagement."""

import posixpath
import re
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, ParseError

from defusedxml.ElementTree import fromstring

from kr.packages.files import MAX_MEMBERS, Folder
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
