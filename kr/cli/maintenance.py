"""``kr doctor``, ``kr db``, ``kr stats`` and ``kr completion``: looking after a knowledge base and its database."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from kr.cli.common import emit, facts_view, kr_command, kr_group, open_app, table, wrapped, write_out
from kr.doctor import FAILED, Diagnosis, remains
from kr.store import backup as backups
from kr.store import entries as entry_rows
from kr.store.engine import store_of
from kr.text import counted
from kr.transfer.export_yaml import restore_backup

logger = logging.getLogger(__name__)

_FILE = click.Path(path_type=Path, dir_okay=True)
_MOST_ROWS = 12
_COLOURS = {"error": "red", "warning": "yellow", "information": "cyan"}


@kr_group(
    "db",
    'sqlite3 "$(kr db path)" "SELECT * FROM hit_rate_by_day"',
    "kr db backup",
    "kr db restore kr-20261121T120000Z.db",
)
def db() -> None:
    """Find, check, upgrade, back up, restore and copy the database."""


@kr_command("path", 'sqlite3 "$(kr db path)" "SELECT * FROM hit_rate_by_day"', group=db)
def path(ctx: click.Context) -> None:
    """Print where the database is: one line for the shell, unless --format asks for more."""
    with open_app(ctx, only_reads=True) as app:
        place = app.store.location if app.store.is_shared else str(app.store.path.absolute())
        value = {"path": place, "exists": app.store.exists()}
        emit(value, ctx, lambda it: str(it["path"]), is_line=True)


@kr_command("upgrade", "kr db upgrade", group=db)
def upgrade(ctx: click.Context) -> None:
    """Bring the database to this kr's schema. One is made where none is."""
    with open_app(ctx) as app:
        before = backups.inspect(app.store)
        if before.state != "current":  # one that is may well be write-protected
            with app.store.write() as tx:
                entry_rows.count(tx)
        value = {
            "path": app.store.location,
            "upgraded": before.state != "current",
            "from_version": before.version,
        }
        emit(value, ctx, facts_view)


@kr_command("check", "kr db check", "kr db check --format json", group=db)
def check(ctx: click.Context) -> int:
    """Examine pages, indexes, references, tables and texts. Exit status 1 when the database is not sound."""
    with open_app(ctx) as app:
        found = backups.inspect(app.store)
        problems = [found.problem] if found.problem else []
        if found.state == "absent" and (left := remains(app.settings.knowledge_base)):
            problems = [
                f"there is no database, but there are {left}; `kr doctor --repair` makes one from them"
            ]
        elif found.state in {"current", "older"}:
            problems = backups.check(app.store)
        value = {
            "path": app.store.location,
            "sound": not problems,
            "state": found.state,
            "schema_version": found.version,
            "problems": problems,
        }
        emit(value, ctx, facts_view)
    return 1 if problems else 0


@kr_command("backup", "kr db backup", "kr db backup ~/backups", group=db)
@click.argument("file", type=_FILE, required=False)
def backup(ctx: click.Context, /, file: Path | None) -> None:
    """Copy the database file to FILE while agents go on; one on PostgreSQL is left to pg_dump.

    Without FILE the copy stands beside the database, with the time in its name. A file that exists is never
    overwritten; a folder gets a copy with the time in its name. Reports are files of their own: copy the
    knowledge base's folder for them.
    """
    with open_app(ctx, only_reads=True) as app:
        made = backups.backup(app.store.path, file, _moment())
        value = {"path": str(app.store.path), "backup": str(made), "bytes": made.stat().st_size}
        emit(value, ctx, facts_view)


@kr_command("restore", "kr db restore kr-20261121T120000Z.db", group=db)
@click.argument("file", type=_FILE)
def restore(ctx: click.Context, /, file: Path) -> None:
    """Put the backup FILE in the database file's place; a database on PostgreSQL is left to pg_restore.

    FILE is checked first. The present database is kept beside it, and agents may go on working. Reports and exports are
    made anew from it; one that differs is kept beside its new text, with the time and .bak in its name.
    """
    with open_app(ctx) as app:
        kept = restore_backup(app.store, app.settings.knowledge_base, file, _moment())
        with app.store.read() as tx:
            entries = entry_rows.count(tx)
        value = {
            "path": str(app.store.path),
            "restored": str(file),
            "kept": str(kept) if kept else None,
            "entries": entries,
        }
        emit(value, ctx, facts_view)


