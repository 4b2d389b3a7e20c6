from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from kr.reports.excerpts import Runs, excerpt, gap, size_of, weights_of
from kr.reports.passages import Unit, read_answer
from kr.reports.terms import question_terms

from kr.values import Answer, Passage


def _unit(text: str) -> Unit:
    return read_answer(Answer(source="context7", passages=(Passage(text=text),))).units[0]


def _excerpt(text: str, question: str, room: int) -> list[str]:
    unit, terms = _unit(text), question_terms("x", question)
    return _told(excerpt(unit, terms, weights_of([unit], terms), room))


def _told(runs: Runs) -> list[str]:
    return [run if isinstance(run, str) else "\n".join(block.text for block in run) for run in runs]


FILLER = "Something else is told here at some length, and none of it is what was asked for.\n\n"


def test_what_fits_stays_whole() -> None:
    assert _excerpt("A.\n\nB.", "alpha", 100) == ["A.\nB."]


def test_the_part_that_answers_stays_and_gaps_are_told() -> None:
    text = f"It begins.\n\n{FILLER * 5}The alpha is set with beta.\n\n{FILLER * 5}"
    assert _excerpt(text, "How do I set the alpha?", 150) == [
        "It begins.",
        "[…]",
        "The alpha is set with beta.",
        "[…]",
    ]


def test_code_stays_with_its_prose_and_whole() -> None:
    text = f"{FILLER * 4}Set the alpha:\n\n```py\nalpha = 1\nbeta = 2\n```\n\n{FILLER * 4}"
    assert "Set the alpha:\nalpha = 1\nbeta = 2\n" in _excerpt(text, "How do I set the alpha?", 150)


def test_a_list_keeps_the_item_that_answers_and_the_line_before_it() -> None:
    items = "".join(f"- `name{n}`: another option of the many that there are\n" for n in range(40))
    text = f"These options exist:\n\n{items}- `alpha`: how often it is tried\n{items}"
    told = _excerpt(text, "alpha", 300)
    assert told[0].startswith("These options exist:")
    assert any("- `alpha`: how often it is tried" in run for run in told)


def test_a_gap_names_the_options_that_were_left_out_there() -> None:
    items = "".join(
        f"- `name{n}`: another option of the many that there are, told at length\n" for n in range(40)
    )
    *_, last = _excerpt(f"These options exist:\n\n- `alpha`: how often it is tried\n{items}", "alpha", 300)
    assert last.startswith("[… `name")
    assert last.endswith("` …]")
    assert "`name9`" in last
    assert len(last) < 300
    assert gap(["a b", "`", "<x>", "retry_delay", "retry_delay"]) == "[… `retry_delay` …]"
    assert gap() == "[…]"


def test_a_table_keeps_its_head() -> None:
    rows = "".join(f"| name{n} | {'word ' * 9}|\n" for n in range(40))
    told = _excerpt(f"| Name | Use |\n|---|---|\n{rows}| alpha | how often |\n", "alpha", 300)
    assert "| Name | Use |\n| --- | --- |\n| alpha | how often |" in "\n".join(told)


def test_a_label_goes_with_its_table() -> None:
    """Node's pages have a history at the beginning of each function."""
    rows = "".join(f"| v{n} | Something was added that nobody asks for |\n" for n in range(20))
    text = f"History\n\n| Version | Changes |\n|---|---|\n{rows}\n{FILLER * 3}The alpha is set with beta.\n\n{FILLER * 3}"
    told = _excerpt(text, "How do I set the alpha?", 200)
    assert "The alpha is set with beta." in "".join(told)
    assert "History" not in "".join(told)


def test_a_paragraph_that_leans_comes_with_what_it_leans_on() -> None:
    text = f"{FILLER * 3}The cache is in memory.\n\nIt holds the alpha of each tenant.\n\n{FILLER * 3}"
    assert any(
        "The cache is in memory.\nIt holds the alpha of each tenant." in run
        for run in _excerpt(text, "Where is the alpha of a tenant?", 180)
    )


_PIECES = st.sampled_from(
    [
        "Alpha is here.",
        "This leans.",
        "As follows:",
        FILLER.strip(),
        "```\nalpha\n```",
        "- one\n- alpha\n- three",
        f"- `one`: alpha. {FILLER.strip()}\n- `two`: beta, told at such length that it may have to be cut. Alpha.",
        "| a |\n|---|\n| alpha |\n| b |",
    ]
)


