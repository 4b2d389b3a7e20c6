"""``kr search``, ``kr entries`` and ``kr archive``: find what is known, and change index and archive by hand."""

from typing import Any

import click

from kr.cli.common import (
    at_most,
    cell,
    emit,
    facts_view,
    item_lines,
    kr_command,
    kr_group,
    limit_option,
    open_app,
    some_words,
    table,
)
from kr.text import counted

Row = dict[str, Any]

_ENTRY = click.argument("entry_id", metavar="ID")
_REPORT = click.option("--report", is_flag=True, help="Give the report's text too.")
_FRAMEWORK = click.option("--framework", help="Entries of this framework alone.")


@kr_command("search", "kr search repeatable option", "kr search --framework vue virtual scroll --limit 3")
@click.argument("words", nargs=-1, required=True)
@_FRAMEWORK
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Entries and lessons at most."
)
def search(ctx: click.Context, /, words: tuple[str, ...], framework: str | None, limit: int) -> None:
    """Find WORDS in topics, tags, questions, reports and lessons, the best first, each with the passage.

    What holds only some of the words comes last. kr entries show ID --report shows a whole report.
    """
    query = some_words(words)
    with open_app(ctx, may_share=True, only_reads=True) as app:
        found = app.search_all(query, framework=framework, limit=limit + 1)
    emit({name: at_most(limit, rows) for name, rows in found.items()}, ctx, search_view)


def search_view(value: dict[str, list[Row]]) -> str:
    lines = []
    for row in value["entries"]:
        title = f"{row.get('question') or row['topic']} ({_status(row)})"
        lines += item_lines(row["id"], title, row["passage"])
    for row in value["lessons"]:
        lines += item_lines(f"{row['id']}  lesson of {row['phase']}", row["passage"])
    return "\n".join(lines) or "none"


@kr_group(
    "entries",
    "kr entries list --framework vue --status stale",
    "kr entries show vue-slots --report",
    "kr entries restore vue-slots 2",
)
def command() -> None:
    """Look through the index, and change it by hand.

    An unknown id is an error that names the nearest ones.
    """


@kr_command("list", "kr entries list --framework vue --status stale --limit 20", group=command)
@_FRAMEWORK
@click.option(
    "--status",
    type=click.Choice(["fresh", "stale", "withdrawn"]),
    help="Entries of this status, as of today; withdrawn: rated wrong.",
)
@limit_option
def list_entries(ctx: click.Context, /, **page: Any) -> None:
    """List the entries, the last accessed first."""
    with open_app(ctx, may_share=True, only_reads=True) as app:
        found = app.entries(**page)
    if (shown := len(found["entries"])) < found["total"]:
        click.echo(f"the first {shown} of {found['total']} shown; --limit N shows more", err=True)
    emit(found["entries"], ctx, entries_view)


@kr_command("show", "kr entries show vue-slots --report", group=command)
@_ENTRY
@_REPORT
def show(ctx: click.Context, /, entry_id: str, *, report: bool) -> None:
    """Show one entry: what is known of it, and why it is stale."""
    with open_app(ctx, may_share=True, only_reads=True) as app:
        emit(app.entry(entry_id, report=report), ctx, facts_view)


@kr_command("remove", "kr entries remove vue-slots vue-watchers", group=command)
@click.argument("entry_ids", metavar="ID...", nargs=-1, required=True)
def remove(ctx: click.Context, /, entry_ids: tuple[str, ...]) -> None:
    """Move entries to the archive: all that are named, or none when one is unknown.

    The report's text is kept; kr archive restore ID brings the entry back.
    """
    with open_app(ctx) as app:
        emit(app.catalog.remove(entry_ids), ctx, changed_view)


@kr_command("history", "kr entries history vue-slots --revision 1", group=command)
@_ENTRY
@click.option("--revision", type=int, metavar="N", help="Give the text of revision N.")
def history(ctx: click.Context, /, entry_id: str, revision: int | None) -> None:
    """List the texts that an entry's report had before, the oldest first."""
    with open_app(ctx) as app:
        if revision is None:
            emit(app.catalog.history(entry_id), ctx, history_view)
        else:
            emit(app.catalog.revision(entry_id, revision), ctx, facts_view)


