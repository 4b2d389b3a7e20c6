"""Bounded, careful reading of a project's files: whatever is wrong becomes a warning that names the file."""

import codecs
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 32 * 1024 * 1024
"""Lock files of large workspaces reach some ten megabytes."""
MAX_STRUCTURED = 8 * 1024 * 1024
"""Of TOML, YAML and XML, which cost more to parse."""
MAX_WARNINGS = 50
MAX_MEMBERS = 200
MAX_LEVELS = 6
"""Folders upwards to the root of a repository, or downwards to a workspace's members."""
_MAX_FOLDERS = 4_000
_LONGEST_PATTERN = 200
_MOST_STARS = 4
_SKIPPED_FOLDERS = frozenset({"node_modules", "bower_components", "__pycache__", "site-packages"})
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

Stamp = tuple[int, int, int, int] | None


def stamp(path: Path) -> Stamp:
    """Return what changes when a file, or the list of names in a folder, does; None when there is nothing."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class Unreadable(Exception):
    """A file can't be used; the message is the reason, without the file's name."""


def printable(text: str, *, limit: int) -> str:
    """Return ``text`` on one line, odd characters replaced by ``?``, cut at ``limit`` characters."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line)[:limit]


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none when it can't be listed."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 -- names, not paths
    except (OSError, ValueError):
        return []


def read_bytes(path: Path, *, limit: int = MAX_BYTES) -> bytes | None:
    """Return the file's bytes, None when there is no such file.

    Raises ``Unreadable`` for anything but a regular file (a pipe is not waited for), for one over ``limit`` bytes,
    and for what the operating system refuses.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            data = None
        else:
            with path.open("rb") as file:
                data = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as exc:
        raise Unreadable(_reason(exc)) from exc
    if data is None:
        raise Unreadable("it is not a regular file")
    if len(data) > limit:
        raise Unreadable(f"it is larger than {limit // (1024 * 1024)} MiB")
    return data


def decode(data: bytes) -> str:
    """Return a text: UTF-8, or what a byte order mark says (PowerShell writes UTF-16). Raises ``Unreadable``."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise Unreadable(f"it is not {encoding.removesuffix('-sig').upper()} text") from exc


def parse(kind: str, text: str) -> object:
    """Parse JSON, TOML or YAML; raises ``Unreadable``. Of several YAML documents the last counts.

    YAML scalars stay as written. pnpm 11 and later write what pnpm itself needs as a first document into its lock file.
    """
    try:
        if kind == "json":
            parsed: object = json.loads(text)
            return parsed
        if len(text) > MAX_STRUCTURED:
            raise Unreadable(f"it is larger than {MAX_STRUCTURED // 1024**2} MiB")
        if kind == "toml":
            return tomllib.loads(text)
        documents: list[object] = list(yaml.load_all(text, Loader=yaml.CBaseLoader))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as exc:
        raise Unreadable(f"it is not valid {kind.upper()} ({_reason(exc)})") from exc
    return documents[-1] if documents else None


