"""Bars and lines over days as numbers that a template draws as SVG: across in per cent, so that a chart fits any width."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, log10

HEIGHT = 150
"""Pixels of the plot, without the labels below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One part of a bar; ``y`` and ``height`` in pixels from the top, ``kind`` is its class."""

    y: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One day; ``x``, ``width`` and ``middle`` in per cent. ``tick`` stands below it (or None)."""

    x: float
    width: float
    middle: float
    segments: tuple[Segment, ...]
    label: str
    tick: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One day's value; ``x`` in per cent, ``y`` in pixels. ``before`` is the day before, where it has a value."""

    x: float
    y: float
    label: str
    before: "Point | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A line across; ``y`` in pixels."""

    y: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Bars, or none and points, with the lines behind them, the lowest first."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    points: tuple[Point, ...] = ()
    height: int = HEIGHT


def bar_chart(
    days: Sequence[date], series: Sequence[tuple[str, Sequence[float]]], labels: Sequence[str]
) -> Chart:
    """Stack the series, the first at the bottom; each has a kind and one number of zero or more for each day."""
    sums = [sum(values[number] for _, values in series) for number in range(len(days))]
    step, top = scale(max(sums, default=0))
    slot = 100 / max(len(days), 1)
    bars = []
    for number, day in enumerate(days):
        parts = [(kind, values[number]) for kind, values in series]
        bars.append(
            Bar(
                x=round(number * slot + slot * 0.12, 3),
                width=round(slot * 0.76, 3),
                middle=round((number + 0.5) * slot, 3),
                segments=_stacked(parts, top),
                label=labels[number],
                tick=day_label(day) if (len(days) - 1 - number) % 7 == 0 else None,
            )
        )
    lines = range(round(top / step) + 1)
    ticks = tuple(Tick(y=round(HEIGHT - HEIGHT * line * step / top, 1), value=line * step) for line in lines)
    return Chart(bars=tuple(bars), ticks=ticks)


def rate_chart(days: Sequence[date], rates: Sequence[float | None], labels: Sequence[str]) -> Chart:
    """Draw rates of 0.0 to 1.0 as a line over days; it begins anew after a day without one."""
    empty = bar_chart(days, [], labels)
    points: list[Point] = []
    last: Point | None = None
    for bar, rate in zip(empty.bars, rates, strict=True):
        if rate is not None:
            point = Point(x=bar.middle, y=round(HEIGHT * (1 - rate), 2), label=bar.label, before=last)
            points.append(point)
        last = None if rate is None else points[-1]
    ticks = tuple(Tick(y=HEIGHT * (1 - share), value=share) for share in (0, 0.25, 0.5, 0.75, 1))
    return Chart(bars=empty.bars, ticks=ticks, points=tuple(points))


def _stacked(parts: Sequence[tuple[str, float]], top: float) -> tuple[Segment, ...]:
    found, below = [], 0.0
    for kind, value in parts:
        height = HEIGHT * value / top
        if value > 0:
            found.append(
                Segment(y=round(HEIGHT - below - height, 2), height=round(max(height, 1), 2), kind=kind)
            )
        below += height
    return tuple(found)


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
