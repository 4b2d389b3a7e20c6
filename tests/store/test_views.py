"""Every public view counts what its tables hold (rule 5); on both databases."""

from typing import Any

import pytest

from kr.models import Lesson
from kr.store import ledger, lessons, lookup
from kr.store.engine import Store
from kr.store.lessons import LessonRow
from tests.support.stores import call, sql

DAYS = ("2026-09-01T00:00:00.000000Z", "2026-09-01T23:00:00.000000Z", "2026-09-30T12:00:00.000000Z")
ASKED = (
    ("research", "cache-hit", "vue", DAYS[0]),
    ("research", "cache-hit", "Vue ", DAYS[1]),
    ("research", "degraded", "vue", DAYS[2]),
    ("research", "success", "click", DAYS[0]),
    ("research", "failure", "click", DAYS[0]),
    ("research", "candidates", "click", DAYS[0]),
    ("research", "success", None, DAYS[2]),
    ("lessons-inject", "success", None, DAYS[2]),
)


def rows(store: Store, view: str) -> list[tuple[Any, ...]]:
    return [tuple(map(_number, row)) for row in sql(store, f"SELECT * FROM {view}")]


def _number(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int) else float(value)


@pytest.fixture
def filled(store: Store) -> Store:
    with store.write() as tx:
        for number, (mode, status, framework, at) in enumerate(ASKED):
            row = {"id": f"r{number}", "at": at, "mode": mode, "status": status, "framework": framework}
            lookup.log_request(tx, row)
        for charged, outcome, story, duration in (
            (True, "success", "1-1", 10),
            (True, "success", "1-2", 25),
            (False, "timeout", "1-1", None),
            (False, "skipped", "1-1", None),
        ):
            made = call(outcome=outcome, charged=charged, story_key=story, duration_ms=duration)
            ledger.record_call(tx, None, made)
        given = {"injected": 3, "recurred": 1}
        for day, gone in ((1, None), (2, None), (3, "2026-10-01")):
            lesson = Lesson(f"2026-09-0{day}", ("dev-execution",), f"lesson {day}")
            lessons.add(tx, [LessonRow(id=str(day), lesson=lesson, gone_at=gone, **given)], str.split)  # type: ignore[arg-type]
    return store


def test_hit_rates_leave_out_failures_other_modes_and_what_was_only_offered(filled: Store) -> None:
    assert rows(filled, "hit_rate_by_day") == [("2026-09-01", 3, 2, 0.6667), ("2026-09-30", 2, 0, 0)]
    assert rows(filled, "hit_rate_by_framework") == [("vue", 3, 2, 0.6667), ("click", 1, 0, 0)]


def test_an_offer_whose_report_was_used_is_a_hit(filled: Store) -> None:
    sql(filled, "UPDATE requests SET tier = 'use' WHERE status = 'candidates'")
    assert rows(filled, "hit_rate_by_framework") == [("vue", 3, 2, 0.6667), ("click", 2, 1, 0.5)]


def test_spending_sources_and_lessons(filled: Store) -> None:
    at = "2026-10-01T12:00:00.000000Z"
    assert rows(filled, "spending_by_story") == [("s", "1-1", 1, 2, at, at), ("s", "1-2", 1, 0, at, at)]
    assert rows(filled, "source_reliability") == [("context7", 3, 2, 1, 0, 0.6667, 17.5)]
    assert rows(filled, "lessons_by_phase") == [("dev-execution", 2, 6, 2, "2026-09-02")]
