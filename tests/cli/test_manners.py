"""What every command has in common for its reader (rule 6): formats, colours, messages, exit statuses."""

import json
import re
import sqlite3
import subprocess
import sys
from collections import deque
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.support.program import Project, request
from tests.support.stores import obey_permissions, protected
from tests.support.terminals import seen


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_the_environment_sets_the_format_and_an_option_wins(project: Project) -> None:
    by_name = {"KR_FORMAT": "json"}
    assert json.loads(project.run("db", "check", more=by_name).stdout)["state"] == "absent"
    for arguments in (("--format", "yaml", "db", "check"), ("db", "check", "--format", "yaml")):
        shown = project.run(*arguments, more=by_name).stdout.decode()
        assert not shown.startswith("{")
        assert yaml.safe_load(shown)["state"] == "absent"


def test_a_format_that_is_none_is_told_by_the_variable(project: Project) -> None:
    done = project.run("stats", more={"KR_FORMAT": "xml"})
    assert (done.returncode, done.stdout) == (2, b"")
    assert "error: KR_FORMAT: 'xml' is not one of yaml, json, text" in done.stderr.decode()


@pytest.mark.parametrize("words", ["search rows", "db path"])
def test_a_folder_that_was_mistyped_is_told_and_not_made(project: Project, words: str) -> None:
    done = project.run("--kb", "nowhere", *words.split())
    assert done.returncode == 0
    assert done.stdout
    assert "there is no knowledge base" in done.stderr.decode()
    assert not (project.root / "nowhere").exists()


@pytest.mark.parametrize(
    "words", ["entries list", "search rows", "stats", "rate vue-rows --worked", "db backup", "export-yaml"]
)
def test_a_damaged_database_is_told_with_what_to_do(project: Project, words: str) -> None:
    project.base.mkdir()
    project.database.write_text("this is a letter, and no database at all")
    done = project.run(*words.split())
    assert (done.returncode, done.stdout) == (1, b"")
    told = done.stderr.decode().splitlines()[-1]
    assert told == f"error: {project.database}: file is not a database; `kr doctor` says what can be done"


def test_a_database_that_may_not_be_written_or_is_held_is_told_with_what_to_do(project: Project) -> None:
    project.know("rows")
    command = [sys.executable, "-m", "kr", "rate", "vue-rows", "--worked"]
    with protected(*project.base.glob("kr.db*")):
        told = subprocess.run(
            command,
            cwd=project.root,
            env=project.environ(),
            capture_output=True,
            preexec_fn=obey_permissions,
            check=False,
        ).stderr.decode()
    assert "`kr doctor` says what this user may not do" in told
    with closing(sqlite3.connect(project.database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        (project.root / "kr.yaml").write_text("defaults: {agent_timeout_seconds: {knowledge_research: 2}}\n")
        done = project.run("rate", "vue-rows", "--worked")
    assert done.returncode == 1
    assert "another program holds it: try again once that has ended" in done.stderr.decode()


@pytest.mark.parametrize("below", ["", "/further/in"])
@pytest.mark.parametrize(
    "words", ["search rows", "db path", "doctor", "init", "research vue rows?", "versions"]
)
def test_a_file_in_the_place_of_the_knowledge_base_is_told_alike_by_every_command(
    project: Project, words: str, below: str
) -> None:
    (project.root / "file").write_text("x")
    done = project.run("--kb", f"file{below}", *words.split())
    assert (done.returncode, done.stdout) == (2, b"")
    place = project.root / "file"
    told = f"{place}{below}: can't be the knowledge base: {place} is no folder; name one with --kb"
    assert told in done.stderr.decode()


def test_a_knowledge_base_that_cannot_be_reached_degrades(project: Project) -> None:
    """As one does in a folder that may not be entered: a name that is too long is refused to root as well."""
    document = json.dumps(request())
    done = project.run("--kb", "a" * 300, "research", "--request", "-", "--format", "json", stdin=document)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["status"]) == (0, "degraded")
    assert [error["type"] for error in answer["errors"]] == ["database_unwritable"]
    assert answer["results"]["report"]
    assert answer["results"]["index_updated"] is False


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [(["researh"], "'research'"), (["lessons", "injekt"], "'inject'"), (["list"], "'entries list'")],
)
def test_a_mistyped_command_is_answered_with_the_nearest(
    project: Project, typed: list[str], nearest: str
) -> None:
    done = project.run(*typed)
    assert done.returncode == 2
    told = done.stderr.decode().splitlines()[-1]
    assert told.startswith(f"error: No such command '{typed[-1]}'. ")
    assert "Did you mean" in told
    assert nearest in told


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "--request", "nowhere.yaml"],
        ["import-yaml", "nowhere.yaml"],
        ["lessons", "import", "nowhere.yaml"],
        ["versions", "nowhere.yaml"],
        ["warm", "--project", "nowhere.yaml"],
        ["--config", "nowhere.yaml", "stats"],
    ],
    ids=" ".join,
)
def test_a_missing_file_is_the_same_to_every_command(project: Project, arguments: list[str]) -> None:
    done = project.run(*arguments)
    assert done.returncode == (2 if "--config" in arguments else 1)
    told = done.stderr.decode().splitlines()[-1]
    assert re.search(r"^error: .*nowhere\.yaml: (can't be read: )?No such file or directory$", told)


@pytest.mark.parametrize("command", ["archive list", "search zod"])
def test_a_limit_that_no_database_takes_is_a_wrong_command_line(project: Project, command: str) -> None:
    done = project.run(*command.split(), "--limit", "9" * 20)
    assert done.returncode == 2
    assert b"Invalid value for '--limit'" in done.stderr


def test_nothing_is_cut_or_wrapped_where_no_terminal_reads(project: Project) -> None:
    question = "What goes on and on, " * 6 + "to its end?"
    project.ask(request(question=question))
    for arguments in (("entries", "list"), ("entries", "list", "--format", "text")):
        assert question in project.run(*arguments).stdout.decode()


def test_nothing_is_coloured_and_stats_fit_on_a_screen(project: Project) -> None:
    project.ask(request())
    assert "\x1b[" not in seen(project, "research", "--request", "request.yaml", more={"TERM": "dumb"})
    shown = seen(project, "stats", more={"TERM": "xterm", "KR_NONSENSE": "1"})
    assert "\x1b[" not in shown
    assert "requests  total 2; research 2; hits 0; misses 2" in shown
    assert len(shown.splitlines()) <= 24


def test_warnings_read_like_errors(project: Project) -> None:
    done = project.run("stats", more={"KR_NONSENSE": "1"})
    assert done.stderr.decode().startswith("warning: ")
    assert "KR_NONSENSE" in done.stderr.decode()


@pytest.mark.parametrize("command", ["research", "explain", "lessons inject", "lessons record"])
def test_the_schema_of_a_request_is_printed_and_fits_one(project: Project, command: str) -> None:
    schema = json.loads(project.run(*command.split(), "--schema").stdout)
    validator = jsonschema.Draft202012Validator(schema)
    if command == "lessons record":
        validator.validate(schema["examples"][0])
        return
    if command == "lessons inject":
        asked = {"story_key": "3-1", "session_id": "s-1", "lessons_inject": {"phase": "dev-execution"}}
        broken, where = {**asked, "lessons_inject": {"phase": "x"}}, ["lessons_inject", "phase"]
    else:
        asked, broken, where = request(), request(topic=" "), ["research_query", "topic"]
    validator.validate(asked)
    assert [error.path for error in validator.iter_errors(broken)] == [deque(where)]
