from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.duplicates import find_duplicates, lesson_keywords, rarest, says_the_same
from kr.lessons.line import Lesson


def lesson(summary: str, *tags: str) -> Lesson:
    return Lesson("2026-02-07", tags or ("dev-execution",), summary)


def test_most_keywords_in_common_are_a_duplicate() -> None:
    one = "vue-easytable virtual scrolling blank rows: set the row height"
    assert says_the_same(one, "Virtual scrolling of vue-easytable: blank rows; set the row heights")
    assert says_the_same("分页查询必须使用 Page 对象", "分页查询必须使用 Page 对象。")
    assert not says_the_same(one, "vue-easytable needs a column key")
    assert not says_the_same(
        "Call init() before connect() of the client", "Never call init() before connect() of the client"
    )
    for own, contrary in (("Enable", "Disable"), ("Increase", "Decrease"), ("Start", "Stop")):
        rest = "the retry worker of the deploy job in the settings"
        assert not says_the_same(
            f"Deploy fails on staging: {own} {rest}", f"Deploy fails on staging: {contrary} {rest}"
        )


def test_another_phase_is_no_duplicate() -> None:
    one = lesson("Set the row height")
    same, other = lesson("Set the row height"), lesson("Set the row height", "code-review")
    assert find_duplicates(one, [same, other]) == [same]


@given(st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=12, unique=True), st.data())
def test_who_shares_most_words_has_one_of_the_rarest(letters: list[str], data: st.DataObject) -> None:
    words = [f"word{letter}" for letter in letters]
    frequency = [(word, data.draw(st.integers(1, 50))) for word in words]
    kept = data.draw(st.lists(st.sampled_from(words), unique=True))
    if len(kept) > 0.70 * len(words):
        assert set(kept) & set(rarest(frequency, len(words)))


@given(st.text(min_size=1, max_size=80))
def test_a_lesson_is_its_own_duplicate(summary: str) -> None:
    assert says_the_same(summary, summary)
    assert len(lesson_keywords(summary)) == len(set(lesson_keywords(summary)))
