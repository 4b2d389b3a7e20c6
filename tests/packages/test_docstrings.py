import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kr.packages.declarations import comment_markdown, parse_comments
from kr.packages.documented import MAX_SECTION, docstring_markdown, first_sentence, split_sections


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
    assert "**Parameters:**\n\n- `name` (`str, optional`): The name." in text
    assert "**Returns:**\n\n- `int`: It." in text


def test_markdown_stays() -> None:
    text = "Use it:\n\n```python\nArgs:\n>>> x\n```\n\nDone.\n"
    assert docstring_markdown(text) == text


def test_comments_of_scripts() -> None:
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

/** Clones. */
function clone() {}

/** @internal */
function hidden() {}
"""
    found = parse_comments(source, "clone")
    assert [d.name for d in found] == ["clone.cookie", "clone"]
    assert found[0].docstring == 'Set cookie `name`.\n\n    res.cookie("a")\n\n- `name` (`String`)'


def test_a_comment_becomes_markdown() -> None:
    comment = """
 * Gets the number of days.
 *
 * See {@link addDays} and {@link https://x.example|the page}.
 *
 * @category Day Helpers
 * @param dateLeft - The later date
 * @param [options] - An object with options,
 *   of two lines
 * @returns The number
 * @default 3
 * @example
 * // How many days?
 * const days = difference(a, b)
 *
 * //=> 366
 * @example <caption>Named</caption>
 * @decorated()
 * @deprecated Use `days`.
 """
    assert comment_markdown(comment, "typescript") == (
        "Gets the number of days.\n\nSee `addDays` and the page.\n\n- `dateLeft`: The later date\n"
        "- `[options]`: An object with options, of two lines\n\nReturns: The number\n\nDefault: `3`\n\n"
        "```typescript\n// How many days?\nconst days = difference(a, b)\n\n//=> 366\n```\n\nNamed\n\n"
        "```typescript\n@decorated()\n```\n\n**Deprecated:** Use `days`."
    )


def test_a_tag_in_code_is_code() -> None:
    text = comment_markdown(" * Use:\n * ```ts\n * @Component()\n * ```\n * Done.", "typescript")
    assert text == "Use:\n```ts\n@Component()\n```\nDone."


@pytest.mark.parametrize("piece", ["/** ", "/**", "/**/", "/** a */ ", "/***/", "*/"])
def test_comments_are_found_in_linear_time(piece: str) -> None:
    began = time.process_time()
    parse_comments(piece * 100_000, "m")
    assert time.process_time() - began < 5


def test_a_comment_that_is_too_long_hides_no_other() -> None:
    source = f"/** {'a' * 120_000} */\nfunction one() {{}}\n/**/\n/** b */\nfunction two() {{}}\n"
    assert [found.name for found in parse_comments(source, "m")] == ["m.two"]


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
    parse_comments(text, "m")
    comment_markdown(text, "javascript")
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


def test_numpys_types_stay_where_roles_and_directives_stand_beside_them() -> None:
    text = docstring_markdown(
        "Merge. See :func:`concat`.\n\nParameters\n----------\nhow : {'left', 'right'}, default 'left'\n    Which rows.\n\n"
        "    .. versionadded:: 1.2\n\n    .. seealso:: :ref:`joins`\n\n    Or none.\non : label\n    A :term:`column`.\n\n"
        "Examples\n--------\n>>> merge(a, b)\n"
    )
    assert text == (
        "Merge. See `concat`.\n\n**Parameters:**\n\n- `how` (`{'left', 'right'}, default 'left'`): Which rows.\n\n"
        "  Added in 1.2.\n\n  Or none.\n- `on` (`label`): A `column`.\n\n**Examples:**\n\n```python\n>>> merge(a, b)\n```\n"
    )


def test_a_comment_in_code_is_no_heading() -> None:
    text = docstring_markdown("Do it.\n\nExample:\n    # make one\n    thing = Thing()\n\n    thing.go()\n")
    assert text == "Do it.\n\n\n**Example:**\n\n```python\n# make one\nthing = Thing()\n\nthing.go()\n```\n"
    assert (
        docstring_markdown("So:\n\n# first\nx = f()\n\nThen.\n")
        == "So:\n\n\n```python\n# first\nx = f()\n```\n\n\nThen.\n"
    )
    assert docstring_markdown("# Title\n\nProse.\n") == "# Title\n\nProse.\n"


def test_code_with_two_indices_is_no_markdown() -> None:
    assert docstring_markdown("Like ``a[0][1]`` of :class:`x.Y`.") == "Like `a[0][1]` of `x.Y`.\n"


def test_an_empty_line_between_a_name_and_its_text() -> None:
    told = docstring_markdown("Check.\n\nRaises:\n\n    `lib.WrongError`:\n\n        if it is wrong\n")
    assert told.endswith("**Raises:**\n\n- `lib.WrongError`: if it is wrong\n")


def test_what_stands_in_a_class_is_named_by_it() -> None:
    source = """/** A time. */
export default class DateTime {
  /** Reads a text. */
  static fromFormat(text) {
  }
}

/** Alone. */
export function friendly(x) {}
"""
    names = [entry.name for entry in parse_comments(source, "datetime")]
    assert names == ["datetime.DateTime", "DateTime.fromFormat", "datetime.friendly"]


def test_code_that_a_colon_announces_is_fenced() -> None:
    told = docstring_markdown(
        "Limits.\n\n**Usage**:\n\nTimeout(None)  # no timeouts\nTimeout(5.0)\n\nThat is all:\n\nname: text\n"
    )
    assert "```python\nTimeout(None)  # no timeouts\nTimeout(5.0)\n```" in told
    assert told.count("```") == 2


def test_a_line_of_tildes_underlines_a_heading_and_opens_no_fence() -> None:
    text = docstring_markdown("A :class:`.Hybrid` is both.\n\nUse\n~~~~~\n\nWrite::\n\n    use(1)\n")
    assert "A `Hybrid` is both." in text
    assert "```\nuse(1)\n```" in text


def test_a_module_whose_heading_is_underlined_with_tildes_alone() -> None:
    text = docstring_markdown(
        "babel.extract\n~~~~~~~~~~~~~\n\nFinds `messages`.\n\n:copyright: (c) 2013 by X.\n:license: BSD, see LICENSE.\n"
    )
    assert text == "# babel.extract\n\nFinds `messages`.\n"


def test_a_link_of_typedocs_older_form_is_a_name() -> None:
    assert (
        comment_markdown(" * Flatten all of this [[PDFForm]]. `a[[0]]`", "typescript")
        == "Flatten all of this `PDFForm`. `a[[0]]`"
    )


def test_an_entry_with_its_type_close_by_and_one_of_a_role() -> None:
    text = docstring_markdown(
        "Do it.\n\nArgs:\n  delay(int): The time,\n    at least.\n\nReturns:\n  ~pkg.Chain: A task.\n"
    )
    assert "- `delay` (`int`): The time,\n  at least." in text
    assert "- `pkg.Chain`: A task." in text


def test_badges_are_no_part_of_a_title() -> None:
    (section,) = split_sections(
        "# Fast [![Weekly downloads](https://x.test/b.svg)](https://x.test) thing\n\nText."
    )
    assert section.title == "Fast thing"


def test_parameters_behind_dashes_are_a_list() -> None:
    text = docstring_markdown(
        "Sends a request.\n\nmethod - HTTP method\nparams - Parameters to be sent\n  in the query string\n**kwargs -- the rest\nUsage::\n\n    send('GET')\n"
    )
    assert (
        "- `method`: HTTP method\n- `params`: Parameters to be sent in the query string\n- `**kwargs`: the rest\n"
        in text
    )
    assert "```\nsend('GET')\n```" in text


def test_names_with_what_is_said_of_them_below_are_a_list() -> None:
    """h5py's docstrings: all parameters were one paragraph."""
    text = "Create it.\n\nname\n    Name of it. None makes\n    it anonymous.\nshape, dtype\n    Its shape.\n\nOptions:\n\nchunks\n    (Tuple) Its chunks.\n"
    assert docstring_markdown(text) == (
        "Create it.\n\n\n- `name`: Name of it. None makes it anonymous.\n- `shape, dtype`: Its shape.\n\nOptions:\n\nchunks\n    (Tuple) Its chunks.\n"
    )


def test_a_dash_or_two_in_prose_make_no_list() -> None:
    text = "It waits - as told\nbefore - and goes on.\n"
    assert docstring_markdown(text) == text


@given(st.text("ab -\n*:_\t`", max_size=200))
def test_dashes_lose_no_word(text: str) -> None:
    assert set(re.findall(r"[ab]+", text)) <= set(re.findall(r"[ab]+", docstring_markdown(text)))


def test_names_that_stand_for_links_are_code_and_what_tells_a_doctest_is_left_out() -> None:
    """python-docx's, loguru's and dask's docstrings."""
    told = docstring_markdown(
        "|None| or a new |Paragraph|, |file-like object|_ of bool | None.\n\n>>> f()  # doctest: +SKIP\n1\n"
    )
    assert told.startswith("``None`` or a new ``Paragraph``, ``file-like object`` of bool | None.")
    assert ">>> f()\n1" in told
    for text in (
        "|name|use|\n|---|---|\n|Name|b|\n",
        "It takes $O(|Steps| |Vees|^2)$ steps, `1/(|Vees|-|Cees|)` at |a-b| or |x|.\n",
        "So:\n\n```python\nprint(a |Name| b)  # doctest: +SKIP\n```\n",
        "You can write `# doctest:+NOPARSE` beside it.\n",
    ):
        assert docstring_markdown(text) == text


def test_instance_variables_are_a_list() -> None:
    told = docstring_markdown("Configures it.\n\n:ivar connect: how long to wait\n:ivar read: the same\n")
    assert "- `connect`: how long to wait\n- `read`: the same" in told


def test_parameters_for_something_are_a_list() -> None:
    """imageio's docstrings: as a paragraph, they ran together."""
    text = "Writes it.\n\nParameters for saving\n---------------------\nloop : int\n    How often.\nfps : float\n    How fast.\n"
    assert "- `loop` (`int`): How often.\n- `fps` (`float`): How fast." in docstring_markdown(text)


def test_a_paragraph_of_a_name_alone_says_nothing() -> None:
    """discord.py's docstrings begin so, where a coroutine is documented."""
    assert docstring_markdown("|coro|\n\nEdits it.\n\n|coro|\n").strip() == "Edits it."
    assert first_sentence("|coro|\n\nEdits the |Guild|. And more.") == "Edits the ``Guild``."
    assert first_sentence("- `a`: b") == ""


def test_a_version_announces_only_what_follows_it() -> None:
    text = "Attributes\n----------\nname : str\n    Its name.\n\n    .. versionadded:: 2.4\nflag : bool\n    Set.\n\n    .. versionadded:: 2.5\n        For tests.\n"
    told = docstring_markdown(text)
    assert "Added in 2.4.\n" in told
    assert "Added in 2.5:\n" in told
