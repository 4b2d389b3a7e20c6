"""Documents cut into sections, whatever they are written in."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.documents.text import MAX_SECTION, pieces, restructured_to_markdown, sections

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
        "=====\nTitle\n=====\n\nSee :func:`~a.run` and `docs <https://x.example>`_.\n\nUse it::\n\n    run()\n\n.. code-block:: python\n"
        "   :linenos:\n\n   import a\n\nPart\n----\n\n.. toctree::\n\n   other\n\n.. note:: Mind this.\n"
    )
    assert told(text, "a.rst") == [
        ("t: Title", "See `a.run` and docs.\n\nUse it:\n\n```\nrun()\n```\n\n```python\nimport a\n```"),
        ("t: Title > Part", "**note:** Mind this."),
    ]


def test_a_page_is_read_by_its_headings() -> None:
    page = "<html><head><title>Handbook</title></head><body><nav>no</nav><h1>On call</h1><p>Ring twice.</p></body></html>"
    assert told(page, "a.html") == [("Handbook: On call", "Ring twice.")]


def test_a_long_section_is_cut_between_paragraphs_and_code_stays_whole() -> None:
    code = "```\n" + "\n\n".join(f"line {number}" for number in range(60)) + "\n```"
    text = "\n\n".join(["word " * 90, "word " * 90, "word " * 90, "This does it:", code])
    found = list(pieces(text))
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


def test_a_heading_of_restructured_text_may_be_long() -> None:
    assert restructured_to_markdown("Some title\n==========\n\ntext").strip() == "# Some title\n\n\ntext"


def test_a_docstring_that_is_markdown_keeps_its_fences() -> None:
    text = "Runs it.\n\n    ```pycon\n    >>> go(``x``)\n    ```\n"
    assert restructured_to_markdown(text) == text
