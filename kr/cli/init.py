"""``kr init``: a configuration that fits the machine, and an empty knowledge base."""

from typing import Any

import click

from kr.cli.options import common, examples, open_app, with_context
from kr.cli.render import emit


@click.command(
    "init",
    epilog=examples(
        "kr init",
        "kr init --kb shared/knowledge-base",
    ),
)
@with_context
def command(ctx: click.Context) -> None:
    """Write kr.yaml and create the knowledge base.

    Nothing is overwritten, and it may be run again: where a file exists already, it says what to add.
    """
    with open_app(ctx) as app:
        done = app.initialize()
        emit(done, common(ctx), view)


def view(value: dict[str, Any]) -> str:
    """Make the readable view: a line per file, what to add by hand, what to try next."""
    lines = [f"{click.style(item['state'], bold=True):<8}  {item['path']}" for item in value["files"]]
    lines += [f"\n{hint}" for hint in value["hints"]]
    lines += ["\nNext:", *(f"  {command}" for command in value["next"])]
    return "\n".join(lines)
