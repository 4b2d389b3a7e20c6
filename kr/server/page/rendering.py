"""The templates of the page, and how they write numbers and times."""

import re
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kr import __version__
from kr.times import parse_time


def render(template: str, request: Request, **context: Any) -> str:
    """Fill a template; ``context`` is what its view gives."""
    now = datetime.now(UTC)
    known = {
        "path": request.url.path,
        "query": dict(request.query_params),
        "ago": lambda text: ago(text, now),
    }
    return environment().get_template(template).render(**known, **context)


@cache
def environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kr.server.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (percent, number, short, duration, day, plural, passage, marked)
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["address"] = lambda text: quote(text, safe="")
    environment.globals |= {
        "version": __version__,
        "with_query": with_query,
        "percent_of": percent,
        "short_of": short,
        "number_of": number,
    }
    return environment


def with_query(query: dict[str, str], **changes: Any) -> str:
    """Return a query with some of its values changed (an empty one goes), for links to the same view."""
    both = {**query, **{name: str(value) for name, value in changes.items()}}
    kept = {name: value for name, value in both.items() if value and name != "done"}
    return f"?{urlencode(kept)}"


_MARKS = re.compile(r"```\w*|[`*#|]+|(?<=\s)[->](?=\s)")
_DAY = 24 * 60 * 60
_UNITS = ((60, "minute"), (60 * 60, "hour"), (_DAY, "day"))


def percent(rate: float | None) -> str:
    """Say a rate: ``62 %``; a dash where there is none."""
    return "–" if rate is None else f"{100 * rate:.0f}\u202f%"


def number(value: float) -> str:
    """Say a number with its thousands parted: ``12,345``."""
    return f"{value:,.0f}"


def short(value: float) -> str:
    """Say a big number shortly: ``840``, ``12.3k``, ``3.4M``."""
    for limit, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= limit * 0.9995:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.0f}"


def duration(milliseconds: float | None) -> str:
    """Say how long something took: ``12 ms``, ``3.4 s``, ``5 min``, ``2.1 h``."""
    if milliseconds is None:
        return "–"
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def ago(text: str | None, now: datetime) -> str:
    """Say how long ago a stored time is: ``3 hours ago``, or ``in 9 minutes``; further away, the date."""
    moment = parse_time(text or "")
    if moment is None:
        return text or "–"
    seconds = (now - moment).total_seconds()
    if not -_DAY < seconds < 31 * _DAY:
        return day(text)
    if abs(seconds) < 60:
        return "just now"
    size, unit = next((size, unit) for size, unit in reversed(_UNITS) if abs(seconds) >= size)
    span = plural(abs(seconds) // size, unit)
    return f"{span} ago" if seconds > 0 else f"in {span}"


def day(text: str | None) -> str:
    """Say a stored time's day: ``3 November 2026``."""
    moment = parse_time(text or "")
    return (text or "–") if moment is None else f"{moment.day} {moment:%B %Y}"


def plural(count: float, one: str, many: str | None = None) -> str:
    """Say a number of things: ``1 entry``, ``1,200 entries``."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def passage(text: str, words: str) -> Markup:
    """Show a passage of a report without its Markdown, the words that were searched marked."""
    return marked(" ".join(_MARKS.sub(" ", text).split()), words)


def marked(text: str, words: str) -> Markup:
    """Show a text with the words that were searched marked."""
    sought = "|".join(sorted(map(re.escape, words.split()), key=len, reverse=True))
    if not sought:
        return escape(text)
    parts = re.split(f"({sought})", text, flags=re.IGNORECASE)
    shown = (
        escape(part) if number % 2 == 0 else Markup("<mark>{}</mark>").format(part)
        for number, part in enumerate(parts)
    )
    return Markup("").join(shown)
