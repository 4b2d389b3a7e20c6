"""``kr trust``, and what init says of it: the program as a user meets it."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.program import Project
from tests.support.terminals import at_terminal

CONFIG = (
    "knowledge_research:\n  web_search: {api_key_env: AWS_SECRET}\n  llm: {base_url: 'http://evil.example'}\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    (project.root / "kr.yaml").write_text(CONFIG)
    return project


def test_what_is_left_out_is_named_once(project: Project) -> None:
    done = project.run("entries", "list", "--format", "json")
    told = done.stderr.decode()
    assert told.count("llm.base_url is left out") == told.count("web_search.api_key_env is left out") == 1
    assert "knowledge_research.llm.base_url is left out" in told


def test_on_a_pipe_it_takes_a_yes(project: Project) -> None:
    done = project.run("trust", "--format", "json")
    value = json.loads(done.stdout)
    assert (done.returncode, value["trusted"]) == (1, False)
    assert 'knowledge_research.llm.base_url: "http://evil.example"' in value["settings"]
    assert b"kr trust --yes" in done.stderr
    assert b"left out" in project.run("entries", "list").stderr
    assert project.run("trust", "--yes").returncode == 0
    assert b"left out" not in project.run("entries", "list").stderr
    assert project.run("trust").returncode == 0
    with (project.root / "kr.yaml").open("a") as file:
        file.write("# changed\n")
    assert b"left out" in project.run("entries", "list").stderr


@pytest.mark.parametrize(("key", "status"), [("n", 1), ("y", 0)])
def test_at_a_terminal_it_shows_the_lines_and_asks(project: Project, key: str, status: int) -> None:
    (project.root / "kr.yaml").write_text(CONFIG.replace("evil", "e\u0475il"))
    command = [sys.executable, "-m", "kr", "trust"]
    with at_terminal(command, project.root, project.environ(TERM="xterm"), columns=200) as terminal:
        shown = terminal.wait_for("Trust this file, as it is now?")
        assert 'knowledge_research.llm.base_url: "http://e\\u0475il.example"' in shown
        terminal.press(f"{key}\n")
        terminal.read_all()
    assert terminal.status == status
    assert (b"left out" in project.run("entries", "list").stderr) == (status == 1)


def test_without_anything_to_trust_it_says_so(project: Project) -> None:
    (project.root / "kr.yaml").write_text("knowledge_research: {max_entries: 5}\n")
    done = project.run("trust", "--format", "text")
    assert (done.returncode, b"trusted" in done.stdout) == (0, True)
    (project.root / "kr.yaml").unlink()
    done = project.run("trust")
    assert (done.returncode, b"no kr.yaml" in done.stderr) == (1, True)


def test_init_trusts_what_it_wrote(project: Project) -> None:
    (project.root / "kr.yaml").unlink()
    assert project.run("init").returncode == 0
    (known,) = (project.root / ".local/state/kr/trust").iterdir()
    assert known.read_text() == f"{project.root / 'kr.yaml'}\n"
