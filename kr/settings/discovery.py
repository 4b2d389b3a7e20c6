"""Finds the configuration file and the project it belongs to (SPEC 7), and reads its sections as nested text.

Scalars are the text that was written, as in ``kr.documents``, with the line of each key; the sections decide what is a
number. Unlike a request, a configuration is written by its user: anchors, aliases and merge keys are read.
"""

import errno
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kr.documents import KeyPath, Tree
from kr.errors import ConfigError, KrError
from kr.settings.settings import ROOT_MARKS

if TYPE_CHECKING:
    import yaml

MAIN_SECTION = "knowledge_research"
SECTIONS = frozenset({MAIN_SECTION, "role_mapping", "defaults", "e2e_inspection", "output_folder"})
_OURS = ("kr.yaml", "_bmad/bso/config.yaml")
_ANYBODYS = "config.yaml"
_LIMIT = 1024 * 1024
_DEPTH = 64
_NODES = 10_000
_TAG = "tag:yaml.org,2002:"
_TAGS = frozenset(
    _TAG + name
    for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value", "map", "seq")
)


class UnreadableError(Exception):
    """The bytes are no configuration; the message says why, with the line where one is known."""


@dataclass(slots=True)
class Content:
    """``data`` holds the wanted sections that stand in the file, ``others`` names the rest; ``lines`` count from 1."""

    data: dict[str, Tree] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    doubles: list[KeyPath] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """``file`` is absolute, or None when there is none; ``root`` is the project root, resolved."""

    file: Path | None
    root: Path
    content: Content
    warnings: tuple[str, ...] = ()


def find_config(*, config: Path | None, environ: Mapping[str, str], cwd: Path) -> Found:
    """Read the file that ``--config`` or ``KR_CONFIG`` names, else the nearest one upward from ``cwd``.

    Raises ``ConfigError`` when a named file, or a found one that is kr's by its name, can't be read.
    """
    named = config
    label = "--config"
    if named is None and environ.get("KR_CONFIG"):
        named, label = Path(environ["KR_CONFIG"]), "KR_CONFIG"
    if named is not None:
        file = locate(named, environ, cwd)
        return Found(file, project_root(file), _read_ours(file, label))
    return _search(cwd)


def locate(path: Path, environ: Mapping[str, str], base: Path) -> Path:
    """Make a path absolute: a leading ``~`` is the home folder, relative means relative to ``base``."""
    home = environ.get("HOME")
    if path.parts[:1] == ("~",) and home:
        path = Path(home, *path.parts[1:])
    absolute = base / path
    # Symbolic links stay, so that a linked _bmad/ still lies in its project; only ".." needs them resolved.
    return absolute.parent.resolve() / absolute.name if ".." in absolute.parts else absolute


def project_root(file: Path) -> Path:
    """Return the folder above ``_bmad/``, or the folder that holds the file."""
    for folder in file.parents:
        if folder.name == "_bmad":
            return folder.parent.resolve()
    return file.parent.resolve()


def _candidates(cwd: Path) -> Iterator[tuple[Path, bool]]:
    """Yield what is there, nearest first, each with whether it is kr's by its name."""
    for folder in (cwd, *cwd.parents):
        for name in (*_OURS, _ANYBODYS):
            is_ours = name in _OURS
            if is_file(folder / name) or (is_ours and os.path.lexists(folder / name)):
                yield folder / name, is_ours


def is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:
        return False


def _search(cwd: Path) -> Found:
    start = cwd.resolve()
    warnings: list[str] = []
    for file, is_ours in _candidates(start):
        if not is_file(file):
            warnings.append(f"{file} was passed over: it is {_kind(file)}")
            continue
        if is_ours:
            return Found(file, project_root(file), _read_ours(file, None), tuple(warnings))
        try:
            content = _read(file)
        except UnreadableError as exc:
            warnings.append(f"{file} was passed over: it is {exc}")
            continue
        if MAIN_SECTION in content.data:
            return Found(file, project_root(file), content, tuple(warnings))
        warnings.append(f"{file} was passed over: it has no {MAIN_SECTION} section")
    return Found(None, _marked(start), Content(), tuple(warnings))


def _marked(start: Path) -> Path:
    """Return the nearest folder upwards that looks like a project's root, else ``start`` (SPEC 7)."""
    folders = (start, *start.parents)
    return next((f for f in folders if any(os.path.lexists(f / mark) for mark in ROOT_MARKS)), start)


def _kind(path: Path) -> str:
    return "a link to nothing" if path.is_symlink() and not path.exists() else "not a file"


