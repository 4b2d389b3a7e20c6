"""``kr stats``: what the cache spares, costs and holds."""

from collections.abc import Iterable
from typing import Any

import click

from kr.cli.common import emit, kr_command, open_app, table
from kr.text import counted

_MOST_ROWS = 12


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
    measured = f"{counted(spared['answers'], 'answer')} measured"
    shown = f"{counted(spared['tokens'], 'token')}, {_duration(spared['seconds'])} ({measured})"
    statuses = "".join(f", {number} {name}" for name, number in index["by_status"].items())
    quarantined = lessons.get("quarantined")
    lines = [
        f"{counted(requests['research'], 'question')}: {requests['hits']} from the cache, {requests['misses']} researched",
        f"hit rate: {_percent(requests['hit_rate'])}",
        f"spared: {shown if spared['answers'] else 'not measured yet: of no answer is it known what finding out had cost'}",
        f"index: {index['entries']} of {counted(index['max_entries'], 'entry', 'entries')}{statuses}",
        f"archive: {counted(value['archive']['entries'], 'entry', 'entries')}",
        f"lessons: {lessons['total']}" + (f", {quarantined} held back (kr review)" if quarantined else ""),
    ]
    rates = [
        (row["framework"], row["requests"], _percent(row["hit_rate"]))
        for row in value["hit_rate_by_framework"]
    ]
    lines += _section("By framework", ("framework", "questions", "hit rate"), rates)
    days = [(row["day"], row["requests"], _percent(row["hit_rate"])) for row in value["hit_rate_by_day"]]
    lines += _section("By day", ("day", "questions", "hit rate"), days[::-1])
    calls = [
        (row["story_key"], row["session_id"], row["charged"], row["uncharged"])
        for row in spending["by_story"]
    ]
    title = f"Spending: {counted(spending['charged'], 'call')} for {counted(spending['stories'], 'story', 'stories')}"
    lines += _section(title, ("story", "session", "charged", "not charged"), calls)
    lines += _section(
        "Sources", ("source", "asked", "answered", "mean", "state"), map(_source, value["sources"])
    )
    phases = [(row["phase"], row["lessons"], row["injected"], row["recurred"]) for row in lessons["by_phase"]]
    lines += _section("Lessons", ("phase", "lessons", "given", "came back"), phases)
    workflows = list(value["workflows"]["by_status"].items())
    lines += _section("Workflows", ("status", "number"), workflows)
    return "\n".join(lines)


def _section(title: str, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> list[str]:
    listed = list(rows)
    if not listed:
        return []
    more = len(listed) - _MOST_ROWS
    rest = [f"… --format json lists {more} more"] if more > 0 else []
    return ["", click.style(title, bold=True), table(columns, listed[:_MOST_ROWS], wide=columns[0]), *rest]


def _source(row: dict[str, Any]) -> tuple[object, ...]:
    mean = None if row["mean_ms"] is None else _duration(row["mean_ms"] / 1000)
    paused = (
        f"paused until {row['open_until'][11:19]} UTC: {row['last_error']}" if row["open_until"] else None
    )
    return row["source"], row["asked"], _percent(row["success_rate"]), mean, paused


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.0%}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
