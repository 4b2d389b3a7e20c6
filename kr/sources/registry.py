"""From a name in ``sources``, or a mapping of one's own, to what asks it. A new source is a module and a line here."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kr.sources.base import Source

if TYPE_CHECKING:
    from kr.settings.model import CustomSource, KnowledgeResearch


def build_source(
    source: "str | CustomSource", config: "KnowledgeResearch", environ: Mapping[str, str], root: Path
) -> Source:
    """Build a source of the chain; a folder's relative path is below ``root``. Nothing is asked yet.

    What a source needs is imported here, so that it is no part of the time that an answer may take.
    """
    if source == "web_search":
        from kr.sources.web_search import WebSearch  # heavy

        return WebSearch(config.web_search, environ)
    if source == "context7":
        from kr.sources.context7 import Context7  # heavy

        return Context7(config.servers.get(source))
    if source == "deepwiki":
        from kr.sources.deepwiki import DeepWiki  # heavy

        return DeepWiki(config.servers.get(source))
    assert not isinstance(source, str), f"the settings let a source through that is none: {source}"  # noqa: S101
    if source.folder is not None:
        from kr.sources.local_docs import Folder  # heavy

        folder = root / Path(source.folder).expanduser()
        return Folder(name=source.name, folder=folder, framework=source.framework, environ=environ)
    from kr.sources.mcp_tool import McpTool  # heavy

    return McpTool(config.servers.get(source.server or ""), source.name, source.tool or "", source.argument)
