"""What a chart over days shows; the macro ``chart`` draws it as SVG: across in per cent, so that it fits any width."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, log10

HEIGHT = 150
"""Pixels of the plot, without the labels below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day: the parts of its bar from the bottom (their classes and values), or the value of its point."""

    label: str
    tick: str | None
    parts: tuple[tuple[str, float], ...] = ()
    value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Days with the lines behind them; ``top`` is the value at the plot's upper edge."""

    days: tuple[Day, ...]
    lines: tuple[float, ...]
    top: float
    height: int = HEIGHT


def bar_chart(days: Sequence[date], labels: Sequence[str], series: Mapping[str, Sequence[float]]) -> Chart:
    """Stack the series, the first at the bottom; each has one number of zero or more for each day."""
    parts = [tuple((kind, values[number]) for kind, values in series.items()) for number in range(len(days))]
    step, top = scale(max((sum(value for _, value in part) for part in parts), default=0))
    drawn = tuple(
        Day(label=label, tick=tick, parts=part)
        for label, tick, part in zip(labels, _ticks(days), parts, strict=True)
    )
    return Chart(days=drawn, lines=tuple(line * step for line in range(round(top / step) + 1)), top=top)


def rate_chart(days: Sequence[date], labels: Sequence[str], rates: Sequence[float | None]) -> Chart:
    """Draw rates of 0.0 to 1.0 as a line over days; it begins anew after a day without one."""
    drawn = tuple(
        Day(label=label, tick=tick, value=rate)
        for label, tick, rate in zip(labels, _ticks(days), rates, strict=True)
    )
    return Chart(days=drawn, lines=(0, 0.25, 0.5, 0.75, 1), top=1)


def _ticks(days: Sequence[date]) -> list[str | None]:
    """Name the last day, and each that is whole weeks before it."""
    last = len(days) - 1
    return [day_label(day) if (last - number) % 7 == 0 else None for number, day in enumerate(days)]


def scale(most: float) -> tuple[float, float]:
    """Return the step between lines and the top line: a round number, at most five steps, and at least ``most``."""
    if most <= 0:
        return 1, 1
    rough = max(most / 4, 1.0)
    power = 10.0 ** int(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return step, step * ceil(most / step)


def day_label(day: date) -> str:
    """Say a day shortly: ``3 Nov``."""
    return f"{day.day} {day:%b}"
