"""Bounded, careful reading of a project's files: whatever is wrong becomes a warning, never an exception."""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from kr.packages.model import printable
from kr.packages.witness import saw_file, saw_names, saw_place

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_BYTES = 32 * 1024 * 1024
"""Lock files of large workspaces reach some ten megabytes."""
MAX_YAML_BYTES = 8 * 1024 * 1024
MAX_XML_CHARACTERS = 4 * 1024 * 1024
MAX_WARNINGS = 50
MAX_MEMBERS = 200
_MAX_DEPTH = 5
_MAX_FOLDERS = 4_000
_SKIPPED_FOLDERS = frozenset({"node_modules", "bower_components", "__pycache__", "site-packages"})


class Unreadable(Exception):
    """A file can't be used; the message is the reason, without the file's name."""


def read_bytes(path: Path, *, limit: int) -> bytes | None:
    """Return the file's bytes, None when there is no such file.

    Raises ``Unreadable`` for anything but a regular file, for one over ``limit`` bytes, and for what the
    operating system refuses.
    """
    saw_file(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as exc:
        raise Unreadable(_reason(exc)) from exc
    try:
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unreadable("it is not a regular file")
            data = file.read(limit + 1)
    except IsADirectoryError as exc:
        raise Unreadable("it is not a regular file") from exc
    except OSError as exc:
        raise Unreadable(_reason(exc)) from exc
    if len(data) > limit:
        raise Unreadable(f"it is larger than {limit // (1024 * 1024)} MiB")
    return data


def read_text(path: Path, *, limit: int = MAX_BYTES) -> str | None:
    """Return the file's text (UTF-8, a byte order mark dropped), None when there is no such file."""
    data = read_bytes(path, limit=limit)
    if data is None:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise Unreadable("it is not UTF-8 text") from exc


def parse_json(text: str) -> object:
    """Parse JSON; raises ``Unreadable``."""
    import json

    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise Unreadable(f"it is not valid JSON ({_reason(exc)})") from exc
    return parsed


def parse_toml(text: str) -> object:
    """Parse TOML; raises ``Unreadable``."""
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as exc:
        raise Unreadable(f"it is not valid TOML ({_reason(exc)})") from exc


def parse_yaml(text: str) -> object:
    """Parse YAML with every scalar as text, of several documents the last; raises ``Unreadable``.

    pnpm 11 and later write what pnpm itself needs as a first document into pnpm-lock.yaml.
    """
    import yaml

    if len(text) > MAX_YAML_BYTES:
        raise Unreadable(f"it is larger than {MAX_YAML_BYTES // (1024 * 1024)} MiB")
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        # BaseLoader builds plain text, lists and mappings alone.
        documents: list[object] = list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as exc:
        raise Unreadable("it is not valid YAML") from exc
    if len(documents) > 1:
        return documents[-1] or {}
    return documents[0] if documents else None


def parse_xml(text: str) -> "Element":
    """Parse XML without a document type declaration, namespaces dropped; raises ``Unreadable``."""
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    if len(text) > MAX_XML_CHARACTERS:
        raise Unreadable(f"it is larger than {MAX_XML_CHARACTERS // 1024**2} MiB")
    try:
        # Without its declaration the text is read as what it is, whatever encoding it claims.
        root: Element = fromstring(re.sub(r"^\s*<\?xml[^>]{0,200}\?>", "", text), forbid_dtd=True)
    except DefusedXmlException as exc:
        raise Unreadable(
            "it has a document type declaration, which it does not need; it is not read"
        ) from exc
    except (ParseError, ValueError, RecursionError) as exc:
        raise Unreadable(f"it is not valid XML ({exc})") from exc
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    return root


_PARSERS = {"json": parse_json, "toml": parse_toml, "yaml": parse_yaml}


class Folder:
    """One project folder. Files are named relative to it, with forward slashes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warnings: list[str] = []
        self._folders: list[str] | None = None

    def warn(self, file: str, reason: str) -> None:
        """Remember that ``file`` could not be used, or not wholly."""
        sentence = f"{printable(file, limit=200)}: {printable(reason, limit=300)}"
        if len(self.warnings) < MAX_WARNINGS and sentence not in self.warnings:
            self.warnings.append(sentence)

    def text(self, file: str) -> str | None:
        """Return the text of ``file``; None, with a warning unless it is absent, when it can't be read."""
        try:
            return read_text(self.root / file)
        except Unreadable as exc:
            self.warn(file, str(exc))
            return None

    def document(self, file: str, kind: str | None = None) -> dict[str, Any] | None:
        """Return the mapping that a JSON, TOML or YAML file holds; None as in ``text``."""
        text = self.text(file)
        if text is None:
            return None
        try:
            parsed = _PARSERS[kind or file.rpartition(".")[2]](text)
        except Unreadable as exc:
            self.warn(file, str(exc))
            return None
        if not isinstance(parsed, dict):
            self.warn(file, f"its top level is {_kind(parsed)}, not a mapping")
            return None
        return parsed

    def xml(self, file: str) -> "Element | None":
        """Return the root of an XML file, its tags without namespaces; None as in ``text``."""
        text = self.text(file)
        try:
            return None if text is None else parse_xml(text)
        except Unreadable as exc:
            self.warn(file, str(exc))
            return None

    def table(self, file: str, data: dict[str, Any], *keys: str) -> dict[str, Any]:
        """Return the mapping under ``keys``; empty when absent, and with a warning when it is none."""
        value: object = data
        for index, key in enumerate(keys):
            value = value.get(key) if isinstance(value, dict) else None
            if value is None:
                return {}
            if not isinstance(value, dict):
                self.warn(file, f"{'.'.join(keys[: index + 1])} is {_kind(value)}, not a mapping")
                return {}
        return {k: v for k, v in value.items() if isinstance(k, str)} if isinstance(value, dict) else {}

    def items(self, file: str, data: dict[str, Any], *keys: str) -> list[Any]:
        """Return the list under ``keys``; empty when absent, and with a warning when it is none."""
        table = self.table(file, data, *keys[:-1]) if keys[:-1] else data
        value = table.get(keys[-1])
        if value is None:
            return []
        if not isinstance(value, list):
            self.warn(file, f"{'.'.join(keys)} is {_kind(value)}, not a list")
            return []
        return value

    def members(self, patterns: Iterable[object], manifest: str) -> list[str]:
        """Return the folders below this one that fit the workspace patterns and hold ``manifest``.

        ``!pattern`` takes out. At most ``MAX_MEMBERS``; folders of installed packages and hidden folders
        are never looked into, symbolic links never followed.
        """
        wanted, refused = _globs(patterns)
        if not wanted:
            return []
        found = [
            name
            for name in self._all_folders()
            if _fits(name, wanted, refused) and (self.root / name / manifest).is_file()
        ]
        if len(found) > MAX_MEMBERS:
            self.warn(manifest, f"the workspace has more than {MAX_MEMBERS} members; the rest is left out")
        return found[:MAX_MEMBERS]

    def above(self) -> Iterator[tuple[str, str]]:
        """Yield the folders that a workspace's root may be, nearest first: ``("../../", "packages/app")``.

        The first text leads there, the second is this folder's name from there. The root of a repository
        (the folder with ``.git``) is the last; without one, the fifth.
        """
        try:
            place = self.root.resolve()
        except (OSError, RuntimeError):
            return
        names: list[str] = []
        while len(names) < _MAX_DEPTH and place != place.parent and not os.path.lexists(place / ".git"):
            saw_place(place / ".git")
            names.insert(0, place.name)
            place = place.parent
            yield "../" * len(names), "/".join(names)

    def inside(self, file: str) -> str | None:
        """Return ``file`` normalised when it lies in this folder, symbolic links included; else None."""
        try:
            real = (self.root / file).resolve()
            base = self.root.resolve()
        except (OSError, ValueError, RuntimeError):
            return None
        return real.relative_to(base).as_posix() if real.is_relative_to(base) else None

    def _all_folders(self) -> list[str]:
        if self._folders is None:
            self._folders = list(_walk(self.root))
        return self._folders


def _walk(root: Path) -> Iterator[str]:
    seen = 0
    for path, folders, _ in os.walk(root, followlinks=False):
        saw_names(path)
        relative = PurePosixPath(Path(path).relative_to(root).as_posix())
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED_FOLDERS)
        if len(relative.parts) >= _MAX_DEPTH:
            folders[:] = []
        for name in folders:
            if not (Path(path) / name).is_symlink():
                seen += 1
                if seen > _MAX_FOLDERS:
                    return
                yield (relative / name).as_posix()


