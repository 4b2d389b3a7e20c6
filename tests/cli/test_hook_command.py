"""``kr hook`` as Claude Code runs it: JSON in, JSON out, exit status 0 whatever happens."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kr.lessons.inject import NOTICE
from tests.support.program import Project

LESSONS = ".kr/lessons/_lessons-learned.md"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def hook(
    project: Project, event: str, *, phase: str | None = None, **data: Any
) -> "subprocess.CompletedProcess[bytes]":
    more = {"KR_PHASE": phase} if phase else {}
    done = project.run(
        "hook", stdin=json.dumps({"hook_event_name": event, "session_id": "s-9", **data}), more=more
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    return done


def lessons(project: Project) -> list[str]:
    path = project.root / LESSONS
    return (
        [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("- ")]
        if path.exists()
        else []
    )


def write(project: Project) -> None:
    path = project.root / LESSONS
    path.parent.mkdir(parents=True)
    path.write_text(
        "- [2026-01-01] [code-review] 需要校验 userId. Ref: a.java:1\n- [2026-01-01] [dev-execution] other\n",
        encoding="utf-8",
    )


def test_who_starts_gets_the_lessons_of_the_phase(project: Project) -> None:
    write(project)
    started = hook(project, "SubagentStart", agent_type="code-reviewer")
    assert json.loads(started.stdout) == {
        "hookSpecificOutput": {
            "hookEventName": "SubagentStart",
            "additionalContext": f"[LESSONS] code-review phase warnings:\n{NOTICE}\n1. 需要校验 userId -- a.java:1",
        }
    }
    session = json.loads(hook(project, "SessionStart", phase="dev-execution").stdout)
    assert session["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "other" in session["hookSpecificOutput"]["additionalContext"]


def test_a_session_without_a_phase_develops(project: Project) -> None:
    write(project)
    for more in ({}, {"agent_type": "general-purpose"}, {"phase": "no-such-phase"}):
        done = hook(project, "SessionStart", **more)
        assert "dev-execution phase warnings" in done.stdout.decode()
        assert (b"no-such-phase" in done.stderr) == ("phase" in more)


@pytest.mark.parametrize(
    "arguments", [("--phase",), ("--format", "xml"), ("--story-key",), ("--story-key", "x")]
)
def test_a_wrong_command_line_blocks_nobody(project: Project, arguments: tuple[str, ...]) -> None:
    write(project)
    done = project.run("hook", *arguments, stdin='{"hook_event_name": "SessionStart", "session_id": "s"}')
    assert done.returncode == 0
    assert b"error: " in done.stderr or b"kr hook: " in done.stderr


def test_what_goes_wrong_is_said(project: Project) -> None:
    write(project)
    path = project.root / LESSONS
    path.write_bytes(path.read_bytes() + b"caf\xe9\n")
    done = hook(project, "SubagentStart", agent_type="code-reviewer")
    assert b"a.java:1" in done.stdout
    assert b"1 lines are no lesson" in done.stderr
    pipe = project.root / "pipe"
    os.mkfifo(pipe)
    done = hook(project, "SubagentStart", agent_type="dev", transcript_path=str(pipe))
    assert b"not a regular file" in done.stderr


def test_the_project_is_that_of_the_events_cwd(project: Project, tmp_path: Path) -> None:
    write(project)
    event = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(project.root)}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "kr", "hook"],
        input=json.dumps(event).encode(),
        capture_output=True,
        cwd=elsewhere,
        env=project.environ(),
        timeout=60,
        check=True,
    )
    assert b"dev-execution phase warnings" in done.stdout
    assert list(elsewhere.iterdir()) == []


def test_a_tools_failure_is_recorded_when_it_teaches(project: Project) -> None:
    common: dict[str, Any] = {"agent_type": "dev", "tool_name": "Bash", "tool_input": {"command": "x"}}
    hook(
        project,
        "PostToolUseFailure",
        error="Exit code 1\nModuleNotFoundError: No module named 'orjson'",
        **common,
    )
    hook(project, "PostToolUseFailure", error="Exit code 1\ngrep found nothing", **common)
    (line,) = lessons(project)
    assert "[dev-execution, python]" in line
    assert "orjson" in line
    assert project.sql("SELECT event_type, session_id, story_key FROM lessons") == [
        ("general_agent_failure", "s-9", "0-0")
    ]


def test_who_returns_a_failure_without_a_lesson_is_asked_for_it_once(project: Project) -> None:
    message = 'Done.\n{"return": {"status": "failure", "errors": ["Foo.bar() gives None where Foo.baz() gave a list"]}}'
    asked = hook(project, "SubagentStop", agent_type="dev", last_assistant_message=message)
    assert json.loads(asked.stdout)["decision"] == "block"
    assert "lessons: [{symptom, fix, ref}]" in json.loads(asked.stdout)["reason"]
    assert not (project.root / LESSONS).exists()
    stop: dict[str, Any] = {"last_assistant_message": message, "stop_hook_active": True}
    done = hook(project, "SubagentStop", agent_type="dev", **stop)
    assert (len(lessons(project)), done.stdout, done.stderr) == (1, b"", b"")


def test_an_agent_that_was_asked_words_its_lesson(project: Project) -> None:
    said = "```yaml\nlessons:\n  - {symptom: Rows stay blank, fix: set the row height, ref: src/T.vue:3}\n```"
    stop: dict[str, Any] = {"last_assistant_message": said, "stop_hook_active": True}
    done = hook(project, "SubagentStop", agent_type="dev", **stop)
    assert done.stdout == b""
    (line,) = lessons(project)
    assert line.endswith("[dev-execution] Rows stay blank: set the row height. Ref: src/T.vue:3")


@pytest.mark.parametrize(
    "stdin", [b"", b"[]", b"{", b"\xff\xfe", b"null", b"x" * 100_000, b'{"a": ' * 100_000]
)
def test_it_fails_open_and_says_so_in_a_line(project: Project, stdin: bytes) -> None:
    done = project.run("hook", "session-start", "--unknown", stdin=stdin, more={"KR_PHASE": "code-review"})
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"kr hook: standard input is no JSON")
    assert done.stderr.count(b"\n") == 1


def test_a_wrong_configuration_stops_no_agent(project: Project) -> None:
    write(project)
    (project.root / "kr.yaml").write_text("knowledge_research: {max_entries: none}\n")
    done = hook(project, "SubagentStart", agent_type="code-reviewer")
    assert done.stdout == b""
    assert b"max_entries" in done.stderr


_HEAVY = {"sqlalchemy", "pydantic", "mcp", "httpx", "alembic"}


@pytest.mark.parametrize(
    "event",
    [
        {"hook_event_name": "PostToolUseFailure", "error": "e", "is_interrupt": True},
        {"hook_event_name": "PostToolUseFailure", "error": "Exit code 1\nnothing found there"},
        {"hook_event_name": "SubagentStart", "agent_type": "dev"},
        {"hook_event_name": "SubagentStop", "agent_type": "dev", "last_assistant_message": "Done."},
    ],
)
def test_with_nothing_to_do_nothing_heavy_is_imported(project: Project, event: dict[str, Any]) -> None:
    (project.root / "kr.yaml").unlink()
    project.env = {}
    code = "import sys; from kr.cli.main import main; main(['hook']); print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(event).encode(),
        capture_output=True,
        cwd=project.root,
        env=project.environ(KR_PHASE="code-review"),
        timeout=60,
        check=True,
    )
    assert not _HEAVY & {*done.stdout.decode().split()}
