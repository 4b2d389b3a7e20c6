"""``kr versions`` and ``kr warm`` as processes."""

import json
from pathlib import Path

import pytest
import yaml

from kr.packages.manifests import FILES
from kr.store import saving
from tests.support.mcp_servers import context7_server
from tests.support.program import Project
from tests.support.stores import draft


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    (project.root / "package.json").write_text('{"dependencies": {"vue": "^3.5", "next": "15"}}')
    return project


def test_versions_on_a_pipe_and_for_people(project: Project) -> None:
    (project.root / "Cargo.toml").write_text("[dependencies\n")
    done = project.run("versions")
    *listed, unread = yaml.safe_load(done.stdout)
    assert [row["framework"] for row in listed] == ["next", "vue"]
    assert (unread["framework"], unread["file"]) == (None, "Cargo.toml")
    assert unread["note"].startswith("it is not valid TOML")
    assert done.returncode == 0
    assert b"Cargo.toml" in done.stderr
    (project.root / "sub").mkdir()
    text = project.run("versions", "--format", "text").stdout.decode()
    assert "vue  version ^3.5; package vue; file package.json" in text
    project.env["HOME"] = str(project.root.parent)  # the search upwards ends below the home folder
    rows = json.loads(project.run("versions", "sub", "--format", "json").stdout)
    assert [row["file"] for row in rows] == ["../package.json", "../package.json", "../Cargo.toml"]
    assert project.run("versions", "missing").returncode == 1
    assert project.run("versions", "package.json").returncode == 1


def test_the_help_names_every_file_that_is_read(project: Project) -> None:
    text = project.run("versions", "--help").stdout.decode()
    names = [name.removesuffix(".kts").partition("*")[0] for name in FILES]
    assert [name for name in names if name not in text] == []


def test_marking_tells_which(project: Project) -> None:
    with project.app() as app:
        saving.save(app.store, draft("vue", "slots", framework_version="2"), "# text\n", project.clock())
    text = project.run("versions", "--mark-stale", "--format", "text").stdout.decode()
    assert "marked stale vue-slots" in text
    again = yaml.safe_load(project.run("versions", "--mark-stale").stdout)
    assert [row["marked_stale"] for row in again] == [[], []]


def test_warm_lists_and_researches(project: Project) -> None:
    listed = yaml.safe_load(project.run("warm").stdout)
    assert [(row["framework"], row["state"]) for row in listed] == [("next", "missing"), ("vue", "missing")]
    with context7_server() as server:
        project.use_context7(server.url)
        done = project.run("warm", "--research", "--max-calls", "1", "--format", "json")
    assert done.returncode == 0
    assert [row["status"] for row in json.loads(done.stdout)] == ["success", "skipped"]
    assert b"[1/2] next 15" in done.stderr
    assert "state missing" in project.run("warm", "--format", "text").stdout.decode()


def test_a_limit_without_research_is_a_wrong_command_line(project: Project) -> None:
    assert project.run("warm", "--max-calls", "3").returncode == 2


def test_research_that_is_turned_off_is_a_failure(project: Project) -> None:
    project.env["KR_ENABLED"] = "false"
    done = project.run("warm", "--research")
    assert done.returncode == 1
    assert [row["status"] for row in yaml.safe_load(done.stdout)] == ["failure", "failure"]
