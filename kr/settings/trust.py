"""What of a project's configuration takes effect only once the user trusts its file, and the user's own file (SPEC 7).

A cloned repository brings its own ``kr.yaml``. Programs to start, variables to expand, keys, endpoints and private addresses
are left out of it until ``kr trust`` was asked: else opening a folder would run its programs and hand out keys. The user's
own file, and one that ``--config`` or ``KR_CONFIG`` names, need no trust. A line of the file of trusted digests stands for
one path with one content: who changes a file makes it untrusted again.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kr.errors import KrError
from kr.naming import sha256_of
from kr.settings import DIGESTS, OWN_FILE, user_folder
from kr.source_kinds import DEFAULT_SERVERS
from kr.tree import KeyPath, Tree, show_path

_MAIN = "knowledge_research"
_GUARDED = {
    "web_search": ("url", "api_key_env", "allow_private_addresses"),
    "llm": ("base_url", "api_key_env"),
}
_WAYS = ("url", "command", "args", "env", "headers")
_IS_OFF = frozenset({"false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Guarded:
    """A setting that needs trust: the path of its key, and what the file says there."""

    path: KeyPath
    value: Tree

    def line(self) -> str:
        """Show it as it is read, in one line and in ASCII: aliases, folded text and look-alike letters hide nothing."""
        return f"{show_path(self.path)}: {json.dumps(self.value)}"


def guarded(data: Mapping[str, Tree]) -> Iterator[Guarded]:
    """Yield the settings that need trust; a server is one setting. The shipped servers, written out unchanged, need none."""
    section = data.get(_MAIN)
    if not isinstance(section, dict):
        return
    sources = section.get("sources")
    if any(map(_is_outside, sources if isinstance(sources, list) else ())):
        yield Guarded((_MAIN, "sources"), sources)
    servers = section.get("servers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        if isinstance(server, dict) and not _is_shipped(name, server):
            yield Guarded((_MAIN, "servers", name), server)
    for name, keys in _GUARDED.items():
        values = section.get(name)
        if not isinstance(values, dict):
            continue
        for key in keys:
            value = values.get(key)
            if value is not None and not (isinstance(value, str) and value.lower() in _IS_OFF):
                yield Guarded((_MAIN, name, key), value)


def _is_outside(source: Tree) -> bool:
    """Tell a source that reads a folder outside of the project: its texts go into reports."""
    folder = source.get("folder") if isinstance(source, dict) else None
    if not isinstance(folder, str):
        return False
    return folder.startswith(("/", "~", "$", "{output_folder}")) or ".." in folder.replace("\\", "/").split(
        "/"
    )


def _is_shipped(name: str, server: Mapping[str, Tree]) -> bool:
    written = {key: server[key] for key in _WAYS if server.get(key)}
    return written in ({}, {"url": DEFAULT_SERVERS.get(name)})


def leave_out(data: Tree, path: KeyPath) -> None:
    """Take a setting out of the data. Two paths may lead to one mapping: an alias."""
    for step in path[:-1]:
        data = data.get(str(step)) if isinstance(data, dict) else None
    if isinstance(data, dict):
        data.pop(str(path[-1]), None)


def merge(below: Tree, above: Tree, path: KeyPath = ()) -> Tree:
    """Lay one configuration over another, key by key; a server is one key, so that no file gets another one's headers."""
    is_server = len(path) == 3 and path[:2] == (_MAIN, "servers")
    if is_server or not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    both = {key: merge(below[key], above[key], (*path, key)) for key in above if key in below}
    return {**below, **above, **both}


def own_file(environ: Mapping[str, str]) -> Path | None:
    """Return where the user's own configuration would be; None without a home."""
    folder = user_folder(environ, "XDG_CONFIG_HOME", ".config")
    return Path(folder, OWN_FILE) if folder else None


def digests_file(environ: Mapping[str, str]) -> Path | None:
    """Return where the digests of trusted files would be kept; None without a home."""
    folder = user_folder(environ, "XDG_STATE_HOME", ".local/state")
    return Path(folder, DIGESTS) if folder else None


def is_trusted(file: Path, content: str, environ: Mapping[str, str]) -> bool:
    """Tell whether the user trusts a file with this content, of which ``content`` is the SHA-256."""
    known = digests_file(environ)
    try:
        lines = known.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if known else []
    except OSError:
        return False
    return any(line.split(" ", 1)[0] == _digest(file, content) for line in lines)


def trust(file: Path, content: str, environ: Mapping[str, str]) -> None:
    """Remember that the user trusts a file as long as it has this content. Raises ``KrError``."""
    known = digests_file(environ)
    if known is None:
        raise KrError("there is no home folder (HOME) to remember trusted files in")
    try:
        known.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with known.open("a", encoding="utf-8") as stream:
            stream.write(f"{_digest(file, content)} {json.dumps(str(file))}\n")
    except OSError as error:
        raise KrError(f"{known}: can't be written: {error.strerror}") from error


def _digest(file: Path, content: str) -> str:
    return sha256_of(os.fsencode(f"{os.path.realpath(file)}\0{content}"))
