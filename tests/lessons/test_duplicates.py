"""When two lessons say the same (U5, step 4): shared keywords, but never other numbers, a negation, or swapped roles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.line import duplicate_probe, is_duplicate
from kr.models import Lesson


def says_the_same(one: str, other: str) -> bool:
    first, second = (Lesson("2026-02-07", ("dev-execution",), summary) for summary in (one, other))
    return is_duplicate(first, second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "vue-easytable virtual scrolling blank rows: set the row height",
            "Virtual scrolling of vue-easytable: blank rows; set the row heights",
        ),
        ("分页查询必须使用 Page 对象", "分页查询必须使用 Page 对象。"),
    ],
)
def test_most_keywords_in_common_are_a_duplicate(one: str, other: str) -> None:
    assert says_the_same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("vue-easytable rows blank: set the height", "vue-easytable needs a column key"),
        ("Connections time out: set the pool size to 5", "Connections time out: set the pool size to 50"),
        ("Call init() before connect() of the client", "Never call init() before connect() of the client"),
        (
            "Client times out at start: call init() before connect()",
            "Client times out at start: call connect() before init()",
        ),
        (
            "Use deepcopy instead of copy for nested settings",
            "Use copy instead of deepcopy for nested settings",
        ),
        (
            "Deploy fails: enable the retry worker of the job",
            "Deploy fails: disable the retry worker of the job",
        ),
    ],
)
def test_what_says_something_else_is_none(one: str, other: str) -> None:
    assert not says_the_same(one, other)


def test_another_phase_is_no_duplicate() -> None:
    one, same = (Lesson("2026-02-07", ("dev-execution",), "Set the row height") for _ in range(2))
    assert is_duplicate(one, same)
    assert not is_duplicate(one, Lesson("2026-02-07", ("code-review",), "Set the row height"))


def test_what_is_about_another_framework_is_no_duplicate() -> None:
    tests_fail = "Tests fail, connection refused: start the {} container before the tests"
    postgres, redis = (
        Lesson("2026-02-07", ("dev-execution", name), tests_fail.format(name))
        for name in ("postgres", "redis")
    )
    assert not is_duplicate(redis, postgres)
    assert is_duplicate(redis, Lesson("2026-02-08", ("dev-execution", "redis", "ci"), redis.summary))
    assert is_duplicate(redis, Lesson("2026-02-08", ("dev-execution",), redis.summary)), "of no framework"


@given(st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=12, unique=True), st.data())
def test_who_shares_most_words_has_one_of_the_telling_ones(letters: list[str], data: st.DataObject) -> None:
    words = [f"word{letter * ord(letter)}" for letter in letters]
    kept = data.draw(st.lists(st.sampled_from(words), unique=True))
    some, least = duplicate_probe(words, " ".join(words))
    if len(kept) > 0.70 * len(words):
        assert set(kept) & set(some)
        assert len(kept) >= least
