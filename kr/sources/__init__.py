"""Research sources and how they are reached: one protocol for all of them.

A new source is a module, a branch in ``build_source``, a row of ``SOURCES`` in ``base`` and a place in ``CHAIN`` of ``kr.models``.
"""

from collections.abc import Mapping
from pathlib import Path

from kr.settings import Settings
from kr.settings.model import CustomSource
from kr.sources.base import Source


def build_source(source: str | CustomSource, settings: Settings, environ: Mapping[str, str]) -> Source:
    """Build a source of the chain; a folder's relative path is below the project's root. Nothing is asked yet.

    What a source needs is imported here, so that it is no part of the time that an answer may take.
    """
    config = settings.knowledge_research
    if source == "web_search":
        from kr.sources.web_search import WebSearch  # heavy

        return WebSearch(config.web_search, environ)
    if source == "context7":
        from kr.sources.context7 import Context7  # heavy

        return Context7(config.servers.get(source))
    from kr.sources.mcp_tools import DeepWiki, McpTool  # heavy

    if source == "deepwiki":
        return DeepWiki(config.servers.get(source))
    assert not isinstance(source, str), f"the settings let a source through that is none: {source}"  # noqa: S101
    if source.folder is None:
        return McpTool(
            config.servers.get(source.server or ""), source.name, source.tool or "", source.argument
        )
    from kr.sources.local_docs import Folder  # heavy

    folder = settings.project_root / Path(source.folder).expanduser()
    return Folder(name=source.name, folder=folder, framework=source.framework, environ=environ)