@kr_command(
    "copy",
    'kr db copy "$(kr db path)" postgresql+psycopg://kr@db.example/kr',
    "kr db copy postgresql+psycopg://kr@db.example/kr .kr/kr.db",
    group=db,
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(ctx: click.Context, /, source: str, target: str) -> None:
    """Copy a knowledge base from one database into another, empty one: from a file to PostgreSQL, or back.

    FROM and TO are files, or URLs as in KR_DATABASE_URL (a password is better kept in ~/.pgpass: others see what is typed here).
    Everything goes over in one transaction. Reports are written again as kr answers.
    """
    with (
        open_app(ctx, only_reads=True) as app,
        store_of(source, app.store.folder) as old,
        store_of(target, app.store.folder) as new,
    ):
        copied = backups.copy(old, new)
        value = {"from": old.location, "to": new.location, "rows": copied}
        emit(value, ctx, facts_view)


def _moment() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


@kr_command("doctor", "kr doctor", "kr doctor --repair", "kr doctor --online", "kr doctor --format json")
@click.option("--repair", is_flag=True, help="Do what the findings announce; nothing is deleted for good.")
@click.option("--online", is_flag=True, help="Also ask each configured source and model one cheap question.")
def doctor(ctx: click.Context, /, *, repair: bool, online: bool) -> int:
    """Find what is wrong: database, reports, exports.

    Each finding says what --repair would do. A lost report is written back where its text is kept, and its entry goes to the
    archive where it is not; a corrupt database is set aside, and a new one made from the exports and reports. Files that may
    not be read are left alone. --online says whether each server answers and accepts its key. Exit status 1 while a problem
    remains.
    """
    with open_app(ctx) as app:
        examination = app.doctor()
        value = examination.repair(_announce) if repair else examination.report()
        found = [*app.check_sources()] if online else []
        value["findings"] += [finding.plain() for finding in found]
        value["problems"] += sum(finding.is_problem for finding in found)
        emit(value, ctx, examined)
    return 1 if value["problems"] else 0


def _announce(finding: Diagnosis) -> None:
    """Say what will be done, before it is done."""
    click.echo(f"{finding.check}: {finding.subject}: {finding.message}. Repair: {finding.repair}", err=True)


def examined(value: dict[str, Any]) -> str:
    """Show the findings to a person."""
    lines: list[str] = []
    for row in value["repaired"]:
        has_failed = row["done"].startswith(FAILED)
        state = click.style("not repaired", fg="red") if has_failed else click.style("repaired", fg="green")
        lines.append(f"{state} {row['check']}: {row['subject']}\n  {row['done']}")
    for row in value["findings"]:
        severity = click.style(row["severity"], fg=_COLOURS[row["severity"]])
        lines.append(f"{severity} {row['check']}: {row['subject']}")
        lines += wrapped("  ", row["message"], indent=2)
        if row["repair"]:
            lines += wrapped("  --repair would: ", row["repair"], indent=4)
    number = value["problems"]
    summary = counted(number, "problem") if number else "no problem"
    lines.append(click.style(f"{summary} in {value['knowledge_base']}", bold=True))
    return "\n".join(lines)


@kr_command("stats", "kr stats", "kr stats --format json")
def stats(ctx: click.Context) -> None:
    """Count hits, tokens spared, spending, source reliability, and what the index holds.

    Tokens spared are what finding out had cost, less what the answer from the cache contained: what a research read, or what the session
    that saved a finding had been given. Seconds are counted alike. What was not measured counts as nothing.
    No database is made.
    """
    with open_app(ctx, may_share=True, only_reads=True) as app:
        emit(app.stats(), ctx, stats_view)


def stats_view(value: dict[str, Any]) -> str:
    """Show the numbers to a person."""
    requests, spared, index = value["requests"], value["spared"], value["index"]
    spending, lessons = value["spending"], value["lessons"]
    measured = "not measured yet: of no answer is it known what finding out had cost"
    if spared["answers"]:
        answers = counted(spared["answers"], "answer")
        measured = f"{counted(spared['tokens'], 'token')}, {spared['seconds']:.1f} s ({answers} measured)"
    statuses = "".join(f", {number} {name}" for name, number in index["by_status"].items())
    held = f", {lessons['quarantined']} held back (kr review)" if lessons.get("quarantined") else ""
    lines = [
        f"{counted(requests['research'], 'question')}: {requests['hits']} from the cache, {requests['misses']} researched",
        f"hit rate: {_cell('hit_rate', requests['hit_rate']) or '-'}",
        f"spared: {measured}",
        f"index: {index['entries']} of {counted(index['max_entries'], 'entry', 'entries')}{statuses}",
        f"archive: {counted(value['archive']['entries'], 'entry', 'entries')}",
        f"lessons: {lessons['total']}{held}",
        f"spending: {counted(spending['charged'], 'call')} for {counted(spending['stories'], 'story', 'stories')}",
    ]
    for rows, columns in (
        (value["hit_rate_by_framework"], ("framework", "requests", "hit_rate")),
        (value["hit_rate_by_day"][::-1], ("day", "requests", "hit_rate")),
        (spending["by_story"], ("story_key", "session_id", "charged", "uncharged")),
        (value["sources"], ("source", "asked", "success_rate", "mean_ms", "open_until", "last_error")),
        (lessons["by_phase"], ("phase", "lessons", "injected", "recurred")),
    ):
        if rows:
            titles = [name.replace("_", " ") for name in columns]
            cells = [[_cell(name, row[name]) for name in columns] for row in rows[:_MOST_ROWS]]
            lines += ["", table(titles, cells, wide=titles[0])]
        if (more := len(rows) - _MOST_ROWS) > 0:
            lines.append(f"… --format json lists {more} more")
    return "\n".join(lines)


def _cell(name: str, value: object) -> object:
    if not isinstance(value, float):
        return value
    return f"{value:.0%}" if name.endswith("rate") else f"{value:.0f}"


@kr_command(
    "completion",
    "kr completion bash > ~/.local/share/bash-completion/completions/kr",
    'kr completion zsh > "${fpath[1]}/_kr"',
    "kr completion fish > ~/.config/fish/completions/kr.fish",
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(ctx: click.Context, /, shell: str) -> None:
    """Print the script that completes commands and options in SHELL."""
    kind = get_completion_class(shell)
    if kind is not None:
        write_out(kind(ctx.find_root().command, {}, "kr", "_KR_COMPLETE").source())
