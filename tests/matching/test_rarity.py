import re
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kr.matching import rarity as module
from kr.matching.rarity import Rarity, rarity
from kr.matching.terms import root

LINES = Path(module.__file__).with_name("rarity.txt").read_text(encoding="ascii").splitlines()


def test_every_term_of_the_table_reads_as_its_line_says() -> None:
    seen: set[str] = set()
    for line in LINES:
        fiftieths, quarters, *words = line.split()
        for word in (words[0], words[len(words) // 2], words[-1]):
            assert rarity(word) == Rarity(int(fiftieths) / 50, int(quarters) / 4)
        assert seen.isdisjoint(words)
        seen.update(words)
    assert len(seen) > 15_000


def test_the_table_holds_what_terms_gives() -> None:
    assert all(re.fullmatch(r"\d+ [0-4]( \S+)+", line) for line in LINES)
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


def test_a_look_up_is_cheap() -> None:
    rarity("warm")
    started = time.process_time()
    for number in range(2000):
        rarity(f"zz{number}")
    assert time.process_time() - started < 3
