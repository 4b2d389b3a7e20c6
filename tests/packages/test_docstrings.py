import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kr.packages.docstrings import docstring_markdown, parse_source
from kr.packages.jsdoc import parse_declarations
from kr.packages.sections import MAX_SECTION, split_sections

SOURCE = '''
"""The module."""

class Option(Parameter):
    """An option.

    :param multiple: accepted many times
    """

    def __init__(self, name: str, multiple: bool = False, *, very_long_argument_name: dict[str, int] = {"a": 1, "b, c": 2}) -> None:
        """Make one."""

    limit: int = 3
    """How many."""

    @property
    def value(self) -> str:
        """The value."""

    def _private(self):
        """Not shown."""

if True:
    def inside(a, /, b=1):
        """Inside."""
else:
    async def other():
        """Other."""

later_doc = """Said later."""
inside.__doc__ = later_doc
'''


def test_names_and_signatures() -> None:
    found = {d.name: d for d in parse_source(SOURCE, "pkg.mod")}
    assert list(found) == [
        "pkg.mod",
        "pkg.mod.Option",
        "pkg.mod.Option.limit",
        "pkg.mod.Option.value",
        "pkg.mod.inside",
        "pkg.mod.other",
    ]
    option = found["pkg.mod.Option"]
    assert option.docstring.endswith("Make one.")
    assert "    multiple: bool=False,\n" in option.signature
    assert "    very_long_argument_name: dict[str, int]={'a': 1, 'b, c': 2},\n" in option.signature
    assert "self" not in option.signature
    assert found["pkg.mod.Option.value"].signature == "@property\ndef value() -> str"
    assert found["pkg.mod.Option.limit"].docstring == "How many."
    assert found["pkg.mod.other"].signature == "async def other()"
    assert found["pkg.mod.inside"].docstring == "Said later."


def test_nothing_is_imported_or_run() -> None:
    assert (
        parse_source('raise SystemExit("run")\nimport nowhere\n\ndef f():\n    "Doc."', "m")[0].docstring
        == "Doc."
    )


def test_broken_sources_document_nothing() -> None:
    for source in ("def (", "\x00", "x = " + "(" * 500, "# -*- coding: nowhere -*-\n\xff"):
        assert parse_source(source, "m") == []


def test_googles_style() -> None:
    text = docstring_markdown(
        "Do it.\n\nArgs:\n    name (str): The name\n        goes on.\n    *rest: More.\n\nExample:\n    >>> f(1)\n    2\n"
    )
    assert "**Args:**\n\n- `name` (`str`): The name\n  goes on.\n- `*rest`: More." in text
    assert "**Example:**\n\n```python\n>>> f(1)\n2\n```" in text


def test_numpys_style() -> None:
    text = docstring_markdown(
        "Do it.\n\nParameters\n----------\nname : str, optional\n    The name.\n\nReturns\n-------\nint\n    It.\n"
    )
    assert "**Parameters:**\n\n- `name` (`str, optional`):\n  The name." in text
    assert "**Returns:**\n\nint\n  It." in text


def test_markdown_stays() -> None:
    text = "Use it:\n\n```python\nArgs:\n>>> x\n```\n\nDone.\n"
    assert docstring_markdown(text) == text


def test_comments_of_declarations() -> None:
    source = """
/** Not this one */
import x from "x";

/**
 * Set cookie `name`.
 *
 *    res.cookie("a")
 *
 * @param {String} name
 */

res.cookie = function (name) {};

/** Options of it. */
export interface Options {
  /** How many.
   */
  limit?: number;
  /** @internal */
  hidden: string;
}
"""
    found = parse_declarations(source, "response")
    assert [d.name for d in found] == ["response.cookie", "response.Options", "response.limit"]
    assert found[0].docstring == 'Set cookie `name`.\n\n    res.cookie("a")\n\n- @param {String} name'
    assert found[1].signature == "export interface Options"


@pytest.mark.parametrize("piece", ["/** ", "/**", "/**/", "/** a */ ", "/***/", "*/"])
def test_comments_are_found_in_linear_time(piece: str) -> None:
    began = time.process_time()
    parse_declarations(piece * 100_000, "m")
    assert time.process_time() - began < 5


def test_a_comment_that_is_too_long_hides_no_other() -> None:
    source = f"/** {'a' * 30_000} */\nfunction one() {{}}\n/**/\n/** b */\nfunction two() {{}}\n"
    assert [found.name for found in parse_declarations(source, "m")] == ["m.two"]


def test_sections_by_heading() -> None:
    sections = split_sections(
        "Intro\n\n# A\n\ntext\n\n```\n# no heading\n```\n\n## B\n\nmore\n\nC\n=\n\nend\n"
    )
    assert [(s.title, s.text) for s in sections] == [
        ("", "Intro"),
        ("A", "text\n\n```\n# no heading\n```"),
        ("A > B", "more"),
        ("C", "end"),
    ]


def test_a_long_list_is_cut_between_its_items() -> None:
    items = [f"- `name{i}`: {'word ' * 60}\n  and more" for i in range(60)]
    sections = split_sections("\n".join(items))
    assert len(sections) > 5
    assert all(len(s.text) <= MAX_SECTION for s in sections)
    assert all(s.text.startswith("- `name") for s in sections)
    assert sum(s.text.count("and more") for s in sections) == 60


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_taken(text: str) -> None:
    docstring_markdown(text)
    parse_declarations(text, "m")
    parse_source(text, "m")
    split_sections(text)


def test_googles_parts_with_roles_in_them_are_lists() -> None:
    text = docstring_markdown(
        "See :class:`x.Y`.\n\nArgs:\n    mode (str): The mode, see :func:`io.open`.\n        More of it.\n"
        "    caption (str, optional): Said below.\n\nRest of it::\n\n    code\n"
    )
    assert text == (
        "See `x.Y`.\n\n**Args:**\n\n- `mode` (`str`): The mode, see `io.open`.\n  More of it.\n"
        "- `caption` (`str, optional`): Said below.\n\nRest of it:\n\n```\ncode\n```\n"
    )


def test_markdown_with_admonitions_is_no_restructured_text() -> None:
    told = "Look::\n\n!!! warning\n    You cannot.\n\n/// version-added | v2\nYes.\n///\n"
    assert docstring_markdown(told) == told


def test_an_alias_of_sphinx_loses_its_underscore() -> None:
    assert docstring_markdown("Like :func:`_orm.relationship` and :func:`~_sql.text`, :attr:`_x`.") == (
        "Like `orm.relationship` and `text`, `_x`.\n"
    )
