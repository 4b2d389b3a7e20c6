"""A page becomes the Markdown of its content."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.documents.html import MAX_TEXT, to_markdown

LONG = "The content of the page. " * 12


def main(inner: str) -> str:
    return to_markdown(f"<html><body><main>{inner}</main></body></html>").text


def test_the_content_is_taken_without_what_stands_around_it() -> None:
    page = f"""<html><head><title> The  guide </title></head><body><nav>Menu</nav><div role=main><h1>Start
      <a class=headerlink href="#x">¶</a></h1><p>{LONG}</p><script>alert(1)</script><form>Search</form></div><footer>Legal</footer></body></html>"""
    found = to_markdown(page)
    assert (found.title, found.text) == ("The guide", f"# Start\n\n{LONG.strip()}")


def test_code_is_whole() -> None:
    code = '<div class="highlight-python3"><pre><span class="linenos">1</span>if a &lt; b:\n    `x`\n</pre></div>'
    assert main(code) == "```\nif a < b:\n    `x`\n```"
    lines = "<pre data-lang=sh><div>one</div><div>two<button>Copy</button></div></pre>"
    assert main(lines) == "```\none\ntwo\n```"
    assert main("<pre>a\n```\nb</pre>") == "````\na\n```\nb\n````"


def test_links_and_pictures_become_words() -> None:
    assert (
        main('<a href="../api">API</a> <a href="#a">here</a> <a href="javascript:x">no</a>') == "API here no"
    )
    assert main('<p>A <img src="x.png" alt="diagram"> shows</p>').split() == ["A", "diagram", "shows"]


@pytest.mark.parametrize(
    "hidden",
    [
        '<p style="display: none">no</p>',
        '<div style="color:red;VISIBILITY:hidden !important"><b>no</b></div>',
        '<span style="font-size:0px">no</span>',
        '<p style="opacity:0">no</p>',
        "<p hidden>no</p>",
        '<p aria-hidden="true">no</p>',
    ],
)
def test_what_the_markup_hides_is_no_content(hidden: str) -> None:
    assert main(f"<p>before</p>{hidden}<p>after</p>") == "before\n\nafter"


@pytest.mark.parametrize("style", ["display:block", "opacity:0.5", "font-size:0.8em", "nonsense", ":;:;"])
def test_what_a_style_shows_stays(style: str) -> None:
    assert main(f'<p>before</p><p style="{style}">shown</p>') == "before\n\nshown"


def test_other_texts_stay_or_become_code() -> None:
    assert to_markdown("# A\n\ntext", media_type="text/markdown").title == "A"
    assert to_markdown('{"a": 1}', media_type="application/json").text == '```json\n{"a": 1}\n```'


@given(st.text(max_size=300) | st.text(alphabet="<>/ap='\" !-&#;", max_size=300))
def test_no_page_raises(text: str) -> None:
    assert "\x1b" not in to_markdown(text).text


@pytest.mark.parametrize(
    "page",
    [
        "<p>deep words</p>" + "<div>" * 10_000,
        "<b>x" * 400_000,
        f"<a {' '.join(f'a{number}' for number in range(50_000))}>text",
        "<p>" + "x" * 3_000_000,
        "<li>" * 50_000,
    ],
)
def test_a_hostile_page_takes_no_long_time(page: str) -> None:
    started = time.process_time()
    found = to_markdown(page)
    assert len(found.text) <= MAX_TEXT
    assert time.process_time() - started < 30
