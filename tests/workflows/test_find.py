"""Where a template is looked for (seed 004, SPEC 9)."""

from pathlib import Path

import pytest

from kr.errors import WorkflowError
from kr.workflows.find import find_template, read_bytes, shipped_folder


def put(folder: Path, *names: str) -> Path:
    path = folder.joinpath(*names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
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


def test_the_nearest_of_several_is_taken(tmp_path: Path) -> None:
    put(tmp_path, "a", "b", "c", "mine.md")
    near = put(tmp_path, "z", "mine.md")
    assert find_template("mine", tmp_path) == near


def test_installed_and_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    for folder in ("node_modules", ".venv", ".git"):
        put(tmp_path, folder, "mine.md")
    with pytest.raises(WorkflowError, match="there is no template mine"):
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
    assert f"nothing.md anywhere below {tmp_path}" in told
    assert "deployment, retrospective, sprint-warmup" in told


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError, match="can't be read: Is a directory"):
        read_bytes(tmp_path)
