"""``kr doctor``, ``kr db`` and ``kr stats``, ``kr mcp`` and ``kr serve``: an installation and its knowledge base (SPEC 6.5, 8)."""

import gc
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli.options import (
    Group,
    common,
    common_options,
    examples,
    open_app,
    start_logging,
    with_context,
)
from kr.cli.output import emit, fitted, wrapped
from kr.errors import NotInstalled
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
    """Find, check, upgrade, back up and restore the database."""


@db.command("path", epilog=examples('sqlite3 "$(kr db path)" "SELECT * FROM hit_rate_by_day"'))
@with_context
def path(ctx: click.Context) -> None:
    """Print where the database is: one line for the shell, unless --format asks for more."""
    with open_app(ctx, only_reads=True) as app:
        emit(app.databases().path(), ctx, lambda value: str(value["path"]), is_line=True)


@db.command("upgrade", epilog=examples("kr db upgrade"))
@with_context
def upgrade(ctx: click.Context) -> None:
    """Bring the database to this kr's schema; an older one is backed up beside it first."""
    with open_app(ctx) as app:
        emit(app.databases().upgrade(), ctx, _upgraded)


@db.command("check", epilog=examples("kr db check", "kr db check --format json"))
@with_context
def check(ctx: click.Context) -> int:
    """Examine pages, indexes, references, tables and texts. Exit status 1 when the database is not sound."""
    with open_app(ctx) as app:
        value = app.databases().check()
        emit(value, ctx, _checked)
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
        emit(value, ctx, lambda it: f"backed up to {it['backup']} ({counted(it['bytes'], 'byte')})")


