"""What a cloned repository brings, and what it must not get by it: the program as a user meets it."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.support.program import Project
from tests.support.workflows import template_text

INDEX = "# somebody's\n[]\n"
BEGUN = hashlib.sha256(INDEX.encode()).hexdigest()[:8]
STEP = "- {id: one, name: One, type: action, run: echo one}\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def use(project: Project) -> str:
    """Do all that writes into a project; return what was said about it."""
    failed = {
        "hook_event_name": "PostToolUseFailure",
        "session_id": "s",
        "error": "Exit code 1\nError: no such x",
    }
    finding = ("--session", "s", "--format", "json", "--file", "-")
    said = b""
    for arguments, stdin in (
        (("lessons", "add", "A thing fails", "--fix", "Do another thing"), ""),
        (("hook",), json.dumps(failed)),
        (("save", "vue", "What are slots?", *finding), "Slots are holes."),
        (("entries", "remove", "vue-slots"), ""),
        (("save", "vue", "What are props?", *finding), "Props are arguments."),
        (("entries", "remove", "vue-props"), ""),
        (("export-yaml",), ""),
        (("workflow", "start", "sample"), ""),
        (("workflow", "report"), ""),
        (("init",), ""),
    ):
        said += project.run(*arguments, stdin=stdin).stderr
    assert b"Traceback" not in said, said.decode()
    return said.decode()


@pytest.mark.parametrize(
    "planted",
    [
        {".kr/lessons/_lessons-learned.md": "text", ".kr/index.yaml": "text", "sample_report.md": "text"},
        {".kr/lessons/_lessons-learned.md": "absent", ".gitignore": "text", "workflow_state.json": "absent"},
        {".kr/lessons": "folder", f".kr/index.yaml.{BEGUN}.bak": "absent", ".workflow_state.json.new": "text"},
        {".kr/lessons/._lessons-learned.md.lock": "absent", ".kr/.export.lock": "absent", ".gitignore": "absent"},
        {".kr/kr.db": "absent", ".workflow_state.json.lock": "absent"},
        {".kr/kr.db.lock": "absent", ".kr/frameworks": "folder"},
    ],
)  # fmt: skip
def test_nothing_is_written_through_a_link(project: Project, tmp_path: Path, planted: dict[str, str]) -> None:
    (project.root / "sample.md").write_text(template_text(STEP, "word: {default: x}"))
    (project.root / ".git").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "text").write_text("alias ll='ls -l'\n")
    (outside / "folder").mkdir()
    for name, target in planted.items():
        link = project.root / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".bak"):
            link.with_suffix("").with_suffix("").write_text(INDEX)
        link.symlink_to(outside / target)
    use(project)
    assert sorted(path.name for path in outside.rglob("*")) == ["folder", "text"]
    assert (outside / "text").read_text() == "alias ll='ls -l'\n"


def test_a_link_is_named_with_what_it_is(project: Project) -> None:
    (project.base / "lessons").mkdir(parents=True)
    (project.base / "lessons/_lessons-learned.md").symlink_to(project.root / "kr.yaml")
    done = project.run("lessons", "add", "A thing fails", "--fix", "Do another thing")
    assert done.returncode == 1
    assert (
        b"_lessons-learned.md is a symbolic link, and nothing is read or written through links" in done.stderr
    )
    project.database.unlink(missing_ok=True)
    project.database.symlink_to(project.root / "other.db")
    done = project.run("entries", "list")
    assert (done.returncode, b"kr.db: is a symbolic link" in done.stderr) == (1, True)
