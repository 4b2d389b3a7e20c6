import pytest
from hypothesis import given
from hypothesis import strategies as st
from kr.reports.passages import MAX_SOURCES, Unit, is_example, read_answer

from kr.text.markdown import Block
from kr.values import Answer, Passage


def _answer(*texts: str, title: str | None = None) -> Answer:
    passages = (Passage(text=text, title=title, url=f"https://{n}.example/") for n, text in enumerate(texts))
    return Answer(source="web_search", passages=tuple(passages))


def _units(text: str, title: str | None = None) -> tuple[Unit, ...]:
    return read_answer(_answer(text, title=title)).units


def _outline(text: str, title: str | None = None) -> list[tuple[tuple[str, ...], list[str]]]:
    return [(unit.path, [block.text for block in unit.blocks]) for unit in _units(text, title)]


def test_a_unit_is_a_heading_and_what_follows() -> None:
    units = _units("before\n\n# One\n\na\n\n```py\nx\n```\n\n- b\n\n## Two\n\n| c |\n|---|\n| d |")
    assert [(unit.heading, [block.kind for block in unit.blocks]) for unit in units] == [
        (None, ["prose"]),
        ("One", ["prose", "code", "list"]),
        ("One > Two", ["table"]),
    ]


def test_the_parts_of_a_recipe_belong_to_it() -> None:
    text = "# Recipes\n\n## Force TLS\n\n**Description:**\n\nAll by TLS.\n\n**Solution:**\n\nRedirect."
    told = ["**Description:**", "All by TLS.", "**Solution:**", "Redirect."]
    assert _outline(text) == [(("Recipes", "Force TLS"), told)]


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ("$ pip install -U click", False),
        ("npm i -D vite", False),
        ("python -m pip install click", False),
        ("git clone x", False),
        ("$ git reset --soft HEAD^", True),
        ("npx prisma migrate dev", True),
    ],
)
def test_only_the_command_that_installs_is_no_example(code: str, is_one: bool) -> None:
    assert is_example(Block(kind="code", text=code)) is is_one


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ("@classmethod\ndef range(\n    frame: Frame,\n    start: datetime,\n) -> Arrow", False),
        ("@app.route('/')\ndef index():\n    return 'hello'", True),
        ("export default class PDFForm {\n  flatten(options?: FlattenOptions): void;\n}\n\nexport interface FlattenOptions {\n  a: boolean;\n}", False),
        ("def init\n  sections :header, :body\nend", True),
        ("def render(a,\n           b)", False),
        ("export default class Clock extends Component {\n  state = {}\n  render() {\n    return null;\n  }\n}", True),
    ],
)  # fmt: skip
def test_a_declaration_is_no_example_whatever_stands_before_it(code: str, is_one: bool) -> None:
    assert is_example(Block(kind="code", text=code)) is is_one


def test_the_container_of_an_option_is_kept() -> None:
    text = "# Options\n\n## server\n\n### proxy\n\nRules.\n\n## build\n\n### minify\n\nHow.\n"
    assert _outline(text, "Config") == [
        (("Options", "server", "proxy"), ["Rules."]),
        (("Options", "build", "minify"), ["How."]),
    ]


def test_the_title_stands_above_where_a_text_has_no_first_heading() -> None:
    assert _outline("Text.", "Config") == [(("Config",), ["Text."])]
    assert _outline("Text.", "click.Option") == [(("`click.Option`",), ["Text."])]
    assert _outline("Text.", "Top > Redirecting `logging` [x](y) `") == [
        (("Top > Redirecting `logging` [x]\\(y) \\`",), ["Text."])
    ]


def test_a_heading_that_names_no_subject_belongs_to_the_text_above() -> None:
    text = "## Logging\n\nIt logs.\n\n### Example\n\n```\nlog\n```\n\n## Examples\n\nMore."
    assert _outline(text) == [
        (("Logging",), ["It logs.", "**Example:**", "log\n"]),
        (("Examples",), ["More."]),
    ]


def test_overloads_share_their_text_as_headings_too() -> None:
    assert _outline("##### `count(a)`\n\n##### `count(a, b)`\n\nCounts.") == [
        (("`count(a)`, `count(a, b)`",), ["Counts."])
    ]


def test_links_show_their_words() -> None:
    assert _outline(
        "[\\<a[]>](https://b.example/). See [the `x[0]` page](https://a.example/) and `[b](c)` at <https://d.example/>."
    ) == [((), ["\\<a[]>. See the `x[0]` page and `[b](c)` at <https://d.example/>."])]


def test_a_signature_or_a_bold_line_names_what_follows() -> None:
    text = "# Tasks\n\nAll of them.\n\n`wait(aws)`\n\nWaits.\n\n**Timeouts**\n\nEnd.\n\n# Next\n\nOther."
    assert _outline(text) == [
        (("Tasks",), ["All of them."]),
        (("Tasks", "`wait(aws)`"), ["Waits."]),
        (("Tasks", "**Timeouts**"), ["End."]),
        (("Next",), ["Other."]),
    ]


def test_a_name_that_was_announced_is_no_heading() -> None:
    text = "# Tasks\n\nAll of them.\n\nRaises:\n\n`TimeoutError`:\n\nif it takes too long"
    assert _outline(text) == [
        (("Tasks",), ["All of them.", "Raises:", "`TimeoutError`:", "if it takes too long"])
    ]


