"""Untrusted Markdown, quoted: nothing in it can be taken for a line of kr's own."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kr.report import Block, clean, fence, plain_line, quote, render, split

PARTS = st.sampled_from(
    ["# a", "## Summary", "\n", "\n\n", "```", "````", "~~~", "> ", "- ", "1. ", "    ", "<b>", "<script>", "</script>", "<!--", "-->", "<a href=x>",
     "[a](javascript:x)", "![b](c)", "[a]: x", "][", "](", "`", "**", "a", " ", "=\n", "---\n", "**Confidence:** high", "<x", "&lt;b&gt;", "|", "\\"]
)  # fmt: skip


def tokens(markdown: str) -> set[str]:
    found: set[str] = set()
    for token in MarkdownIt("commonmark").parse(markdown):
        found |= {token.type, *(child.type for child in token.children or ())}
    return found


@given(st.lists(PARTS, max_size=14))
@example(["# a", "```", "=\n", "<!--", "```"])
@example(["\\", "![b](c)", "<x", "> "])
@example(["`", "\n", "`", "<a href=x>", "`"])
def test_whatever_a_text_holds_its_lines_are_quoted_or_code(parts: list[str]) -> None:
    shown = render(split("".join(parts)))
    assert tokens(shown).isdisjoint({"html_block", "html_inline", "heading_open", "image"})
    outside, is_open = [], ""
    for line in shown.split("\n"):
        mark = re.match(r"(`{3,})", line)
        if not is_open and line and not mark and not line.startswith(">"):
            outside.append(line)
        if mark and (not is_open or line == is_open):
            is_open = "" if is_open else mark[1]
    assert outside == []
    assert is_open == ""


def test_prose_keeps_its_words_and_code_stays_as_it_was() -> None:
    text = "# Title\n\nSome <b>bold</b> `Promise<string>` and Map<K, V>, see [the docs](https://x.example/a_(b)).\n\n```py\nx = '<b>'\n```\nEnd"
    assert split(text) == [
        Block(text="**Title**\n\nSome bold `Promise<string>` and Map\\<K, V>, see the docs."),
        Block(text="x = '<b>'", is_code=True, language="py"),
        Block(text="End"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<!-- hidden -->",
        "![badge](https://x.example/b.svg)",
        "[x]: javascript:y",
        "<img\nsrc=x>",
    ],
)
def test_what_is_no_text_is_dropped(text: str) -> None:
    assert clean(f"before\n\n{text}\n\nafter").split() == ["before", "after"]


def test_code_that_looks_like_a_report_is_quoted() -> None:
    assert fence("## Summary\nx") == quote("```\n## Summary\nx\n```")
    assert fence("# a comment") == "```\n# a comment\n```"
    assert fence("a ``` b").startswith("````\n")


def test_one_line_is_harmless_wherever_it_stands() -> None:
    assert plain_line("a\n# b <i>*x*") == r"a \# b \<i>\*x\*"
    assert plain_line("- item") == r"\- item"
    assert plain_line("my_name") == "my_name"
