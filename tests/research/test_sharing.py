"""How one answer serves other requests (rule 3.1 to 3.3): wordings, named entries, candidates, refresh, majors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kr.store import ledger
from kr.store import saving as saving_rows
from tests.support.mcp_servers import StandIn, context7_server
from tests.support.program import Project, request
from tests.support.stores import draft

pytestmark = pytest.mark.usefixtures("database_url")

NEAR = {"topic": "repeatable arguments", "tags": ["arguments"], "question": "Can an argument be given twice?"}
"""Shares a word with the topic of ``request()``, and is another need."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server() as server:
        project.use_context7(server.url)
        yield server


def ask(project: Project, **changes: Any) -> dict[str, Any]:
    """Ask with overrides given by their names, and anything else of the request."""
    overrides = {
        key: changes.pop(key) for key in ("use", "refresh", "if_unsure", "max_calls") if key in changes
    }
    return project.research(request(**changes, config_overrides=overrides), include_report=True)


def wordings(project: Project) -> list[tuple[Any, ...]]:
    return project.sql("SELECT entry_id, topic, tags, question, session_id FROM wordings ORDER BY id")


def test_an_entry_keeps_its_question_and_only_wordings_that_somebody_chose(
    project: Project, context7: StandIn
) -> None:
    assert ask(project)["status"] == "success"
    assert project.sql("SELECT question FROM entries") == [(request()["research_query"]["question"],)]
    other = {"question": "Twice the same option: how?", "session_id": "other"}
    assert ask(project, **other)["status"] == "cache-hit"  # by its topic
    assert wordings(project) == []
    assert ask(project, **other, use="vue-repeatable-options")["status"] == "cache-hit"
    (wording,) = wordings(project)
    assert wording == (
        "vue-repeatable-options",
        "repeatable options",
        json.dumps(["options", "configuration"]),
        "Twice the same option: how?",
        "other",
    )
    assert len(context7.calls()) == 2


def test_a_renewed_entry_keeps_the_question_that_it_had(project: Project, context7: StandIn) -> None:
    ask(project)
    project.clock.pass_days(31)
    ask(project, question="Twice the same option: how?")
    assert project.sql("SELECT question FROM entries") == [("Twice the same option: how?",)]
    assert [row[3] for row in wordings(project)] == ["How do I make an option repeatable?"]
    assert context7.calls()


def waiting(project: Project) -> list[tuple[Any, ...]]:
    rows = project.sql(
        "SELECT tags, candidates, answered_by, settled_at IS NOT NULL FROM requests WHERE candidates IS NOT NULL"
    )
    return [(*map(json.loads, row[:2]), *row[2:]) for row in rows]


@pytest.mark.usefixtures("context7")
def test_what_was_offered_is_kept_until_somebody_says_that_it_answers(project: Project) -> None:
    ask(project)
    assert waiting(project) == []  # nothing was offered, and a hit offers nothing
    (related,) = ask(project, **NEAR, if_unsure="candidates")["results"]["related"]
    offered = {"id": "vue-repeatable-options", "score": related["score"]}
    assert waiting(project) == [(NEAR["tags"], [offered], None, 0)]
    with project.app() as app, app.store.read() as tx:
        (kept,) = ledger.open_offers(tx)
    assert (kept["topic"], kept["question"]) == (NEAR["topic"], NEAR["question"])
    ask(project, **NEAR, use="vue-repeatable-options")
    assert waiting(project) == [(NEAR["tags"], [offered], "vue-repeatable-options", 1)]


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (
            "vue-repeatable-option",
            'no entry has the id "vue-repeatable-option"; nearest: vue-repeatable-options',
        ),
        (
            "vue-gone",
            '"vue-gone" is in the archive, not in the index; kr archive restore vue-gone brings it back',
        ),
    ],
)
def test_an_entry_that_cannot_be_used_is_a_failure(
    project: Project, context7: StandIn, use: str, told: str
) -> None:
    gone = {"topic": "gone", "tags": ["gone"], "question": "What is gone?"}
    for changes in ({}, gone, {"framework": "react", "topic": "hooks"}):
        ask(project, **changes)
    with project.app() as app:
        app.catalog.remove(["vue-gone"])
    calls = len(context7.calls())
    answer = ask(project, use=use)
    assert (answer["status"], answer["results"]) == ("failure", None)
    [problem] = answer["errors"]
    assert (problem["field"], problem["message"]) == ("config_overrides.use", f"Validation failed: {told}")
    (row,) = project.sql("SELECT status, question, error FROM requests ORDER BY at DESC LIMIT 1")
    assert row[:2] == ("failure", "How do I make an option repeatable?")
    assert told in row[2]
    assert len(context7.calls()) == calls


def test_a_named_entry_without_a_report_is_a_miss(project: Project, context7: StandIn) -> None:
    path = project.base / ask(project)["results"]["report_path"]
    path.unlink()
    project.sql("UPDATE entries SET sha256 = NULL")  # nor is its text in the database
    answer = ask(project, **NEAR, use="vue-repeatable-options")
    assert (answer["status"], answer["results"]["cache_entry_id"]) == ("success", "vue-repeatable-arguments")
    (note,) = answer["results"]["degradation_notes"]
    assert note.startswith("vue-repeatable-options has no report that could be served")
    assert context7.calls()


