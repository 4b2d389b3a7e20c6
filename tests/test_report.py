from datetime import UTC, date, datetime, timedelta

import pytest

from kr.models import PLACEHOLDER_MARK, Answer, Entry, Passage, Query
from kr.report import STALE_MARK, fresh_until, origin_of
from kr.research.report import build_report

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
QUERY = Query(framework="vue", framework_version="3", topic="slots", tags=("a",), question="What is a slot?")


def answer(source: str, text: str = "A slot is a place for content in a template.") -> Answer:
    return Answer(source=source, passages=(Passage(text=text),))


def report(given: Answer | None, baseline: str | None = None) -> tuple[str, str]:
    made = build_report(QUERY, answer=given, baseline=baseline, today=date(2026, 10, 1))
    return made.text, made.origin


@pytest.mark.parametrize("source", ["context7", "deepwiki", "web_search", "local_docs"])
def test_a_reports_own_text_tells_its_origin(source: str) -> None:
    text, origin = report(answer(source))
    assert origin_of(text) == origin == ("installed" if source == "local_docs" else "researched")


def test_a_skeleton_and_a_carried_over_report_tell_it_too() -> None:
    text, origin = report(None)
    assert origin_of(text) == origin == "skeleton"
    carried, origin = report(None, report(answer("context7"))[0])
    assert origin_of(carried) == origin == "baseline"


def test_a_quoted_mark_makes_no_skeleton() -> None:
    text, origin = report(answer("context7", f"A slot is a place.\n\n{PLACEHOLDER_MARK}\n\n{STALE_MARK}"))
    assert origin_of(text) == origin == "researched"


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("# by hand\n\nnotes", "researched"),
        (f"# a\n\n> {STALE_MARK}\n", "baseline"),
        (f"# a\n\n{PLACEHOLDER_MARK}\n", "skeleton"),
        ("", "researched"),
    ],
)
def test_a_text_of_another_shape(text: str, origin: str) -> None:
    assert origin_of(text) == origin


def entry(**changes: str) -> Entry:
    values = {
        "id": "a",
        "framework": "vue",
        "framework_version": "3",
        "topic": "t",
        "path": "p",
        "created": "c",
    }
    return Entry(tags=(), last_accessed="2026-10-01", status="stale", confidence="low", **(values | changes))  # type: ignore[arg-type]


def test_installed_documentation_lasts_a_day() -> None:
    assert fresh_until("installed", "2026-10-01T12:00:00.000000Z") == NOW + timedelta(days=1)
    assert fresh_until("installed", None) is None
    assert fresh_until("researched", "2026-10-01") is None
