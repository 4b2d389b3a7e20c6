"""The templates of the page, and what they show: numbers, times, charts, and reports as HTML (rule 3.7, 8).

A report is a stranger's: raw HTML stands there as text, links lead to http and https alone and images are links, so that nothing that a
source wrote is loaded or run. Code is highlighted with class names, since the page allows no inline style.

A chart over days is a mapping that the macro ``chart`` draws as SVG, across in per cent, so that it fits any width: ``days``, each with its
``label``, its ``tick`` or None, the ``parts`` of its bar from the bottom (their classes and values) and the ``value`` of its point; the
``lines`` behind them; ``top``, the value at the plot's upper edge; ``height`` in pixels, without the labels below.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache
from html import escape
from math import ceil, log10
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from kr import __version__
from kr.report import parse_report
from kr.text import counted
from kr.times import parse_time

HEIGHT = 150
"""Of a chart, in pixels."""

_MARKS = re.compile(r"```\w*|[`*#|]+|(?<=\s)[->](?=\s)")
_MONTH = 31 * 24 * 60 * 60
_UNITS = ((24 * 60 * 60, "day"), (60 * 60, "hour"), (60, "minute"))

Row = Mapping[str, Any]
Chart = dict[str, Any]


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
        loader=PackageLoader("kr.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {it.__name__: it for it in (percent, number, duration, day, passage)}
    environment.filters |= {"plural": counted, "address": lambda text: quote(text, safe="")}
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


# --- charts


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


def scale(most: float) -> tuple[float, float]:
    """Return the step between lines and the top line: a round number, at most five steps, and at least ``most``."""
    if most <= 0:
        return 1, 1
    rough = max(most / 4, 1.0)
    power = 10.0 ** int(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return step, step * ceil(most / step)


def _drawn(days: Sequence[Row]) -> list[Chart]:
    """Label every day, and name the last one and each that is whole weeks before it below the plot."""
    shown = []
    for left, day in zip(reversed(range(len(days))), days, strict=True):
        asked = f"{counted(day['requests'], 'question')}, {day['hits']} from the cache ({percent(day['hit_rate'])})"
        spared = f", {number(day['spared_tokens'])} tokens spared" if day["spared_tokens"] else ""
        calls = f", {counted(day['charged'], 'call')} to sources" if day["charged"] else ""
        name = _day_label(day["day"])
        tick = None if left % 7 else name
        shown.append({"label": f"{name}: {asked}{spared}{calls}", "tick": tick, "parts": (), "value": None})
    return shown


def _day_label(day: date) -> str:
    """Say a day shortly: ``3 Nov``."""
    return f"{day.day} {day:%b}"


# --- reports


def report_html(text: str) -> tuple[Markup, Markup | None]:
    """Render a report: its text, and its header's sources where it follows the template (rule 3.7)."""
    shape = parse_report(text)
    if shape is None:
        return to_html(text), None
    sections = "\n\n".join(f"## {name}\n\n{body}" for name, body in shape.sections.items() if body.strip())
    return to_html(sections), Markup(_markdown().renderInline(shape.header["Sources"]))  # noqa: S704 - as in to_html


def to_html(text: str) -> Markup:
    """Render Markdown; headings begin at the second level, below the page's own title."""
    return Markup(_markdown().render(text))  # noqa: S704 - raw HTML is off, and the rules below are the rest


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    markdown.enable(["table", "strikethrough"]).disable("image")
    # Any other link stands in the text as it was written.
    markdown.validateLink = lambda url: url.lower().startswith(("http://", "https://"))  # type: ignore[method-assign]
    markdown.core.ruler.push("fit_the_page", _fit_the_page)
    return markdown


def _fit_the_page(state: StateCore) -> None:
    for token in state.tokens:
        if token.tag == "h1":
            token.tag = "h2"
        if token.type in {"th_open", "td_open"} and token.attrs:
            token.attrs = {"class": str(token.attrs["style"]).replace("text-align:", "to-")}
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs = {"href": str(child.attrGet("href")), "rel": "noopener noreferrer nofollow"}


class _Renderer(RendererHTML):
    """What is wide scrolls, and the keyboard must reach it; code is highlighted."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002 - a rule's signature
        language = (tokens[idx].info.split() or [""])[0]
        return f'<pre tabindex="0"><code>{_highlighted(tokens[idx].content, language)}</code></pre>\n'

    code_block = fence

    def table_open(self, *_: Any) -> str:
        return '<div class="scroll" tabindex="0"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"


def _highlighted(code: str, language: str) -> str:
    try:
        lexer = get_lexer_by_name(language.lower(), stripnl=False)
    except ClassNotFound:
        return escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))
