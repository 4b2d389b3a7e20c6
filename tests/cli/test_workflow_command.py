"""``kr workflow`` as people and orchestrators meet it: files, exit statuses, what is printed where."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Project
from tests.support.workflows import template_text
from tests.workflows.test_template import TEN_MISTAKES

STEPS = """
- {id: first, name: First, type: action, run: "echo one; echo ${{ params.word }} >> log"}
- {id: ask, name: Ask, type: approval, message: Go on?}
- {id: last, name: Last, type: action, run: test -e allowed}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    (project.root / "sample.md").write_text(template_text(STEPS, "word: {default: x}"))
    return project


def workflow(project: Project, *arguments: str, status: int = 0) -> Any:
    done = project.run("workflow", *arguments, "--format", "json")
    assert done.returncode == status, done.stderr.decode()
    return json.loads(done.stdout)


def complaint(project: Project, *arguments: str, status: int) -> str:
    done = project.run("workflow", *arguments)
    assert (done.returncode, done.stdout) == (status, b""), done.stdout
    assert b"Traceback" not in done.stderr
    return done.stderr.decode()


def test_only_what_changes_is_told(project: Project) -> None:
    def told(*arguments: str) -> list[str]:
        lines = project.run("workflow", *arguments).stderr.decode().splitlines()
        return [line.partition(" ")[2] for line in lines if re.match(r"[\d:]{8} ", line)]

    start = ["first: running", "first: completed: one", "ask: waiting: Go on?"]
    assert told("start", "sample") == start
    assert told("run") == []
    assert told("approve", "ask", "--by", "Ada")[0] == "ask: completed: Approved by Ada."
    assert told("run") == []
    assert told("run", "--retry") == ["last: running", "last: failed: Exit status 1."]
    (project.root / "allowed").touch()
    told("run", "--retry")
    # What ended before is kept, and is no news.
    assert told("start", "sample") == start


def test_from_the_start_to_the_report(project: Project) -> None:
    state = workflow(project, "start", "sample", "--set", "word=a b")
    assert (state["status"], state["current_step"]) == ("waiting", "ask")
    assert state["template_ref"] == str(project.root / "sample.md")
    assert workflow(project, "status") == state
    assert workflow(project, "run") == state, "a run changes nothing about what waits"
    approved = workflow(project, "approve", "ask", status=1)
    assert approved["status"] == "failed"
    assert approved["steps"][1]["result"]["by"].endswith(" (not at a terminal)")
    assert workflow(project, "run", status=1)["status"] == "failed", "a plain run leaves it"
    (project.root / "allowed").touch()
    ended = workflow(project, "run", "--retry")
    assert (ended["status"], ended["current_step"]) == ("completed", None)
    assert (project.root / "log").read_text() == "a b\n"
    assert workflow(project, "run") == ended
    assert workflow(project, "report") == {"report": str(project.root / "sample_report.md")}
    assert "(not at a terminal). |" in (project.root / "sample_report.md").read_text()
    [row] = workflow(project, "list")
    assert (row["workflow_id"], row["status"]) == (state["workflow_id"], "completed")
    assert project.sql("SELECT status, current_step FROM workflows") == [("completed", None)]


def test_a_rejected_one_stays_failed(project: Project) -> None:
    workflow(project, "start", "sample")
    shown = project.run(
        "workflow", "reject", "ask", "--by", "Ada", "--note", "no", "--format", "text"
    ).stdout.decode()
    assert "Go on" not in shown
    assert "It was rejected, and stays failed: kr workflow start makes a new one." in shown
    assert "was rejected by Ada" in complaint(project, "run", "--retry", status=1)


def test_nothing_that_has_not_ended_is_overwritten(project: Project) -> None:
    written = workflow(project, "start", "sample", "--no-run")
    assert (written["status"], written["current_step"]) == ("pending", "first")
    assert "has not ended" in complaint(project, "start", "sample", status=1)
    other = workflow(project, "start", "sample", "--state", "other.json")
    assert other["status"] == "waiting"
    workflow(project, "run")
    workflow(project, "reject", "ask")
    again = workflow(project, "start", "sample")
    assert again["workflow_id"] != written["workflow_id"]
    kept = json.loads((project.root / f"{written['workflow_id']}.json").read_text())
    assert kept["status"] == "failed"
    rows = {row["workflow_id"]: row for row in workflow(project, "list")}
    assert len(rows) == 3
    assert rows[written["workflow_id"]]["state_file"].endswith(f"{written['workflow_id']}.json")


def test_each_instance_of_a_folder_has_a_report_of_its_own(project: Project) -> None:
    workflow(project, "start", "sample")
    workflow(project, "start", "sample", "--state", "other.json")
    assert workflow(project, "report") == {"report": str(project.root / "sample_report.md")}
    other = workflow(project, "report", "--state", "other.json")
    assert other == {"report": str(project.root / "other_report.md")}


