"""A new report that says what a related entry says renews that one (SPEC 3.2, 3.8): no second entry of one answer."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kr.freshness import Limits
from kr.research.excerpt import Report
from kr.research.pipeline import twin_of
from kr.values import Confidence, Origin, Query
from tests.support.mcp_servers import Scenario, context7_server
from tests.support.program import VUE, Project, request

SEVERAL: dict[str, Any] = {
    "topic": "option given several times",
    "tags": ["flags"],
    "question": "How can an option be given more than once?",
}
COLLECT: dict[str, Any] = {
    "topic": "collect every value of an option",
    "tags": ["arguments"],
    "question": "How do I declare an option with multiple values?",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def ask(project: Project, **changes: Any) -> dict[str, Any]:
    return project.research(request(**changes), include_report=True)


def test_an_answer_that_is_known_renews_its_entry_and_loses_no_text(project: Project) -> None:
    with context7_server() as server:
        project.use_context7(server.url)
        first = ask(project)
        before = project.report(first)
        second = ask(project, **SEVERAL)
        results = second["results"]
        assert (second["status"], results["cache_hit"], results["match"]) == ("success", False, None)
        assert results["cache_entry_id"] == first["results"]["cache_entry_id"]
        assert (results["index_count"], results["index_updated"], results["related"]) == (1, True, [])
        assert results["budget_remaining"] == first["results"]["budget_remaining"] - 1
        (note,) = results["degradation_notes"]
        assert note.startswith("vue-repeatable-options says the same")
        now = project.report(first)
        assert now.startswith("# vue - repeatable options\n")
        assert SEVERAL["question"] in now
        assert [row[0] for row in project.sql("SELECT text FROM report_texts ORDER BY rowid")] == [
            before,
            now,
        ]
        assert project.sql("SELECT entry_id, revision FROM revisions") == [("vue-repeatable-options", 1)]
        assert project.sql("SELECT topic, tags, question FROM entries") == [
            (
                "repeatable options",
                '["options", "configuration"]',
                request()["research_query"]["question"],
            )
        ]
        calls = len(server.calls())
        for changes in ({}, SEVERAL):
            assert ask(project, **changes)["status"] == "cache-hit"
        assert len(server.calls()) == calls


OTHER_ANSWER = "## Options\n\nAn option with `nargs` takes many values, and is passed once.\n"
OPPOSITE: dict[str, Any] = {
    "topic": "non-repeatable options",
    "question": "How do I make an option not repeatable?",
}


def test_another_answer_and_another_major_stay_apart(project: Project) -> None:
    with context7_server() as server:
        project.use_context7(server.url)
        ask(project)
        ask(project, **SEVERAL, framework_version="2.7")
    with context7_server(Scenario(docs=[OTHER_ANSWER])) as server:
        project.use_context7(server.url)
        ask(project, **COLLECT)
    ids = [row[0] for row in project.sql("SELECT id FROM entries ORDER BY id")]
    assert ids == [
        "vue-collect-every-value-of-an-option",
        "vue-option-given-several-times",
        "vue-repeatable-options",
    ]


def test_what_is_less_sure_or_about_the_opposite_renews_nothing(project: Project) -> None:
    with context7_server() as server:
        project.use_context7(server.url)
        text = project.report(ask(project))

    def twin(confidence: Confidence = "high", origin: Origin = "researched", **changes: Any) -> str | None:
        query = Query(**{**VUE, "tags": ("options",), **changes})
        report = Report(text=text, confidence=confidence, origin=origin)
        with project.app() as app, app.store.read() as unit:
            found = twin_of(unit, query, report, {}, limits=Limits(), now=project.clock())
        return found.id if found is not None else None

    several: dict[str, Any] = {key: SEVERAL[key] for key in ("topic", "question")}
    assert twin("high", "researched", **several) == "vue-repeatable-options"
    assert twin("medium", "researched", **several) is None
    assert twin("high", "installed", **several) is None
    assert twin(**OPPOSITE) is None
    assert twin() is None  # its own entry is renewed as ever


def test_two_who_research_one_answer_at_once_leave_one_entry(project: Project) -> None:
    other = {
        **SEVERAL,
        "topic": COLLECT["topic"],
    }  # whoever of the two writes first, the second says the same
    with context7_server(Scenario(delay=0.5)) as server:
        project.use_context7(server.url)
        asked = [request(**changes, session_id=changes["topic"]) for changes in (SEVERAL, other)]
        with ThreadPoolExecutor(2) as pool:
            answers = [*pool.map(project.ask, asked)]
        assert len(server.calls()) == 4
    assert [answer["status"] for answer in answers] == ["success"] * 2
    ((entry_id, topic),) = project.sql("SELECT id, topic FROM entries")
    assert {answer["results"]["cache_entry_id"] for answer in answers} == {entry_id}
    ((wording,),) = project.sql("SELECT topic FROM wordings")
    assert {topic, wording} == {SEVERAL["topic"], COLLECT["topic"]}
