"""``kr entries`` and ``kr archive``: look through index and archive, and change them by hand (SPEC 6.3)."""

import sys
from typing import TYPE_CHECKING, Any, Unpack

import click

from kr.cli.completing import (
    complete_archived_framework,
    complete_archived_id,
    complete_entry_id,
    complete_framework,
    complete_revision,
)
from kr.cli.entries_view import (
    archive_view,
    entries_view,
    entry_view,
    history_view,
    removed_view,
    restored_view,
    revision_view,
    search_view,
)
from kr.cli.options import (
    MOST,
    TEXT,
    Group,
    common,
    common_options,
    examples,
    open_app,
    tell_nearest,
    with_context,
)
from kr.cli.render import at_most, emit, tell_cut

if TYPE_CHECKING:
    from kr.catalog.catalog import Page

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
@with_context
def list_entries(ctx: click.Context, /, **page: "Unpack[Page]") -> None:
    """List the entries, the last accessed first."""
    with open_app(ctx, may_share=True, only_reads=True) as app:
        found = app.entries(**page)
        if not found["total"] and (framework := page.get("framework")):
            tell_nearest(framework, {row["framework"] for row in app.entries()["entries"]})
    if (shown := len(found["entries"])) < found["total"]:
        tell_cut(f"{shown} of {found['total']}")
    emit(found["entries"], common(ctx), entries_view)


@command.command(
    "show",
    epilog=examples("kr entries show vue-slots", "kr entries show vue-slots --report"),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=complete_entry_id)
@click.option("--report", is_flag=True, help="Give the report's text too.")
@with_context
def show(ctx: click.Context, /, entry_id: str, *, report: bool) -> None:
    """Show one entry: its row, why it is stale, and how many earlier texts there are."""
    with open_app(ctx, may_share=True, only_reads=True) as app:
        emit(app.entry(entry_id, report=report), common(ctx), entry_view)


@command.command(
    "search",
    epilog=examples("kr entries search virtual scroll", "kr entries search 虚拟滚动 --limit 5"),
)
@click.argument("words", nargs=-1, required=True, type=TEXT)
@_LIMIT
@with_context
def search(ctx: click.Context, /, words: tuple[str, ...], limit: int | None) -> None:
    """Find entries by words of topic, tags, question and report, the best first, each with the passage.

    kr search finds lessons too.
    """
    with open_app(ctx, may_share=True, only_reads=True) as app:
        found = app.search(" ".join(words), limit=limit + 1 if limit else MOST)["entries"]
    emit(at_most(limit, found), common(ctx), search_view)


@command.command(
    "remove",
    epilog=examples("kr entries remove vue-slots", "kr entries remove vue-slots vue-watchers --yes"),
)
@click.argument(
    "entry_ids", metavar="ID...", nargs=-1, required=True, type=TEXT, shell_complete=complete_entry_id
)
@click.option("--yes", is_flag=True, help="Don't ask. Without a terminal nothing is asked anyway.")
@with_context
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
@with_context
def history(ctx: click.Context, /, entry_id: str, revision: int | None) -> None:
    """List the texts that an entry's report had before, the oldest first."""
    with open_app(ctx) as app:
        if revision is None:
            emit(app.catalog.history(entry_id), common(ctx), history_view)
        else:
            emit(app.catalog.revision(entry_id, revision), common(ctx), revision_view)


@command.command(
    "restore",
    epilog=examples("kr entries history vue-slots", "kr entries restore vue-slots 1"),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=complete_entry_id)
@click.argument("revision", type=int, shell_complete=complete_revision)
@with_context
def restore(ctx: click.Context, /, entry_id: str, revision: int) -> None:
    """Bring the text of REVISION back; the text that it replaces becomes a revision itself.

    To bring an archived entry back, see kr archive restore.
    """
    with open_app(ctx) as app:
        emit(app.catalog.restore_revision(entry_id, revision), common(ctx), restored_view)


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
def archive() -> None:
    """Look through the archive, and bring entries back."""


@archive.command(
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
@with_context
def list_archive(ctx: click.Context, /, limit: int | None, **wanted: Any) -> None:
    """List the archived entries, the last archived first."""
    with open_app(ctx, only_reads=True) as app:
        found = app.catalog.archive(**wanted, limit=limit and limit + 1)
    emit(at_most(limit, found), common(ctx), archive_view)


_AT = click.option(
    "--archived-at", type=TEXT, metavar="TIME", help="Which one, by its time or the beginning of it."
)
_NUMBER = click.option(
    "--archive-id", type=int, metavar="N", help="Which one, by its number in kr archive list."
)


@archive.command(
    "show",
    epilog=examples("kr archive show vue-slots", "kr archive show vue-slots --archive-id 7 --report"),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=complete_archived_id)
@_AT
@_NUMBER
@click.option("--report", is_flag=True, help="Give the report's text too.")
@with_context
def show_archived(ctx: click.Context, /, entry_id: str, **wanted: Any) -> None:
    """Show one archived entry: its row, when and why it left. Of several of one id the last archived."""
    with open_app(ctx) as app:
        emit(app.catalog.archived(entry_id, **wanted), common(ctx), entry_view)


@archive.command(
    "restore",
    epilog=examples("kr archive restore vue-slots", "kr archive restore vue-slots --archive-id 7 --replace"),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=complete_archived_id)
@_AT
@_NUMBER
@click.option("--replace", "replace_live", is_flag=True, help="Archive the live entry of this id first.")
@with_context
def restore_archived(ctx: click.Context, /, entry_id: str, **wanted: Any) -> None:
    """Make an archived entry live and fresh again, with its own text at its path.

    Of several of one id the last archived comes back. A skeleton, for which nothing was found, comes back stale. The
    index stays within its capacity: the entry accessed longest ago may leave it.
    """
    with open_app(ctx) as app:
        emit(app.catalog.restore(entry_id, **wanted), common(ctx), restored_view)
