"""``kr db``: where the database is, its upgrade, its soundness, its backups."""

from pathlib import Path
from typing import Any

import click

from kr.cli.options import MOST, Common, Group, common, common_options, examples, open_app, with_context
from kr.cli.render import View, emit
from kr.text.counting import counted

_FILE = click.Path(path_type=Path, dir_okay=True)


@click.group(
    "db",
    cls=Group,
    epilog=examples(
        'sqlite3 "$(kr db path)" "SELECT * FROM hit_rate_by_day"',
        "kr db check",
        "kr db backup",
        "kr db restore kr-20261121T120000Z.db",
        "kr db prune --keep 2",
    ),
)
@common_options
def command() -> None:
    """Find, check, upgrade, back up and restore the database; delete old copies of it."""


@command.command("path", epilog=examples('sqlite3 "$(kr db path)" "SELECT * FROM hit_rate_by_day"'))
@with_context
def path(ctx: click.Context) -> None:
    """Print where the database is: one line for the shell, unless --format asks for more."""
    with open_app(ctx, only_reads=True) as app:
        _show(app.databases().path(), ctx, lambda value: str(value["path"]), plain=True)


@command.command("upgrade", epilog=examples("kr db upgrade"))
@with_context
def upgrade(ctx: click.Context) -> None:
    """Bring the database to this kr's schema; an older one is backed up beside it first."""
    with open_app(ctx) as app:
        _show(app.databases().upgrade(), ctx, _upgraded)


@command.command("check", epilog=examples("kr db check", "kr db check --format json"))
@with_context
def check(ctx: click.Context) -> int:
    """Examine pages, indexes, references, tables and texts. Exit status 1 when the database is not sound."""
    with open_app(ctx) as app:
        value = app.databases().check()
        _show(value, ctx, _checked)
    return 0 if value["sound"] else 1


@command.command("backup", epilog=examples("kr db backup", "kr db backup ~/backups"))
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


@command.command("restore", epilog=examples("kr db restore kr-20261121T120000Z.db"))
@click.argument("file", type=_FILE)
@with_context
def restore(ctx: click.Context, /, file: Path) -> None:
    """Put the backup FILE in the database's place.

    FILE is checked first. The present database is kept beside it, and agents may go on working.
    """
    with open_app(ctx) as app:
        _show(app.databases().restore(file), ctx, _restored)


@command.command("prune", epilog=examples("kr db prune --keep 2"))
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
