"""``kr research`` as a process: forms, output, exit status, and what stands on which stream."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import yaml

from tests.support.mcp_servers import Scenario, StandIn, context7_server
from tests.support.program import Project, request
from tests.support.terminals import seen


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server() as server:
        project.use_context7(server.url)
        yield server


def test_yaml_on_a_pipe_and_nothing_else(project: Project, context7: StandIn) -> None:
    done = project.run("research", "--request", "-", stdin=yaml.safe_dump(request()))
    assert (done.returncode, done.stderr) == (0, b"")
    answer = yaml.safe_load(done.stdout)
    assert list(answer)[:4] == ["status", "story_key", "mode", "session_id"]
    assert (answer["status"], answer["story_key"]) == ("success", "3-1")
    assert context7.calls()


@pytest.mark.parametrize("more", [{}, {"mode": "research", "topic": "rows", "if_unsure": "candidates"}])
def test_a_document_of_framework_and_question_is_enough(project: Project, more: dict[str, str]) -> None:
    project.know("rows")
    asked = {"framework": "vue", "question": "What are rows?", **more}
    done = project.run("research", "--request", "-", "--format", "json", stdin=json.dumps(asked))
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["story_key"], answer["mode"]) == ("cache-hit", "0-0", "research")
    explained = project.run("explain", "--request", "-", "--format", "json", stdin=json.dumps(asked))
    assert json.loads(explained.stdout)["outcome"] == "hit"


def test_the_terminal_form_derives_the_rest(project: Project, context7: StandIn) -> None:
    (project.root / "package.json").write_text('{"name": "x", "dependencies": {"vue": "^3.5.2"}}')
    done = project.run("research", "vue", "How do I make an option repeatable?")
    answer = yaml.safe_load(done.stdout)
    assert (answer["status"], answer["story_key"]) == ("success", "0-0")
    ((version, topic, tags),) = project.sql("SELECT framework_version, topic, tags FROM entries")
    assert version == "^3.5.2"
    assert "repeatable" in topic
    assert json.loads(tags)
    again = yaml.safe_load(project.run("research", "Vue", "Make an option repeatable!").stdout)
    assert again["status"] == "cache-hit"
    assert again["session_id"] != answer["session_id"]
    assert len(context7.calls()) == 2


def test_the_terminal_form_takes_everything_outright(project: Project, context7: StandIn) -> None:
    options = "--framework-version 2.10 --topic slots --tag a --tag b --story-key 7-7 --session-id s --max-calls 1 --timeout 9"
    answer = yaml.safe_load(project.run("research", "vue", "What is a slot?", *options.split()).stdout)
    assert (answer["story_key"], answer["session_id"], answer["results"]["budget_remaining"]) == (
        "7-7",
        "s",
        0,
    )
    assert project.sql("SELECT framework_version, topic, tags FROM entries") == [
        ("2.10", "slots", '["a", "b"]')
    ]
    assert context7.calls()


@pytest.mark.parametrize(
    "arguments",
    [
        ["research"],
        ["research", "vue"],
        ["research", "vue", "q", "--request", "-"],
        ["research", "--request", "-", "--topic", "x"],
        ["research", "vue", "q", "--max-calls", "-1"],
        ["research", "vue", "q", "--nope"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_status_two_with_a_hint(project: Project, arguments: list[str]) -> None:
    done = project.run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr
    assert len(done.stderr) > 20


def test_failure_is_status_one_with_the_envelope_on_standard_output(project: Project) -> None:
    done = project.run("research", "--request", "-", stdin="story_key: 3-1\nmode: 7\n")
    assert done.returncode == 1
    answer = yaml.safe_load(done.stdout)
    assert (answer["status"], answer["mode"], answer["results"]) == ("failure", "7", None)
    assert answer["errors"][0]["message"].startswith("Invalid mode")


@pytest.mark.parametrize("command", ["research", "explain", "save"])
def test_a_question_has_one_limit_in_every_command(project: Project, command: str) -> None:
    answer = ["--answer", "Use a key."] if command == "save" else []
    question = "rows " * 199 + "fives"
    assert project.run(command, "vue", question, *answer).returncode == 0
    done = project.run(command, "vue", question + "x", *answer)
    assert done.returncode == 1
    assert "has 1001 characters; at most 1000" in (done.stdout + done.stderr).decode()


def test_unknown_keys_are_named_on_standard_error(project: Project) -> None:
    done = project.run("research", "--request", "-", stdin=json.dumps({**request(), "urgency": "high"}))
    assert b"urgency" in done.stderr
    assert b"urgency" not in done.stdout


def test_a_wrong_setting_names_file_key_and_what_is_allowed(project: Project) -> None:
    (project.root / "kr.yaml").write_text("knowledge_research: {max_entries: many}\n")
    done = project.run("research", "vue", "q")
    assert (done.returncode, done.stdout) == (2, b"")
    message = done.stderr.decode()
    assert "kr.yaml" in message
    assert "knowledge_research.max_entries" in message
    assert "Traceback" not in message


def test_a_locale_without_chinese_degrades(project: Project) -> None:
    strict = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    answer = project.ask(request(topic="虚拟滚动配置", tags=["虚拟滚动"]), **strict)
    assert (answer["status"], answer["results"]["index_updated"]) == ("degraded", False)
    assert answer["errors"]
    done = project.run("research", "vue", "虚拟滚动", "--topic", "scrolling", more=strict)
    assert done.returncode == 0
    assert "虚拟滚动" in next(project.base.glob("frameworks/vue/scrolling.md")).read_text(encoding="utf-8")


def test_a_terminal_sees_a_readable_view(project: Project, context7: StandIn) -> None:
    question = ("research", "vue", "How do I make an option repeatable?")
    text = seen(project, *question, more={"TERM": "xterm"})
    assert "asking context7" in text
    assert "asked  context7 (success)" in text
    assert "confidence high" in text
    assert "## Summary" in text
    assert "## Details" not in text
    assert "The whole report: kr entries show vue-" in text
    assert "story_key" not in text
    assert "## Details" in seen(project, *question, "--include-report", more={"TERM": "xterm"})
    assert context7.calls()


def test_a_person_sees_briefly_why_nothing_was_found(project: Project) -> None:
    project.know("rows")
    asked = ("research", "vue", "What are rows?", "--tag", "", "--refresh", "--format", "text")
    text = project.run(*asked, more={"KR_SOURCES": "[deepwiki, web_search]"}).stdout.decode()
    assert text.startswith("degraded\n")
    assert "found by" not in text, "nothing was found, whatever matches"
    assert re.search(r"\n  asked  deepwiki \(unavailable: .{9,90}\)\n", text)
    assert "note  deepwiki" not in text


def test_verbose_tells_what_is_done(project: Project, context7: StandIn) -> None:
    def told(*arguments: str) -> list[str]:
        done = project.run("research", "--request", "-", *arguments, stdin=json.dumps(request()))
        return done.stderr.decode().splitlines()

    miss, hit = told("-v"), told("-v")
    assert [line.split(":")[0] for line in miss] == ["info"] * len(miss)
    for part in ("asking context7", "context7: success after "):
        assert any(part in line for line in miss), (part, miss)
    assert hit == ["info: vue-repeatable-options matches by framework+topic+tags and is fresh"]
    assert told() == []
    assert context7.calls()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_gives_back_what_was_reserved(project: Project, number: signal.Signals, status: int) -> None:
    with context7_server(Scenario(delay=60)) as server:
        project.use_context7(server.url)
        process = subprocess.Popen(
            [sys.executable, "-m", "kr", "research", "--request", "-"],
            cwd=project.root,
            env=project.environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(request()).encode())
        process.stdin.close()
        give_up = time.monotonic() + 30
        while not [call for call in server.calls() if call.tool] and time.monotonic() < give_up:
            time.sleep(0.05)
        assert project.sql("SELECT count(*) FROM reservations") == [(1,)]
        process.send_signal(number)
        assert process.wait(30) == status
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout, process.stderr:
            assert process.stdout.read() == b""
            assert b"Traceback" not in process.stderr.read()
    assert project.sql("SELECT count(*) FROM reservations") == [(0,)]
    assert project.sql("SELECT count(*) FROM leases") == [(0,)]
    rows = project.sql("SELECT mode, status, story_key, framework, duration_ms > 0 FROM requests")
    assert rows == [("research", "failure", "3-1", "vue", 1)]
    assert not list(project.base.glob("**/*.md"))
    assert not list(project.base.glob("**/.kr-tmp-*"))


@pytest.mark.parametrize(
    ("tail", "status", "told"),
    [
        (">/dev/full", 1, "standard output can't be written"),
        (">&-", 0, ""),
        ("<&-", 1, ""),
    ],
)
def test_broken_streams_end_without_a_bug_report(project: Project, tail: str, status: int, told: str) -> None:
    (project.root / "ask.json").write_text(json.dumps(request()))
    source = "-" if tail == "<&-" else "ask.json"
    command = f"{sys.executable} -m kr research --request {source} --format json {tail}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=project.root, env=project.environ(), capture_output=True, check=False
    )
    assert done.returncode == status
    message = done.stderr.decode()
    assert "bug in kr" not in message
    assert told in message
    if tail == "<&-":
        assert json.loads(done.stdout)["errors"][0]["field"] == "request"


def test_a_report_cannot_command_the_terminal(project: Project, context7: StandIn) -> None:
    path = project.base / project.ask(request())["results"]["report_path"]
    path.write_text(path.read_text() + "\n\x1b]0;pwned\x07\x1b[31mred\u202e\n")
    done = project.run("research", "--request", "-", "--format", "text", stdin=json.dumps(request()))
    assert b"cache-hit" in done.stdout
    assert b"\x1b]" not in done.stdout
    assert "\u202e" not in done.stdout.decode()
    assert context7.calls()


NEAR = ("--topic", "repeatable arguments", "--tag", "arguments", "--framework-version", "3")


def test_a_person_is_told_what_is_related_and_takes_it(project: Project, context7: StandIn) -> None:
    project.research()
    calls = len(context7.calls())
    asked = ("research", "vue", "Can an argument be given twice?", *NEAR)
    done = project.run(*asked, "--if-unsure", "candidates", "--format", "text")
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert text.startswith("candidates\n")
    assert "vue-repeatable-options  How do I make an option repeatable? (version 3.5, excerpt)" in text
    assert "with --if-unsure research where none answers" in text
    taken = project.run(*asked, "--use", "vue-repeatable-options", "--format", "text")
    assert taken.stdout.decode().startswith("cache-hit\n")
    assert len(context7.calls()) == calls
    assert project.sql("SELECT question FROM wordings") == [("Can an argument be given twice?",)]


def test_what_the_command_line_says_wins_over_the_document(project: Project, context7: StandIn) -> None:
    project.research()
    document = request(config_overrides={"max_calls": 2, "if_unsure": "candidates", "refresh": False})
    answer = project.ask(document, "--refresh")
    assert (answer["status"], answer["results"]["budget_remaining"]) == ("success", 1)
    near = document | {
        "research_query": request(
            topic="repeatable arguments", tags=["x"], question="How do I make arguments repeatable?"
        )["research_query"]
    }
    assert project.ask(near)["results"]["related"]
    assert project.ask(near, "--if-unsure", "research")["status"] == "success"
    assert project.ask(near, "--use", "vue-repeatable-options")["status"] == "cache-hit"
    assert context7.calls()
