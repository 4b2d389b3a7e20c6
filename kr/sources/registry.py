"""From a name in ``sources``, or a mapping of one's own, to what asks it. A new source is a module and a line here."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kr.models import ServerConfig
from kr.sources.base import NotConfigured, Source

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

        search = config.web_search
        return WebSearch(
            provider=search.provider,
            url=search.url,
            api_key=environ.get(search.api_key_env) if search.api_key_env else None,
            api_key_env=search.api_key_env,
            allow_private_addresses=search.allow_private_addresses,
        )
    if not isinstance(source, str) and source.folder is not None:
        from kr.sources.local_docs import Folder  # heavy

        folder = root / Path(source.folder).expanduser()
        return Folder(name=source.name, folder=folder, framework=source.framework, environ=environ)
    return _mcp_source(source, config)


def _mcp_source(source: "str | CustomSource", config: "KnowledgeResearch") -> Source:
    server_name = source if isinstance(source, str) else str(source.server)
    server = _server(config, server_name)
    if server is None:
        name = source if isinstance(source, str) else source.name
        return NotConfigured(name, f"knowledge_research.servers.{server_name}")
    if source == "context7":
        from kr.sources.context7 import Context7  # heavy

        return Context7(server)
    if source == "deepwiki":
        from kr.sources.deepwiki import DeepWiki  # heavy

        return DeepWiki(server)
    assert not isinstance(source, str), f"the settings let a source through that is none: {source}"  # noqa: S101
    from kr.sources.mcp_tool import McpTool  # heavy

    return McpTool(server, source.name, source.tool or "", source.argument)


def _server(config: "KnowledgeResearch", name: str) -> ServerConfig | None:
    found = config.servers.get(name)
    if found is None:
        return None
    return ServerConfig(
        url=found.url,
        headers=found.headers,
        command=found.command,
        args=found.args,
        env=found.env,
    )
