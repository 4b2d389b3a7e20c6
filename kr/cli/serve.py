"""``kr serve``: kr for a fleet, over HTTP, and a page for people."""

import click

from kr.cli.examples import examples
from kr.cli.options import common, common_options, start_logging
from kr.errors import ConfigError

_NOT_INSTALLED = (
    "kr serve needs packages that are not installed ({missing}). In the clone of kr: pip install '.[serve]'"
)


@click.command("serve", epilog=examples("kr serve", "kr serve --port 9000"))
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on."
)
@click.option(
    "--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@common_options
@click.pass_context
def command(ctx: click.Context, /, host: str, port: int) -> int:
    """Serve agents over HTTP and MCP, and people with a page in the browser.

    SIGTERM and SIGINT end it, once what is under way is answered.
    """
    start_logging(ctx)
    try:
        from kr.server.serve import serve
    except ModuleNotFoundError as error:
        raise ConfigError(_NOT_INSTALLED.format(missing=error.name)) from error
    said = common(ctx)
    return serve(host=host, port=port, config=said.config, knowledge_base=said.kb)
