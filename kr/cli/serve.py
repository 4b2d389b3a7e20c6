"""``kr mcp`` and ``kr serve``: kr for agents over MCP, and for a fleet over HTTP."""

import os
import sys

import click

from kr.cli.common import kr_command, open_app
from kr.errors import NotInstalled
from kr.server.mcp import serve_stdio
from kr.server.worker import RequestProgress


@kr_command("mcp", "kr mcp", "kr mcp --kb ~/knowledge-base")
def mcp(ctx: click.Context, /) -> int:
    """Serve the tools of kr to an agent, over standard input and output (MCP).

    A program that speaks MCP starts this by itself: give it the command kr and the argument mcp.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        click.echo("kr speaks MCP here, to a program that starts it; Ctrl-C ends it", err=True)
    with open_app(ctx, progress=RequestProgress(), may_share=True) as app:
        return serve_stdio(app)


@kr_command("serve", "kr serve", "KR_TOKEN=... kr serve --host 0.0.0.0 --allow-host kr")
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on."
)
@click.option(
    "--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="A host name that this server is called by, as in http://NAME:8765; may be repeated.",
)
def serve(ctx: click.Context, /, host: str, port: int, names: tuple[str, ...]) -> int:
    """Serve agents over HTTP (/v1, /openapi.json) and MCP (/mcp), and people with a page at /.

    An address that others can reach needs a token in KR_TOKEN, which clients send as a bearer token. Requests by
    a host name that is neither the address nor allowed are refused.
    SIGTERM and SIGINT end it once what is under way is answered.
    """
    try:
        from kr.server.serve import serve
    except ModuleNotFoundError as error:
        raise NotInstalled("serve", error.name or "fastapi") from error
    with open_app(ctx, progress=RequestProgress()) as app:
        return serve(app, host, port, names, os.environ)