@db.command("restore", epilog=examples("kr db restore kr-20261121T120000Z.db"))
@click.argument("file", type=_FILE)
@with_context
def restore(ctx: click.Context, /, file: Path) -> None:
    """Put the backup FILE in the database's place.

    FILE is checked first. The present database is kept beside it, and agents may go on working.
    """
    with open_app(ctx) as app:
        emit(app.databases().restore(file), ctx, _restored)


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
    """Find what is wrong: database, indexes, reports, exports, permissions, file system.

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
        found = app.check_trust()
        if online:
            found += app.check_sources()
        if found:
            value["findings"] += [finding.plain() for finding in found]
            value["problems"] += sum(finding.is_problem for finding in found)
        emit(value, ctx, examined)
    return 1 if value["problems"] else 0


def _announce(finding: "Finding") -> None:
    """Say what will be done, before anything is done; what a repair brings to light, before that is repaired."""
    click.echo(f"{finding.check}: {finding.subject}: {finding.message}. Repair: {finding.repair}", err=True)


def examined(value: dict[str, Any]) -> str:
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


_BAR = 22
_NAME = 30
_MOST_ROWS = 12
_DAYS = 30
_WEEK = 7
_LEVELS = "▁▂▃▄▅▆▇"


@click.command("stats", epilog=examples("kr stats", "kr stats --format json"))
@with_context
def stats(ctx: click.Context) -> None:
    """Count hits, tokens spared, spending, source reliability, and what the index holds.

    An answer from the cache spares what finding out had cost before, less the answer: the tokens that a research read, or that the
    session which saved the finding had been given, and the seconds that they waited. Nothing counts that was not measured.
    No database is made; one of an older kr is backed up beside itself and upgraded first.
    """
    with open_app(ctx, may_share=True, only_reads=True) as app:
        emit(app.stats(), ctx, stats_view)


def stats_view(value: dict[str, Any]) -> str:
    requests, spared, index = value["requests"], value["spared"], value["index"]
    archive, spending, lessons = value["archive"], value["spending"], value["lessons"]
    answers = counted(spared["answers"], "answer")
    told = f"{counted(spared['tokens'], 'token')}, {_duration(spared['seconds'])} ({answers} measured)"
    lines = [
        _title("Requests"),
        f"  {counted(requests['research'], 'question')}: {requests['hits']} from the cache, {requests['misses']} researched",
        _bar_line("hit rate", requests["hit_rate"] or 0.0, _percent(requests["hit_rate"])),
        f"  spared: {told if spared['answers'] else 'not measured yet: of no answer is it known what finding out had cost'}",
    ]
    lines += _section("Hit rate by framework", _rates(value["hit_rate_by_framework"], "framework"))
    lines += _section(f"The last {_DAYS} days", _trend(value["hit_rate_by_day"], value["today"]))
    lines += _section(
        f"Spending: {counted(spending['charged'], 'call')} for {_payers(spending)}"
        " (failed ones are not charged)",
        _spending(spending),
    )
    lines += _section("Sources", _sources(value["sources"]))
    lines += _section(
        f"Index: {index['entries']} of {counted(index['max_entries'], 'entry', 'entries')}"
        f"{''.join(f', {number} {name}' for name, number in index['by_status'].items())}"
        f"; {archive['entries']} archived",
        [],
        always=True,
    )
    lines += _section("Entries by last access", _shares(index["by_age"])) if index["entries"] else []
    lines += _section("Entries by framework", _shares(index["by_framework"]))
    lines += _section(f"Lessons: {lessons['total']}", _lessons(lessons), always=True)
    workflows = value["workflows"]
    if workflows["total"]:
        lines += _section(f"Workflows: {workflows['total']}", _shares(workflows["by_status"]))
    return "\n".join(lines)


def spark(shares: Iterable[float | None]) -> str:
    """Draw shares of 0.0 to 1.0 side by side, one cell each; None leaves a gap."""
    return "".join(
        " " if share is None else _LEVELS[min(int(share * len(_LEVELS)), len(_LEVELS) - 1)]
        for share in shares
    )


def bar(share: float) -> str:
    share = min(max(share, 0.0), 1.0)
    filled = max(round(share * _BAR), 1) if share > 0 else 0
    return "█" * filled + "░" * (_BAR - filled)


def _title(text: str) -> str:
    return click.style(text, bold=True)


def _section(title: str, rows: Iterable[str], *, always: bool = False) -> list[str]:
    listed = list(rows)
    if not listed and not always:
        return []
    shown = listed[:_MOST_ROWS]
    more = len(listed) - len(shown)
    return ["", _title(title), *shown, *([f"  … --format json lists {more} more"] if more else [])]


def _bar_line(name: str, share: float, told: str) -> str:
    return f"  {fitted(name, _NAME)} {bar(share)} {told}"


def _rates(rows: list[dict[str, Any]], key: str) -> list[str]:
    return [
        _bar_line(row[key], row["hit_rate"], f"{_percent(row['hit_rate'])} of {row['requests']}")
        for row in rows
    ]


def _trend(rows: list[dict[str, Any]], today: str) -> list[str]:
    known = {row["day"]: row for row in rows}
    last = date.fromisoformat(today)
    days = [known.get((last - timedelta(days=back)).isoformat()) for back in reversed(range(_DAYS))]
    most = max((row["requests"] for row in days if row), default=0)
    if not most:
        return []
    asked = spark(row["requests"] / most if row else None for row in days)
    rates = spark(row["hit_rate"] if row else None for row in days)
    week, before = _percent(_hit_rate(days[-_WEEK:])), _percent(_hit_rate(days[:-_WEEK]))
    return [
        f"  {fitted('requests', _NAME)} {asked} most {most}",
        f"  {fitted(f'hit rate: last {_WEEK} days, before', _NAME)} {rates} {week}, {before}",
    ]


def _hit_rate(days: list[dict[str, Any] | None]) -> float | None:
    requests = sum(row["requests"] for row in days if row)
    return sum(row["hits"] for row in days if row) / requests if requests else None


def _spending(spending: dict[str, Any]) -> list[str]:
    rows, limit, single = spending["by_story"], spending["max_calls_per_story"], spending["single_questions"]
    most = max([limit, *(row["charged"] for row in rows)], default=1) or 1
    lines = [
        _bar_line(
            f"{row['story_key']} {row['session_id']}",
            row["charged"] / most,
            f"{row['charged']} of {limit}{_uncharged(row)}",
        )
        for row in rows
    ]
    if single["questions"]:
        lines.append(f"  questions of no story: {counted(single['charged'], 'call')}{_uncharged(single)}")
    return lines


def _payers(spending: dict[str, Any]) -> str:
    questions = spending["single_questions"]["questions"]
    stories = spending["stories"] - questions
    told = [counted(stories, "story", "stories")] if stories or not questions else []
    return " and ".join([*told, f"{counted(questions, 'question')} of no story"] if questions else told)


def _uncharged(row: dict[str, Any]) -> str:
    return f", {row['uncharged']} not charged" if row["uncharged"] else ""


def _sources(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        told = f"{_percent(row['success_rate'])} of {row['asked']}"
        if row["mean_ms"] is not None:
            told += f", {_duration(row['mean_ms'] / 1000)}"
        lines.append(_bar_line(row["source"], row["success_rate"] or 0.0, told))
        if row["circuit"] == "open":
            paused = f"paused until {row['open_until'][11:19]} UTC: {row['last_error'] or 'it kept failing'}"
            lines += [click.style(line, fg="yellow") for line in wrapped("    ", paused, indent=6)]
    return lines


def _shares(numbers: dict[str, int]) -> list[str]:
    most = max(numbers.values(), default=0) or 1
    return [_bar_line(name, number / most, str(number)) for name, number in numbers.items()]


def _lessons(lessons: dict[str, Any]) -> list[str]:
    lines = [
        f"  {row['phase']:<16} {counted(row['lessons'], 'lesson'):>12}, given {counted(row['injected'], 'time')}, "
        f"recurred {row['recurred']}"
        for row in lessons["by_phase"]
    ]
    if waiting := lessons.get("quarantined"):
        lines.append(f"  {counted(waiting, 'lesson')} in quarantine: kr review")
    return lines


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.0%}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@click.command("mcp", epilog=examples("kr mcp", "kr mcp --kb ~/knowledge-base"))
@with_context
def mcp(ctx: click.Context, /) -> int:
    """Serve the tools of kr to an agent, over standard input and output (MCP).

    A program that speaks MCP starts this by itself: give it the command kr and the argument mcp.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        click.echo("kr speaks MCP here, to a program that starts it; Ctrl-C ends it", err=True)
    with _lean_import():
        from kr.server.service import RequestProgress
        from kr.server.stdio import serve_stdio

    with open_app(ctx, progress=RequestProgress(), may_share=True) as app:
        return serve_stdio(app)


