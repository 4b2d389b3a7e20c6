"""What a chart over days shows; the macro ``chart`` draws it as SVG: across in per cent, so that it fits any width.

Days are those of ``kr.stats.last_days``. A chart is a mapping: ``days``, each with its ``label``, its ``tick`` or None, the ``parts`` of its
bar from the bottom (their classes and values) and the ``value`` of its point; the ``lines`` behind them; ``top``, the value at the plot's
upper edge; ``height`` in pixels, without the labels below.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from math import ceil, log10
from typing import Any

from kr.server.page.rendering import number, percent
from kr.text import counted

HEIGHT = 150

Row = Mapping[str, Any]
Chart = dict[str, Any]


def bar_chart(days: Sequence[Row], **series: str) -> Chart:
    """Stack numbers of each day, the first at the bottom: ``series`` are their names by the classes of their parts."""
    parts = [[(kind, day[name]) for kind, name in series.items()] for day in days]
    step, top = scale(max((sum(value for _, value in part) for part in parts), default=0))
    drawn = [{**day, "parts": part} for day, part in zip(_drawn(days), parts, strict=True)]
    lines = [line * step for line in range(round(top / step) + 1)]
    return {"days": drawn, "lines": lines, "top": top, "height": HEIGHT}


def rate_chart(days: Sequence[Row]) -> Chart:
    """Draw the hit rate as a line; it begins anew after a day without one."""
    drawn = [{**shown, "value": day["hit_rate"]} for shown, day in zip(_drawn(days), days, strict=True)]
    return {"days": drawn, "lines": (0, 0.25, 0.5, 0.75, 1), "top": 1, "height": HEIGHT}


def _drawn(days: Sequence[Row]) -> list[Chart]:
    """Label every day, and name the last one and each that is whole weeks before it below the plot."""
    left = range(len(days) - 1, -1, -1)
    ticks = [None if before % 7 else _day_label(day["day"]) for day, before in zip(days, left, strict=True)]
    named = zip(map(_label, days), ticks, strict=True)
    return [{"label": label, "tick": tick, "parts": (), "value": None} for label, tick in named]


def _label(day: Row) -> str:
    asked = (
        f"{counted(day['requests'], 'question')}, {day['hits']} from the cache ({percent(day['hit_rate'])})"
    )
    spared = f", {number(day['spared_tokens'])} tokens spared" if day["spared_tokens"] else ""
    calls = f", {counted(day['charged'], 'call')} to sources" if day["charged"] else ""
    return f"{_day_label(day['day'])}: {asked}{spared}{calls}"


def _day_label(day: date) -> str:
    """Say a day shortly: ``3 Nov``."""
    return f"{day.day} {day:%b}"


def scale(most: float) -> tuple[float, float]:
    """Return the step between lines and the top line: a round number, at most five steps, and at least ``most``."""
    if most <= 0:
        return 1, 1
    rough = max(most / 4, 1.0)
    power = 10.0 ** int(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return step, step * ceil(most / step)
