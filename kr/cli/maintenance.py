"""``kr init``, ``trust``, ``stats``, ``doctor``, ``db``, ``completion``, ``mcp`` and ``serve``: setting kr up, and serving agents."""

import logging
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from kr.cli import common
from kr.cli.readable import readable
from kr.errors import KrError, NotInstalled
from kr.settings import Settings, load_settings
from kr.settings.model import render_config
from kr.settings.project import (
    CONFIG,
    Project,
    find_project,
    guarded,
    is_trusted,
    main_checkout,
    read_config,
    shown,
)
from kr.settings.project import trust as trust_file
from kr.store import entries
from kr.store.files import open_own, refuse_link
from kr.text import strip_invisible

if TYPE_CHECKING:
    from kr.app import App

logger = logging.getLogger(__name__)

Row = dict[str, Any]

_FILE = click.Path(path_type=Path, dir_okay=True)
_PORT = click.IntRange(0, 65535)
_DEFAULT = ".kr"
_OF_SOURCES = ("source", "asked", "success", "timeout", "unavailable", "mean_ms", "circuit")


@common.kr_command("init", "kr init", "kr init --kb shared/knowledge-base")
def init(ctx: click.Context) -> int:
    """Write kr.yaml and create the knowledge base.

    Nothing is overwritten, and it may be run again: where a file exists already, it says what to add. In a git checkout the
    knowledge base .kr is added to .gitignore; of another one it says what to commit. It makes the folder a project.
    """
    project, environ = _project(ctx), dict(os.environ)
    is_new = project.file is None and _write_config(project, common.options(ctx).get("kb"), environ)
    with common.open_app(ctx) as app:
        files = [_file(app.settings.config_file, is_new=is_new)]
        files.append(_file(app.store.location, is_new=not app.store.exists()))
        with app.store.write() as tx:  # one of several at once after another
            entries.count(tx)
            hints = [_version_control(app.settings, files)]
        used = next((row["framework"] for row in app.warm(app.settings.project_root)), "click")
        ask = f'kr research {shlex.quote(used)} "How do I test code that uses {used}?"'
        return common.emit({"files": files, "hints": hints, "next": [ask, "kr warm", "kr doctor"]}, ctx)


def _project(ctx: click.Context) -> Project:
    config = common.options(ctx).get("config")
    return find_project(config=Path(config) if config else None, environ=os.environ, cwd=Path.cwd())


def _file(path: object, *, is_new: bool) -> dict[str, str]:
    return {"path": str(path), "state": "created" if is_new else "exists"}


def _write_config(project: Project, kb: str | None, environ: Mapping[str, str]) -> bool:
    """Write the file that fits, and trust it; False where another process wrote one meanwhile."""
    path = project.root / CONFIG
    is_bmad = project.default.startswith("_bmad")
    text = render_config(_chosen_base(project, kb, environ), is_bmad=is_bmad)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    trust_file(replace(project, file=read_config(path)), environ)
    return True


def _chosen_base(project: Project, kb: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the path to write; None where the user's own file names the knowledge base.

    Teams commit the file: what lies within the project is named from there.
    """
    base = load_settings(config=None, knowledge_base=kb, environ=environ, cwd=Path.cwd()).knowledge_base
    if project.base is not None and base == (project.base / project.default).resolve():
        return _DEFAULT if project.default == "." else project.default
    if base.is_relative_to(project.root):
        return base.relative_to(project.root).as_posix()
    return str(base) if kb or environ.get("KR_KNOWLEDGE_BASE_PATH") else None


def _version_control(settings: Settings, files: list[dict[str, str]]) -> str:
    """Leave ``.kr`` out of git, and say what a team commits: what is text, not the database."""
    root = settings.project_root
    shared = main_checkout(root)
    if not settings.knowledge_base.is_relative_to(shared):
        return f"Commit {CONFIG}. The knowledge base lies outside of the project."
    folder = settings.knowledge_base.relative_to(shared).as_posix()
    is_checkout = any((above / ".git").exists() for above in (root, *root.parents))
    if folder == _DEFAULT and is_checkout:
        files.append(_ignore(root / ".gitignore", f"/{folder}/"))
        return f"Commit {CONFIG} and .gitignore, which leaves the knowledge base out: take /{folder}/ from it to share reports."
    return f"Commit {CONFIG} and {folder}/ to share reports and lessons; {folder}/.gitignore leaves the database out."


def _ignore(file: Path, line: str) -> dict[str, str]:
    """Add a line to .gitignore where none names the folder yet."""
    refuse_link(file)
    text = file.read_text(encoding="utf-8", errors="surrogateescape") if file.exists() else ""
    if any(known.strip().strip("/") == line.strip("/") for known in text.splitlines()):
        return {"path": str(file), "state": "exists"}
    descriptor = open_own(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
        stream.write(f"\n{line}\n" if text and not text.endswith("\n") else f"{line}\n")
    return {"path": str(file), "state": "changed" if text else "created"}


@common.kr_command("trust", "kr trust", "kr trust --yes")
@click.option("--yes", "-y", is_flag=True, help="Don't ask; needed where no terminal is there to answer.")
def trust(ctx: click.Context, /, *, yes: bool) -> int:
    """Let what a project's kr.yaml starts, expands and calls take effect.

    The programs, variables, keys, endpoints, private addresses and places outside of the project that it names are left
    out until you trust the file: whoever wrote the repository wrote them. This shows them and remembers the file as it
    is; after a change it asks again. Your own kr.yaml in ~/.config/kr and a file that --config or KR_CONFIG names need
    no trust. Exit status 1 where you say no.
    """
    project, environ = _project(ctx), dict(os.environ)
    file = project.file
    if file is None:
        raise KrError("there is no kr.yaml here or above: nothing needs to be trusted")
    settings = [shown(path, one) for path, one in guarded(project, environ)]
    value: dict[str, Any] = {"file": str(file.path), "settings": settings, "trusted": True}
    if settings and not is_trusted(project, environ):
        value["trusted"] = yes or _agrees(file.path, settings)
        if value["trusted"]:
            trust_file(project, environ)
    return common.emit(common.Output(value=value, status=int(not value["trusted"])), ctx)


def _agrees(file: Path, settings: list[str]) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        click.echo(f"{file} is not trusted: read it, then say `kr trust --yes`", err=True)
        return False
    click.echo("\n".join([f"{file} says:", *(f"  {strip_invisible(line)}" for line in settings)]), err=True)
    return click.confirm("Trust this file, as it is now?", err=True)


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
def stats(app: "App") -> common.Output:
    """Count hits, tokens spared, spending, source reliability, and what the index holds.

    Tokens spared are what finding out had cost, less what the answer from the cache contained. What was not measured
    counts as nothing. No database is made.
    """
    return common.Output(value=app.stats(), view=_sums, hint=_WHOLE)


_WHOLE = "Days, frameworks, stories and phases: kr stats --format json, or the page of kr serve."


def _sums(value: Row) -> list[str]:
    """Show the numbers that fit on a screen, and the sources."""
    sums = [
        {"about": name, **{key: number for key, number in it.items() if not isinstance(number, dict | list)}}
        for name, it in value.items()
        if isinstance(it, dict)
    ]
    sources = [{name: row[name] for name in _OF_SOURCES} for row in value["sources"]]
    return [value["database"], *readable(sums), *readable(sources)]


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
