"""Expands ``${NAME}`` from the environment in the servers and URLs (SPEC 7)."""

import re
from collections.abc import Mapping

from kr.documents import KeyPath, Tree
from kr.settings.discovery import MAIN_SECTION
from kr.settings.raw import Problem, RawSettings

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand_variables(raw: RawSettings, environ: Mapping[str, str]) -> None:
    """Expand ``${NAME}`` and ``${NAME:-default}`` in the headers, environments and URLs (SPEC 7).

    A URL without its variable is a problem. A header or a variable of a server is left out with a
    warning instead: Context7 and its like answer without a key too, and a file that a team shares must
    serve the member who has none. A variable that is empty counts as missing.
    """
    section = raw.data.get(MAIN_SECTION)
    if not isinstance(section, dict):
        return
    for name in ("web_search", "llm", "embeddings"):
        _expand_urls(raw, section.get(name), (MAIN_SECTION, name), environ)
    servers = section.get("servers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        path: KeyPath = (MAIN_SECTION, "servers", name)
        _expand_urls(raw, server, path, environ)
        for group in ("headers", "env"):
            texts = server.get(group) if isinstance(server, dict) else None
            if isinstance(texts, dict):
                _expand_or_drop(raw, texts, (*path, group), environ)


def _expand_urls(raw: RawSettings, mapping: Tree, path: KeyPath, environ: Mapping[str, str]) -> None:
    for key in ("url", "base_url"):
        value = mapping.get(key) if isinstance(mapping, dict) else None
        if isinstance(mapping, dict) and isinstance(value, str):
            mapping[key], missing = substitute(value, environ)
            if missing:
                raw.problems.append(Problem((*path, key), _needs(missing)))


def _expand_or_drop(
    raw: RawSettings, texts: dict[str, Tree], path: KeyPath, environ: Mapping[str, str]
) -> None:
    for key, value in list(texts.items()):
        if not isinstance(value, str):
            continue
        texts[key], missing = substitute(value, environ)
        if missing:
            del texts[key]
            raw.warnings.append(f"{raw.sentence(Problem((*path, key), _needs(missing)))}; it is left out")


def _needs(missing: list[str]) -> str:
    return f"needs the environment variable {' and '.join(missing)}, which is not set"


def substitute(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the expanded text, and the names of the variables that are missing or empty."""
    missing: list[str] = []

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if not environ.get(name) and default is None:
            missing.append(name)
        return environ.get(name) or default or ""

    return _VARIABLE.sub(value, text), missing