def upwards(place: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the root of its repository; without one, the sixth is the last."""
    for folder in [place, *place.parents][:MAX_LEVELS]:
        yield folder
        if os.path.lexists(folder / ".git"):
            return


class Folder:
    """One project folder. Files are named relative to it, with forward slashes; ``seen`` holds what was looked at.

    ``members`` holds the workspace's members that were read, as ``(kind, folder)``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warnings: list[str] = []
        self.seen: dict[Path, Stamp] = {}
        self.members: set[tuple[str, str]] = set()
        self._documents: dict[str, dict[str, Any] | None] = {}

    def saw(self, *paths: Path) -> None:
        """Remember, before they are read, how files or folders are now."""
        for path in paths:
            if path not in self.seen:
                self.seen[path] = stamp(path)

    def names(self, place: str = "") -> list[str]:
        """Return the names in this folder or one below, sorted; none when it can't be listed."""
        self.saw(self.root / place)
        return names_in(self.root / place)

    def warn(self, file: str, reason: str) -> None:
        """Remember that ``file`` could not be used, or not wholly."""
        sentence = f"{printable(file, limit=200)}: {printable(reason, limit=300)}"
        if len(self.warnings) < MAX_WARNINGS and sentence not in self.warnings:
            self.warnings.append(sentence)

    def data(self, file: str) -> bytes | None:
        """Return the bytes of ``file``; None, with a warning unless it is absent, when it can't be read."""
        path = self.root / file
        self.saw(path)
        try:
            if path.resolve().is_relative_to((self.root.resolve(), *self.above)[-1]):
                return read_bytes(path)
            self.warn(file, "it is a link that leads out of the project; it is not read")
        except (Unreadable, OSError, ValueError, RuntimeError) as exc:
            self.warn(file, _reason(exc))
        return None

    def text(self, file: str) -> str:
        """Return the text of ``file``; empty where ``data`` is None."""
        try:
            return decode(self.data(file) or b"")
        except Unreadable as exc:
            self.warn(file, str(exc))
            return ""

    def document(self, file: str, kind: str = "") -> dict[str, Any] | None:
        """Return the mapping that a JSON, TOML or YAML file holds, read once; None where ``data`` is."""
        if file not in self._documents:
            self._documents[file] = self._document(file, kind or file.rpartition(".")[2])
        return self._documents[file]

    def _document(self, file: str, kind: str) -> dict[str, Any] | None:
        data = self.data(file)
        if data is None:
            return None
        try:
            parsed = parse(kind, decode(data))
        except Unreadable as exc:
            self.warn(file, str(exc))
            return None
        if not isinstance(parsed, dict):
            self.warn(file, f"its top level is {_kind(parsed)}, not a mapping")
        return parsed if isinstance(parsed, dict) else None

    def table(self, file: str, data: dict[str, Any] | None, *keys: str) -> dict[str, Any]:
        """Return the mapping under ``keys``; empty when absent, and with a warning when it is none."""
        value: object = data or {}
        for index, key in enumerate(keys):
            value = value.get(key) if isinstance(value, dict) else None
            if value is None:
                return {}
            if not isinstance(value, dict):
                self.warn(file, f"{'.'.join(keys[: index + 1])} is {_kind(value)}, not a mapping")
        return {k: v for k, v in value.items() if isinstance(k, str)} if isinstance(value, dict) else {}

    def items(self, file: str, data: dict[str, Any] | None, *keys: str) -> list[Any]:
        """Return the list under ``keys``; empty when absent, and with a warning when it is none."""
        value = self.table(file, data, *keys[:-1]).get(keys[-1])
        if value is not None and not isinstance(value, list):
            self.warn(file, f"{'.'.join(keys)} is {_kind(value)}, not a list")
        return value if isinstance(value, list) else []

    def tables(self, file: str, data: dict[str, Any] | None, *keys: str) -> list[dict[str, Any]]:
        """Return the mappings in the list under ``keys``, as a lock file has its packages."""
        return [one for one in self.items(file, data, *keys) if isinstance(one, dict)]

    def manifests(self, kind: str, name: str, patterns: Iterable[object]) -> dict[str, dict[str, Any]]:
        """Return the manifest of this folder and those of the members below that fit the workspace patterns, by file.

        At most ``MAX_MEMBERS``; folders of installed packages and hidden ones are never looked into, symbolic links never
        followed.
        """
        texts = [one for one in patterns if isinstance(one, str) and len(one) <= _LONGEST_PATTERN]
        fitting = (place for place in self._walk() if fits(place, texts)) if texts else iter(())
        members = [place for place in fitting if (self.root / place / name).is_file()]
        if len(members) > MAX_MEMBERS:
            self.warn(name, f"the workspace has more than {MAX_MEMBERS} members; the rest is left out")
        self.members |= {(kind, place) for place in members[:MAX_MEMBERS]}
        files = [name, *(f"{place}/{name}" for place in members[:MAX_MEMBERS])]
        return {file: found for file in files if (found := self.document(file)) is not None}

    def inside(self, file: str) -> str | None:
        """Return ``file`` normalised when it lies in this folder, symbolic links included; else None."""
        try:
            real, base = (self.root / file).resolve(), self.root.resolve()
        except (OSError, ValueError, RuntimeError):
            return None
        return real.relative_to(base).as_posix() if real.is_relative_to(base) else None

    @cached_property
    def above(self) -> tuple[Path, ...]:
        """The folders above, the repository's root the last; without a repository some of them."""
        places = tuple(upwards(self.root.resolve()))
        self.saw(*(place / ".git" for place in places))
        return places[1:]

    def _walk(self) -> Iterator[str]:
        """Yield the folders below, at most ``_MAX_FOLDERS``, five levels down."""
        seen = 0
        for path, folders, _ in os.walk(self.root, followlinks=False):
            place = Path(path)
            self.saw(place)
            is_deepest = len(place.relative_to(self.root).parts) >= MAX_LEVELS - 1
            wanted = [f for f in sorted(folders) if not f.startswith(".") and f not in _SKIPPED_FOLDERS]
            folders[:] = [] if is_deepest or seen > _MAX_FOLDERS else wanted
            seen += len(folders)
            for name in folders:
                if not (place / name).is_symlink():
                    yield (place / name).relative_to(self.root).as_posix()


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether the folder ``name`` fits workspace patterns; ``!pattern`` takes out."""
    found = [pattern for pattern in patterns if _glob(pattern.removeprefix("!")).fullmatch(f"{name}/")]
    return bool(found) and not any(pattern.startswith("!") for pattern in found)


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    """Translate a workspace pattern, for names that end with ``/``: ``*`` within a name, ``**`` across names."""
    if pattern.count("*") > _MOST_STARS:  # each multiplies the work of a mismatch
        return re.compile(r"(?!)")
    parts = [re.escape(part) for part in pattern.split("/") if part not in {"", "."}]
    across = ("(?:[^/]+/)*" if part == r"\*\*" else part.replace(r"\*", "[^/]*") + "/" for part in parts)
    return re.compile("".join(across))


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _reason(exc: Exception) -> str:
    if isinstance(exc, OSError):
        return exc.strerror or type(exc).__name__
    if isinstance(exc, RecursionError):
        return "nested too deeply"
    return printable(str(exc), limit=120)