def test_a_named_entry_is_served_although_it_is_stale_and_stays_so(
    project: Project, context7: StandIn
) -> None:
    ask(project)
    project.clock.pass_days(31)
    answer = ask(project, use="vue-repeatable-options")
    assert (answer["status"], answer["results"]["match"]["entry_status"]) == ("cache-hit", "stale")
    assert "is stale" in answer["results"]["degradation_notes"][0]
    assert ask(project)["status"] == "success"
    assert context7.calls()


def test_a_refresh_renews_the_entry_of_its_topic(project: Project, context7: StandIn) -> None:
    before = ask(project)["results"]
    project.clock.pass_days(1)
    answer = ask(project, refresh=True)
    assert answer["status"] == "success"
    assert answer["results"]["cache_entry_id"] == before["cache_entry_id"]
    assert answer["results"]["index_count"] == 1
    assert len(context7.calls()) == 3
    ((researched,),) = project.sql("SELECT researched_at FROM entries")
    assert researched.startswith("2026-11-22")
    assert ask(project)["status"] == "cache-hit"


def test_a_refresh_that_nobody_answers_leaves_the_report_as_it_is(
    project: Project, context7: StandIn
) -> None:
    first = ask(project)
    before = project.report(first)
    project.env["KR_SERVERS"] = '{"context7": null}'
    answer = ask(project, refresh=True)
    assert answer["status"] == "degraded"
    assert answer["results"]["report"] == project.report(first) == before
    assert answer["results"]["sources_consulted"][0]["status"] == "unavailable"
    *_, unavailable, kept, saving = answer["results"]["degradation_notes"]
    assert "kr save" in saving
    assert unavailable == "all_sources_unavailable: keeping the existing report"
    assert "could not be researched again" in kept
    assert ask(project, refresh=True, max_calls=0)["status"] == "budget-exhausted"
    assert project.sql("SELECT status, origin FROM entries") == [("fresh", "excerpt")]
    assert ask(project)["status"] == "cache-hit"
    assert context7.calls()


def test_what_marks_another_project_made_are_none_for_its_own(project: Project, context7: StandIn) -> None:
    ask(project, framework_version="2.7")
    (project.root / "package.json").write_text('{"dependencies": {"vue": "^3.5"}}')
    with project.app() as app:
        (row,) = app.versions(mark_stale=True)
        assert row["marked_stale"] == ["vue-repeatable-options"]
        assert app.catalog.entry("vue-repeatable-options")["stale_major"] == "3"
    assert ask(project, framework_version="2.7")["status"] == "cache-hit"
    project.clock.pass_days(31)
    assert ask(project, framework_version="2.7", max_calls=0)["status"] == "budget-exhausted"
    assert project.sql("SELECT status, stale_major, origin FROM entries") == [("stale", None, "excerpt")]
    assert context7.calls()


MAJORS = {"2.7": "2", "^2": "2", "v3": "3", ">=3,<4": "3", "4.0": "4", "latest": "latest"}


@settings(max_examples=6, deadline=None)
@given(
    versions=st.lists(st.sampled_from([*MAJORS]), min_size=2, max_size=5),
    days=st.lists(st.sampled_from([0, 1, 31]), min_size=6),
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_nobody_is_served_what_was_researched_for_another_major(
    tmp_path_factory: pytest.TempPathFactory, versions: list[str], days: list[int]
) -> None:
    project = Project(tmp_path_factory.mktemp("majors") / "project")
    researched: dict[str, float] = {}
    age = 0
    with context7_server() as server:
        project.use_context7(server.url)
        for version, passed in zip(versions, days, strict=False):
            project.clock.pass_days(passed)
            age += passed
            answer = ask(project, framework_version=version, session_id=f"{age}-{version}-{len(researched)}")
            major = MAJORS[version]
            is_fresh = major in researched and age - researched[major] <= 30
            assert answer["status"] == ("cache-hit" if is_fresh else "success")
            researched[major] = age
            entry_id = answer["results"]["cache_entry_id"]
            [(kept,)] = project.sql("SELECT framework_version FROM entries WHERE id = ?", entry_id)
            assert MAJORS[kept] == major


def test_a_framework_is_found_under_its_other_names(project: Project, context7: StandIn) -> None:
    ask(project, framework="next.js", framework_version="15")
    assert ask(project, framework="nextjs", framework_version="15")["status"] == "cache-hit"
    project.env["KR_ALIASES"] = "{our-next: Next}"
    assert ask(project, framework="Our Next", framework_version="15")["status"] == "cache-hit"
    assert ask(project, framework="our_next", framework_version="15", refresh=True)["status"] == "success"
    assert project.sql("SELECT framework FROM entries") == [("next.js",)]
    assert project.sql("SELECT status FROM requests ORDER BY at")[-1] == ("success",)
    (project.root / "package.json").write_text('{"dependencies": {"@acme/frobnicator": "^1"}}')
    with project.app() as app:
        saving_rows.save(app.store, draft("@acme/frobnicator"), "# of a package\n", project.clock())
    assert ask(project, framework="frobnicator", framework_version="8")["status"] == "cache-hit"
    assert project.sql("SELECT count(*) FROM entries") == [(2,)]
    asked = [row[0] for row in project.sql("SELECT framework FROM requests ORDER BY at")]
    assert asked == ["next.js", "nextjs", "Our Next", "our_next", "frobnicator"]
    assert context7.calls()
