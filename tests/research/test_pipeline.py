"""The nine steps on a real database, against a real MCP server on loopback."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.mcp_servers import (
    LIBRARIES,
    Raw,
    Scenario,
    StandIn,
    context7_server,
)
from tests.support.program import Project, request
from tests.support.stores import leave_no_room
from tests.support.web_servers import Reply, Request, WebServer, as_json, page, web_server

pytestmark = pytest.mark.usefixtures("database_url")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    # To ask for something else these tests change the topic alone; by its question kr would know it again.
    return Project(tmp_path / "project", env={"KR_CACHE_MATCH": "seed"})


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server() as server:
        project.use_context7(server.url)
        yield server


def results(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["results"]
    return found


def notes(answer: dict[str, Any]) -> list[str]:
    """Return the notes but for the last one of an answer that holds none: how to save what is found otherwise."""
    found: list[str] = results(answer)["degradation_notes"]
    assert "kr save" in found[-1]
    return found[:-1]


def sections(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("## ")]


def test_a_miss_is_researched_written_indexed_and_exported(project: Project, context7: StandIn) -> None:
    answer = project.research()
    assert list(answer) == ["status", "story_key", "mode", "session_id", "results", "errors"]
    assert (answer["status"], answer["story_key"], answer["mode"]) == ("success", "3-1", "research")
    assert (answer["session_id"], answer["errors"]) == ("s-1", [])
    expected = {
        "cache_hit": False,
        "cache_entry_id": "vue-repeatable-options",
        "report_path": "frameworks/vue/repeatable-options.md",
        "confidence": "high",
        "sources_consulted": [
            {"source": "context7", "status": "success", "url": "https://context7.com/vuejs/docs"}
        ],
        "budget_remaining": 2,
        "degradation_notes": [],
        "index_updated": True,
        "index_count": 1,
        "lru_evicted": 0,
        "match": None,
        "related": [],
        "candidate_report": None,
        "lessons": [],
        "auto_archived": 0,
        "report": None,
        "report_file": str(project.base / "frameworks/vue/repeatable-options.md"),
    }
    assert list(results(answer).items()) == list(expected.items())
    report = project.report(answer)
    assert report.startswith("# vue - repeatable options\n\n**Framework:** vue\n**Version:** 3.5\n")
    assert "**Research Date:** 2026-11-21\n**Confidence:** high\n" in report
    assert sections(report) == [
        "## Summary",
        "## Details",
        "## Code Examples",
        "## Caveats & Version-Specific Notes",
        "## Source Attribution",
    ]
    assert "```js\nconst option = { multiple: true }\n### not a title\nSource: not a source\n```\n" in report
    (item,) = yaml.safe_load((project.base / "index.yaml").read_text())
    assert (item["id"], item["status"]) == ("vue-repeatable-options", "fresh")
    assert len(context7.calls()) == 2


def test_a_hit_asks_nobody_and_costs_nothing(project: Project, context7: StandIn) -> None:
    first = project.research()
    before = project.sql("SELECT last_accessed FROM entries")
    exported = (project.base / "index.yaml").stat().st_mtime_ns
    calls = len(context7.calls())
    second = project.research(include_report=True)
    assert second["status"] == "cache-hit"
    assert results(second)["sources_consulted"] == []
    assert results(second)["budget_remaining"] == results(first)["budget_remaining"] == 2
    assert results(second)["confidence"] == "high"
    assert results(second)["report"] == project.report(first)
    assert results(second)["match"] == {
        "tier": "framework+topic+tags",
        "topic_overlap": 1.0,
        "shared_tags": ["options", "configuration"],
        "entry_status": "fresh",
        "origin": "excerpt",
        "worked": 0,
        "wrong": 0,
        "score": None,
    }
    assert len(context7.calls()) == calls
    assert project.sql("SELECT last_accessed FROM entries") > before
    assert (project.base / "index.yaml").stat().st_mtime_ns == exported


def test_every_request_leaves_a_row(project: Project, context7: StandIn) -> None:
    project.research()
    project.research()
    project.research(request(story_key="x"))
    rows = project.sql(
        "SELECT mode, story_key, status, tier, entry_id, persona IS NOT NULL FROM requests ORDER BY at"
    )
    assert rows == [
        ("research", "3-1", "success", None, "vue-repeatable-options", 1),
        ("research", "3-1", "cache-hit", "framework+topic+tags", "vue-repeatable-options", 0),
        ("research", "x", "failure", None, None, 0),
    ]
    calls = project.sql("SELECT source, outcome, charged, url FROM source_calls")
    assert calls == [("context7", "success", 1, "https://context7.com/vuejs/docs")]
    assert len(context7.calls()) == 2


FAILURES = {
    "rate limit": Scenario(docs=["Rate limit exceeded. Please try again later."]),
    "cut": Scenario(raw=Raw(headers={"content-type": "application/json"}, body='{"jsonrpc"', cut=True)),
    "another library": Scenario(resolve=[LIBRARIES.split("----------", maxsplit=1)[0]]),
}


@pytest.mark.parametrize("scenario", FAILURES.values(), ids=FAILURES.keys())
def test_a_failing_source_degrades_and_is_never_stored_as_documentation(
    project: Project, scenario: Scenario
) -> None:
    with context7_server(scenario) as server:
        project.use_context7(server.url)
        answer = project.research()
    assert answer["status"] == "degraded"
    assert results(answer)["confidence"] == "low"
    assert results(answer)["sources_consulted"] == [
        {"source": "context7", "status": "unavailable", "url": None}
    ]
    assert results(answer)["budget_remaining"] == 3
    assert results(answer)["degradation_notes"][0].startswith("context7: ")
    assert notes(answer)[-1] == "all_sources_unavailable: no cached content available"
    assert "[No research results available, manual research required]" in project.report(answer)
    assert project.sql("SELECT status, origin FROM entries") == [("stale", "placeholder")]
    assert project.sql("SELECT outcome, charged FROM source_calls") == [("unavailable", 0)]


def test_a_placeholder_is_no_answer_and_no_baseline(project: Project, context7: StandIn) -> None:
    url, project.env["KR_SERVERS"] = project.env["KR_SERVERS"], '{"context7": null}'
    assert project.research()["status"] == "degraded"
    project.env["KR_SERVERS"] = url
    answer = project.research()
    assert answer["status"] == "success"
    assert results(answer)["match"]["entry_status"] == "stale"
    assert project.sql("SELECT status, origin FROM entries") == [("fresh", "excerpt")]
    assert len(context7.calls()) == 2


def test_a_stale_report_is_the_baseline_when_nothing_answers(project: Project, context7: StandIn) -> None:
    project.research()
    project.clock.pass_days(31)
    project.env["KR_SERVERS"] = '{"context7": null}'
    for _ in range(3):
        answer = project.research()
        assert answer["status"] == "degraded"
        assert results(answer)["confidence"] == "low"
        assert "all_sources_unavailable: using stale cache" in results(answer)["degradation_notes"]
        report = project.report(answer)
        assert report.count("[Based on stale cache, re-research recommended]") == 1
        assert "const option = { multiple: true }" in report
    assert project.sql("SELECT status FROM entries") == [("stale",)]
    assert len(context7.calls()) == 2


def test_max_calls_zero_makes_no_call(
    project: Project, context7: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    answer = project.research(request(config_overrides={"max_calls": 0}))
    assert answer["status"] == "budget-exhausted"
    assert results(answer)["budget_remaining"] == 0
    assert results(answer)["sources_consulted"] == [{"source": "context7", "status": "skipped", "url": None}]
    assert "Research budget exhausted for story 3-1, continuing with available context" in caplog.messages
    assert "[No research results available, manual research required]" in project.report(answer)
    assert context7.calls() == []


def test_a_story_spends_its_budget_across_requests_and_another_has_its_own(
    project: Project, context7: StandIn
) -> None:
    spent = [
        project.research(request(topic=topic, tags=[topic], question=f"What are {topic}?"))
        for topic in ("slots", "watchers", "directives", "transitions")
    ]
    assert [answer["status"] for answer in spent] == ["success"] * 3 + ["budget-exhausted"]
    assert [results(answer)["budget_remaining"] for answer in spent] == [2, 1, 0, 0]
    other = project.research(request(topic="plugins", tags=["plugins"], story_key="3-2"))
    assert (other["status"], results(other)["budget_remaining"]) == ("success", 2)
    assert len(context7.calls()) == 5


def test_an_override_is_the_whole_budget_and_is_charged_too(project: Project, context7: StandIn) -> None:
    first = project.research(request(config_overrides={"max_calls": 1}))
    assert results(first)["budget_remaining"] == 0
    second = project.research(request(topic="slots", tags=["slots"]))
    assert results(second)["budget_remaining"] == 1
    assert context7.calls()


def test_a_stale_report_serves_when_the_budget_is_gone(project: Project, context7: StandIn) -> None:
    project.research()
    project.clock.pass_days(40)
    answer = project.research(request(config_overrides={"max_calls": 0}))
    assert (answer["status"], results(answer)["confidence"]) == ("budget-exhausted", "low")
    assert "[Based on stale cache, re-research recommended]" in project.report(answer)
    assert len(context7.calls()) == 2


@pytest.mark.parametrize("damage", ["delete", "empty"])
def test_a_report_whose_file_is_gone_is_served_and_its_file_made(
    project: Project, context7: StandIn, damage: str
) -> None:
    path = project.base / results(project.research())["report_path"]
    text = path.read_text()
    path.unlink()
    if damage == "empty":
        path.touch()
    asked = len(context7.calls())
    assert project.research()["status"] == "cache-hit"
    assert path.read_text() == text
    assert len(context7.calls()) == asked


def test_a_report_whose_text_is_nowhere_makes_a_miss(project: Project, context7: StandIn) -> None:
    (project.base / results(project.research())["report_path"]).unlink()
    project.sql("UPDATE entries SET sha256 = NULL")
    answer = project.research()
    assert answer["status"] == "success"
    assert results(answer)["match"] is None
    assert "const option" in project.report(answer)
    assert project.sql("SELECT count(*) FROM entries") == [(1,)]
    assert len(context7.calls()) == 3


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_store_that_cannot_be_used_is_left_alone_and_research_goes_on(
    project: Project, context7: StandIn, is_damaged: bool
) -> None:
    project.base.mkdir(parents=True)
    project.database.write_text("this is no database\n" * 100)
    if not is_damaged:  # nobody can make a folder there, root included
        project.env["KR_KNOWLEDGE_BASE_PATH"] = "/proc/knowledge-base"
    answer = project.research()
    assert (answer["status"], results(answer)["index_updated"]) == ("partial", False)
    assert "const option" in results(answer)["report"]
    assert not is_damaged or str(project.database) in answer["errors"][0]["message"]
    assert project.database.read_text() == "this is no database\n" * 100
    assert context7.calls()


def test_a_report_that_cannot_be_written_is_in_the_answer(project: Project, context7: StandIn) -> None:
    project.base.mkdir(parents=True)
    (project.base / "frameworks").write_text("in the way")
    answer = project.research()
    assert answer["status"] == "partial"
    assert results(answer)["report"].startswith("# vue - ")
    assert results(answer)["index_updated"] is False
    assert [error["type"] for error in answer["errors"]] == ["report_write_failed"]
    assert project.sql("SELECT count(*) FROM entries") == [(0,)]
    assert context7.calls()


def test_a_failing_guard_is_told_by_minus_one_and_changes_no_status(
    project: Project, context7: StandIn
) -> None:
    project.env["KR_MAX_ENTRIES"] = "1"
    project.know("slots")
    leave_no_room(project.store(), "archived_entries")
    answer = project.research()
    assert (answer["status"], results(answer)["lru_evicted"]) == ("success", -1)
    assert results(answer)["index_count"] == 2
    assert context7.calls()


def test_disabled_research_fails_with_the_seeds_words(project: Project) -> None:
    project.env["KR_ENABLED"] = "false"
    answer = project.research()
    assert (answer["status"], answer["results"]) == ("failure", None)
    assert answer["errors"][0]["message"] == "Knowledge research disabled in config"
    assert (answer["story_key"], answer["mode"], answer["session_id"]) == ("3-1", "research", "s-1")


@pytest.mark.parametrize(
    ("named", "folder", "is_told"),
    [("", "", False), ("", "_bmad", True), ("bmad:bmm:agents:architect", "", True)],
    ids=["nobody-named-one", "bmad-without-it", "named"],
)
def test_a_persona_that_is_missing_is_a_note(
    project: Project, context7: StandIn, named: str, folder: str, is_told: bool
) -> None:
    mapping = f"role_mapping: {{knowledge_researcher_persona: '{named}'}}\n" if named else ""
    (project.root / "kr.yaml").write_text(f"knowledge_research: {{}}\n{mapping}")
    (project.root / folder).mkdir(exist_ok=True)
    answer = project.research()
    assert answer["status"] == "success"
    told = results(answer)["degradation_notes"]
    assert ("persona_load_failed: using lean persona" in told) == is_told
    assert context7.calls()


def test_an_export_that_fails_is_a_note_and_no_status(project: Project, context7: StandIn) -> None:
    project.research()
    (project.base / "index.yaml").unlink()
    (project.base / "index.yaml").mkdir()
    answer = project.research(request(topic="slots", tags=["slots"]))
    assert answer["status"] == "success"
    assert any(note.startswith("export_failed: ") for note in results(answer)["degradation_notes"])
    assert context7.calls()


def test_local_docs_answer_an_offline_machine_for_a_day(project: Project) -> None:
    package = project.root / "node_modules" / "tinylib"
    package.mkdir(parents=True)
    (package / "package.json").write_text(
        '{"name": "tinylib", "version": "4.2.0", "homepage": "https://tinylib.example/"}'
    )
    (package / "README.md").write_text("# tinylib\n\n## Repeatable options\n\nSet `multiple: true`.\n")
    project.env["KR_LOCAL_DOCS"] = "true"
    ask = request(framework="tinylib", framework_version="4")
    answer = project.research(ask)
    assert (answer["status"], results(answer)["confidence"]) == ("degraded", "low")
    # The package's own site was not asked: no address stands for it.
    told = {"source": "local_docs", "status": "success", "url": None}
    assert results(answer)["sources_consulted"][-1] == told
    assert results(answer)["budget_remaining"] == 3
    report = project.report(answer)
    assert "multiple: true" in report
    assert "4.2.0" in report
    assert "**Sources:** tinylib 4.2.0 (installed)" in report
    assert "Version: 4.2.0 is installed" in report
    assert str(project.root) not in report
    assert project.research(ask)["status"] == "cache-hit"
    older = project.research(request(framework="tinylib", framework_version="3"))
    assert "Version: 4.2.0 is installed; the request is about 3." in project.report(older)
    gap = project.research(
        request(
            framework="tinylib",
            topic="colour of printed options",
            tags=["colour"],
            question="How do I print options in colour on a dark terminal, with bold headings, a spinner and a light theme?",
        )
    )
    assert "local_docs: its answer does not cover the question" in results(gap)["degradation_notes"]
    assert results(gap)["sources_consulted"][-1] == {**told, "status": "unavailable"}
    project.clock.pass_days(1.01)
    assert project.research(ask)["status"] == "degraded"


def test_a_carried_over_report_keeps_the_version_and_time_of_its_text(
    project: Project, context7: StandIn
) -> None:
    project.research()
    ((researched,),) = project.sql("SELECT researched_at FROM entries")
    project.env["KR_SERVERS"] = '{"context7": null}'
    project.research(request(framework_version="4.1"))
    project.clock.pass_days(31)
    project.research(request(framework_version="3.6"))
    # One that stands in for another major version is an entry of its own, and is told as that version's.
    assert project.sql("SELECT framework_version, researched_at, origin FROM entries ORDER BY id") == [
        ("3.5", researched, "excerpt"),
        ("4.1", researched, "excerpt"),
    ]
    assert context7.calls()


LLM_REPLY = (
    "<think>hm</think>Declare it with `multiple`.\n---\nThe details.\n\n## Source Attribution\n\nforged"
)


def test_a_language_model_writes_summary_and_details(project: Project, context7: StandIn) -> None:
    reply = {"choices": [{"message": {"content": LLM_REPLY}}]}
    with web_server({"/v1/chat/completions": as_json(reply)}) as llm:
        project.env |= {
            "KR_SYNTHESIS": "llm",
            "KR_LLM": json.dumps({"base_url": f"{llm.url}/v1", "model": "tiny", "api_key_env": "LLM_KEY"}),
            "LLM_KEY": "secret-key-of-llm",
        }
        answer = project.research()
        (asked,) = llm.requests()
    report = project.report(answer)
    assert answer["status"] == "success"
    assert asked.headers["authorization"] == "Bearer secret-key-of-llm"
    body = json.loads(asked.body)
    assert body["model"] == "tiny"
    assert "How do I make an option repeatable?" in body["messages"][1]["content"]
    assert "Declare it with `multiple`." in report.split("## Details")[0]
    assert "hm" not in report.split("## Details")[0].splitlines()
    assert "written by tiny" in report
    assert "const option" in report.partition("## Code Examples")[2]
    assert len(sections(report)) == 5
    assert context7.calls()


@pytest.mark.parametrize(
    "reply", [Reply(status=500), page("no json"), as_json({"choices": []}), Reply(delay=20)]
)
def test_a_language_model_that_fails_leaves_an_excerpt(
    project: Project, context7: StandIn, reply: Reply
) -> None:
    with web_server({"/chat/completions": reply}) as llm:
        project.env |= {
            "KR_SYNTHESIS": "llm",
            "KR_LLM": json.dumps({"base_url": llm.url, "model": "tiny"}),
        }
        answer = project.research(request(config_overrides={"timeout_seconds": 2}))
    assert answer["status"] == "success"
    assert results(answer)["degradation_notes"][0].startswith("synthesis: ")
    assert "const option" in project.report(answer)
    assert context7.calls()


NO_ANSWER = as_json({"choices": [{"message": {"content": "<think>hm</think>\n**NO ANSWER.**"}}]})


@contextmanager
def _searching(project: Project, told: Reply, reply: Reply) -> Iterator[WebServer]:
    """A search that finds one page, and a model."""

    def site(asked: Request) -> Reply:
        found = {"results": [{"url": f"{server.url}/a", "title": "Guide", "content": "Guide"}]}
        return as_json(found) if asked.path.startswith("/search") else reply if "chat" in asked.path else told

    with web_server(site) as server:
        web = {"provider": "searxng", "url": server.url, "allow_private_addresses": True}
        project.env |= {
            "KR_SOURCES": "[web_search]",
            "KR_WEB_SEARCH": json.dumps(web),
            "KR_LLM": json.dumps({"base_url": server.url, "model": "tiny"}),
        }
        yield server


def test_a_model_that_finds_no_answer_makes_a_gap_of_one(project: Project) -> None:
    """Words are shared by what is about something else; a model that has read it knows."""
    told = page(
        "<main><h1>Repeatable options</h1><p>An option is made repeatable by an option.</p><pre>const option = 1</pre></main>"
    )
    with _searching(project, told, NO_ANSWER):
        fresh = project.research()
        assert fresh["status"] == "success"
        project.env["KR_SYNTHESIS"] = "llm"
        again = project.research(request(config_overrides={"refresh": True}))
        assert "its report is unchanged" in " ".join(results(again)["degradation_notes"])
        assert "const option" in project.report(again)
        answer = project.research(request(framework="nuxt"))
        notes = results(answer)["degradation_notes"]
        assert answer["status"] == "degraded"
        assert "web_search: its answer does not cover the question" in notes
        assert "No research results available" in project.report(answer)
        assert sorted(project.sql("SELECT origin FROM entries")) == [("excerpt",), ("placeholder",)]


def test_what_stands_beside_a_text_that_was_rated_wrong_is_nobodys_to_rate(
    project: Project, context7: StandIn
) -> None:
    query = request()["research_query"]
    finding = {key: query[key] for key in ("framework", "topic", "question")} | {"answer": "By magic."}
    with project.app() as app:
        saved = app.save_finding({**finding, "session_id": "a"}).results
        assert saved is not None
        app.rate_report(saved.id, {"outcome": "wrong", "note": "no such thing", "session_id": "b"})
    answer = project.research()
    assert (answer["status"], results(answer)["cache_entry_id"]) == ("success", None)
    assert any("rated wrong: no such thing" in note for note in results(answer)["degradation_notes"])
    assert context7.calls()
