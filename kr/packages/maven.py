"""pom.xml with its parents and modules inside the project, properties and dependencyManagement."""

import posixpath
import re
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from kr.packages.files import MAX_MEMBERS, MAX_STRUCTURED, Folder
from kr.packages.model import UNKNOWN, Dependency, dependency

SPRING_BOOT = "org.springframework.boot"
_LONGEST = 300
"""Characters of a coordinate or of a property that stands in one; anything longer is neither."""
_MAX_PARENTS = 5
_JAVA = ("maven.compiler.release", "java.version", "maven.compiler.target", "maven.compiler.source")


@dataclass(slots=True)
class _Model:
    """What a pom hands down to its modules: its coordinates, properties and managed versions, as they are written.

    Properties are filled in where a version is used, so that a child's property overrides its parent's.
    """

    group: str = ""
    artifact: str = ""
    version: str = ""
    properties: ChainMap[str, str] = field(default_factory=ChainMap)
    managed: ChainMap[str, str] = field(default_factory=ChainMap)
    groups: dict[str, str] = field(default_factory=dict)
    """Versions that hold for a whole group; only Spring Boot's BOM is known to be numbered like its parts."""

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

    def version_of(self, group: str, artifact: str, version: str) -> str:
        """Return the version of a dependency: its own, else the managed one, else its group's."""
        written = version or self.managed.get(f"{group}:{artifact}") or self.groups.get(group) or UNKNOWN
        return self.resolve(written)


def read_maven(folder: Folder) -> Iterator[Dependency]:
    """Yield what pom.xml and the poms of its modules say; the project's own modules are no dependencies."""
    own: set[str] = set()
    rows: list[Dependency] = []
    queue, done = [("pom.xml", _inherited(folder, own))], set[str]()
    while queue and len(done) < MAX_MEMBERS:
        file, inherited = queue.pop(0)
        root = _pom(folder, file) if file not in done else None
        done.add(file)
        if root is None:
            continue
        model = _model(root, inherited)
        own.add(f"{model.group}:{model.artifact}")
        rows += _dependencies(root, model, file)
        for module in _modules(root):
            path = folder.inside(f"{file.rpartition('/')[0]}/{module}".lstrip("/"))
            if path is not None:
                queue.append((path if path.endswith(".xml") else f"{path}/pom.xml", model))
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


def _inherited(folder: Folder, own: set[str]) -> _Model:
    """Return what the poms above hand down to a module's folder; their coordinates go into ``own``."""
    levels = len(list(folder.above()))
    chain: list[Element] = []
    file = "pom.xml"
    while len(chain) <= _MAX_PARENTS and levels:
        root = _pom(folder, file)
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
    model = _Model()
    for root in reversed(chain[1:]):
        model = _model(root, model)
        own.add(f"{model.group}:{model.artifact}")
    return model


def _is_parent(root: Element, child: Element) -> bool:
    """Tell whether ``root`` is the pom that ``child`` names as its parent."""
    named = child.find("parent")
    group = _text(root, "groupId") or _text(root, "parent/groupId")
    wanted = (_text(named, "groupId"), _text(named, "artifactId"))
    return named is not None and (group, _text(root, "artifactId")) == wanted


def _model(root: Element, inherited: _Model) -> _Model:
    """Return the model of a pom: what it inherits, with its own over it."""
    parent = root.find("parent")
    group, artifact = _text(parent, "groupId"), _text(parent, "artifactId")
    if parent is not None and (group, artifact) != (inherited.group, inherited.artifact):
        inherited = _Model(
            group=group, groups={group: _text(parent, "version")} if group == SPRING_BOOT else {}
        )
    above = _text(parent, "version") or inherited.version
    model = _Model(
        group=_text(root, "groupId") or inherited.group,
        artifact=_text(root, "artifactId"),
        version=_text(root, "version") or above,
        properties=inherited.properties.new_child({"project.parent.version": above, "parent.version": above}),
        managed=inherited.managed.new_child(),
        groups=dict(inherited.groups),
    )
    for item in root.findall("properties/*"):
        value = (item.text or "").strip()
        model.properties[str(item.tag)] = value if len(value) <= _LONGEST else "\0"
    model.version = model.resolve(model.version) if model.version else ""
    for entry in root.findall("dependencyManagement/dependencies/dependency"):
        group, artifact = model.resolve(_text(entry, "groupId")), model.resolve(_text(entry, "artifactId"))
        model.managed[f"{group}:{artifact}"] = _text(entry, "version")
        if _text(entry, "scope") == "import" and group == SPRING_BOOT:
            model.groups[group] = _text(entry, "version")
    return model


def _dependencies(root: Element, model: _Model, file: str) -> Iterator[Dependency]:
    """Yield the parent, imported BOMs and the dependencies; and Java itself, where a property gives its version."""
    managed = root.findall("dependencyManagement/dependencies/dependency")
    for entry in (
        *root.findall("parent"),
        *(entry for entry in managed if _text(entry, "scope") == "import"),
        *root.findall("dependencies/dependency"),
        *root.findall("profiles/profile/dependencies/dependency"),
    ):
        group, artifact = model.resolve(_text(entry, "groupId")), model.resolve(_text(entry, "artifactId"))
        if group and artifact:
            version = model.version_of(group, artifact, _text(entry, "version"))
            dev = _text(entry, "scope") == "test"
            yield dependency("maven", f"{group}:{artifact}", version, file, direct=True, dev=dev)
    java = next((model.properties[name] for name in _JAVA if name in model.properties), "")
    if java:
        yield dependency("language", "java", model.resolve(java), file, direct=True)


def _modules(root: Element) -> list[str]:
    found = (*root.findall("modules/module"), *root.findall("profiles/profile/modules/module"))
    texts = ((module.text or "").strip() for module in islice(found, MAX_MEMBERS))
    return [text for text in texts if text and len(text) < _LONGEST]


def _text(entry: Element | None, name: str) -> str:
    text = ((entry.findtext(name) if entry is not None else "") or "").strip()
    return text if len(text) <= _LONGEST else ""
