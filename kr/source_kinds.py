"""The sources that kr can ask: what each is called, what its text is, and how far a report from it is trusted.

A new source is a line in ``_KINDS`` and a module ``kr/sources/<name>.py`` that ``kr.sources`` builds.
Settings, reports and statistics read what they need from here.
"""

from dataclasses import dataclass
from typing import Literal

from kr.models import Confidence


@dataclass(frozen=True, slots=True)
class SourceKind:
    """What is known of a source without asking it.

    ``form``: an ``answer`` to the question itself, all of which counts; ``pages`` of a search, which may confirm one another (two make
    ``medium``); or the installed ``package``, no part of the chain. ``with_code`` is a report's confidence where the answer
    holds a code example, ``server`` the default MCP server's address.
    """

    name: str
    label: str
    form: Literal["answer", "pages", "package"]
    confidence: Confidence
    with_code: Confidence
    server: str | None = None


LOCAL_DOCS = "local_docs"

_KINDS = (
    SourceKind("context7", "official documentation through Context7", "answer", "medium", "high", "https://mcp.context7.com/mcp"),
    SourceKind("deepwiki", "an answer of DeepWiki about the framework's own repository", "answer", "medium", "medium", "https://mcp.deepwiki.com/mcp"),
    SourceKind("web_search", "web pages", "pages", "low", "low"),
    SourceKind(LOCAL_DOCS, "the installed package's own documentation alone, no online source", "package", "low", "low"),
)  # fmt: skip

SOURCES = {kind.name: kind for kind in _KINDS}

CHAIN = tuple(kind.name for kind in _KINDS if kind.form != "package")
"""What ``sources`` may name, in the order of F1, step 5."""

DEFAULT_SERVERS = {kind.name: kind.server for kind in _KINDS if kind.server is not None}


def kind_of(source: str) -> SourceKind:
    """Return what is known of a source; one of the configuration's own answers the question itself."""
    return SOURCES.get(source) or SourceKind(
        source, f"{source}, a source of one's own", "answer", "medium", "medium"
    )


def is_package(source: str) -> bool:
    return kind_of(source).form == "package"
