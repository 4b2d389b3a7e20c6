"""``kr warm``: what the cache lacks of the frameworks that a project depends on."""

from pathlib import Path
from typing import Any

import click

from kr.cli.examples import examples
from kr.cli.options import MOST, common, common_options, open_app
from kr.cli.render import emit
from kr.cli.table import table


@click.command(
    "warm",
    epilog=examples(
        "kr warm", "kr warm ../shop --research --max-calls 10", "kr warm --research --limit 3 --format json"
    ),
)
@click.argument(
    "project", metavar="[DIR]", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--research", is_flag=True, help="Ask a general question about each framework it lacks.")
@click.option(
    "--max-calls",
    type=click.IntRange(0, MOST),
    metavar="N",
    help="Calls to sources that the whole run may cost. Default: max_calls_per_story.",
)
@click.option("--limit", type=click.IntRange(1, MOST), metavar="N", help="Ask about N frameworks at most.")
@common_options
@click.pass_context
def command(
    ctx: click.Context, /, project: Path | None, *, research: bool, max_calls: int | None, limit: int | None
) -> int:
    """List the frameworks a project depends on, with what the cache holds of each.

    An entry counts as fresh when it would answer today for the version in use. With --research the frameworks
    without a fresh entry are asked about, one after another, until the budget of the run is spent; progress
    goes to standard error.
    """
    if not research and (max_calls is not None or limit is not None):
        raise click.UsageError("--max-calls and --limit need --research.")
    with open_app(ctx) as app:
        if not research:
            emit(app.warm(project), common(ctx), view)
            return 0
        rows = app.warm_up(project, max_calls=max_calls, limit=limit, tell=_tell)
    emit(rows, common(ctx), view)
    return 1 if any(row["status"] == "failure" for row in rows) else 0


def _tell(line: str) -> None:
    click.echo(line, err=True)


def view(rows: list[dict[str, Any]]) -> str:
    """Make a table."""
    if not rows:
        return "The project's dependency files name nothing."
    columns = ["framework", "version", "fresh", "stale", "state"]
    if "status" in rows[0]:
        columns += ["status", "note"]
    return table(columns, [[row[name] for name in columns] for row in rows], wide="framework")
