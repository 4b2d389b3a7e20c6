"""``kr entries``: look through the index, and change it by hand (SPEC 6.3)."""

import sys
from typing import Any

import click

from kr.cli.completing import complete_entry_id, complete_framework, complete_revision
from kr.cli.entries_view import (
    entries_view,
    entry_view,
    history_view,
    removed_view,
    restored_view,
    revision_view,
    search_view,
)
from kr.cli.options import MOST, TEXT, Group, common, common_options, examples, open_app
from kr.cli.render import emit

_LIMIT = click.option("--limit", type=click.IntRange(1, MOST), metavar="N", help="At most N entries.")


@click.group(
    "entries",
    cls=Group,
    epilog=examples(
        "kr entries list --framework vue --status stale",
        "kr entries search virtual scroll row height",
        "kr entries show vue-slots --report",
        "kr entries remove vue-slots --yes",
        "kr entries history vue-slots",
        "kr entries restore vue-slots 2",
    ),
)
@common_options
def command() -> None:
    """Look through the index, and change it by hand.

    An id that no entry has is an error on standard error, which names the nearest ids; standard output stays
    empty, in every format, and the exit status is 1.
    """


@command.command(
    "list",
    epilog=examples("kr entries list", "kr entries list --framework vue --status stale --limit 20"),
)
@click.option(
    "--framework", type=TEXT, shell_complete=complete_framework, help="Entries of this framework alone."
)
@click.option("--status", type=click.Choice(["fresh", "stale"]), help="Entries of this status, as of today.")
@_LIMIT
@common_options
@click.pass_context
def list_entries(ctx: click.Context, /, **wanted: Any) -> int:
    """List the entries, the last accessed first."""
    with open_app(ctx, may_share=True) as app:
        emit(app.entries(**wanted)["entries"], common(ctx), entries_view)
    return 0


@command.command(
    "show",
    epilog=examples("kr entries show vue-slots", "kr entries show vue-slots --report"),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=complete_entry_id)
@click.option("--report", is_flag=True, help="Give the report's text too.")
@common_options
@click.pass_context
def show(ctx: click.Context, /, entry_id: str, *, report: bool) -> int:
    """Show one entry: its row, why it is stale, and how many earlier texts there are."""
    with open_app(ctx, may_share=True) as app:
        emit(app.entry(entry_id, report=report), common(ctx), entry_view)
    return 0


@command.command(
    "search",
    epilog=examples("kr entries search virtual scroll", "kr entries search 虚拟滚动 --limit 5"),
)
@click.argument("words", nargs=-1, required=True, type=TEXT)
@_LIMIT
@common_options
@click.pass_context
def search(ctx: click.Context, /, words: tuple[str, ...], limit: int | None) -> int:
    """Find entries by words of topic, tags, question and report, the best first, each with the passage.

    kr search finds lessons too.
    """
    with open_app(ctx, may_share=True) as app:
        emit(app.search(" ".join(words), limit=limit or MOST)["entries"], common(ctx), search_view)
    return 0


@command.command(
    "remove",
    epilog=examples("kr entries remove vue-slots", "kr entries remove vue-slots vue-watchers --yes"),
)
@click.argument(
    "entry_ids", metavar="ID...", nargs=-1, required=True, type=TEXT, shell_complete=complete_entry_id
)
@click.option("--yes", is_flag=True, help="Don't ask. Without a terminal nothing is asked anyway.")
@common_options
@click.pass_context
def remove(ctx: click.Context, /, entry_ids: tuple[str, ...], *, yes: bool) -> int:
    """Move entries to the archive: all that are named, or none when one is unknown.

    The report's text is kept; kr archive restore ID brings the entry back.
    """
    with open_app(ctx) as app:
        found = app.catalog.check(entry_ids)
        if not yes and sys.stdin.isatty():
            click.echo(entries_view(found), err=True)
            if not click.confirm("Move to the archive?", err=True):
                click.echo("Nothing was removed.", err=True)
                return 1
        emit(app.catalog.remove(entry_ids), common(ctx), removed_view)
    return 0


@command.command(
    "history",
    epilog=examples("kr entries history vue-slots", "kr entries history vue-slots --revision 1"),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=complete_entry_id)
@click.option("--revision", type=int, metavar="N", help="Give the text of revision N.")
@common_options
@click.pass_context
def history(ctx: click.Context, /, entry_id: str, revision: int | None) -> int:
    """List the texts that an entry's report had before, the oldest first."""
    with open_app(ctx) as app:
        if revision is None:
            emit(app.catalog.history(entry_id), common(ctx), history_view)
        else:
            emit(app.catalog.revision(entry_id, revision), common(ctx), revision_view)
    return 0


@command.command(
    "restore",
    epilog=examples("kr entries history vue-slots", "kr entries restore vue-slots 1"),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=complete_entry_id)
@click.argument("revision", type=int, shell_complete=complete_revision)
@common_options
@click.pass_context
def restore(ctx: click.Context, /, entry_id: str, revision: int) -> int:
    """Bring the text of REVISION back; the text that it replaces becomes a revision itself.

    To bring an archived entry back, see kr archive restore.
    """
    with open_app(ctx) as app:
        emit(app.catalog.restore_revision(entry_id, revision), common(ctx), restored_view)
    return 0
