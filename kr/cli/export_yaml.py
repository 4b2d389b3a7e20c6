"""``kr export-yaml``: index and archive as YAML, for people and older tools."""

from pathlib import Path
from typing import Any

import click

from kr.cli.options import common, common_options, open_app
from kr.cli.render import emit
from kr.text.counting import counted

_EPILOG = """\b
Examples:
  kr export-yaml
  kr export-yaml --output backup/
"""


@click.command("export-yaml", epilog=_EPILOG)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder to write to. Default: the knowledge base.",
)
@common_options
@click.pass_context
def command(ctx: click.Context, output: Path | None) -> int:
    """Write index.yaml and _archived-index.yaml.

    Into another folder what the entries were asked goes along, as _wordings.yaml: kr import-yaml takes it in.
    The same state gives the same bytes. A file that kr did not write is kept beside it as .bak first. The reports
    are not copied: they are Markdown files in the knowledge base already.
    """
    with open_app(ctx) as app:
        emit(app.export_yaml(output), common(ctx), view)
    return 0


def view(value: dict[str, Any]) -> str:
    """Make the readable view: how much was written, and where."""
    index, archive, *more = value["files"]
    told = (counted(value["entries"], "entry", "entries"), f"{value['archived']} archived")
    width = max(map(len, told))
    return f"{told[0]:<{width}}  {index}\n{told[1]:<{width}}  {archive}" + "".join(
        f"\n{'':<{width}}  {file}" for file in more
    )
