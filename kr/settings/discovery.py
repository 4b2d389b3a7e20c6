"""Finds the configuration file and the project it belongs to (SPEC 7)."""

import errno
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kr.errors import ConfigError
from kr.settings.tree import Content, UnreadableError, parse

MAIN_SECTION = "knowledge_research"
SECTIONS = frozenset({MAIN_SECTION, "role_mapping", "defaults", "e2e_inspection", "output_folder"})
_SIZE = 1024 * 1024
_OURS = ("kr.yaml", "_bmad/bso/config.yaml")
_ANYBODYS = "config.yaml"


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
    return Found(None, start, Content(), tuple(warnings))


def _kind(path: Path) -> str:
    return "a link to nothing" if path.is_symlink() and not path.exists() else "no file"


def _read_ours(file: Path, label: str | None) -> Content:
    try:
        return _read(file)
    except UnreadableError as exc:
        source = f"{label}: " if label else ""
        raise ConfigError(f"{source}{file} is {exc}; a YAML mapping is expected") from exc


def _read(file: Path) -> Content:
    return parse(read_bytes(file), sections=SECTIONS)


def read_bytes(file: Path) -> bytes:
    """Read a little more than a configuration may have at most. Raises ``UnreadableError``."""
    try:
        with file.open("rb") as stream:
            return stream.read(_SIZE + 1)
    except ValueError as exc:  # a NUL in the path
        raise UnreadableError("no path of a file") from exc
    except OSError as exc:
        reasons = {errno.ENOENT: "not there", errno.EISDIR: "a folder, no file"}
        reason = reasons.get(exc.errno or 0) or f"not readable ({os.strerror(exc.errno or 0)})"
        raise UnreadableError(reason) from exc
