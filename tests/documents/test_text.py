"""Documents cut into sections, whatever they are written in."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.documents.text import (
    MAX_SECTION,
    MAX_TEXT,
    pieces,
    restructured_to_markdown,
    sections,
    to_markdown,
)

MARKDOWN = """---
title: x
---
# Guide

Intro.

## Install

```sh
# not a heading
pip install x
```

Sub
---

Below.
"""


def told(text: str, place: str) -> list[tuple[str, str]]:
    return [(one.name, one.text) for one in sections(text, place=place, title="t")]


def test_markdown_is_cut_at_its_headings_and_not_inside_of_code() -> None:
    assert told(MARKDOWN, "a.md") == [
        ("t: Guide", "Intro."),
        ("t: Guide > Install", "```sh\n# not a heading\npip install x\n```"),
        ("t: Guide > Sub", "Below."),
    ]


def test_restructured_text_reads_as_markdown() -> None:
    text = (
        "=====\nTitle\n=====\n\nSee ``a.run``.\n\nUse it::\n\n    run()\n\n.. code-block:: python\n"
        "   :linenos:\n\n   import a\n\nPart\n----\n\n.. toctree::\n\n   other\n\n.. note:: Mind this.\n"
    )
    assert told(text, "a.rst") == [
        ("t: Title", "See `a.run`.\n\nUse it:\n\n```\nrun()\n```\n\n```python\nimport a\n```"),
        ("t: Title > Part", ".. note:: Mind this."),
    ]


def test_a_page_is_read_by_its_headings() -> None:
    page = "<html><head><title>Handbook</title></head><body><nav>no</nav><h1>On call</h1><p>Ring twice.</p></body></html>"
    assert told(page, "a.html") == [("Handbook: On call", "Ring twice.")]


def test_a_long_section_is_cut_between_paragraphs_and_code_stays_whole() -> None:
    code = "```\n" + "\n\n".join(f"line {number}" for number in range(60)) + "\n```"
    found = list(pieces("\n\n".join(["word " * 90, "word " * 90, "word " * 90, code])))
    assert len(found) > 1
    assert all(len(one) < 2 * MAX_SECTION for one in found)
    assert [one for one in found if code in one]


def test_a_text_without_an_end_of_its_code_is_cut_all_the_same() -> None:
    found = list(pieces("```\n" + "x = 1\n" * 20_000))
    assert max(map(len, found)) < 20_000
    assert all(one.count("```") == 2 for one in found)


@given(st.text(alphabet="`~#=-:.* \n|ab", max_size=300))
def test_no_text_raises(text: str) -> None:
    for place in ("a.md", "a.rst", "a.txt", "a.html"):
        list(sections(text, place=place, title="t"))


@pytest.mark.parametrize(
    "part", ["# a\n", "a\n=\n", "```\n", "::\n\n  a\n", ".. x::\n", "<p>", "`a <b>`_", ":a:`b`"]
)
def test_what_repeats_itself_takes_no_long_time(part: str) -> None:
    started = time.process_time()
    for place in ("a.md", "a.rst", "a.html"):
        list(sections(part * (100_000 // len(part)), place=place, title="t"))
    assert time.process_time() - started < 10.0


def test_a_docstring_that_is_markdown_keeps_its_fences() -> None:
    text = "Runs it.\n\n    ```pycon\n    >>> go(``x``)\n    ```\n"
    assert restructured_to_markdown(text) == text


# --- pages

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
