"""The MCP server over the five tools, whatever carries it (SPEC 8)."""

import json
import logging
import time
from collections.abc import Callable
from typing import Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as ListedTool

from kr import __version__
from kr.errors import KrError
from kr.server.service import Service
from kr.server.tools import TOOLS, call_tool, tool_named

Context = ServerRequestContext[Any, Any]

logger = logging.getLogger("kr.server")

Note = Callable[[str, str, float], None]
"""Takes a tool's name, what became of the call, and the seconds it took."""


def create_mcp_server(service: Service, *, note: Note | None = None) -> Server[Any]:
    """Build the server. Its tools run in the service's workers; a cancelled call breaks its work off."""
    listed = [
        ListedTool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
        )
        for tool in TOOLS
    ]

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call(context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = tool_named(params.name)
        if tool is None:
            raise MCPError(
                INVALID_PARAMS, f"no tool {params.name}; there are {', '.join(t.name for t in TOOLS)}"
            )
        steps = 0

        async def tell(what: str) -> None:
            nonlocal steps
            steps += 1
            await context.session.report_progress(steps, message=what)

        began, told = time.perf_counter(), "cancelled"
        try:
            outcome = await call_tool(service, tool, params.arguments or {}, tell)
            told = outcome.content.get("status", "success")
        except KrError as error:
            told = error.code
            return _failed(str(error))
        except Exception as error:
            told = "defect"
            logger.exception("the tool %s failed", tool.name)
            return _failed(f"unexpected {type(error).__name__}; this is a bug in kr, and its log has more")
        finally:
            if note is not None:
                note(tool.name, told, time.perf_counter() - began)
        text = json.dumps(outcome.content, ensure_ascii=False)
        return CallToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content=outcome.content,
            is_error=outcome.is_failure,
        )

    return Server("kr", version=__version__, on_list_tools=list_tools, on_call_tool=call)


def _failed(why: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=why)], is_error=True)
