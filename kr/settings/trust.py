"""What of a project's configuration takes effect only once the user trusts its file.

A cloned repository brings its own ``kr.yaml``. Programs to start, variables to expand, keys, endpoints, private addresses,
folders and a knowledge base outside of the project are left out of it until ``kr trust``: else opening a folder would run its
programs, hand out keys, and read and replace what other projects know. The user's own file, and one that ``--config`` or
``KR_CONFIG`` names, need no trust. Trust is remembered for one path with one content, and for the folders that it leads to: who
changes the file or a link makes it untrusted again.
"""

import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from kr.errors import KrError
from kr.models import DEFAULT_SERVERS
from kr.settings.project import MAIN_SECTION, Project, fill, locate, output_folder, user_folder
from kr.text import KeyPath, Tree, digest, show_path

_GUARDED = (
    *(("web_search", key) for key in ("url", "api_key_env", "allow_private_addresses")),
    *(("llm", key) for key in ("base_url", "api_key_env")),
)
_IS_OFF = frozenset({"false", "no", "off"})


def guarded(project: Project, environ: Mapping[str, str]) -> Iterator[tuple[KeyPath, Tree]]:
    """Yield the settings of a project's file that need trust, each with what it says; a server is one. The shipped servers need none."""
    section = _section(project)
    for name in dict.fromkeys(name for name, _ in _outside(project, environ)):
        yield (MAIN_SECTION, name), section[name]
    servers = section.get("servers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        if server is not None and not _is_shipped(name, server):
            yield (MAIN_SECTION, "servers", name), server
    for name, key in _GUARDED:
        values = section.get(name)
        value = values.get(key) if isinstance(values, dict) else None
        if value is not None and str(value).lower() not in _IS_OFF:
            yield (MAIN_SECTION, name, key), value


def _is_shipped(name: str, server: Tree) -> bool:
    if not isinstance(server, dict):
        return False
    ways = {key: one for key, one in server.items() if one and key != "type"}
    return ways in ({}, {"url": DEFAULT_SERVERS.get(name)})


def _section(project: Project) -> dict[str, Tree]:
    section = project.file.data.get(MAIN_SECTION) if project.file is not None else None
    return section if isinstance(section, dict) else {}


def _outside(project: Project, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the keys that name a folder outside of the project, and where it is: texts go from there into reports, or are replaced."""
    section = _section(project)
    sources = section.get("sources")
    for source in sources if isinstance(sources, list) else ():
        folder = source.get("folder") if isinstance(source, dict) else None
        if isinstance(folder, str) and (place := _outer(project, folder, project.root, environ)) is not None:
            yield "sources", place
    base = section.get("knowledge_base_path")
    if isinstance(base, str) and base.strip():
        written = project.file.data.get("output_folder") if project.file is not None else None
        output = partial(output_folder, project.root, written, environ, lambda _: None)
        start = project.base or project.root
        if (place := _outer(project, fill(base, start, output), start, environ)) is not None:
            yield "knowledge_base_path", place


def _outer(project: Project, folder: str, start: Path, environ: Mapping[str, str]) -> str | None:
    """Return where a folder is that lies outside of the project, or can't be told; links are followed."""
    try:
        place = locate(Path(folder), environ, start).resolve()
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
        return folder
    return None if project.holds(place) else str(place)


def shown(path: KeyPath, value: Tree) -> str:
    """Show a setting as it is read, in one line and in ASCII: aliases, folded text and look-alike letters hide nothing."""
    return f"{show_path(path)}: {json.dumps(value)}"


def is_trusted(project: Project, environ: Mapping[str, str]) -> bool:
    """Tell whether the user trusts a project's file with this content."""
    known = _digests(environ)
    try:
        lines = known.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if known else []
    except OSError:
        return False
    own = _digest(project, environ)
    return any(line.split(" ", 1)[0] == own for line in lines)


def trust(project: Project, environ: Mapping[str, str]) -> None:
    """Remember that the user trusts a project's file as long as it has this content. Raises ``KrError``."""
    known = _digests(environ)
    if known is None:
        raise KrError("there is no home folder (HOME) to remember trusted files in")
    try:
        known.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with known.open("a", encoding="utf-8") as stream:
            path = str(project.file.path) if project.file is not None else ""
            stream.write(f"{_digest(project, environ)} {json.dumps(path)}\n")
    except OSError as error:
        raise KrError(f"{known}: can't be written: {error.strerror}") from error


def _digests(environ: Mapping[str, str]) -> Path | None:
    folder = user_folder(environ, "XDG_STATE_HOME", ".local/state")
    return folder / "kr" / "trusted" if folder else None


def _digest(project: Project, environ: Mapping[str, str]) -> str:
    file = project.file
    told = [] if file is None else [str(file.path.resolve()), file.sha256]
    places = [place for _, place in _outside(project, environ)]
    return digest(os.fsencode("\0".join([*told, *places])))
