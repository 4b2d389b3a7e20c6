"""``kr mcp``: kr for one agent, as an MCP server."""

import gc

import click

from kr.cli.options import common_options, examples, open_app


@click.command("mcp", epilog=examples("kr mcp", "kr mcp --kb ~/knowledge-base"))
@common_options
@click.pass_context
def command(ctx: click.Context, /) -> int:
    """Serve the tools of kr to an agent, over standard input and output (MCP).

    A program that speaks MCP starts this by itself: give it the command kr and the argument mcp.
    """
    gc.disable()  # the SDK makes thousands of objects that stay: to look for garbage meanwhile costs a tenth
    from kr.server.service import RequestProgress
    from kr.server.stdio import serve_stdio

    gc.freeze()
    gc.enable()
    with open_app(ctx, progress=RequestProgress(), may_share=True) as app:
        return serve_stdio(app)