def test_secrets_are_masked_in_all_that_is_shown(project: Project) -> None:
    steps = STEPS + "- {id: tell, name: Tell, type: action, run: 'echo api_key=k-8731-abc >&2; exit 3'}"
    (project.root / "secret.md").write_text(template_text(steps, "api_token: {}\nword: {default: x}"))
    (project.root / "allowed").touch()
    project.run("workflow", "start", "secret", "--set", "api_token=s3cr3t-value-1")
    done = project.run("workflow", "approve", "ask")
    workflow(project, "report")
    printed = (done.stdout + done.stderr).decode() + (project.root / "sample_report.md").read_text()
    assert "s3cr3t-value-1" not in printed
    assert "k-8731-abc" not in printed
    assert "api_token: <secret>" in printed
    assert "s3cr3t-value-1" in (project.root / "workflow_state.json").read_text(), "it is run with it"


def test_a_state_file_that_a_person_broke_is_left_alone(project: Project) -> None:
    workflow(project, "start", "sample")
    path = project.root / "workflow_state.json"
    path.write_text(path.read_text().replace('"status": "waiting",', '"status": "waiting"', 1))
    broken = path.read_text()
    for command in (["run"], ["status"], ["approve", "ask"], ["report"], ["start", "sample"]):
        told = complaint(project, *command, status=1)
        assert re.search(r"workflow_state\.json: the state is broken: .* at line 7 column 3", told)
    assert path.read_text() == broken


def test_ten_mistakes_are_ten_messages(project: Project) -> None:
    (project.root / "broken.md").write_text(TEN_MISTAKES)
    told = workflow(project, "validate", "broken", status=1)
    assert len(told["problems"]) == 10
    assert told["template_id"] is None
    shown = project.run("workflow", "validate", "broken", "--format", "text").stdout.decode().splitlines()
    assert len(shown) == 10
    assert all(re.match(rf"{project.root}/broken\.md:\d+: \S", line) for line in shown)
    assert complaint(project, "start", "broken", status=1).count("\nbroken.md:") == 10
    assert not (project.root / "workflow_state.json").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "wort=x"], "wort: the template has no such parameter; it has: word"),
        (["--set", "word"], "must be NAME=VALUE"),
    ],
)
def test_wrong_command_lines(project: Project, arguments: list[str], told: str) -> None:
    assert told in complaint(project, "start", "sample", *arguments, status=2)
    assert not (project.root / "workflow_state.json").exists()


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("integer", "3.5", "word (integer): must be a whole number"),
        ("boolean", "maybe", "must be true or false"),
        ("list", "[NaN]", "word (list): expected value at line 1"),
        ("object", "[1]", "must be a mapping"),
        ("string, enum: [a, b]", "c", "must be one of a, b"),
    ],
)
def test_values_are_read_by_their_type(project: Project, kind: str, value: str, told: str) -> None:
    (project.root / "typed.md").write_text(template_text(STEPS, f"word: {{type: {kind}}}"))
    assert told in complaint(project, "start", "typed", "--set", f"word={value}", status=2)


def test_a_required_parameter_must_be_given(project: Project) -> None:
    (project.root / "asks.md").write_text(
        template_text(STEPS, "word: {required: true, description: The word}")
    )
    assert "word: is required (The word); say --set word=…" in complaint(project, "start", "asks", status=2)


def test_a_person_sees_the_steps_and_what_to_do_next(project: Project) -> None:
    shown = project.run("workflow", "start", "sample", "--format", "text").stdout.decode()
    assert "  First  status completed; " in shown
    assert "kr workflow approve ask, or reject it" in shown
    assert (
        "kr workflow run --retry"
        in project.run("workflow", "approve", "ask", "--format", "text").stdout.decode()
    )
    other = project.run("workflow", "start", "sample", "--state", "my state.json", "--format", "text")
    assert "kr workflow approve ask --state 'my state.json', or reject it" in other.stdout.decode()


def test_the_schema_is_json(project: Project) -> None:
    schema = json.loads(project.run("workflow", "schema").stdout)
    assert schema["properties"]["steps"]["items"]["discriminator"]["propertyName"] == "type"


def test_a_database_that_can_not_serve_stops_no_workflow(project: Project) -> None:
    project.base.mkdir(parents=True)
    project.database.write_bytes(b"no database at all" * 100)
    done = project.run("workflow", "start", "sample", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "waiting")
    assert done.stderr.decode().count("the workflow is not listed") == 1


def in_a_fresh_process(project: Project, code: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.root,
        env=project.environ(),
        capture_output=True,
        check=False,
    )


def test_without_the_extra_it_says_how_to_get_it(project: Project) -> None:
    code = (
        "import sys; sys.modules['cel_expr_python'] = None; from kr.cli.main import main; "
        "sys.exit(main(['workflow', 'start', 'sample']))"
    )
    done = in_a_fresh_process(project, code)
    assert done.returncode == 1
    assert re.search(r"-m pip install .*\[workflows\]", done.stderr.decode())
    assert not (project.root / "workflow_state.json").exists()


def test_who_runs_no_workflow_loads_none_of_it(project: Project) -> None:
    code = (
        "import sys; from kr.cli.main import main; "
        "main(['--help']); main(['research', 'vue', 'How do I?', '--framework-version', '3.5']); main(['stats']); "
        "heavy = [name for name in sys.modules if name.startswith(('kr.workflows', 'cel_expr_python'))]; "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = in_a_fresh_process(project, code)
    assert (done.returncode, done.stderr) == (0, b"")
