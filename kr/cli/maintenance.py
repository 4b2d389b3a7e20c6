"""``kr init``, ``kr doctor`` and ``kr db``: the knowledge base made, examined and repaired, and its database (SPEC 6.5)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli.options import MOST, Common, Group, common, common_options, examples, open_app, with_context
from kr.cli.output import View, emit, wrapped
from kr.text.counting import counted

if TYPE_CHECKING:
    from kr.maintenance.checks import Finding


_FILE = click.Path(path_type=Path, dir_okay=True)


@click.group(
    "db",
    cls=Group,
    epilog=examples(
        'sqlite3 "$(kr db path)" "SELECT * FROM hit_rate_by_day"',
        "kr db backup",
        "kr db restore kr-20261121T120000Z.db",
    ),
)
@common_options
def db() -> None:
    """Find, check, upgrade, back up and restore the database; delete old copies of it."""


@db.command("path", epilog=examples('sqlite3 "$(kr db path)" "SELECT * FROM hit_rate_by_day"'))
@with_context
def path(ctx: click.Context) -> None:
    """Print where the database is: one line for the shell, unless --format asks for more."""
    with open_app(ctx, only_reads=True) as app:
        _show(app.databases().path(), ctx, lambda value: str(value["path"]), plain=True)


@db.command("upgrade", epilog=examples("kr db upgrade"))
@with_context
def upgrade(ctx: click.Context) -> None:
    """Bring the database to this kr's schema; an older one is backed up beside it first."""
    with open_app(ctx) as app:
        _show(app.databases().upgrade(), ctx, _upgraded)


@db.command("check", epilog=examples("kr db check", "kr db check --format json"))
@with_context
def check(ctx: click.Context) -> int:
    """Examine pages, indexes, references, tables and texts. Exit status 1 when the database is not sound."""
    with open_app(ctx) as app:
        value = app.databases().check()
        _show(value, ctx, _checked)
    return 0 if value["sound"] else 1


@db.command("backup", epilog=examples("kr db backup", "kr db backup ~/backups"))
@click.argument("file", type=_FILE, required=False)
@with_context
def backup(ctx: click.Context, /, file: Path | None) -> None:
    """Copy the database to FILE while others write.

    Without FILE the copy stands beside the database, with the time in its name. A file that exists is never
    overwritten; a folder gets a copy with the time in its name. Reports are files of their own: copy the
    knowledge base's folder for them.
    """
    with open_app(ctx, only_reads=True) as app:
        value = app.databases().backup(file)
        _show(value, ctx, lambda it: f"backed up to {it['backup']} ({counted(it['bytes'], 'byte')})")


@db.command("restore", epilog=examples("kr db restore kr-20261121T120000Z.db"))
@click.argument("file", type=_FILE)
@with_context
def restore(ctx: click.Context, /, file: Path) -> None:
    """Put the backup FILE in the database's place.

    FILE is checked first. The present database is kept beside it, and agents may go on working.
    """
    with open_app(ctx) as app:
        _show(app.databases().restore(file), ctx, _restored)


@db.command("prune", epilog=examples("kr db prune --keep 2"))
@click.option(
    "--keep",
    type=click.IntRange(min=0, max=MOST),
    default=1,
    show_default=True,
    help="How many stay, the newest.",
)
@with_context
def prune(ctx: click.Context, /, *, keep: int) -> None:
    """Delete old copies of the database: backups beside it, those of upgrades, restores and repairs."""
    with open_app(ctx, only_reads=True) as app:
        _show(app.databases().prune(keep=keep), ctx, _pruned)


def _pruned(value: dict[str, Any]) -> str:
    told = f"{counted(len(value['deleted']), 'copy', 'copies')} deleted ({counted(value['bytes'], 'byte')})"
    return "\n".join([*value["deleted"], f"{told}, {len(value['kept'])} kept"])


def _show(value: dict[str, Any], ctx: click.Context, view: View, *, plain: bool = False) -> None:
    said = common(ctx)
    if plain and said.format is None:
        said = Common(config=said.config, kb=said.kb, format="text", verbose=said.verbose)
    emit(value, said, view)


def _upgraded(value: dict[str, Any]) -> str:
    if not value["upgraded"]:
        return f"{value['path']} is up to date (schema {value['to_version']})"
    if value["from_version"] is None:
        return f"{value['path']} was made (schema {value['to_version']})"
    kept = f"; it was backed up to {value['backup']}" if value["backup"] else ""
    return f"{value['path']} was upgraded from schema {value['from_version']} to {value['to_version']}{kept}"


