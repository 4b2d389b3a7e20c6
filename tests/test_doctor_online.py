"""``kr doctor --online`` against servers that answer, refuse and are gone."""

import json
from pathlib import Path

import pytest

from tests.support.mcp_servers import Scenario, context7_server
from tests.support.program import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def sources(project: Project) -> tuple[int, dict[str, tuple[str, str]]]:
    done = project.run("doctor", "--online", "--format", "json")
    findings = json.loads(done.stdout)["findings"]
    return done.returncode, {
        row["subject"]: (row["severity"], row["message"]) for row in findings if row["check"] == "source"
    }


def test_each_source_and_model_is_asked_and_nothing_is_charged(project: Project) -> None:
    project.env["KR_SOURCES"] = "[context7, web_search]"
    project.env["KR_WEB_SEARCH"] = '{"provider": "searxng", "url": "http://127.0.0.1:9"}'
    project.env["KR_LLM"] = '{"base_url": "http://127.0.0.1:9/v1", "model": "m"}'
    scenario = Scenario(
        resolve=[
            "Available Libraries:\n\n- Title: React\n- Context7-compatible library ID: /facebook/react\n- Description: UI\n"
        ]
    )
    with context7_server(scenario) as server:
        project.use_context7(server.url)
        project.run("init")
        status, told = sources(project)
    assert status == 1
    assert told["context7"][0] == "information"
    assert told["context7"][1].startswith("answered in ")
    assert told["web_search"][0] == told["llm"][0] == "error"
    assert "cannot connect" in told["web_search"][1] or "refused" in told["web_search"][1]
    assert project.sql("select count(*) from source_calls") == [(0,)]


def test_a_source_without_a_server_says_which_setting_is_missing(project: Project) -> None:
    project.run("init")
    assert sources(project) == (
        1,
        {"context7": ("warning", "not configured: knowledge_research.servers has no server of this name")},
    )


def test_a_key_of_a_model_that_no_header_can_carry_is_told(project: Project) -> None:
    project.run("init")
    server = '{"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_env": "MODEL_KEY"}'
    project.env |= {"KR_LLM": server, "MODEL_KEY": "“sk-1”"}
    _, told = sources(project)
    why = "the API key has characters that no header can carry"
    assert told["llm"] == ("warning", f"the language model: {why}")