@kr_command("restore", "kr entries history vue-slots", "kr entries restore vue-slots 1", group=command)
@_ENTRY
@click.argument("revision", type=int)
def restore(ctx: click.Context, /, entry_id: str, revision: int) -> None:
    """Bring an earlier text of an entry back; the present one becomes a revision itself.

    To bring an archived entry back, see kr archive restore.
    """
    with open_app(ctx) as app:
        emit(app.catalog.restore_revision(entry_id, revision), ctx, changed_view)


@kr_group("archive", "kr archive list --reason manual", "kr archive restore vue-slots")
def archive() -> None:
    """Look through the archive, and bring entries back."""


@kr_command("list", "kr archive list --framework vue --reason lru", group=archive)
@_FRAMEWORK
@click.option(
    "--reason",
    type=click.Choice(["lru", "age", "manual"]),
    help="Evicted for room, not accessed for too long, or removed by hand.",
)
@limit_option
def list_archive(ctx: click.Context, /, limit: int | None, **wanted: Any) -> None:
    """List the archived entries, the last archived first."""
    with open_app(ctx, only_reads=True) as app:
        found = app.catalog.archive(**wanted, limit=limit and limit + 1)
    emit(at_most(limit, found), ctx, archive_view)


_NUMBER = click.option(
    "--archive-id", type=int, metavar="N", help="Which one, by its number in kr archive list."
)


@kr_command("show", "kr archive show vue-slots --archive-id 7 --report", group=archive)
@_ENTRY
@_NUMBER
@_REPORT
def show_archived(ctx: click.Context, /, entry_id: str, **wanted: Any) -> None:
    """Show one archived entry: its row, when and why it left. Of several of one id the last archived."""
    with open_app(ctx) as app:
        emit(app.catalog.archived(entry_id, **wanted), ctx, facts_view)


@kr_command("restore", "kr archive restore vue-slots --archive-id 7", group=archive)
@_ENTRY
@_NUMBER
def restore_archived(ctx: click.Context, /, entry_id: str, **wanted: Any) -> None:
    """Make an archived entry live and fresh again, with its own text at its path.

    Of several of one id the last archived comes back; a placeholder comes back stale. A live entry of its id or topic
    goes to the archive. The index stays within its
    capacity: the entry accessed longest ago may leave it.
    """
    with open_app(ctx) as app:
        emit(app.catalog.restore(entry_id, **wanted), ctx, changed_view)


def _status(row: Row) -> str:
    return "withdrawn: rated wrong" if row["status"] == "withdrawn" else str(row["status"])


def entries_view(rows: list[Row]) -> str:
    facts = "{framework} {framework_version}; {status}, confidence {confidence}, used {last_accessed:.10}"
    return _listed([row | {"status": _status(row)} for row in rows], facts)


def archive_view(rows: list[Row]) -> str:
    return _listed(rows, "{framework} {framework_version}; no {archive_id}, {reason}, {archived_at:.16}")


def _listed(rows: list[Row], facts: str) -> str:
    lines = []
    for row in rows:
        lines += item_lines(row["id"], f"{row.get('question') or row['topic']}; {facts.format(**row)}")
    return "\n".join(lines) or "none"


def history_view(rows: list[Row]) -> str:
    columns = ("revision", "framework_version", "confidence", "researched_at", "replaced_at")
    cells = [[str(row[name] or "-")[:19] for name in columns] for row in rows]
    return table([name.replace("_", " ") for name in columns], cells) if rows else "no earlier text"


def changed_view(value: Row) -> str:
    """Say what was archived or restored, and how many entries are live now."""
    lines = []
    if "entry" in value:
        entry = value["entry"]
        lines.append(f"restored  {cell(entry['id'])}, {entry['status']}: {cell(entry['path'])}")
        if value["replaced"] is not None:
            lines.append(f"the text that it replaces is revision {value['replaced']} (kr entries history)")
    for entry_id in [cell(row["id"]) for row in value.get("removed") or value.get("archived", ())]:
        lines += [f"archived  {entry_id}  (kr archive restore {entry_id} brings it back)"]
    if moved := max(value.get("lru_evicted", 0), 0) + value.get("auto_archived", 0):
        lines.append(f"{counted(moved, 'other entry', 'other entries')} went to the archive, for room")
    lines += [f"{click.style('note', fg='yellow')}  {cell(note)}" for note in value["warnings"]]
    return "\n".join([*lines, f"{counted(value['index_count'], 'entry is', 'entries are')} live"])
