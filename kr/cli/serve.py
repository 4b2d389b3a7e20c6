"""``kr serve``: kr for a fleet, over HTTP, and a page for people."""

import os

import click

from kr.cli.options import common, common_options, examples, start_logging
from kr.errors import ConfigError

_NOT_INSTALLED = (
    "kr serve needs packages that are not installed ({missing}). In the clone of kr: pip install '.[serve]'"
)


@click.command("serve", epilog=examples("kr serve", "KR_TOKEN=... kr serve --host 0.0.0.0 --allow-host kr"))
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
@common_options
@click.pass_context
def command(ctx: click.Context, /, host: str, port: int, names: tuple[str, ...]) -> int:
    """Serve agents over HTTP (/v1, /openapi.json) and MCP (/mcp), and people with a page at /.

    An address that others can reach needs a token in KR_TOKEN, which clients send as a bearer token. Requests by
    a host name that is neither the address nor allowed are refused. Logs are JSON lines on standard error.
    SIGTERM and SIGINT end it once what is under way is answered.
    """
    start_logging(ctx)
    try:
        from kr.server.serve import Where, serve
    except ModuleNotFoundError as error:
        raise ConfigError(_NOT_INSTALLED.format(missing=error.name)) from error
    said = common(ctx)
    where = Where(host=host, port=port, names=names, config=said.config, knowledge_base=said.kb)
    return serve(where, os.environ)
