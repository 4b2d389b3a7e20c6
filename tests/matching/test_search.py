import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.matching.search import search
from kr.values import Entry


def entry(
    framework: str, topic: str, *tags: str, accessed: str = "2026-10-01", status: str = "fresh"
) -> Entry:
    return Entry(
        id=f"{framework}-{topic}",
        framework=framework,
        framework_version="1",
        topic=topic,
        tags=tags,
        path="x.md",
        created="2026-10-01",
        last_accessed=accessed,
        status="fresh" if status == "fresh" else "stale",
        confidence="high",
    )


ENTRIES = [
    entry("vue", "virtual scrolling configuration", "performance"),
    entry("vue", "named slots", "templates"),
    entry("react", "virtual lists", "scroll"),
    entry("C++", "smart pointers", "memory"),
    entry("vue-easytable", "虚拟滚动配置", "虚拟滚动"),
]


def found(words: str) -> list[str]:
    return [hit.entry.id for hit in search(words, ENTRIES)]


@pytest.mark.parametrize(
    ("words", "best"),
    [
        ("virtual scroll", "vue-virtual scrolling configuration"),
        ("VUE slots", "vue-named slots"),
        ("react scrolling", "react-virtual lists"),
        ("c++", "C++-smart pointers"),
        ("滚动配置", "vue-easytable-虚拟滚动配置"),
        ("configuraton", "vue-virtual scrolling configuration"),
        ("conf", "vue-virtual scrolling configuration"),
        ("memory", "C++-smart pointers"),
        ("Templates", "vue-named slots"),
    ],
)
def test_the_best_answer_comes_first(words: str, best: str) -> None:
    assert found(words)[0] == best


@pytest.mark.parametrize("words", ["kubernetes", "", "  ", "the", "🙂", "\x00"])
def test_nothing_is_found_where_nothing_fits(words: str) -> None:
    assert found(words) == []


def test_a_search_without_keywords_is_looked_for_as_it_stands() -> None:
    assert [
        hit.entry.topic for hit in search("the", [entry("a", "the who"), entry("b", "other things")])
    ] == [
        "the who",
        "other things",
    ]


def test_equals_are_ordered_by_status_and_access() -> None:
    same = [
        entry("a", "slots", accessed="2026-10-01"),
        entry("b", "slots", accessed="2026-10-03", status="stale"),
        entry("c", "slots", accessed="2026-10-02"),
    ]
    assert [hit.entry.framework for hit in search("slots", same)] == ["c", "a", "b"]


@given(
    st.text(max_size=60), st.lists(st.builds(entry, st.text(max_size=20), st.text(max_size=30)), max_size=5)
)
def test_any_text_is_harmless_and_scores_are_bounded(words: str, entries: list[Entry]) -> None:
    hits = search(words, entries)
    assert all(0 < hit.score <= 1 and hit.found for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {hit.entry.id for hit in hits} == {hit.entry.id for hit in search(words, entries[::-1])}
