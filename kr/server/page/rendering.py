"""The templates of the page, and how they write numbers and times."""

import re
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined

from kr import __version__
from kr.text import counted
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
    filters = (percent, number, duration, day, passage)
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["plural"] = counted
    environment.filters["address"] = lambda text: quote(text, safe="")
    environment.globals |= {
        "version": __version__,
        "with_query": with_query,
        "percent_of": percent,
        "number_of": number,
    }
    return environment


def with_query(query: dict[str, str], **changes: Any) -> str:
    """Return a query with some of its values changed (an empty one goes), for links to the same view."""
    both = {**query, **{name: str(value) for name, value in changes.items()}}
    kept = {name: value for name, value in both.items() if value and name != "done"}
    return f"?{urlencode(kept)}"


_MARKS = re.compile(r"```\w*|[`*#|]+|(?<=\s)[->](?=\s)")
_MONTH = 31 * 24 * 60 * 60
_UNITS = ((24 * 60 * 60, "day"), (60 * 60, "hour"), (60, "minute"))


def percent(rate: float | None) -> str:
    """Say a rate: ``62 %``; a dash where there is none."""
    return "–" if rate is None else f"{100 * rate:.0f}\u202f%"


def number(value: float) -> str:
    """Say a number with its thousands parted: ``12,345``."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """Say how long something took, in its largest unit: ``3 seconds``, ``5 minutes``."""
    size, unit = next((it for it in _UNITS if seconds >= it[0]), (1, "second"))
    return counted(seconds // size, unit)


def ago(text: str | None, now: datetime) -> str:
    """Say how long ago a stored time is: ``3 hours ago``, or ``in 9 minutes``; further away, the date."""
    moment = parse_time(text or "")
    seconds = (now - moment).total_seconds() if moment is not None else _MONTH
    if abs(seconds) >= _MONTH:
        return day(text)
    return f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"


def day(text: str | None) -> str:
    """Say a stored time's day: ``3 November 2026``."""
    moment = parse_time(text or "")
    return (text or "–") if moment is None else f"{moment.day} {moment:%B %Y}"


def passage(text: str) -> str:
    """Show a passage of a report without its Markdown."""
    return " ".join(_MARKS.sub(" ", text).split())