@contextmanager
def _lean_import() -> Iterator[None]:
    """Import the SDK of MCP at a quarter less of its cost.

    It declares 550 models, of which a session meets some twenty: each is built when it is first used. Thousands of
    its objects stay, so looking for garbage meanwhile costs a tenth.
    """
    from pydantic import BaseModel

    gc.disable()
    BaseModel.model_config["defer_build"] = True  # what is declared meanwhile inherits it
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]
        gc.freeze()
        gc.enable()


@click.command("serve", epilog=examples("kr serve", "KR_TOKEN=... kr serve --host 0.0.0.0 --allow-host kr"))
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on."
)
@click.option(
    "--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="A host name that this server is called by, as in http://NAME:8765; may be repeated.",
)
@with_context
def serve(ctx: click.Context, /, host: str, port: int, names: tuple[str, ...]) -> int:
    """Serve agents over HTTP (/v1, /openapi.json) and MCP (/mcp), and people with a page at /.

    An address that others can reach needs a token in KR_TOKEN, which clients send as a bearer token. Requests by
    a host name that is neither the address nor allowed are refused. Logs are JSON lines on standard error.
    SIGTERM and SIGINT end it once what is under way is answered.
    """
    start_logging(ctx)
    try:
        from kr.server.serve import Where, serve
    except ModuleNotFoundError as error:
        raise NotInstalled("serve", error.name or "fastapi") from error
    said = common(ctx)
    where = Where(host=host, port=port, names=names, config=said.config, knowledge_base=said.kb)
    return serve(where, os.environ)
