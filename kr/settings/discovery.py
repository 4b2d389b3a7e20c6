"""Finds the configuration file and its project (SPEC 7), and reads its sections as nested text, with the line of each key.

Scalars are the text that was written. Anchors, aliases and merge keys are read: the user wrote it. ``KR_CIRCUIT_BREAKER__FAILURES``
overrides ``knowledge_research.circuit_breaker.failures``; empty counts as not set, ``null`` is null. A list is YAML, JSON or words
separated by commas; a mapping is YAML or JSON and replaces the file's.
"""

import errno
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kr.errors import ConfigError, InvalidRequest, KrError
from kr.naming import sha256_of
from kr.settings import ANYBODYS, OURS, ROOT_MARKS
from kr.tree import KeyPath, Tree, read_document
from kr.yamltext import read_sections

MAIN_SECTION = "knowledge_research"
SECTIONS = frozenset({MAIN_SECTION, "role_mapping", "defaults", "e2e_inspection", "output_folder"})
_LIMIT = 1024 * 1024
_DEPTH = 64
_NOUN = "it"


class UnreadableError(Exception):
    """The bytes are no configuration; the message says why, with the line where one is known."""


@dataclass(slots=True)
class Content:
    """``data`` holds the wanted sections that stand in the file, ``others`` names the rest; ``lines`` count from 1."""

    data: dict[str, Tree] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    doubles: list[KeyPath] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """``file`` is absolute, or None when there is none; ``root`` is the project root, resolved."""

    file: Path | None
    root: Path
    content: Content
    warnings: tuple[str, ...] = ()
    is_named: bool = False
    """``--config`` or ``KR_CONFIG`` named the file."""


def find_config(*, config: Path | None, environ: Mapping[str, str], cwd: Path) -> Found:
    """Read the file that ``--config`` or ``KR_CONFIG`` names, else the nearest upward. Raises ``ConfigError`` where ours can't be read."""
    named = config
    label = "--config"
    if named is None and environ.get("KR_CONFIG"):
        named, label = Path(environ["KR_CONFIG"]), "KR_CONFIG"
    if named is not None:
        file = locate(named, environ, cwd)
        return Found(file, project_root(file), _read_ours(file, label), is_named=True)
    return _search(cwd)


def read_own(file: Path | None) -> Content:
    """Read the user's own configuration, empty where there is none. Raises ``ConfigError``."""
    return _read_ours(file, None) if file is not None and os.path.lexists(file) else Content()


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
    for folder in (cwd, *cwd.parents):
        for name in (*OURS, ANYBODYS):
            is_ours = name in OURS
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
    """Read the named top-level sections; the others may hold any YAML. Raises ``UnreadableError``."""
    if len(data) > _LIMIT:
        raise UnreadableError(f"larger than {_LIMIT} bytes")
    try:
        found = read_sections(data.decode("utf-8-sig"), sections, noun=_NOUN, depth=_DEPTH)
    except UnicodeDecodeError as exc:
        raise UnreadableError(f"not UTF-8 text (byte {exc.start})") from exc
    except InvalidRequest as exc:
        problem = exc.fields[0].message.removeprefix(f"{_NOUN} is broken: ")
        raise UnreadableError(f"not valid YAML: {problem}") from exc
    tree = {} if found.tree is None else found.tree
    if not isinstance(tree, dict):
        raise UnreadableError("not a mapping of keys to values")
    return Content(
        data={name: tree[name] for name in tree if name in sections},
        lines={path: place.line for path, place in found.places.items()},
        doubles=[path for path in found.repeated if path and path[0] in sections],
        others=[name for name in tree if name not in sections],
        sha256=sha256_of(data),
    )


PREFIX = "KR_"
OWN_NAMES = frozenset(
    {
        "KR_CONFIG",
        "KR_DATABASE_URL",
        "KR_FORMAT",
        "KR_OUTPUT",
        "KR_PHASE",
        "KR_PYTHON",
        "KR_SERVER",
        "KR_STORY_KEY",
        "KR_TOKEN",
        "KR_REVIEW_TOKEN",
        "KR_VENV",
    }
)
"""Variables that are no keys: kr's own, and those of the scripts in the repository."""

MAPPINGS = frozenset({"aliases", "circuit_breaker", "repositories", "servers", "web_search", "llm"})
LISTS = frozenset({"sources", "phases"})
_SERVER_MAPPINGS = frozenset({"headers", "env"})
_NAME = re.compile(r"KR_[A-Z0-9]+(?:_[A-Z0-9]+)*(?:__[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*)*")


class Override(NamedTuple):
    """One variable: the path of its key below ``knowledge_research``, and its value or what is wrong."""

    name: str
    path: KeyPath
    value: Tree = None
    problem: str | None = None


def read_overrides(environ: Mapping[str, str]) -> tuple[Override, ...]:
    found = (_override(name, text) for name, text in environ.items() if _is_override(name, text))
    return tuple(sorted(found, key=lambda override: (len(override.path), override.name)))


def name_of(path: KeyPath) -> str:
    return PREFIX + "__".join(str(step).upper() for step in path)


def _is_override(name: str, text: str) -> bool:
    return name.startswith(PREFIX) and name not in OWN_NAMES and bool(text.strip())


def path_of(name: str) -> KeyPath:
    """Return the path below ``knowledge_research`` that a variable means: lower case, but for ``servers.NAME.env``."""
    steps = name.removeprefix(PREFIX).split("__")
    lower = [step.lower() for step in steps]
    if lower[0] == "servers" and lower[2:3] == ["env"]:
        return (*lower[:3], *steps[3:])
    return tuple(lower)


def _override(name: str, text: str) -> Override:
    # A name in another case is a key that nobody knows, so that it gets the warning.
    path = path_of(name) if _NAME.fullmatch(name) else (name,)
    try:
        return Override(name, path, _value(path, text.strip()))
    except UnreadableError as exc:
        return Override(name, path, problem=str(exc))


def _value(path: KeyPath, text: str) -> Tree:
    if text in {"null", "~"}:
        return None
    if _is_mapping(path):
        value = _flow(text, "{failures: 3}") if text.startswith("{") else text
        if not isinstance(value, dict):
            raise UnreadableError("must be a mapping such as {key: value}")
        return value
    if _is_list(path):
        value = _flow(text, "[one, two]") if text.startswith("[") else list(_words(text))
        if not isinstance(value, list):
            raise UnreadableError("must be a list such as [one, two], or words separated by commas")
        return value
    return text


def _is_mapping(path: KeyPath) -> bool:
    if path[0] == "servers" and len(path) > 1:
        return len(path) == 2 or (len(path) == 3 and path[2] in _SERVER_MAPPINGS)
    return len(path) == 1 and path[0] in MAPPINGS


def _is_list(path: KeyPath) -> bool:
    return (len(path) == 1 and path[0] in LISTS) or (path[0] == "servers" and path[2:] == ("args",))


def _flow(text: str, example: str) -> Tree:
    # The reader's own words could quote a secret.
    problem = UnreadableError(f"is not a YAML or JSON value such as {example}, each key once")
    try:
        document = read_document(f'{{"value": {text}}}'.encode("utf-8", "surrogateescape"))
    except InvalidRequest as exc:
        raise problem from exc
    if document.warnings or len(document.data) != 1:
        raise problem
    return document.data["value"]


def _words(text: str) -> Iterator[str]:
    return (word for part in text.split(",") if (word := part.strip()))
