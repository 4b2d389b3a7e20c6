"""pom.xml: properties, dependencyManagement, the parent and the modules inside the project."""

import posixpath
import re
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

from kr.packages.folder import MAX_MEMBERS, Folder
from kr.packages.model import UNKNOWN, Inventory

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


def find(folder: Folder, inventory: Inventory) -> None:
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
