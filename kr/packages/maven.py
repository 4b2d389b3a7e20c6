"""pom.xml with its modules, and its parents inside the repository: properties and dependencyManagement."""

import posixpath
import re
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from kr.packages.files import MAX_MEMBERS, MAX_STRUCTURED, Folder
from kr.packages.model import UNKNOWN, Dependency, dependency

SPRING_BOOT = "org.springframework.boot"
_LONGEST = 300
"""Characters of a coordinate or of a property that stands in one; anything longer is neither."""
_JAVA = ("maven.compiler.release", "java.version", "maven.compiler.target", "maven.compiler.source")


@dataclass(slots=True)
class _Model:
    """What a pom hands down to its modules: its coordinates, properties and managed versions, as they are written.

    Properties are filled in where a version is used, so that a child's property overrides its parent's. ``groups`` are versions that
    hold for a whole group; only Spring Boot's BOM is known to be numbered like its parts.
    """

    group: str = ""
    artifact: str = ""
    version: str = ""
    properties: ChainMap[str, str] = field(default_factory=ChainMap)
    managed: ChainMap[str, str] = field(default_factory=ChainMap)
    groups: dict[str, str] = field(default_factory=dict)

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


def read_maven(folder: Folder) -> Iterator[Dependency]:
    """Yield what pom.xml and the poms of its modules say; the project's own modules are no dependencies."""
    models: dict[str, _Model] = {}
    rows: list[Dependency] = []
    queue, done = ["pom.xml"], set[str]()
    while queue and len(done) < MAX_MEMBERS:
        file = queue.pop(0)
        root = _pom(folder, file) if file not in done else None
        done.add(file)
        if root is None:
            continue
        rows += _dependencies(root, _model(folder, root, file, models), file)
        for module in (*root.iterfind("modules/module"), *root.iterfind("profiles/profile/modules/module")):
            path = folder.inside(
                posixpath.join(posixpath.dirname(file), (module.text or "").strip()[:_LONGEST])
            )
            if path is not None:
                queue.append(path if path.endswith(".xml") else posixpath.normpath(f"{path}/pom.xml"))
    own = {f"{model.group}:{model.artifact}" for model in models.values()}
    yield from (row for row in rows if row.package not in own)


def _pom(folder: Folder, file: str) -> Element | None:
    """Return the root of a pom, in the encoding that it declares, its tags without namespaces."""
    data = folder.data(file)
    if data is None:
        return None
    if len(data) > MAX_STRUCTURED:
        folder.warn(file, f"it is larger than {MAX_STRUCTURED // 1024**2} MiB")
        return None
    try:
        root: Element = fromstring(data, forbid_dtd=True)
    except DefusedXmlException:
        folder.warn(file, "it has a document type declaration, which it does not need; it is not read")
        return None
    except (ParseError, ValueError, LookupError, RecursionError) as exc:
        folder.warn(file, f"it is not valid XML ({exc})")
        return None
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    return root


def _model(folder: Folder, root: Element, file: str, models: dict[str, _Model]) -> _Model:
    """Return the model of a pom, made once: what its parents in the repository hand down, with its own over it."""
    if file in models:
        return models[file]
    named, group = _text(root, "parent/groupId"), _text(root, "groupId") or _text(root, "parent/groupId")
    inherited = _parent(folder, root, file, models)
    above = _text(root, "parent/version") or inherited.version
    model = models[file] = _Model(
        group=group or inherited.group,
        artifact=_text(root, "artifactId"),
        version=_text(root, "version") or above,
        properties=inherited.properties.new_child({"project.parent.version": above, "parent.version": above}),
        managed=inherited.managed.new_child(),
        groups={**inherited.groups, **({named: above} if named == SPRING_BOOT else {})},
    )
    for item in root.iterfind("properties/*"):
        value = (item.text or "").strip()
        model.properties[str(item.tag)] = value if len(value) <= _LONGEST else "\0"
    model.version = model.resolve(model.version) if model.version else ""
    for entry in root.iterfind("dependencyManagement/dependencies/dependency"):
        group, artifact = model.resolve(_text(entry, "groupId")), model.resolve(_text(entry, "artifactId"))
        model.managed[f"{group}:{artifact}"] = _text(entry, "version")
        if _text(entry, "scope") == "import" and group == SPRING_BOOT:
            model.groups[group] = _text(entry, "version")
    return model


def _parent(folder: Folder, root: Element, file: str, models: dict[str, _Model]) -> _Model:
    """Return the model of a pom's parent where it lies in the repository and is the one that is named; else an empty one."""
    parent = root.find("parent")
    stated = parent.findtext("relativePath") if parent is not None else ""
    relative = "../pom.xml" if stated is None else stated.strip()
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), relative))
    path = path if path.endswith(".xml") else f"{path}/pom.xml"
    is_near = (
        len(relative) <= _LONGEST and not path.startswith("/") and path.count("../") <= len(folder.above)
    )
    if relative and is_near and path not in models and len(models) < MAX_MEMBERS:
        models[file] = _Model()  # poms that name each other end
        if (found := _pom(folder, path)) is not None:
            _model(folder, found, path, models)
        del models[file]
    model = models.get(path, _Model())
    named = (_text(root, "parent/groupId"), _text(root, "parent/artifactId"))
    return model if (model.group, model.artifact) == named else _Model()


def _dependencies(root: Element, model: _Model, file: str) -> Iterator[Dependency]:
    """Yield the parent, imported BOMs and the dependencies; and Java itself, where a property gives its version."""
    managed = root.iterfind("dependencyManagement/dependencies/dependency")
    for entry in (
        *root.iterfind("parent"),
        *(entry for entry in managed if _text(entry, "scope") == "import"),
        *root.iterfind("dependencies/dependency"),
        *root.iterfind("profiles/profile/dependencies/dependency"),
    ):
        group, artifact = model.resolve(_text(entry, "groupId")), model.resolve(_text(entry, "artifactId"))
        if group and artifact:
            written = (
                _text(entry, "version") or model.managed.get(f"{group}:{artifact}") or model.groups.get(group)
            )
            version, is_test = model.resolve(written or UNKNOWN), _text(entry, "scope") == "test"
            yield dependency("maven", f"{group}:{artifact}", version, file, dev=is_test)
    java = next((model.properties[name] for name in _JAVA if name in model.properties), "")
    if java:
        yield dependency("language", "java", model.resolve(java), file)


def _text(entry: Element, path: str) -> str:
    text = (entry.findtext(path) or "").strip()
    return text if len(text) <= _LONGEST else ""
