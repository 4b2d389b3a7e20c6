"""``kr export-yaml``: index and archive as YAML, for people and older tools."""

from pathlib import Path
from typing import Any

import click

from kr.cli.options import common, common_options, examples, open_app
from kr.cli.render import emit
from kr.text.counting import counted


@click.command(
    "export-yaml",
    epilog=examples(
        "kr export-yaml",
        "kr export-yaml --output moved/",
        "kr export-yaml --output index/ --index-only",
    ),
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder to write to. Default: the knowledge base.",
)
@click.option("--index-only", is_flag=True, help="Into another folder: leave the reports out.")
@common_options
@click.pass_context
def command(ctx: click.Context, output: Path | None, *, index_only: bool) -> int:
    """Write index.yaml and _archived-index.yaml.

    Into another folder the reports go along, also those of archived entries, and what the entries were asked
    (_wordings.yaml): kr import-yaml of that folder makes the same knowledge base elsewhere. The same state gives the
    same bytes. A file that kr did not write is kept beside it as .bak first.
    """
    with open_app(ctx) as app:
        emit(app.export_yaml(output, index_only=index_only), common(ctx), view)
    return 0


def view(value: dict[str, Any]) -> str:
    """Make the readable view: how much was written, and where."""
    index, archive, *more = value["files"]
    if value["reports"]:
        more.append(counted(value["reports"], "report"))
    told = (counted(value["entries"], "entry", "entries"), f"{value['archived']} archived")
    width = max(map(len, told))
    return f"{told[0]:<{width}}  {index}\n{told[1]:<{width}}  {archive}" + "".join(
        f"\n{'':<{width}}  {file}" for file in more
    )
