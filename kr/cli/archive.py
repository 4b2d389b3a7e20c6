"""``kr archive``: what left the index, and how it comes back (SPEC 6.3)."""

from typing import Any

import click

from kr.cli.completing import complete_archived_framework, complete_archived_id
from kr.cli.entries_view import archive_view, entry_view, restored_view
from kr.cli.options import MOST, TEXT, Group, common, common_options, examples, open_app
from kr.cli.render import emit


@click.group(
    "archive",
    cls=Group,
    epilog=examples(
        "kr archive list --reason manual",
        "kr archive show vue-slots --report",
        "kr archive restore vue-slots",
        "kr archive restore vue-slots --archived-at 2026-10-01 --replace",
    ),
)
@common_options
def command() -> None:
    """Look through the archive, and bring entries back."""


@command.command(
    "list",
    epilog=examples("kr archive list", "kr archive list --framework vue --reason lru"),
)
@click.option(
    "--framework",
    type=TEXT,
    shell_complete=complete_archived_framework,
    help="Entries of this framework alone.",
)
@click.option(
    "--reason",
    type=click.Choice(["lru", "age", "manual"]),
    help="Evicted for room, not accessed for too long, or removed by hand.",
)
@click.option("--limit", type=click.IntRange(1, MOST), metavar="N", help="At most N entries.")
@common_options
@click.pass_context
def list_archive(ctx: click.Context, /, **wanted: Any) -> int:
    """List the archived entries, the last archived first."""
    with open_app(ctx) as app:
        emit(app.catalog.archive(**wanted), common(ctx), archive_view)
    return 0


_AT = click.option(
    "--archived-at", type=TEXT, metavar="TIME", help="Which one, by its time or the beginning of it."
)
_NUMBER = click.option(
    "--archive-id", type=int, metavar="N", help="Which one, by its number in kr archive list."
)


@command.command(
    "show",
    epilog=examples("kr archive show vue-slots", "kr archive show vue-slots --archive-id 7 --report"),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=complete_archived_id)
@_AT
@_NUMBER
@click.option("--report", is_flag=True, help="Give the report's text too.")
@common_options
@click.pass_context
def show(ctx: click.Context, /, entry_id: str, **wanted: Any) -> int:
    """Show one archived entry: its row, when and why it left. Of several of one id the last archived."""
    with open_app(ctx) as app:
        emit(app.catalog.archived(entry_id, **wanted), common(ctx), entry_view)
    return 0


@command.command(
    "restore",
    epilog=examples("kr archive restore vue-slots", "kr archive restore vue-slots --archive-id 7 --replace"),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=complete_archived_id)
@_AT
@_NUMBER
@click.option("--replace", "replace_live", is_flag=True, help="Archive the live entry of this id first.")
@common_options
@click.pass_context
def restore(ctx: click.Context, /, entry_id: str, **wanted: Any) -> int:
    """Make an archived entry live and fresh again, with its own text at its path.

    Of several of one id the last archived comes back. What nothing was found for comes back stale. The
    index stays within its capacity: the entry accessed longest ago may leave it.
    """
    with open_app(ctx) as app:
        emit(app.catalog.restore(entry_id, **wanted), common(ctx), restored_view)
    return 0