def _glob(pattern: str) -> re.Pattern[str]:
    """Translate a workspace pattern: ``*`` within a name, ``**`` across names, ``{a,b}`` not supported."""
    parts = [p for p in pattern.replace("\\", "/").split("/") if p not in {"", "."}]
    out = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            out += ".*" if last else "(?:[^/]+/)*"
            continue
        name = re.sub(r"\*+", "*", part)
        out += "".join("[^/]*" if c == "*" else "[^/]" if c == "?" else re.escape(c) for c in name)
        out += "" if last else "/"
    return re.compile(out)


def fits(name: str, patterns: Iterable[object]) -> bool:
    """Tell whether the folder ``name`` fits workspace patterns as in ``Folder.members``."""
    return _fits(name, *_globs(patterns))


def _globs(patterns: Iterable[object]) -> tuple[list[re.Pattern[str]], list[re.Pattern[str]]]:
    """Return the patterns of what is meant, and of what ``!`` takes out."""
    wanted: list[re.Pattern[str]] = []
    refused: list[re.Pattern[str]] = []
    for pattern in patterns:
        # Each star multiplies the work of a mismatch.
        if isinstance(pattern, str) and len(pattern) <= 200 and len(re.findall(r"\*+", pattern)) <= 4:
            into, text = (refused, pattern[1:]) if pattern.startswith("!") else (wanted, pattern)
            into.append(_glob(text))
    return wanted, refused


def _fits(name: str, wanted: list[re.Pattern[str]], refused: list[re.Pattern[str]]) -> bool:
    return any(p.fullmatch(name) for p in wanted) and not any(p.fullmatch(name) for p in refused)


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _reason(exc: Exception) -> str:
    if isinstance(exc, OSError):
        return exc.strerror or type(exc).__name__
    if isinstance(exc, RecursionError):
        return "nested too deeply"
    return printable(str(exc), limit=120)
