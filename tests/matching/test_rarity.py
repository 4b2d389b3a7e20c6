import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from kr.matching.terms import root

from kr import matching as module
from kr.matching.rarity import Rarity, rarity

LINES = Path(module.__file__).with_name("rarity.txt").read_text(encoding="ascii").splitlines()


def test_every_term_of_the_table_reads_as_its_line_says() -> None:
    words = [line.partition(" ")[0] for line in LINES]
    assert words == sorted(set(words))
    assert len(words) > 15_000
    for line in (*LINES[::97], LINES[-1]):
        word, fiftieths, quarters = line.split()
        assert rarity(word) == Rarity(int(fiftieths) / 50, int(quarters) / 4)


def test_the_table_holds_what_terms_gives() -> None:
    assert all(re.fullmatch(r"\S+ \d+ [0-4]", line) for line in LINES)
    assert [
        word
        for word in ("queue", "database", "configuration", "paginate")
        if rarity(root(word)).rarity == 1.0
    ] == []


def test_what_everybody_writes_says_less_than_what_few_do() -> None:
    common, known, rare = (rarity(root(word)).rarity for word in ("use", "queue", "debounce"))
    assert 0.0 <= common < known < rare < 1.0
    assert rarity("qwxzyv") == Rarity(1.0, 1.0)


def test_what_texts_are_about_weighs_more_than_what_they_say_in_passing() -> None:
    assert rarity(root("queue")).weight > rarity(root("carry")).weight


@given(st.text(max_size=20))
def test_any_text_has_a_rarity(text: str) -> None:
    found = rarity(text)
    assert 0.0 <= found.rarity <= 1.0
    assert 0.0 <= found.weight <= 1.0
