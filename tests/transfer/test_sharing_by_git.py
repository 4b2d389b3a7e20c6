"""A knowledge base that is committed without its database: what a clone knows, and what a conflict costs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.program import Project

TEXT = "Slots are holes in a component."


@pytest.fixture
def ann(tmp_path: Path) -> Project:
    return Project(tmp_path / "ann")


def save(project: Project, question: str = "What are slots?", text: str = TEXT, session: str = "s") -> None:
    done = project.run(
        "save", "vue", question, "--session-id", session, "--verified-by", "ran it", "--file", "-", stdin=text
    )
    assert done.returncode == 0, done.stderr


def ask(project: Project, question: str = "What are slots?", *more: str) -> dict[str, Any]:
    done = project.run(
        "research", "vue", question, "--session-id", "asks", "--max-calls", "0", *more, "--format", "json"
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def forget(project: Project) -> None:
    for path in project.base.glob("kr.db*"):
        path.unlink()


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    who = ("-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def conflict(ann: Project, tmp_path: Path) -> Project:
    """A checkout whose pull ended in a conflict: both clones saved something."""
    save(ann)
    git(ann.root, "init", "-q")
    git(ann.root, "add", ".kr", "kr.yaml")
    git(ann.root, "commit", "-qm", "one")
    git(ann.root, "clone", "-q", ".", str(tmp_path / "bob"))
    bob = Project(tmp_path / "bob")
    save(bob, "What are plugins?", "Plugins add to an app.", "of bob")
    ask(ann, "What are plugins?")  # a placeholder in the place of what Bob found out
    save(ann, "What are portals?", "Portals move content.")
    for folder in (bob.root, ann.root):
        git(folder, "add", ".kr")
        git(folder, "commit", "-qm", "two")
    pulled = git(ann.root, "pull", "-q", "--no-rebase", str(bob.root), "main")
    assert "CONFLICT" in pulled.stdout + pulled.stderr, pulled
    return ann


def test_an_index_with_conflict_markers_is_told_and_kept_and_the_colleagues_finding_comes_back(
    conflict: Project,
) -> None:
    before = (conflict.base / "index.yaml").read_bytes()
    assert b"<<<<<<<" in before
    done = conflict.run("save", "vue", "What are refs?", "--answer", "Refs name elements.")
    assert done.returncode == 0
    assert b"index.yaml: line 11" in done.stderr
    (copy,) = conflict.base.glob("index.yaml.*.bak")
    assert copy.read_bytes() == before
    git(conflict.root, "checkout", "--theirs", ".kr/frameworks")
    conflict.run("doctor", "--repair")
    assert ask(conflict, "What are plugins?")["status"] == "cache-hit"


@pytest.mark.parametrize("side", ["both", "theirs", "ours"])
def test_a_colleagues_finding_is_listed_once_the_conflict_is_solved(conflict: Project, side: str) -> None:
    if side == "both":
        for path in (conflict.base / "index.yaml", conflict.base / "frameworks/vue/plugins.md"):
            if b"<<<<<<<" in path.read_bytes() and path.suffix == ".md":
                git(conflict.root, "checkout", "--theirs", str(path))
            lines = path.read_text().splitlines(keepends=True)
            path.write_text(
                "".join(it for it in lines if not it.startswith(("<<<<<<<", "=======", ">>>>>>>")))
            )
    else:
        git(conflict.root, "checkout", f"--{side}", ".kr/index.yaml")
        git(conflict.root, "checkout", "--theirs", ".kr/frameworks")
    done = conflict.run("doctor", "--repair", "--format", "json")
    assert json.loads(done.stdout)["problems"] == 0, done.stdout
    found = conflict.sql("SELECT id, origin FROM entries ORDER BY id")
    assert dict(found) == dict.fromkeys(("vue-plugins", "vue-portals", "vue-slots"), "finding")
    assert ask(conflict, "What are plugins?")["status"] == "cache-hit"
    listed = [item["id"] for item in yaml.safe_load((conflict.base / "index.yaml").read_text())]
    assert listed == ["vue-plugins", "vue-portals", "vue-slots"]


def test_what_a_pull_brings_is_known_to_the_first_who_asks(ann: Project, tmp_path: Path) -> None:
    save(ann)
    git(ann.root, "init", "-q")
    git(ann.root, "add", ".kr", "kr.yaml")
    git(ann.root, "commit", "-qm", "one")
    git(ann.root, "clone", "-q", ".", str(tmp_path / "bob"))
    bob = Project(tmp_path / "bob")
    assert ask(bob)["status"] == "cache-hit"
    save(ann, "What are plugins?", "Plugins add to an app.")
    git(ann.root, "commit", "-qam", "two")
    git(ann.root, "add", ".kr")
    git(ann.root, "commit", "-qm", "three")
    assert git(bob.root, "pull", "-q", "--no-rebase").returncode == 0
    answer = ask(bob, "What are plugins?")
    assert (answer["status"], answer["results"]["match"]["origin"]) == ("cache-hit", "finding")
    assert len(list((bob.base / "frameworks/vue").iterdir())) == 2


def test_a_report_with_conflict_markers_is_neither_taken_in_nor_written_over(ann: Project) -> None:
    save(ann)
    file = ann.base / "frameworks/vue/slots.md"
    ours = file.read_text()
    theirs = ours.replace(TEXT, "Slots take content.")
    both = f"<<<<<<< HEAD\n{TEXT}\n=======\nSlots take content.\n>>>>>>> theirs"
    file.write_text(ours.replace(TEXT, both))
    for _ in range(2):
        shown = ann.run("entries", "show", "vue-slots", "--report")
        assert (b"<<<<<<<" in shown.stdout, TEXT.encode() in shown.stdout) == (False, True)
        assert b"slots.md has the conflict markers of git" in shown.stderr
        ann.run("export-yaml")
        assert both in file.read_text()
    file.write_text(theirs)
    assert b"Slots take content." in ann.run("entries", "show", "vue-slots", "--report").stdout
    assert ann.sql("SELECT revision, written_by FROM entries") == [(2, "file")]
