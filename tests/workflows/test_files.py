"""Where a template is looked for, and the state file: the seed's fields, whole at any moment, and told where a person broke it."""

import json
import multiprocessing
from pathlib import Path

import pytest

from kr.errors import WorkflowError
from kr.workflows.machine import handle
from kr.workflows.model import Begin
from kr.workflows.runner import only_runner, read_state, write_state
from kr.workflows.service import find_template, shipped_folder
from tests.support.workflows import NOW, action, approval, condition, make, parallel

SEED_FIELDS = [
    "workflow_id",
    "template_ref",
    "template_id",
    "type",
    "status",
    "current_step",
    "variables",
    "steps",
]
SEED_STEP_FIELDS = ["id", "name", "type", "status", "started_at", "completed_at", "details", "result"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "workflow_state.json"


def test_the_fields_of_the_seed_come_first_under_its_names(path: Path) -> None:
    steps = [action("a"), condition("c", {"next": "end"}), approval("p"), parallel("d", "params.servers")]
    write_state(path, make(steps, servers=["x"]))
    state = json.loads(path.read_text())
    assert list(state)[: len(SEED_FIELDS)] == SEED_FIELDS
    assert state["variables"] == {"servers": ["x"]}, "a parameter is a variable from the start"
    assert (state["status"], state["current_step"]) == ("pending", "a")
    for step in state["steps"]:
        assert list(step)[: len(SEED_STEP_FIELDS)] == SEED_STEP_FIELDS


def test_what_is_written_is_read(path: Path) -> None:
    instance, _ = handle(make([parallel("d", "params.s", "echo ${{ item }}")], s=["é", 1]), Begin(), now=NOW)
    write_state(path, instance)
    assert read_state(path) == instance
    assert [name.name for name in path.parent.iterdir()] == [path.name]


def test_what_others_noted_in_it_stays(path: Path) -> None:
    write_state(path, make([action("a")]))
    state = json.loads(path.read_text())
    state["ticket"] = "OPS-1"
    state["steps"][0]["owner"] = {"name": "Ada"}
    path.write_text(json.dumps(state))
    write_state(path, handle(read_state(path), Begin(), now=NOW)[0])
    state = json.loads(path.read_text())
    assert (state["ticket"], state["steps"][0]["owner"]) == ("OPS-1", {"name": "Ada"})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            '"status": "pending",\n  "current_step"',
            '"status": "pending"\n  "current_step"',
            "the state is broken: expected `,` or `}` at line 7 column 3",
        ),
        (
            '"status": "pending",\n  "cur',
            '"status": "done",\n  "cur',
            ": status: must be one of 'pending', ",
        ),
        (
            '"current_step": "a"',
            '"current_step": null',
            "current_step must name a step while the status is pending",
        ),
        (
            '"run": "true"',
            '"run": "true", "foo": 1',
            "steps[0].definition.action.foo: there is no such key here",
        ),
        ('"variables": {}', '"variables": ' + "[" * 100_000, "the state is broken"),
        ('"workflow_id": "sample-1"', '"workflow_id": "../x"', ": workflow_id: must be a name of letters"),
    ],
)
def test_what_a_person_broke_is_told(path: Path, old: str, new: str, told: str) -> None:
    write_state(path, make([action("a")]))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(WorkflowError, match=r".") as error:
        read_state(path)
    assert told in str(error.value)
    assert str(error.value).startswith(f"{path}:")
    assert path.read_text() == text.replace(old, new, 1)


def _hold(
    path: Path, held: "multiprocessing.synchronize.Event", release: "multiprocessing.synchronize.Event"
) -> None:
    with only_runner(path):
        held.set()
        release.wait(60)


def test_one_runner_at_a_time(path: Path) -> None:
    forking = multiprocessing.get_context("fork")
    held, release = forking.Event(), forking.Event()
    other = forking.Process(target=_hold, args=(path, held, release))
    other.start()
    try:
        assert held.wait(60)
        with pytest.raises(WorkflowError, match="another process runs this workflow"), only_runner(path):
            pass
    finally:
        other.kill()
        other.join()
    with only_runner(path):  # a killed one's lock is free at once
        pass


def put(folder: Path, *names: str) -> Path:
    path = folder.joinpath(*names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\ntemplate_id: x\n---\n")
    return path


def test_the_project_s_own_folder_first_then_nested_ones_then_anywhere_then_what_is_shipped(
    tmp_path: Path,
) -> None:
    assert find_template("deployment", tmp_path) == shipped_folder() / "deployment.md"
    anywhere = put(tmp_path, "docs", "deployment.md")
    assert find_template("deployment", tmp_path) == anywhere
    nested = put(tmp_path, "some", "project", "knowledge", "workflow", "templates", "deployment.md")
    assert find_template("deployment.md", tmp_path) == nested
    own = put(tmp_path, "knowledge", "workflow", "templates", "deployment.md")
    assert find_template("deployment", tmp_path) == own


def test_installed_and_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    for folder in ("node_modules", ".venv", ".git"):
        put(tmp_path, folder, "mine.md")
    with pytest.raises(WorkflowError, match="there is no template mine"):
        find_template("mine", tmp_path)


def test_a_page_or_a_program_of_that_name_hides_no_template(tmp_path: Path) -> None:
    page = put(tmp_path, "docs", "deployment.md")
    page.write_text("# How we deploy\n")
    put(tmp_path, "deployment").write_text("#!/bin/sh\n")
    assert find_template("deployment", tmp_path) == shipped_folder() / "deployment.md"
    page.rename(tmp_path / "docs" / "mine.md")
    with pytest.raises(WorkflowError, match=r"mine\.md with a template_id anywhere below"):
        find_template("mine", tmp_path)


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    path = put(tmp_path, "a", "mine.txt")
    assert find_template("a/mine.txt", tmp_path) == path
    assert find_template(str(path), tmp_path / "a") == path
    assert find_template("mine.txt", tmp_path / "a") == path
    with pytest.raises(WorkflowError, match=r"a/nothing\.md: there is no such template"):
        find_template("a/nothing.md", tmp_path)


def test_the_error_lists_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError, match=r".") as error:
        find_template("nothing", tmp_path)
    told = str(error.value)
    assert str(tmp_path / "knowledge" / "workflow" / "templates" / "nothing.md") in told
    assert f"nothing.md with a template_id anywhere below {tmp_path}" in told
    assert "deployment, retrospective, sprint-warmup" in told