def _checked(value: dict[str, Any]) -> str:
    if value["sound"] and value["state"] == "absent":
        return f"{value['path']}: there is no database yet; `kr init` or the first research makes it"
    word = click.style("sound", fg="green") if value["sound"] else click.style("not sound", fg="red")
    lines = [f"{value['path']}: {word}"]
    lines += [f"  {problem}" for problem in value["problems"]]
    if value["state"] == "older":
        lines.append(f"  of an older kr (schema {value['schema_version']}); `kr db upgrade` upgrades it")
    if not value["sound"] and value["state"] in {"corrupt", "current", "older"}:
        lines.append("  `kr doctor --repair` keeps it and rescues what can be read")
    return "\n".join(lines)


def _restored(value: dict[str, Any]) -> str:
    lines = [f"{value['path']} is {value['restored']} now ({counted(value['entries'], 'entry', 'entries')})"]
    if value["kept"]:
        lines.append(f"what was there before is {value['kept']}")
    lines.append("`kr doctor` tells whether its reports are all there")
    return "\n".join(lines)


_COLOURS = {"error": "red", "warning": "yellow", "information": "cyan"}


@click.command(
    "doctor",
    epilog=examples("kr doctor", "kr doctor --repair", "kr doctor --online", "kr doctor --format json"),
)
@click.option(
    "--repair", is_flag=True, help="Do what the findings announce; nothing is ever deleted for good."
)
@click.option("--online", is_flag=True, help="Also ask each configured source and model one cheap question.")
@click.option(
    "--reset-circuits", is_flag=True, help="Ask sources again that were paused because they failed."
)
@with_context
def doctor(ctx: click.Context, /, *, repair: bool, online: bool, reset_circuits: bool) -> int:
    """Find what is wrong: database, indexes, reports, exports, leases, permissions, file system.

    Each finding says what --repair would do. A repair loses nothing: a lost report is written back where its
    text is kept, and its entry goes to the archive where it is not; a damaged database is kept beside the new
    one; what the exports know and an older copy of the database doesn't is imported. Files that may not be read are
    left alone. --online says whether each server answers and accepts its key. Exit status 1 while a problem remains.
    """
    from kr.maintenance.doctor import examine, report
    from kr.maintenance.doctor import repair as mend

    with open_app(ctx) as app:
        for source in app.reset_circuits() if reset_circuits else ():
            click.echo(f"{source} is asked again from now on", err=True)
        base = app.knowledge_base()
        if repair:
            listed = [finding for finding in examine(base) if finding.fix]
            for finding in listed:
                _announce(finding)
            value = mend(base, lambda it: None if it in listed else _announce(it))
        else:
            value = report(base)
        if online:
            found = list(app.check_sources())
            value["findings"] += [finding.plain() for finding in found]
            value["problems"] += sum(finding.is_problem for finding in found)
        emit(value, common(ctx), examined)
    return 1 if value["problems"] else 0


def _announce(finding: "Finding") -> None:
    """Say what will be done, before anything is done; what a repair brings to light, before that is repaired."""
    click.echo(f"{finding.check}: {finding.subject}: {finding.message}. Repair: {finding.repair}", err=True)


def examined(value: dict[str, Any]) -> str:
    """Make the readable view: what was done, what is left, how many problems."""
    lines = [
        f"{click.style('repaired', fg='green')} {row['check']}: {row['subject']}\n  {row['done']}"
        for row in value["repaired"]
    ]
    for row in value["findings"]:
        severity = click.style(row["severity"], fg=_COLOURS[row["severity"]])
        lines.append(f"{severity} {row['check']}: {row['subject']}")
        lines += wrapped("  ", row["message"], indent=2)
        if row["repair"]:
            lines += wrapped("  --repair would: ", row["repair"], indent=4)
    number = value["problems"]
    told = counted(number, "problem") if number else "no problem"
    lines.append(click.style(f"{told} in {value['knowledge_base']}", bold=True))
    return "\n".join(lines)


@click.command("init", epilog=examples("kr init", "kr init --kb shared/knowledge-base"))
@with_context
def init(ctx: click.Context) -> None:
    """Write kr.yaml and create the knowledge base.

    Nothing is overwritten, and it may be run again: where a file exists already, it says what to add.
    """
    with open_app(ctx) as app:
        done = app.initialize()
        emit(done, common(ctx), initialized)


def initialized(value: dict[str, Any]) -> str:
    """Make the readable view: a line per file, what to add by hand, what to try next."""
    lines = [f"{click.style(item['state'], bold=True):<8}  {item['path']}" for item in value["files"]]
    lines += [f"\n{hint}" for hint in value["hints"]]
    lines += ["\nNext:", *(f"  {command}" for command in value["next"])]
    return "\n".join(lines)
