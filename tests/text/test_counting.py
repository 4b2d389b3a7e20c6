import pytest

from kr.text.counting import tokens_of


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("fours", 2), ("虚拟滚动", 4), ("ab 虚拟", 3)]
)
def test_tokens_are_a_quarter_of_the_characters_and_wide_ones_whole(text: str, tokens: int) -> None:
    assert tokens_of(text) == tokens
