"""Bounded reading of a project's files: whatever is wrong becomes a warning that names the file."""

import codecs
import json
import os
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import yaml

from kr.text import one_line

T = TypeVar("T")

MAX_BYTES = 16 * 1024 * 1024
"""Lock files of large workspaces reach some ten megabytes."""
MAX_WARNINGS = 50
MAX_MEMBERS = 200
MAX_LEVELS = 6
"""Folders upwards to the root of a repository, or downwards to a workspace's members."""
_MAX_FOLDERS = 4_000
_LONGEST_PATTERN = 200
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


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none when it can't be listed."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 -- names, not paths
    except (OSError, ValueError):
        return []


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes. Raises ``OSError``, and ``ValueError`` for what is larger, or no regular file (a pipe is not waited for)."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES // 1024**2} MiB")
    return data


def decode(data: bytes) -> str:
    """Return a text: UTF-8, or what a byte order mark says (PowerShell writes UTF-16). Raises ``ValueError``."""
    return data.decode(next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8"))


def parse(kind: str, text: str) -> dict[str, Any]:
    """Return the mapping that JSON, TOML or YAML holds. Raises ``ValueError``.

    YAML scalars stay as written. Of several YAML documents the last counts: pnpm 11 and later write what pnpm itself needs as
    a first one into its lock file.
    """
    try:
        if kind == "json":
            parsed = json.loads(text)
        elif kind == "toml":
            parsed = tomllib.loads(text)
        else:
            parsed = [None, *yaml.load_all(text, Loader=yaml.CBaseLoader)][-1]
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise ValueError(f"it is not valid {kind.upper()}: {exc}") from exc
    if not isinstance(parsed, dict):
        raise ValueError("its top level is no mapping")  # noqa: TRY004 -- a fault of the file
    return parsed


def table(data: object, *keys: str) -> dict[str, Any]:
    """Return the mapping under ``keys``; an empty one where there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return {k: v for k, v in data.items() if isinstance(k, str)} if isinstance(data, dict) else {}


def items(data: object, *keys: str) -> list[Any]:
    """Return the list under ``keys``; an empty one where there is none."""
    found = table(data, *keys[:-1]).get(keys[-1])
    return found if isinstance(found, list) else []


def tables(data: object, *keys: str) -> list[dict[str, Any]]:
    """Return the mappings in the list under ``keys``, as a lock file has its packages."""
    return [one for one in items(data, *keys) if isinstance(one, dict)]


def upwards(place: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the root of its repository; without one, the sixth is the last."""
    for folder in [place, *place.parents][:MAX_LEVELS]:
        yield folder
        if os.path.lexists(folder / ".git"):
            return


class Folder:
    """One project folder. Files are named relative to it, with forward slashes.

    ``seen`` holds what was looked at, ``warnings`` a sentence for each file that could not be used, or not wholly, ``members`` the
    folders of the workspace's members that were read; ``above`` are the folders up to the repository's root.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.warnings: list[str] = []
        self.seen: dict[Path, Stamp] = {}
        self.members: set[str] = set()
        places = tuple(upwards(self.root))
        self.saw(*(place / ".git" for place in places))
        self.above = places[1:]

    def saw(self, *paths: Path) -> None:
        """Remember, before they are read, how files or folders are now."""
        for path in paths:
            self.seen.setdefault(path, stamp(path))

    def names(self, place: str = "") -> list[str]:
        """Return the names in this folder or one below, sorted; none when it can't be listed."""
        self.saw(self.root / place)
        return names_in(self.root / place)

    def warn(self, file: str, reason: str) -> None:
        """Remember that ``file`` could not be used, or not wholly."""
        sentence = f"{one_line(file, 200)}: {one_line(reason, 300)}"
        if len(self.warnings) < MAX_WARNINGS and sentence not in self.warnings:
            self.warnings.append(sentence)

    def load(self, file: str, read: Callable[[bytes], T]) -> T | None:
        """Return what ``read`` makes of a file's bytes; None, with a warning unless it is absent, where that can't be done."""
        path = self.root / file
        self.saw(path)
        try:
            if path.resolve().is_relative_to((self.root, *self.above)[-1]):
                return read(read_bytes(path))
            self.warn(file, "it is a link that leads out of the project; it is not read")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, RuntimeError) as exc:
            self.warn(file, (isinstance(exc, OSError) and exc.strerror) or str(exc))
        return None

    def text(self, file: str) -> str:
        """Return the text of ``file``; empty where there is none that can be read."""
        return self.load(file, decode) or ""

    def document(self, file: str, kind: str = "") -> dict[str, Any]:
        """Return the mapping that a JSON, TOML or YAML file holds; empty where there is none that can be read."""
        return self.load(file, lambda data: parse(kind or file.rpartition(".")[2], decode(data))) or {}

    def manifests(self, name: str, patterns: Iterable[object]) -> dict[str, dict[str, Any]]:
        """Return the manifest of this folder and those of the members below that fit the workspace patterns, by file.

        At most ``MAX_MEMBERS``; folders of installed packages and hidden ones are never looked into, symbolic links never
        followed.
        """
        texts = [one for one in patterns if isinstance(one, str) and len(one) <= _LONGEST_PATTERN]
        members = [
            place
            for place in (self._walk() if texts else ())
            if fits(place, texts) and (self.root / place / name).is_file()
        ]
        if len(members) > MAX_MEMBERS:
            self.warn(name, f"the workspace has more than {MAX_MEMBERS} members; the rest is left out")
        self.members |= {*members[:MAX_MEMBERS]}
        files = [name, *(f"{place}/{name}" for place in members[:MAX_MEMBERS])]
        return {file: found for file in files if (found := self.document(file))}

    def inside(self, file: str) -> str | None:
        """Return ``file`` normalised when it lies in this folder, symbolic links included; else None."""
        try:
            real = (self.root / file).resolve()
        except (OSError, ValueError, RuntimeError):
            return None
        return real.relative_to(self.root).as_posix() if real.is_relative_to(self.root) else None

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
    """Tell whether the folder ``name`` fits workspace patterns (``*`` within a name, ``**`` across names); ``!pattern`` takes out."""
    parts = PurePosixPath(name).parts
    found = [one for one in patterns if _fits(parts, PurePosixPath(one.removeprefix("!")).parts)]
    return bool(found) and not any(pattern.startswith("!") for pattern in found)


@lru_cache(maxsize=4096)
def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[at:], pattern[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
