import pytest
from hypothesis import given
from hypothesis import strategies as st
from kr.text.sentences import Sentence, items, label_of, leans, part, plain, sentences_of, understandable

from kr.text.markdown import split


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One ends. Two begins! Three?", ["One ends.", "Two begins!", "Three?"]),
        ("Use it, e.g. In a loop. Or not.", ["Use it, e.g. In a loop.", "Or not."]),
        ("See `a. B`. `c` is next.", ["See `a. B`.", "`c` is next."]),
        ("The file is moved. is no sentence.", ["The file is moved. is no sentence."]),
        ("注意：该选项已弃用。使用新的。", ["注意：该选项已弃用。", "使用新的。"]),
        ("He said (so.) Then left.", ["He said (so.)", "Then left."]),
        ("Since 3.11 it works.\nNew line.", ["Since 3.11 it works.", "New line."]),
        ("", []),
    ],
)
def test_sentences_are_parted(text: str, sentences: list[str]) -> None:
    assert part(text) == sentences


def test_items_of_a_list_are_sentences_with_labels() -> None:
    found = list(
        sentences_of(split("Text.\n\n- `multiple`: if set. And more.\n- plain item\n  1. **inner** - deep\n"))
    )
    assert [(s.text, s.is_item, s.label) for s in found] == [
        ("Text.", False, None),
        ("`multiple`: if set.", True, "multiple"),
        ("And more.", False, None),
        ("plain item", True, None),
        ("**inner** - deep", True, "inner"),
    ]
    assert found[1].place == found[2].place != found[3].place


def test_code_and_tables_have_no_sentences() -> None:
    assert not list(sentences_of(split("# Heading\n\n```\ncode. Code.\n```\n\n| a |\n|---|\n| B. C. |\n")))


@pytest.mark.parametrize(
    "text",
    [
        "is moved to the end of the path.",
        "and this is the rest of it all.",
        "Too short.",
        "x" * 600,
        "Half a `code span is left here.",
        "[Ten tips that you should know](https://a.example/b)",
    ],
)
def test_fragments_are_not_understandable(text: str) -> None:
    assert understandable(Sentence(text, 1)) == 0.0


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("The option takes many values.", "This takes many values."),
        ("The option takes many values.", "The option takes many values:"),
        ("The option takes many values.", "What does the option take here?"),
        ("The option takes many values.", "The option takes many values"),
        ("`useState` returns two values.", "nginx returns two values here."),
    ],
)
def test_whole_sentences_are_better(better: str, worse: str) -> None:
    assert understandable(Sentence(better, 1)) > understandable(Sentence(worse, 1)) > 0


def test_an_item_with_a_label_may_begin_in_lower_case() -> None:
    assert (
        understandable(Sentence("`envvar`: the name of a variable", 1, is_item=True, label="envvar")) == 1.0
    )
    assert label_of("- `envvar`: the name") == "envvar"
    assert label_of("- the `envvar`") == ""


def test_what_points_back_leans() -> None:
    assert leans(Sentence("This is useful.", 1))
    assert not leans(Sentence("Thistles are useful.", 1))


def test_the_addresses_of_links_are_not_seen() -> None:
    assert plain("a [b](https://c.example/d) <https://e.example/>") == "a b "


@given(st.text(st.sampled_from("ab. `\n-1)?:A。(\"'*"), max_size=200))
def test_nothing_is_lost_or_made_up(text: str) -> None:
    assert "".join(part(text)).replace(" ", "") == "".join(text.split())
    assert "\n".join(items(text)).replace("\n", "") == text.replace("\n", "")
    for sentence in sentences_of(split(text)):
        assert 0.0 <= understandable(sentence) <= 1.0
