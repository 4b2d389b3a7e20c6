"""``kr stats``: what the cache saves, costs and holds."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

import click

from kr.cli.options import common, examples, open_app, with_context
from kr.cli.output import emit, fitted, wrapped
from kr.text.counting import counted

_BAR = 22
_NAME = 30
_MOST_ROWS = 12
_DAYS = 30
_WEEK = 7
_LEVELS = "▁▂▃▄▅▆▇"


@click.command("stats", epilog=examples("kr stats", "kr stats --format json"))
@with_context
def command(ctx: click.Context) -> None:
    """Count hits, saved calls and seconds, spending, source reliability, and what the index holds.

    Saved seconds are the hits times the difference between the mean duration of a research that a source
    answered and that of a hit; saved calls are the hits times the calls charged to such a research on average.
    No database is made; one of an older kr is backed up beside itself and upgraded first.
    """
    with open_app(ctx, may_share=True, only_reads=True) as app:
        emit(app.stats(), common(ctx), view)


def view(value: dict[str, Any]) -> str:
    """Make the readable view, 80 columns wide, with a bar beside what can be compared."""
    requests, saved, index = value["requests"], value["saved"], value["index"]
    archive, spending, lessons = value["archive"], value["spending"], value["lessons"]
    measured = counted(saved["measured_researches"], "research", "researches")
    told = f"{saved['calls']:.0f} calls, {_duration(saved['seconds'])} (measured on {measured})"
    lines = [
        _title("Requests"),
        f"  {counted(requests['research'], 'question')}: {requests['hits']} from the cache, {requests['misses']} researched",
        _bar_line("hit rate", requests["hit_rate"] or 0.0, _percent(requests["hit_rate"])),
        f"  saved: {told if saved['measured_researches'] else 'not measured yet: no source has answered a research'}",
    ]
    lines += _section("Hit rate by framework", _rates(value["hit_rate_by_framework"], "framework"))
    lines += _section(f"The last {_DAYS} days", _trend(value["hit_rate_by_day"], value["today"]))
    lines += _section(
        f"Spending: {counted(spending['charged'], 'call')} for {counted(spending['stories'], 'story', 'stories')}"
        " (failed ones are not charged)",
        _spending(spending["by_story"], spending["max_calls_per_story"]),
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
    """Draw a share of 0.0 to 1.0; anything above nothing shows."""
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
    """Draw requests and hit rate by day up to today; days without requests are gaps."""
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


def _spending(rows: list[dict[str, Any]], limit: int) -> list[str]:
    most = max([limit, *(row["charged"] for row in rows)], default=1) or 1
    return [
        _bar_line(
            f"{row['story_key']} {row['session_id']}",
            row["charged"] / most,
            f"{row['charged']} of {limit}"
            + (f", {row['uncharged']} not charged" if row["uncharged"] else ""),
        )
        for row in rows
    ]


def _sources(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        told = f"{_percent(row['success_rate'])} of {row['asked']}"
        if row["mean_ms"] is not None:
            told += f", {_duration(row['mean_ms'] / 1000)}"
        lines.append(_bar_line(row["source"], row["success_rate"] or 0.0, told))
        if row["circuit"] == "open":
            paused = f"paused until {row['open_until']}: {row['last_error'] or 'it kept failing'}"
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
    for title, name in (("helps", "helps"), ("comes back although given", "unheeded")):
        for lesson in lessons.get(name, ()):
            lines += wrapped("  ", f"{title}: {lesson['id']} {lesson['summary']}", indent=4)
    if waiting := lessons.get("quarantined"):
        lines.append(f"  {counted(waiting, 'lesson')} in quarantine: kr lessons review")
    return lines


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.0%}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
