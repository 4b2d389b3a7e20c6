"""``kr search``: find what is known, by words (SPEC 6.3)."""

from typing import Any

import click

from kr.cli.completing import complete_framework
from kr.cli.entries_view import search_view
from kr.cli.layout import cell, wrapped
from kr.cli.options import MOST, TEXT, common, examples, open_app, tell_nearest, with_context
from kr.cli.render import at_most, emit

_LIMIT = 10


@click.command(
    "search",
    epilog=examples("kr search repeatable option", "kr search --framework vue virtual scroll --limit 3"),
)
@click.argument("words", nargs=-1, required=True, type=TEXT)
@click.option(
    "--framework", type=TEXT, shell_complete=complete_framework, help="Entries of this framework alone."
)
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=_LIMIT,
    show_default=True,
    metavar="N",
    help="At most N entries, and N lessons.",
)
@with_context
def command(ctx: click.Context, /, words: tuple[str, ...], framework: str | None, limit: int) -> None:
    """Find WORDS in topics, tags, questions, reports and lessons, the best first, each with the passage.

    What holds only some of the words comes last. kr entries show ID --report shows the whole report. Nothing
    counts as read.
    """
    with open_app(ctx, may_share=True, only_reads=True) as app:
        found = app.search_all(" ".join(words), framework=framework, limit=limit + 1)
        if framework and not found["entries"]:
            tell_nearest(framework, {row["framework"] for row in app.entries()["entries"]})
    emit({name: at_most(limit, rows) for name, rows in found.items()}, common(ctx), view)


def view(value: dict[str, Any]) -> str:
    """Make the readable view: entries, then lessons where some were found."""
    lessons = [
        "\n".join(
            [f"{cell(row['id'])}  lesson of {cell(row['phase'])}", *wrapped("    ", row["passage"], indent=4)]
        )
        for row in value["lessons"]
    ]
    return "\n".join(
        [search_view(value["entries"]), *lessons] if value["entries"] or not lessons else lessons
    )
