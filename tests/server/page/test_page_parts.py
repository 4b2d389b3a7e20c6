"""The pure parts of the page: Markdown of strangers, plots, numbers in words, signatures (rule 3.7, 8)."""

import time
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

from kr.server import rendering as texts
from kr.server.access import Policy, Sessions
from kr.server.rendering import HEIGHT, Chart, rate_chart, report_html, scale, to_html
from tests.support.sprint import SCRIPT

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
NUMBERS = dict.fromkeys(("requests", "hits", "hit_rate", "spared_tokens", "charged"), 0)
DAYS: list[dict[str, Any]] = [
    {"day": date(2026, 11, 1) + timedelta(days=number), **NUMBERS} for number in range(30)
]
ALLOWED = {
    "p": (), "h2": (), "h3": (), "h4": (), "h5": (), "h6": (), "em": (), "strong": (), "s": (), "br": (), "hr": (), "li": (),
    "ul": (), "ol": ("start",), "blockquote": (), "code": (), "span": ("class",), "pre": ("tabindex",), "tbody": (), "thead": (),
    "div": ("class", "tabindex"), "table": (), "tr": (), "th": ("class",), "td": ("class",), "a": ("href", "rel"),
}  # fmt: skip
PIECES = st.sampled_from(
    [
        SCRIPT,
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt&#58;alert(1))",
        "[x](data:text/html,<script>)",
        "<javascript:alert(1)>",
        "![x](https://evil.example/pixel.png)",
        "[ref]\n\n[ref]: javascript:alert(1)\n",
        '[x](https://ok.example "onmouseover=alert(1)")',
        "```python onload=alert(1)\nprint('<b>')\n```\n",
        '```"><script>\nx\n```\n',
        "| a |\n|:-:|\n| <svg onload=alert(1)> |\n",
        "# one\n",
        "> ",
        "`",
        "**",
        "<!--",
        "&lt;img src=x onerror=alert(1)&gt;",
        "[a [b](https://x.example) c](javascript:1)",
    ]
)


MARKS = "aé<>\"'&[]()`*#!|:/\\ \n"


class Checked(HTMLParser):
    """Reads HTML as a browser does, and refuses what the page must not hold."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert name in ALLOWED[tag], (tag, name)
            if name == "href":
                assert (value or "").lower().startswith(("http://", "https://"))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


@settings(deadline=None)
@given(st.lists(PIECES | st.text(MARKS, max_size=20), max_size=8).map("".join))
def test_whatever_stands_in_a_report_only_harmless_html_comes_of_it(text: str) -> None:
    Checked().feed(to_html(text))
    Checked().feed(report_html(f"# a - b\n\n{text}")[0])


def test_a_report_of_the_template_gives_its_header_and_its_sections() -> None:
    head = "".join(
        f"**{name}:** {name} <i>\n"
        for name in ("Framework", "Version", "Research Date", "Confidence", "Sources")
    )
    names = ("Summary", "Details", "Code Examples", "Caveats & Version-Specific Notes", "Source Attribution")
    body, sources = report_html(
        f"# vue - slots\n\n{head}\n" + "\n\n".join(f"## {name}\n\ntext" for name in names) + "\n"
    )
    assert sources == "Sources &lt;i&gt;"
    assert "vue - slots" not in body
    assert body.count("<h2>") == 5


def test_code_is_highlighted_unless_it_is_of_no_language() -> None:
    assert '<span class="k">def</span>' in to_html("```python\ndef f(): ...\n```\n")
    assert "<span" not in to_html("```\ndef f(): ...\n```\n")
    assert "<span" not in to_html("```nonsense\ndef f(): ...\n```\n")


@settings(deadline=None)
@given(st.floats(min_value=0, max_value=1e12))
def test_a_scale_is_round_and_holds_what_it_shows(most: float) -> None:
    step, top = scale(most)
    assert top >= most
    assert 1 <= round(top / step) <= 5
    assert f"{step:.0f}".rstrip("0") in {"1", "2", "5"}


def drawn(chart: Chart) -> BeautifulSoup:
    """The chart as the page draws it."""
    macros: Any = texts.environment().get_template("macros.html").module
    return BeautifulSoup(str(macros.chart("id", chart, "what it shows", texts.number)), "html.parser")


def test_a_line_breaks_where_a_day_has_no_rate() -> None:
    plot = drawn(rate_chart([{**DAYS[0], "hit_rate": rate} for rate in (0.0, 1.0, None, 0.5)]))
    points = [float(str(point["cy"])) for point in plot.select("circle")]
    assert points == [HEIGHT + 8, 8, HEIGHT / 2 + 8]
    assert len(plot.select("line.rate")) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-11-22T11:59:30.000000Z", "30 seconds ago"),
        ("2026-11-22T11:59:00.000000Z", "1 minute ago"),
        ("2026-11-22T09:00:00.000000Z", "3 hours ago"),
        ("2026-11-21T11:00:00.000000Z", "1 day ago"),
        ("2026-10-01T11:00:00.000000Z", "1 October 2026"),
        ("2026-11-22T12:10:00.000000Z", "in 10 minutes"),
        ("2026-11-20", "2 days ago"),
        ("somewhen", "somewhen"),
        (None, "–"),
    ],
)
def test_a_time_is_said_as_people_say_it(text: str | None, said: str) -> None:
    assert texts.ago(text, NOW) == said


def test_a_session_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions, now = Sessions(Policy(names=(), token="use", review_token="review")), time.time()
    begun = [sessions.sign_in("use"), sessions.sign_in("review", "Ann")]
    for hours, are_there in ((11, True), (13, False)):
        monkeypatch.setattr("time.time", lambda late=now + hours * 3600: late)
        assert [sessions.get(it) is not None for it in begun] == [are_there, are_there]
