from hypothesis import given
from hypothesis import strategies as st

from kr.text.corpus import words_of
from kr.text.keywords import keywords


@given(st.lists(st.sampled_from(["alpha", "betaGamma", "漢字", "don't", "x_y", "é"]), max_size=30))
def test_words_of_a_short_text_are_its_keywords(words: list[str]) -> None:
    text = " ".join(words)
    assert words_of(text) == frozenset(keywords(text))


def test_words_of_a_long_text_are_all_there() -> None:
    text = "\n".join(f"word{n} filler" for n in range(3000))
    assert {f"word{n}" for n in range(3000)} <= words_of(text)