def test_signatures_in_a_row_share_their_text() -> None:
    assert _outline("`count(sub)`\n\n`count(sub, start)`\n\nCounts.") == [
        (("`count(sub)`, `count(sub, start)`",), ["Counts."])
    ]


def test_a_bold_line_that_names_nothing_is_a_text() -> None:
    assert _outline("# A\n\n**Read this.**\n\n# B\n\n`x()`") == [
        (("A",), ["**Read this.**"]),
        (("B",), ["`x()`"]),
    ]


def test_a_sentence_in_bold_names_nothing() -> None:
    text = "# Pruning\n\n**The algorithm that is used for it is:**\n\n1. Look.\n\n**What do I do then?**\n\nWait."
    assert _outline(text) == [
        (("Pruning",), ["The algorithm that is used for it is:", "1. Look."]),
        (("Pruning", "**What do I do then?**"), ["Wait."]),
    ]


def test_a_page_says_its_title_once() -> None:
    """DocBook's sections begin with a heading of the second rank."""
    assert _outline("## 25.1. Vacuuming\n\nText.", "PostgreSQL: 25.1. Vacuuming") == [
        (("25.1. Vacuuming",), ["Text."])
    ]
    assert _outline("## C\n\nText.", "Clang") == [(("Clang", "C"), ["Text."])]
    assert _outline("## Usage\n\nText.", "Slots") == [(("Slots", "Usage"), ["Text."])]


def test_a_class_without_anything_is_no_text() -> None:
    assert _outline("```python\nclass Lock\n```\n\nA lock.") == [((), ["A lock."])]
    assert _outline("```python\nclass Lock:\n    x = 1\n```") == [((), ["class Lock:\n    x = 1\n"])]
    assert _outline("```python\nclass Lock(loop=None)\n```") == [((), ["class Lock(loop=None)\n"])]


def test_repeated_passages_are_kept_once_and_many_addresses_are_told() -> None:
    assert len(read_answer(_answer("same text", "same text")).units) == 1
    material = read_answer(_answer(*(f"text {n}" for n in range(MAX_SOURCES + 5))))
    assert len({unit.origin.address for unit in material.units}) == MAX_SOURCES
    assert material.is_cut


def test_a_cut_passage_is_told() -> None:
    assert read_answer(_answer("word " * 200_000)).cut == {"https://0.example/"}
    whole = Passage(text="alpha", url="https://whole.example/")
    cut = [Passage(text=text, url="https://cut.example/", is_cut=True) for text in ("a", "b")]
    material = read_answer(Answer(source="web_search", passages=(whole, *cut)))
    assert material.cut == {"https://cut.example/"}


_PIECES = st.sampled_from(["# A", "### B", "## C", "**D**", "`e()`", "text", "```\ncode\n```", "- item"])


@given(st.lists(_PIECES, max_size=20))
def test_nothing_but_headings_is_lost_and_all_stays_in_order(pieces: list[str]) -> None:
    marked = [f"{piece} {n}" if piece[0] in "#t-" else piece for n, piece in enumerate(pieces)]
    units = _units("\n\n".join(marked))
    told = [block.text for unit in units for block in unit.blocks]
    texts = [piece for piece in marked if piece.startswith("text")]
    assert [text for text in told if text.startswith("text")] == texts
    assert sum(block.kind == "code" for unit in units for block in unit.blocks) <= pieces.count(
        "```\ncode\n```"
    )
    assert all(unit.blocks for unit in units)


def test_what_a_generator_puts_on_a_page_is_no_text_of_it() -> None:
    text = (
        "# Convert\n\n`convert(input)` click to toggle source\n\n1.57.0 · [source](https://a.example/src.html#9)\n\n"
        "The copyright of a file is kept. Copyright © is what it says.\n\n```\nclick to toggle source\n```\n\n"
        "Copyright © 2003-2019 The Foundation. All rights reserved.\n\n*Generated by EDoc*\n\n"
        "This document was generated on *February 5, 2023* using *texi2any*.\n\nLast modified 3 December 2021"
    )
    told = ["The copyright of a file is kept. Copyright © is what it says.", "click to toggle source\n"]
    assert _outline(text) == [(("Convert", "`convert(input)`"), told)]


def test_declarations_that_a_page_lists_name_what_follows_each() -> None:
    text = "".join(
        f"```\nval {name} : string -> string\n```\n\nDoes {name}.\n\n" for name in ("trim", "rev", "cut")
    )
    page = Answer(
        source="web_search", passages=(Passage(text=f"# Strings\n\n{text}", url="https://example.com/s"),)
    )
    found = [(unit.path[-1], unit.text) for unit in read_answer(page).units]
    assert ("`val rev : string -> string`", "Does rev.") in found
    assert len(found) == 3


def test_a_preformatted_manual_is_taken_apart_by_its_options() -> None:
    manual = "```\nNAME\n       queue\n\nOPTIONS\n       -d id  Delete one.\n\n       -h id  Hold one.\n\nBUGS\n       None.\n```"
    assert _outline(manual, "queue(1)")[1:3] == [
        (("queue(1)", "OPTIONS", "`-d id`"), ["Delete one."]),
        (("queue(1)", "OPTIONS", "`-h id`"), ["Hold one."]),
    ]
