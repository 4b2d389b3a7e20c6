from collections.abc import Sequence
from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.reports.outcome import Course, agree, confidence, distinct_pages, research_status
from kr.values import Answer, Consulted, Passage, ResearchStatus, SourceOutcome

QUESTION = "How to configure virtual scrolling with dynamic row heights?"
ON_TOPIC = "Configure virtual scrolling: dynamic row heights need an estimate."
TOO = "How to configure dynamic heights of rows? Virtual scrolling is off by default."
OFF_TOPIC = "Buy our cheap holidays in the sun."


def _answer(source: str, *texts: str, url: str | None = "https://a.example/") -> Answer:
    passages = tuple(Passage(text=text, url=f"https://p{n}.example/") for n, text in enumerate(texts))
    return Answer(source=source, passages=passages, url=url)


def _rows(*outcomes: tuple[str, SourceOutcome]) -> tuple[Consulted, ...]:
    return tuple(Consulted(source=source, status=status) for source, status in outcomes)


def test_confidence_of_the_table() -> None:
    assert confidence([_answer("context7", ON_TOPIC)], QUESTION, has_code=True) == "high"
    assert confidence([_answer("context7", ON_TOPIC)], QUESTION, has_code=False) == "medium"
    assert confidence([_answer("deepwiki", ON_TOPIC)], QUESTION, has_code=True) == "medium"
    assert confidence([_answer("web_search", ON_TOPIC, TOO)], QUESTION, has_code=True) == "medium"
    assert (
        confidence([_answer("web_search", ON_TOPIC, OFF_TOPIC, OFF_TOPIC)], QUESTION, has_code=True) == "low"
    )
    assert confidence([_answer("web_search", ON_TOPIC)], QUESTION, has_code=True) == "low"
    assert confidence([_answer("local_docs", ON_TOPIC, ON_TOPIC)], QUESTION, has_code=True) == "low"
    assert confidence([], QUESTION, has_code=False) == "low"


def test_two_pieces_of_one_page_do_not_agree() -> None:
    twice = Answer(
        source="web_search",
        passages=(Passage(text=ON_TOPIC, url="https://one.example/"),) * 2,
    )
    assert confidence([twice], QUESTION, has_code=False) == "low"


def _pages(*pages: tuple[str, str]) -> Answer:
    passages = tuple(Passage(text=text, url=url, title=f"Title of {url}") for url, text in pages)
    return Answer(source="web_search", passages=passages)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ON_TOPIC, ON_TOPIC),
        (ON_TOPIC, f"\n{ON_TOPIC.upper().replace(' ', '  ')}\n"),
        (f"[x](https://a.example/?x=1#a) {ON_TOPIC}", f"[x](https://a.example/?x=2#a) {ON_TOPIC}"),
        (f"{ON_TOPIC} https://a.example/?x=1", f"**{ON_TOPIC}** <https://a.example/>"),
    ],
)
def test_copies_of_one_page_do_not_agree(one: str, other: str) -> None:
    copies = _pages(("https://a.example/?x=1", one), ("https://a.example/?x=2", other))
    assert len(distinct_pages(copies)) == 1
    assert confidence([copies], QUESTION, has_code=False) == "low"
    third = Passage(text=TOO, url="https://b.example/")
    both = Answer(source="web_search", passages=(*copies.passages, third))
    assert len(distinct_pages(both)) == 2
    assert confidence([both], QUESTION, has_code=False) == "medium"


def test_long_copies_are_copies_too() -> None:
    links = [f"[a](https://a.example/{'x' * length}) " * 9000 + ON_TOPIC for length in (1, 2)]
    assert (
        len(distinct_pages(_pages(("https://a.example/1", links[0]), ("https://a.example/2", links[1])))) == 1
    )


def test_pages_in_other_scripts_are_distinct() -> None:
    assert (
        len(distinct_pages(_pages(("https://a.example/", "虚拟滚动"), ("https://b.example/", "行高")))) == 2
    )


def test_pages_agree_by_half_of_the_questions_keywords() -> None:
    assert agree(["alpha beta", "beta alpha gamma"], "alpha beta gamma delta")
    assert not agree(["alpha beta", "alpha only"], "alpha beta gamma delta")
    assert not agree(["anything", "anything"], "?")


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
        (Course(budget_ended=True, consulted=_rows(("context7", "success"))), "success"),
        (Course(consulted=_rows(("context7", "unavailable"))), "degraded"),
        (Course(consulted=_rows(("context7", "timeout"))), "degraded"),
        (Course(consulted=_rows(("context7", "unavailable"), ("local_docs", "success"))), "degraded"),
        (Course(written=False), "degraded"),
        (Course(written=False, consulted=_rows(("context7", "timeout"), ("deepwiki", "success"))), "partial"),
        (Course(consulted=_rows(("a", "unavailable"), ("b", "timeout"), ("c", "success"))), "timeout"),
        (Course(consulted=_rows(("a", "unavailable"), ("c", "success"))), "partial"),
        (Course(consulted=_rows(("a", "success"), ("b", "skipped"))), "success"),
    ],
)
def test_status_is_the_first_row_that_holds(course: Course, status: ResearchStatus) -> None:
    assert research_status(course) == status


def test_any_course_has_one_status_and_each_status_can_be_reached() -> None:
    outcomes: Sequence[SourceOutcome] = get_args(SourceOutcome)
    reached = {
        research_status(
            Course(fresh_hit=h, budget_ended=b, written=w, consulted=_rows(("a", one), ("b", two)))
        )
        for h, b, w in product([False, True], repeat=3)
        for one, two in product(outcomes, repeat=2)
    }
    # A request that is refused takes no course.
    assert reached == set(get_args(ResearchStatus)) - {"failure"}


@given(st.lists(st.sampled_from(get_args(SourceOutcome)), max_size=5), st.booleans(), st.booleans())
def test_success_is_never_claimed_without_an_answer(
    outcomes: list[SourceOutcome], ended: bool, written: bool
) -> None:
    course = Course(consulted=_rows(*(("s", o) for o in outcomes)), budget_ended=ended, written=written)
    if research_status(course) in {"success", "partial", "timeout"}:
        assert "success" in outcomes
    else:
        assert "success" not in outcomes
