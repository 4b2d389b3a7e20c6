"""The shipped templates, each in full: real commands, a real knowledge base, a source on loopback."""

import json
from pathlib import Path
from typing import Any

import pytest

from kr.workflows.service import shipped_folder, shipped_names
from kr.workflows.template import read_template
from tests.support.mcp_servers import context7_server
from tests.support.program import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def start(project: Project, template: str, *arguments: str, status: int = 0) -> dict[str, Any]:
    done = project.run("workflow", "start", template, "--format", "json", *arguments)
    assert done.returncode == status, done.stderr.decode()
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def steps(state: dict[str, Any]) -> dict[str, str]:
    return {step["id"]: step["status"] for step in state["steps"]}


def report(project: Project, template: str) -> str:
    assert project.run("workflow", "report").returncode == 0
    return (project.root / f"{template}_report.md").read_text()


def test_the_three_are_shipped_without_mistakes() -> None:
    assert shipped_names() == ["deployment", "retrospective", "sprint-warmup"]
    for name in shipped_names():
        assert read_template((shipped_folder() / f"{name}.md").read_bytes())[1] == []


class TestDeployment:
    COMMANDS = ("--set", "test_command=true", "--set", "build_command=true")
    SETS = (*COMMANDS, "--set", 'servers=["a","b"]', "--set", "deploy_command=echo $IMAGE > $SERVER")

    @pytest.mark.parametrize("environment", ["development", "production"])
    def test_nothing_starts_before_its_commands_are_set(self, project: Project, environment: str) -> None:
        sets = ("--set", f"environment={environment}", "--set", "servers=,", "--set", "build_command= ")
        done = project.run("workflow", "start", "deployment", *sets)
        assert (done.returncode, done.stdout) == (2, b"")
        for name in ("servers", "test_command", "build_command", "deploy_command"):
            assert f"{name}: is required (The s" in done.stderr.decode()
        assert not (project.root / "workflow_state.json").exists()

    def test_production_waits_for_its_approval(self, project: Project) -> None:
        state = start(project, "deployment", "--set", "environment=production", *self.SETS)
        assert (state["status"], state["current_step"]) == ("waiting", "approve_deployment")
        assert state["variables"]["require_approval"] is True
        assert not (project.root / "a").exists()
        done = project.run(
            "workflow", "approve", "approve_deployment", "--by", "Ada", "--note", "go", "--format", "json"
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["status"] == "completed"
        assert (
            (project.root / "a").read_text()
            == (project.root / "b").read_text()
            == "my-app:v1.0.0-production\n"
        )
        text = report(project, "deployment")
        assert "| Approved by Ada: go. |" in text

    def test_staging_needs_none_and_tests_can_be_skipped(self, project: Project) -> None:
        sets = ("--set", "environment=staging", "--set", "skip_tests=true")
        state = start(project, "deployment", *sets, *self.SETS)
        assert state["status"] == "completed"
        assert (steps(state)["run_tests"], steps(state)["approve_deployment"]) == ("skipped", "skipped")
        assert (project.root / "b").exists()

    def test_simulated_it_runs_nothing_and_says_so(self, project: Project) -> None:
        sets = ("--set", "environment=production", "--set", "servers=a,b")
        state = start(project, "deployment", *sets, "--simulate")
        assert (state["status"], state["is_simulated"]) == ("completed", True)
        assert state["params"]["deploy_command"] == "<deploy_command>"
        assert set(steps(state).values()) == {"completed"}
        assert not [name for name in ("a", "b") if (project.root / name).exists()]
        text = report(project, "deployment")
        assert "> **Simulated**" in text
        assert "| Approved by simulation. |" in text


class TestSprintWarmup:
    @pytest.fixture
    def depending(self, project: Project) -> Project:
        needs = {"vue": "^3.5", "next": "15.1.8", "vue-easytable": "2"}
        (project.root / "package.json").write_text(json.dumps({"dependencies": needs}))
        return project

    def test_what_is_lacking_is_researched_in_parallel(self, depending: Project) -> None:
        with context7_server() as server:
            depending.use_context7(server.url)
            state = start(depending, "sprint-warmup")
            assert state["status"] == "completed"
            tasks = next(step for step in state["steps"] if step["id"] == "research")["sub_tasks"]
            assert {task["name"] for task in tasks} == {"vue", "next", "vue-easytable"}
            assert state["variables"]["researched"] == ["success"] * 3
            assert all(task["result"]["results"]["report_path"] for task in tasks)
            assert "success: frameworks/vue/" in report(depending, "sprint-warmup")
            asked = len(server.calls())
            again = start(depending, "sprint-warmup")
            assert (steps(again)["research"], len(server.calls())) == ("skipped", asked), "the cache is warm"
        assert depending.sql(
            "SELECT count(DISTINCT session_id), count(*) FROM requests WHERE mode = 'research'"
        ) == [(1, 3)]
        assert depending.sql("SELECT framework_version FROM entries WHERE framework = 'vue'") == [("^3.5",)]

    @pytest.mark.parametrize("budget", [0, 2])
    def test_no_more_than_the_budget_is_spent(self, depending: Project, budget: int) -> None:
        with context7_server() as server:
            depending.use_context7(server.url)
            state = start(depending, "sprint-warmup", "--set", f"max_calls={budget}")
            assert len([call for call in server.calls() if call.tool == "query-docs"]) == budget
        assert state["status"] == "completed"
        assert len(state["variables"]["left_out"]) == 3 - budget
        if budget:
            assert depending.sql("SELECT count(*) FROM source_calls WHERE charged") == [(budget,)]

    def test_simulated_it_asks_nobody(self, depending: Project) -> None:
        with context7_server() as server:
            depending.use_context7(server.url)
            assert start(depending, "sprint-warmup", "--simulate")["status"] == "completed"
            assert server.calls() == []


class TestRetrospective:
    FAILURE = """\
session_id: s-1
story_key: 3-1
phase: dev-execution
event_type: general_agent_failure
agent_return:
  status: failure
  errors: [{message: "v-for without a key reuses the wrong row; give every v-for a key", file: src/List.vue}]
"""

    def test_lessons_and_what_came_back_are_written(self, project: Project) -> None:
        assert project.run("lessons", "record", "--request", "-", stdin=self.FAILURE).returncode == 0
        assert (
            project.run("lessons", "inject", "--phase", "dev-execution", "--session-id", "s-2").returncode
            == 0
        )
        again = self.FAILURE.replace("s-1", "s-2")
        assert project.run("lessons", "record", "--request", "-", stdin=again).returncode == 0
        state = start(project, "retrospective")
        assert state["status"] == "completed", state
        page = (project.root / "retrospective.md").read_text()
        assert page.startswith("# Retrospective\n\n## story-creation\n\nLessons: 0, came back: 0\n")
        assert "## dev-execution\n\nLessons: 1, came back: 1\n" in page
        assert "v-for" in page
        assert state["variables"]["found"] == [0, 0, 1, 0, 0]
        assert (project.base / "index.yaml").exists()
        assert "Gather the lessons of each phase" in report(project, "retrospective")
