"""What of a project's configuration takes effect only once the user trusts its file.

A cloned repository brings its own ``kr.yaml``. Programs to start, variables to expand, keys, endpoints, private addresses and
folders outside of the project are left out of it until ``kr trust``: else opening a folder would run its programs and hand
out keys. The user's own file, and one that ``--config`` or ``KR_CONFIG`` names, need no trust. Trust is remembered for one
path with one content: who changes a file makes it untrusted again.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from kr.errors import KrError
from kr.settings.project import MAIN_SECTION, ConfigFile, user_folder
from kr.source_kinds import DEFAULT_SERVERS
from kr.text import digest
from kr.yaml_io import KeyPath, Tree, show_path

_GUARDED = (
    *(("web_search", key) for key in ("url", "api_key_env", "allow_private_addresses")),
    *(("llm", key) for key in ("base_url", "api_key_env")),
)
_IS_OFF = frozenset({"false", "no", "off"})


def guarded(data: Mapping[str, Tree]) -> Iterator[tuple[KeyPath, Tree]]:
    """Yield the settings that need trust, each with what it says; a server is one. The shipped servers need none."""
    section = data.get(MAIN_SECTION)
    if not isinstance(section, dict):
        return
    sources = section.get("sources")
    if any(map(_is_outside, sources if isinstance(sources, list) else ())):
        yield (MAIN_SECTION, "sources"), sources
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
    ways = (
        {key: one for key, one in server.items() if one and key != "type"}
        if isinstance(server, dict)
        else None
    )
    return ways in ({}, {"url": DEFAULT_SERVERS.get(name)})


def _is_outside(source: Tree) -> bool:
    """Tell a source that reads a folder outside of the project: its texts go into reports."""
    folder = source.get("folder") if isinstance(source, dict) else None
    if not isinstance(folder, str):
        return False
    is_absolute = folder.startswith(("/", "~", "$", "{output_folder}"))
    return is_absolute or ".." in folder.replace("\\", "/").split("/")


def shown(path: KeyPath, value: Tree) -> str:
    """Show a setting as it is read, in one line and in ASCII: aliases, folded text and look-alike letters hide nothing."""
    return f"{show_path(path)}: {json.dumps(value)}"


def leave_out(file: ConfigFile, setting: KeyPath) -> None:
    """Take a setting out of what was read."""
    data: Tree = file.data
    for step in setting[:-1]:
        data = data.get(str(step)) if isinstance(data, dict) else None
    if isinstance(data, dict):
        del data[str(setting[-1])]
    for path in [path for path in file.lines if path[: len(setting)] == setting]:
        del file.lines[path]


def is_trusted(file: ConfigFile, environ: Mapping[str, str]) -> bool:
    """Tell whether the user trusts a file with this content."""
    known = _digests(environ)
    try:
        lines = known.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if known else []
    except OSError:
        return False
    return any(line.split(" ", 1)[0] == _digest(file) for line in lines)


def trust(file: ConfigFile, environ: Mapping[str, str]) -> None:
    """Remember that the user trusts a file as long as it has this content. Raises ``KrError``."""
    known = _digests(environ)
    if known is None:
        raise KrError("there is no home folder (HOME) to remember trusted files in")
    try:
        known.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with known.open("a", encoding="utf-8") as stream:
            stream.write(f"{_digest(file)} {json.dumps(str(file.path))}\n")
    except OSError as error:
        raise KrError(f"{known}: can't be written: {error.strerror}") from error


def _digests(environ: Mapping[str, str]) -> Path | None:
    folder = user_folder(environ, "XDG_STATE_HOME", ".local/state")
    return folder / "kr" / "trusted" if folder else None


def _digest(file: ConfigFile) -> str:
    return digest(os.fsencode(f"{file.path.resolve()}\0{file.sha256}"))
