"""``kr db``, ``doctor``, ``stats``, ``completion``, ``mcp`` and ``serve``: looking after a knowledge base, and serving it."""

import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from kr.cli import common
from kr.errors import NotInstalled

if TYPE_CHECKING:
    from kr.app import App

logger = logging.getLogger(__name__)

Row = dict[str, Any]

_FILE = click.Path(path_type=Path, dir_okay=True)
_PORT = click.IntRange(0, 65535)


@common.kr_group("db", 'sqlite3 "$(kr db path)" "SELECT * FROM hit_rate_by_day"', "kr db backup")
def db() -> None:
    """Find, check, upgrade, back up, restore and copy the database."""


@common.operation(
    "path", 'sqlite3 "$(kr db path)" "SELECT * FROM hit_rate_by_day"', group=db, only_reads=True
)
def path(app: "App") -> common.Output:
    """Print where the database is: one line for the shell, unless --format asks for more."""
    place = app.store.location if app.store.is_shared else str(app.store.path.absolute())
    value = {"path": place, "exists": app.store.exists()}
    return common.Output(value=value, view=lambda it: [it["path"]], is_line=True)


@common.operation("upgrade", "kr db upgrade", group=db)
def upgrade(app: "App") -> Row:
    """Bring the database to this kr's schema. One is made where none is."""
    from kr.store import backup, entries  # heavy

    before = backup.inspect(app.store)
    is_old = before.state != "current"  # one that is current may well be write-protected
    if is_old:
        with app.store.write() as tx:
            entries.count(tx)
    return {"path": app.store.location, "upgraded": is_old, "from_version": before.version}


@common.operation("check", "kr db check", "kr db check --format json", group=db)
def check(app: "App") -> common.Output:
    """Examine pages, indexes, references, tables and texts. Exit status 1 when the database is not sound."""
    from kr.store import backup  # heavy

    found = backup.inspect(app.store)
    problems = [found.problem] if found.problem else []
    if found.state in {"current", "older"}:
        problems = backup.check(app.store)
    facts = {"state": found.state, "schema_version": found.version, "problems": problems}
    value = {"path": app.store.location, "sound": not problems, **facts}
    return common.Output(value=value, status=int(bool(problems)))


@common.operation("backup", "kr db backup", "kr db backup ~/backups", group=db, only_reads=True)
@click.argument("file", type=_FILE, required=False)
def backup_(app: "App", file: Path | None) -> Row:
    """Copy the database file to FILE while agents go on; one on PostgreSQL is left to pg_dump.

    Without FILE the copy stands beside the database, with the time in its name. A file that exists is never
    overwritten; a folder gets a copy with the time in its name. Reports are files of their own: copy the
    knowledge base's folder for them.
    """
    from kr.store import backup  # heavy

    made = backup.backup(app.store.path, file, _moment())
    return {"path": str(app.store.path), "backup": str(made), "bytes": made.stat().st_size}


@common.operation("restore", "kr db restore kr-20261121T120000Z.db", group=db)
@click.argument("file", type=_FILE)
def restore(app: "App", file: Path) -> Row:
    """Put the backup FILE in the database file's place; a database on PostgreSQL is left to pg_restore.

    FILE is checked first. The present database is kept beside it, and agents may go on working. Reports and exports are
    made anew from it; one that differs is kept beside its new text, with the time and .bak in its name.
    """
    from kr.store import entries  # heavy
    from kr.transfer.export_yaml import restore_backup  # heavy

    kept = restore_backup(app.store, app.settings.knowledge_base, file, _moment())
    with app.store.read() as tx:
        facts = {"kept": str(kept) if kept else None, "entries": entries.count(tx)}
    return {"path": str(app.store.path), "restored": str(file), **facts}


@common.operation(
    "copy",
    'kr db copy "$(kr db path)" postgresql+psycopg://kr@db.example/kr',
    "kr db copy postgresql+psycopg://kr@db.example/kr .kr/kr.db",
    group=db,
    only_reads=True,
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(app: "App", source: str, target: str) -> Row:
    """Copy a knowledge base from one database into another, empty one: from a file to PostgreSQL, or back.

    FROM and TO are files, or URLs as in KR_DATABASE_URL (a password is better kept in ~/.pgpass: others see what is typed here).
    Everything goes over in one transaction. Reports are written again as kr answers.
    """
    from kr.store import backup  # heavy
    from kr.store.engine import store_of  # heavy

    with store_of(source, app.store.folder) as old, store_of(target, app.store.folder) as new:
        return {"from": old.location, "to": new.location, "rows": backup.copy(old, new)}


def _moment() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


@common.operation(
    "doctor", "kr doctor", "kr doctor --repair", "kr doctor --online", "kr doctor --format json"
)
@click.option("--repair", is_flag=True, help="Do what the findings announce; nothing is deleted for good.")
@click.option("--online", is_flag=True, help="Also ask each configured source and model one cheap question.")
def doctor(app: "App", **wanted: bool) -> common.Output:
    """Find what is wrong: database, reports, exports.

    Each finding says what --repair would do. A lost report is written back where its text is kept, and its entry goes to the
    archive where it is not; a corrupt database is set aside, and a new one made from the exports and reports. Files that may
    not be read are left alone. --online says whether each server answers and accepts its key. Exit status 1 while a problem
    remains.
    """
    value = app.doctor(**wanted)
    return common.Output(value=value, status=int(value["problems"] > 0))


@common.operation("stats", "kr stats", "kr stats --format json", may_share=True, only_reads=True)
def stats(app: "App") -> Row:
    """Count hits, tokens spared, spending, source reliability, and what the index holds.

    Tokens spared are what finding out had cost, less what the answer from the cache contained: what a research read, or what the session
    that saved a finding had been given. Seconds are counted alike. What was not measured counts as nothing.
    No database is made.
    """
    return app.stats()


@common.kr_command(
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
        common.write_out(kind(ctx.find_root().command, {}, "kr", "_KR_COMPLETE").source())


@common.kr_command("mcp", "kr mcp", "kr mcp --kb ~/knowledge-base")
def mcp(ctx: click.Context, /) -> int:
    """Serve the tools of kr to an agent, over standard input and output (MCP).

    A program that speaks MCP starts this by itself: give it the command kr and the argument mcp.
    """
    from kr.server.mcp import serve_stdio  # heavy
    from kr.server.worker import notify_client  # heavy

    if sys.stdin is not None and sys.stdin.isatty():
        click.echo("kr speaks MCP here, to a program that starts it; Ctrl-C ends it", err=True)
    with common.open_app(ctx, progress=notify_client, may_share=True) as app:
        return serve_stdio(app)


@common.kr_command("serve", "kr serve", "KR_TOKEN=... kr serve --host 0.0.0.0 --allow-host kr")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8765, show_default=True, type=_PORT, help="0 takes a free one.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="A name that it is called by.")
def serve(ctx: click.Context, /, host: str, port: int, names: tuple[str, ...]) -> int:
    """Serve agents over HTTP (/v1, /openapi.json) and MCP (/mcp), and people with a page at /.

    An address that others can reach needs a token in KR_TOKEN, which clients send as a bearer token. Requests by
    a host name that is neither the address nor allowed are refused.
    SIGTERM and SIGINT end it once what is under way is answered.
    """
    try:
        from kr.server.serve import serve  # heavy
        from kr.server.worker import notify_client  # heavy
    except ModuleNotFoundError as error:
        raise NotInstalled("serve", error.name or "fastapi") from error
    with common.open_app(ctx, progress=notify_client) as app:
        return serve(app, host, port, names, os.environ)