def _read_ours(file: Path, label: str | None) -> Content:
    try:
        return _read(file)
    except UnreadableError as exc:
        source = f"{label}: " if label else ""
        if isinstance(exc.__cause__, FileNotFoundError):
            raise KrError(f"{source}{file}: can't be read: No such file or directory") from exc
        raise ConfigError(f"{source}{file} is {exc}; a YAML mapping is expected") from exc


def _read(file: Path) -> Content:
    return parse(read_bytes(file), sections=SECTIONS)


def read_bytes(file: Path) -> bytes:
    """Read a little more than a configuration may have at most. Raises ``UnreadableError``."""
    try:
        with file.open("rb") as stream:
            return stream.read(_LIMIT + 1)
    except ValueError as exc:  # a NUL in the path
        raise UnreadableError("not the path of a file") from exc
    except OSError as exc:
        reasons = {errno.ENOENT: "not there", errno.EISDIR: "a folder, not a file"}
        reason = reasons.get(exc.errno or 0) or f"not readable ({os.strerror(exc.errno or 0)})"
        raise UnreadableError(reason) from exc


def parse(data: bytes, *, sections: Collection[str]) -> Content:
    """Read the named top-level sections; the others may hold what they like, as long as it is YAML.

    An empty file has no sections. Raises ``UnreadableError``.
    """
    import yaml

    if len(data) > _LIMIT:
        raise UnreadableError(f"larger than {_LIMIT} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UnreadableError(f"not UTF-8 text (byte {exc.start})") from exc
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        _check_depth(text, loader)
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UnreadableError(f"not valid YAML{place}: {exc.problem or exc.context}") from exc
    # The Python parser lets the errors of chr() through.
    except (yaml.YAMLError, ValueError, OverflowError) as exc:
        raise UnreadableError(f"not valid YAML: {' '.join(str(exc).split())}") from exc
    if root is None or (isinstance(root, yaml.ScalarNode) and root.tag == _TAG + "null"):
        return Content()
    if not isinstance(root, yaml.MappingNode):
        raise UnreadableError("not a mapping of keys to values")
    builder = _Builder()
    named = [(key, value) for key, value in root.value if isinstance(key, yaml.ScalarNode)]
    wanted = [(key, value) for key, value in named if key.value in sections]
    for key, _ in named:
        if key.value not in sections:
            builder.content.others.append(key.value)
            builder.content.lines[key.value,] = key.start_mark.line + 1
    builder.content.data = builder.mapping(yaml.MappingNode(root.tag, wanted, root.start_mark), ())
    return builder.content


def _check_depth(text: str, loader: "type[yaml.SafeLoader | yaml.CSafeLoader]") -> None:
    """Refuse what the composer, which recurses, could not take."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEPTH:
                raise UnreadableError(f"nested deeper than {_DEPTH}")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


@dataclass(slots=True)
class _Builder:
    content: Content = field(default_factory=Content)
    nodes: int = 0

    def build(self, node: "yaml.Node", path: KeyPath) -> Tree:
        import yaml

        self.nodes += 1
        # Aliases can make little text into endless trees.
        if self.nodes > _NODES or len(path) > _DEPTH:
            raise UnreadableError("too large once its aliases are expanded")
        if node.tag not in _TAGS:
            raise UnreadableError(
                f"not valid in line {node.start_mark.line + 1}: the tag {node.tag[:60]} is not allowed"
            )
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._placed(item, (*path, index)) for index, item in enumerate(node.value)]
        return None if node.tag == _TAG + "null" else str(node.value)

    def mapping(self, node: "yaml.MappingNode", path: KeyPath) -> dict[str, Tree]:
        import yaml

        mapping: dict[str, Tree] = {}
        merged: dict[str, Tree] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise UnreadableError(f"not valid in line {key_node.start_mark.line + 1}: a key must be text")
            if key_node.tag == _TAG + "merge":
                merged = self._merged(value_node, path) | merged
                continue
            key = str(key_node.value)
            if key in mapping:
                self.content.doubles.append((*path, key))
            mapping[key] = self._placed(value_node, (*path, key), line=key_node.start_mark.line + 1)
        return merged | mapping

    def _merged(self, node: "yaml.Node", path: KeyPath) -> dict[str, Tree]:
        value = self.build(node, path)
        merged: dict[str, Tree] = {}
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                raise UnreadableError(f"not valid in line {node.start_mark.line + 1}: << takes mappings only")
            merged = item | merged
        return merged

    def _placed(self, node: "yaml.Node", path: KeyPath, line: int | None = None) -> Tree:
        self.content.lines[path] = line or node.start_mark.line + 1
        return self.build(node, path)
