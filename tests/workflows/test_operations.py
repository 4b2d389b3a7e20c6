"""kr's own operations as steps, over a real knowledge base: their requests, their results, their failures."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_servers import context7_server
from tests.support.program import VUE, Project, request
from tests.support.workflows import template_text

pytestmark = pytest.mark.usefixtures("database_url")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def run(project: Project, uses: str, with_: Any, *, status: int = 0) -> dict[str, Any]:
    """Run one step with an operation, and give the step; JSON is YAML as well."""
    step = {"id": "a", "name": "A", "type": "action", "uses": uses, "with": with_}
    (project.root / "one.md").write_text(template_text(f"- {json.dumps(step)}"))
    done = project.run("workflow", "start", "one", "--format", "json")
    assert done.returncode == status, done.stderr.decode()
    [found] = json.loads(done.stdout)["steps"]
    assert isinstance(found, dict)
    return found


def test_research_with_a_whole_request(project: Project) -> None:
    with context7_server() as server:
        project.use_context7(server.url)
        step = run(project, "research", request(story_key="7-7"))
    assert (step["status"], step["result"]["status"]) == ("completed", "success")
    assert project.sql("SELECT story_key, session_id, framework FROM requests") == [("7-7", "s-1", "vue")]
    assert step["details"] == f"success: {step['result']['results']['report_path']}"


def test_research_with_its_fields_flat_is_of_the_workflow_s_session(project: Project) -> None:
    with context7_server() as server:
        project.use_context7(server.url)
        step = run(project, "research", {**VUE, "max_calls": "2"})
        assert (step["result"]["status"], step["result"]["results"]["budget_remaining"]) == ("success", 1)
        again = run(project, "research", VUE)
    assert again["result"]["status"] == "cache-hit"
    [(first,), (second,)] = project.sql("SELECT session_id FROM requests ORDER BY at")
    assert first.startswith("sample-")
    assert first != second


def test_a_request_that_is_wrong_fails_its_step_with_what_is_wrong(project: Project) -> None:
    step = run(project, "research", {**VUE, "topic": " "}, status=1)
    assert step["status"] == "failed"
    assert step["result"]["errors"][0]["field"] == "research_query.topic"
    assert "topic" in json.dumps(step["result"]["errors"])
    assert step["details"]


def test_lessons_go_in_and_come_out(project: Project) -> None:
    failure = {
        "status": "failure",
        "errors": [{"message": "v-for without a key reuses the row; give it a key"}],
    }
    recorded = run(
        project,
        "lessons.record",
        {"phase": "dev-execution", "event_type": "general_agent_failure", "agent_return": failure},
    )
    assert (recorded["status"], recorded["details"]) == ("completed", "recorded")
    assert (
        run(project, "lessons.inject", {"phase": "dev-execution"})["result"]["results"]["injected_count"] == 1
    )
    whole = {"lessons_inject": {"phase": "dev-execution"}, "session_id": "mine"}
    assert run(project, "lessons.inject", whole)["result"]["session_id"] == "mine"
    listed = run(project, "lessons.list", {"phase": "dev-execution", "limit": 5})
    assert (listed["result"]["total"], listed["result"]["recurred"]) == (1, 0)


def test_the_index_is_exported_beside_the_state(project: Project) -> None:
    run(project, "research", {"framework": "vue", "question": "How do I make an option repeatable?"})
    step = run(project, "export-yaml", {"output": "out"})
    assert step["result"]["entries"] == 1
    assert (project.root / "out" / "index.yaml").exists()


@pytest.mark.parametrize("limit", ["many", "-1", "1.5", [1]])
def test_a_limit_is_a_whole_number(project: Project, limit: Any) -> None:
    assert "with.limit: must be a whole number" in run(project, "warm", {"limit": limit}, status=1)["details"]
