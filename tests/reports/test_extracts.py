import itertools

from hypothesis import given
from hypothesis import strategies as st

from kr.reports.extracts import extract, weights_of
from kr.reports.passages import ranked, read_answer
from kr.reports.terms import question_terms
from kr.text.markdown import Block
from kr.values import Answer, Passage

FILLER = "Something else is told here that nobody asked about at all, and it is told at some length. "
LONG = (
    "The opening says what it is.\n\n"
    f"{FILLER * 3}\n\n"
    + "".join(f"- `name{n}`: {FILLER}\n" for n in range(30))
    + f"- `multiple`: the repeated option.\n  - inner\n- `last`: {FILLER}\n\n{FILLER * 3}\n\n```py\nx = 1\n```\n"
)


def _runs(question: str, text: str, quoted: tuple[str, ...] = ()) -> list[tuple[Block, ...] | None]:
    answer = Answer(source="context7", passages=(Passage(text=text),))
    terms = question_terms("x", question)
    rows = ranked(read_answer(answer).units, terms)
    return extract(rows[0], terms, weights_of(rows, terms), best=rows[0].score, quoted=quoted)


def _texts(runs: list[tuple[Block, ...] | None]) -> list[str]:
    return ["[…]" if run is None else "\n".join(block.text for block in run) for run in runs]


def test_a_short_passage_stays_whole() -> None:
    text = "One.\n\n- `a`: two\n- `b`: three\n\nFour."
    assert _texts(_runs("two", text)) == ["One.\n- `a`: two\n- `b`: three\nFour."]


def test_a_long_list_is_reduced_to_what_was_asked() -> None:
    assert _texts(_runs("Is it repeatable?", LONG)) == [
        "The opening says what it is.",
        "[…]",
        "- `multiple`: the repeated option.\n  - inner",
        "[…]",
    ]


def test_what_the_summary_quotes_stays() -> None:
    found = _texts(_runs("Is it repeatable?", LONG, quoted=(f"`name7`: {FILLER.strip()}",)))
    assert any(text.startswith("- `name7`") for text in found)


def test_one_long_paragraph_is_never_cut() -> None:
    text = FILLER * 20
    assert _texts(_runs("nobody", text)) == [text.strip()]


@given(
    st.lists(
        st.sampled_from(
            ["alpha ", FILLER, "\n\n", "- `x`: ", "\n- beta ", "  - in\n", "| a |\n|---|\n| b |\n\n"]
        ),
        max_size=80,
    ).map("".join)
)
def test_what_is_left_is_the_source_in_its_order(text: str) -> None:
    answer = Answer(source="context7", passages=(Passage(text=text),))
    terms = question_terms("x", "alpha beta")
    rows = ranked(read_answer(answer).units, terms)
    for row in rows:
        runs = extract(row, terms, weights_of(rows, terms), best=rows[0].score)
        assert all(one is not None or other is not None for one, other in itertools.pairwise(runs))
        rest = "\n".join(block.text for block in row.unit.prose)
        for line in "\n".join(text for text in _texts(runs) if text != "[…]").splitlines():
            before, found, rest = rest.partition(line)
            assert found == line
            assert None in runs or not before.strip()
