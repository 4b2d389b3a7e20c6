"""``kr warm``: what the cache lacks of the frameworks that a project depends on."""

import sys
from pathlib import Path
from typing import Any

import click

from kr.cli.options import MOST, common, common_options, examples, open_app
from kr.cli.render import emit
from kr.cli.table import table

_SHOWN = 10


@click.command(
    "warm",
    epilog=examples(
        "kr warm",
        "kr warm vue vue-router --research",
        "kr warm --project ../shop --research --limit 3 --max-calls 3",
    ),
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--project",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The project. Default: that of the working directory.",
)
@click.option("--research", is_flag=True, help="Ask a general question about each framework it lacks.")
@click.option(
    "--max-calls",
    type=click.IntRange(0, MOST),
    metavar="N",
    help="Calls to sources that the whole run may cost. Default: max_calls_per_story.",
)
@click.option("--limit", type=click.IntRange(1, MOST), metavar="N", help="Ask about N frameworks at most.")
@click.option("--yes", is_flag=True, help="Don't ask. Without a terminal nothing is asked anyway.")
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    *,
    project: Path | None,
    research: bool,
    max_calls: int | None,
    limit: int | None,
    yes: bool,
) -> int:
    """List the frameworks a project depends on, with what the cache holds of each; or those that NAME names.

    What the cache lacks comes first, and of that what the code imports in most files; tools for development that it does
    not import come last. An entry counts as fresh when it would answer today for the version in use. With --research
    the frameworks without a fresh entry are asked about, one after another, until the budget of the run is spent. What is
    going to be asked is shown on standard error before; at a terminal kr waits for a yes.
    """
    if not research and (max_calls is not None or limit is not None):
        raise click.UsageError("--max-calls and --limit need --research.")
    with open_app(ctx) as app:
        if not research:
            emit(app.warm(project, names=names), common(ctx), view)
            return 0
        calls = app.settings.knowledge_research.max_calls_per_story if max_calls is None else max_calls

        def may_spend(asked: list[str]) -> bool:
            _tell(f"asking about {', '.join(asked[:_SHOWN])}{', ...' if len(asked) > _SHOWN else ''}")
            _tell(f"{len(asked)} questions, {calls} calls to sources at most")
            return yes or not sys.stdin.isatty() or click.confirm("Go on?", default=True, err=True)

        rows = app.warm_up(
            project, names=names, max_calls=max_calls, limit=limit, tell=_tell, may_spend=may_spend
        )
    emit(rows, common(ctx), view)
    return 1 if any(row["status"] == "failure" for row in rows) else 0


def _tell(line: str) -> None:
    click.echo(line, err=True)


def view(rows: list[dict[str, Any]]) -> str:
    """Make a table."""
    if not rows:
        return "The project's dependency files name nothing."
    columns = ["framework", "version", "imports", "fresh", "stale", "state"]
    if "status" in rows[0]:
        columns += ["status", "note"]
    return table(columns, [[row[name] for name in columns] for row in rows], wide="framework")
