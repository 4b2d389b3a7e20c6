from collections.abc import Sequence
from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kr.reports.report import confidence, copies
from kr.research.hit import Course, research_status

from kr.values import Answer, Consulted, Passage, ResearchStatus, SourceOutcome

ON_TOPIC = "Configure virtual scrolling: dynamic row heights need an estimate."


def _rows(*outcomes: tuple[str, SourceOutcome]) -> tuple[Consulted, ...]:
    return tuple(Consulted(source=source, status=status) for source, status in outcomes)


def test_confidence_of_the_table() -> None:
    assert confidence("context7", has_code=True) == "high"
    assert confidence("context7") == "medium"
    assert confidence("deepwiki", has_code=True) == "medium"
    assert confidence("web_search", agreeing=2) == "medium"
    assert confidence("web_search", has_code=True, agreeing=1) == "low"
    assert confidence("local_docs", has_code=True, agreeing=5) == "low"


def _pages(*pages: tuple[str, str]) -> Answer:
    passages = tuple(Passage(text=text, url=url, title=f"Title of {url}") for url, text in pages)
    return Answer(source="web_search", passages=passages)


def _different(*pages: tuple[str, str]) -> int:
    return len(set(copies(_pages(*pages)).values()))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ON_TOPIC, ON_TOPIC),
        (ON_TOPIC, f"\n{ON_TOPIC.upper().replace(' ', '  ')}\n"),
        (f"[x](https://a.example/?x=1#a) {ON_TOPIC}", f"[x](https://a.example/?x=2#a) {ON_TOPIC}"),
        (f"{ON_TOPIC} https://a.example/?x=1", f"**{ON_TOPIC}** <https://a.example/>"),
    ],
)
def test_copies_of_one_page_are_one(one: str, other: str) -> None:
    pages = (("https://a.example/?x=1", one), ("https://a.example/?x=2", other))
    assert _different(*pages) == 1
    assert _different(*pages, ("https://b.example/", "Rows of dynamic heights scroll.")) == 2


def test_two_pieces_of_one_page_are_one() -> None:
    assert len(copies(_pages(("https://one.example/", ON_TOPIC), ("https://one.example/", "More.")))) == 1


def test_long_copies_are_copies_too() -> None:
    links = [f"[a](https://a.example/{'x' * length}) " * 9000 + ON_TOPIC for length in (1, 2)]
    assert _different(("https://a.example/1", links[0]), ("https://a.example/2", links[1])) == 1


def test_pages_in_other_scripts_are_distinct() -> None:
    assert _different(("https://a.example/", "虚拟滚动"), ("https://b.example/", "行高")) == 2


@pytest.mark.parametrize(
    ("course", "status"),
    [
        (Course(fresh_hit=True, written=False, budget_ended=True), "cache-hit"),
        (Course(budget_ended=True), "budget-exhausted"),
        (
            Course(budget_ended=True, consulted=_rows(("context7", "timeout"), ("deepwiki", "skipped"))),
            "budget-exhausted",
        ),
        (
            Course(budget_ended=True, consulted=_rows(("context7", "skipped"), ("local_docs", "success"))),
            "budget-exhausted",
        ),
        (Course(budget_ended=True, answered=True, consulted=_rows(("context7", "success"))), "success"),
        (Course(consulted=_rows(("context7", "success"))), "degraded"),  # it does not cover the question
        (Course(consulted=_rows(("context7", "unavailable"))), "degraded"),
        (Course(consulted=_rows(("context7", "timeout"))), "degraded"),
        (Course(consulted=_rows(("context7", "unavailable"), ("local_docs", "success"))), "degraded"),
        (Course(written=False), "degraded"),
        (Course(answered=True, written=False, consulted=_rows(("context7", "timeout"))), "partial"),
        (Course(answered=True, consulted=_rows(("a", "unavailable"), ("b", "timeout"))), "timeout"),
        (Course(answered=True, consulted=_rows(("a", "unavailable"), ("c", "success"))), "partial"),
        (Course(answered=True, consulted=_rows(("a", "success"), ("b", "skipped"))), "success"),
    ],
)
def test_status_is_the_first_row_that_holds(course: Course, status: ResearchStatus) -> None:
    assert research_status(course) == status


def test_any_course_has_one_status_and_each_status_can_be_reached() -> None:
    outcomes: Sequence[SourceOutcome] = get_args(SourceOutcome)
    reached = {
        research_status(
            Course(
                fresh_hit=h, budget_ended=b, written=w, answered=a, consulted=_rows(("a", one), ("b", two))
            )
        )
        for h, b, w, a in product([False, True], repeat=4)
        for one, two in product(outcomes, repeat=2)
    }
    # A request that is refused takes no course.
    assert reached == set(get_args(ResearchStatus)) - {"failure"}


@given(
    st.lists(st.sampled_from(get_args(SourceOutcome)), max_size=5),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_success_is_claimed_with_an_answer_and_never_without(
    outcomes: list[SourceOutcome], ended: bool, written: bool, answered: bool
) -> None:
    rows = _rows(*(("s", o) for o in outcomes))
    course = Course(consulted=rows, budget_ended=ended, written=written, answered=answered)
    assert (research_status(course) in {"success", "partial", "timeout"}) == answered
