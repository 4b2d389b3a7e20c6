from hypothesis import given, settings
from hypothesis import strategies as st
from kr.packages.restructured import fence, to_markdown

SAMPLE = """
Title
=====

Attaches an :func:`~click.option` to *the* **command**, see :ref:`the guide <guide>` and `multiple`.

.. versionadded:: 8.0
   It takes :class:`pkg.Type`.

.. code-block:: python
   :caption: an example

   @click.option("--name", multiple=True)
   def f(name): ...

::

    literal

>>> f()
1

:param int count: how often
:param name: its name
:type name: str
:raises ValueError: when odd
:return: nothing

- one
- two

.. list-table::

   * - a
     - b

.. some-directive:: with an argument

   And its content.
"""


def test_what_documentation_uses() -> None:
    text = to_markdown(SAMPLE)
    assert "# Title\n" in text
    assert "Attaches an `option` to *the* **command**, see the guide and `multiple`." in text
    assert "**Added in 8.0:**\n\nIt takes `pkg.Type`." in text
    assert '```python\n@click.option("--name", multiple=True)\ndef f(name): ...\n```' in text
    assert "```\nliteral\n```" in text
    assert "```python\n>>> f()\n1\n```" in text
    assert "- `count` (int): how often" in text
    assert "- `name` (str): its name" in text
    assert "- Raises `ValueError`: when odd" in text
    assert "- Returns: nothing" in text
    assert "- one\n- two" in text
    assert "**Some directive with an argument:**\n\nAnd its content." in text


def test_files_and_raw_markup_stay_out(tmp_path: object) -> None:
    secret = f"{tmp_path}/secret"
    with open(secret, "w", encoding="utf-8") as file:  # noqa: PTH123 - the path is text here
        file.write("secret words")
    text = to_markdown(
        f".. include:: {secret}\n\n.. raw:: html\n\n   <script>alert(1)</script>\n\n"
        f".. csv-table::\n   :file: {secret}\n\n.. literalinclude:: {secret}\n\nThe end."
    )
    assert "secret words" not in text
    assert "script" not in text
    assert "The end." in text


def test_text_cannot_become_markup() -> None:
    text = to_markdown("A <b> tag and 2 * 3 * 4.\n\n\\# no heading")
    assert "\\<b>" in text
    assert "2 \\* 3 \\* 4" in text
    assert "\\# no heading" in text


def test_a_fence_is_longer_than_any_inside() -> None:
    assert fence("```\nx\n```", "md") == "````md\n```\nx\n```\n````"
    assert fence("x", "a b`c") == "```\nx\n```"


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.text(max_size=200),
        st.lists(
            st.sampled_from(
                [
                    ".. code::",
                    ".. x:: y",
                    "   body",
                    "",
                    ":param a: b",
                    "===",
                    "Title",
                    "- a",
                    "1. b",
                    ":x:`y`",
                    "|z|",
                    "`a`_",
                    "[1]_",
                    ".. [1] n",
                    "+--+--+",
                    "==  ==",
                    "::",
                    ">>> 1",
                    ".. _t:",
                    "``x``",
                    ".. table::",
                    ".. list-table::",
                    "   * - a",
                    ".. role:: q",
                    ".. default-role:: q",
                    ".. math::",
                    "a\n  b",
                    "-o  x",
                ]
            ),
            max_size=12,
        ).map("\n".join),
    )
)
def test_any_text_is_converted(source: str) -> None:
    assert isinstance(to_markdown(source), str)


def test_a_role_in_the_type_of_a_parameter_leaves_no_message() -> None:
    assert to_markdown(":param key: it\n:type key: str or :py:class:`x.Y`\n") == "- `key` (str or x.Y): it\n"


def test_text_with_a_target_is_told_without_it() -> None:
    assert to_markdown("The `Schema <pkg.Schema>`'s name.") == "The `Schema`'s name.\n"


def test_a_term_that_ends_with_a_colon_gets_no_second_one() -> None:
    assert to_markdown("Tip:\n    Take it.\n") == "- Tip: Take it.\n"


def test_sphinxs_pointers_and_set_up_go_and_printed_lines_are_code() -> None:
    text = to_markdown(
        "Opens it.\n\n.. seealso:: The `guide <https://x.example>`_ on it.\n\n.. testsetup::\n\n   import x\n\n.. testoutput::\n\n   [1, 2]\n"
    )
    assert text == "Opens it.\n\n```\n[1, 2]\n```\n"


def test_a_file_keeps_the_dot_that_its_name_begins_with() -> None:
    told = to_markdown(
        "Looked up in `.ssh/known_hosts` and :file:`.env`, by :class:`.Pool` or :meth:`.pool.close`."
    )
    assert told.strip() == "Looked up in `.ssh/known_hosts` and `.env`, by `Pool` or `pool.close`."
