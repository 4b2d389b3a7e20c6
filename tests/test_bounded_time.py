"""No text of a stranger, however it repeats itself, takes long: every reader is linear in its length."""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kr import report as markdown
from kr.documents.text import sections, to_markdown
from kr.errors import SourceFailure
from kr.sources import context7, mcp_tools
from kr.sources.mcp_client import ToolText
from kr.text import strip_invisible

SIGNS = (
    "<", "</", "<!", "<!--", "<a", '<a b="', "<p style='", "<x-", "[", "](", "[a]:", "![", "`", "``", "*", "*a ", "**", "_",
    "\\", "&", "&#", "&#9", '"', "'", "(", "|", "| ", "|-", "=\n", "---\n", "> ", "- ", "1. ", "#", "~", "a", "a.", " ", "\n",
    "\t", "/* ", "\x1b[", "\x1b]", "\0", "\ufe0f", "```\n", "### a\n", "Source: b\n", "TITLE: a\n", "CODE:\n",
    f"{'-' * 32}\n", "http://", "\u4e2d",
)  # fmt: skip
CROWDED = f"<a {' '.join(f'a{number}' for number in range(300))}>"
SIZE = 64 * 1024
SECONDS = 5.0
"""Of the processor; what is quadratic takes longer at this size, and what is linear a tenth of it."""


def page(text: str) -> None:
    to_markdown(text)


def page_without_a_tree(text: str) -> None:
    page(CROWDED + text)


def answer_of_deepwiki(text: str) -> None:
    mcp_tools.read_answer(ToolText(f"x\n{text}", is_error=False), "a/b")


READERS: tuple[Callable[[str], object], ...] = (
    page,
    page_without_a_tree,
    answer_of_deepwiki,
    context7.parse_libraries,
    context7.parse_documentation,
    context7.failure_of,
    strip_invisible,
    markdown.escape,
    markdown.plain_line,
    markdown.split,
)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: str(reader.__name__))
@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(SIGNS), min_size=1, max_size=2), st.sampled_from(["", ">", "x", '"']))
def test_what_repeats_itself_takes_no_long_time(
    reader: Callable[[str], object], signs: list[str], end: str
) -> None:
    sign = "".join(signs)
    began = time.process_time()
    with suppress(SourceFailure):
        reader(sign * (SIZE // len(sign)) + end)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("sign", ["---\n", "----------\n", "=\n", " \n", "> "])
def test_marks_at_the_beginnings_of_lines_are_looked_at_line_by_line(sign: str) -> None:
    began = time.process_time()
    markdown.clean(sign * (4 * SIZE // len(sign)))
    assert time.process_time() - began < SECONDS


def test_a_heading_with_many_blanks_takes_no_time() -> None:
    """Once 4,000 of them took 42 s; the longer run of the fuzzer found it."""
    began = time.process_time()
    [one, _] = sections(f"# a{' ' * 20_000}x ##\n\ntext\n\n# b\n\nmore\n", place="a.md", title="t")
    assert time.process_time() - began < 2
    assert one.name.endswith("x") or "a" in one.name