@given(st.lists(_PIECES, min_size=1, max_size=15), st.integers(20, 400))
def test_an_excerpt_is_of_the_text_in_order_and_fits(pieces: list[str], room: int) -> None:
    unit, terms = _unit("\n\n".join(pieces)), question_terms("x", "alpha")
    runs = excerpt(unit, terms, weights_of([unit], terms), room)
    shown = [block for run in runs if not isinstance(run, str) for block in run]
    assert size_of(shown) <= room + 8
    said = "\n".join(block.text for block in unit.blocks)
    place = 0
    for line in (line.removesuffix(" […]") for block in shown for line in block.text.split("\n")):
        place = said.index(line, place) + len(line)
    whole = {block.text for block in unit.blocks if block.kind == "code"}
    assert all(block.text in whole for block in shown if block.kind == "code")
    assert not any(isinstance(one, str) and isinstance(other, str) for one, other in pairwise(runs))


def test_of_an_example_longer_than_the_room_whole_statements_stay() -> None:
    other = "\n\n".join(f"class Other{n}:\n\n    def run(self):\n        return {n} * 'x'" for n in range(12))
    code = (
        f"import x\n\n{other}\n\nclass Auth:\n\n    def check(self, token):\n        return token\n\n"
        "app = App(middleware=[Auth()])"
    )
    told = _excerpt(f"An example.\n\n```python\n{code}\n```", "How do I check a token?", 500)
    shown = "\n".join(told)
    assert "class Auth:\n\n    def check(self, token):\n        return token" in shown
    assert "app = App(middleware=[Auth()])" in shown  # it uses what is defined there
    assert "Other11" not in shown


def test_what_defines_a_name_comes_with_the_code_that_uses_it() -> None:
    """Of jsdom's virtual console all that was told was how it is used."""
    text = (
        f"It is a console.\n\nMake one of your own:\n\n```js\nconst mine = new Own.Thing();\n```\n\n{FILLER * 6}"
        f"Send the alpha errors:\n\n```js\nmine.forward({{ alpha: 'none' }});\n```\n\n{FILLER * 3}"
    )
    told = "".join(_excerpt(text, "How do I forward the alpha errors?", 300))
    assert "const mine = new Own.Thing();" in told
    assert "mine.forward({ alpha: 'none' });" in told


def test_imports_alone_are_no_excerpt() -> None:
    """Of an example of ssh2 that had no room the line with `require` was left."""
    rest = "".join(f"gamma.on('{n}', () => {{\n  go({n});\n" for n in range(9)) + "});" * 9
    text = f"```js\nconst {{ Alpha }} = require('alpha');\n\nconst gamma = new Alpha();\n\n{rest}\n```\n"
    assert not any("require" in run for run in _excerpt(text, "How do I set the alpha?", 120))


def test_of_many_examples_those_that_answer_stay() -> None:
    examples = "\n\n".join(f"Case {n}:\n\n```python\nrun(option_{n}=1)\nwait({n})\n```" for n in range(40))
    told = _excerpt(f"Runs it.\n\n{examples}", "How do I set option_7 in a run?", 10_000)
    shown = "\n".join(told)
    assert "option_7=1" in shown
    assert shown.count("run(option_") < 40


def test_of_items_that_do_not_fit_the_first_words_stay_and_say_that_they_are_cut() -> None:
    told_first = "How far apart two peaks have to be, in samples."
    items = "".join(
        f"- `name{n}` (`int`): {told_first} {'More is said about it than fits. ' * 8}\n" for n in range(4)
    )
    runs = _excerpt(f"Options:\n\n{items}- `alpha`: how often it is tried\n\n{FILLER * 6}", "alpha", 900)
    whole = "\n".join(runs)
    assert "- `alpha`: how often it is tried" in whole
    for n in range(1, 4):  # of the first one more fits
        assert f"- `name{n}` (`int`): {told_first} […]\n" in whole


def test_a_signature_that_leaves_room_is_shown_whatever_the_need_speaks_of() -> None:
    text = f"```python\ndef find_all(wide=None, flat=None)\n```\n\n{FILLER * 4}The alpha is set. {FILLER}"
    assert "def find_all(wide=None, flat=None)" in "\n".join(_excerpt(text, "alpha", 300))


def test_what_is_left_out_of_a_table_is_told_once_below_its_rows() -> None:
    rows = "".join(f"| `name{n}` | told at some length, and not of use here at all |\n" for n in range(30))
    table = f"| option | what |\n| --- | --- |\n{rows}| `alpha` | tried |\n{rows}| `beta` | alpha or not |\n"
    runs = _excerpt(table, "alpha", 300)
    assert len(runs) == 2
    assert runs[0].startswith("| option | what |")
    assert all(name in runs[0] for name in ("`alpha`", "`beta`"))
    assert runs[1].startswith("[… `name0`")
