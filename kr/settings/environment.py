"""The ``KR_*`` variables that override the file (SPEC 7).

``KR_MAX_ENTRIES`` is ``knowledge_research.max_entries``, ``KR_CIRCUIT_BREAKER__FAILURES`` is
``knowledge_research.circuit_breaker.failures``. An empty variable counts as not set; ``null`` is null. A
list is a YAML or JSON list, or words separated by commas; a mapping is a YAML or JSON mapping and replaces
the file's.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kr.documents import KeyPath, Tree, read_document
from kr.errors import InvalidRequest
from kr.settings.discovery import UnreadableError

PREFIX = "KR_"
OWN_NAMES = frozenset(
    {
        "KR_CONFIG",
        "KR_DATABASE_URL",
        "KR_FORMAT",
        "KR_OUTPUT",
        "KR_PHASE",
        "KR_PYTHON",
        "KR_QUICKSTART_TIMEOUT",
        "KR_SERVER",
        "KR_STORY_KEY",
        "KR_TOKEN",
        "KR_VENV",
    }
)
"""Variables that are no keys: kr's own, and those of the scripts in the repository."""

MAPPINGS = frozenset(
    {"aliases", "circuit_breaker", "embeddings", "repositories", "servers", "web_search", "llm"}
)
LISTS = frozenset({"sources", "lessons_phases"})
_SERVER_MAPPINGS = frozenset({"headers", "env"})
_NAME = re.compile(r"KR_[A-Z0-9]+(?:_[A-Z0-9]+)*(?:__[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*)*")


class Override(NamedTuple):
    """One variable: the path of its key below ``knowledge_research``, and its value or what is wrong."""

    name: str
    path: KeyPath
    value: Tree = None
    problem: str | None = None


def read_overrides(environ: Mapping[str, str]) -> tuple[Override, ...]:
    """Read all overrides, outer keys before the keys within them."""
    found = (_read(name, text) for name, text in environ.items() if _is_override(name, text))
    return tuple(sorted(found, key=lambda override: (len(override.path), override.name)))


def name_of(path: KeyPath) -> str:
    """Return the variable of a key below ``knowledge_research``."""
    return PREFIX + "__".join(str(step).upper() for step in path)


def _is_override(name: str, text: str) -> bool:
    return name.startswith(PREFIX) and name not in OWN_NAMES and bool(text.strip())


def path_of(name: str) -> KeyPath:
    """Return the path below ``knowledge_research`` that a variable means.

    Keys are lower case, but the variables that a server gets (``servers.NAME.env``) keep their case.
    """
    steps = name.removeprefix(PREFIX).split("__")
    lower = [step.lower() for step in steps]
    if lower[0] == "servers" and lower[2:3] == ["env"]:
        return (*lower[:3], *steps[3:])
    return tuple(lower)


def _read(name: str, text: str) -> Override:
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
