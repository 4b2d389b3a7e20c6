"""``KR_SERVER``: the command line on a shared ``kr serve`` says what it says on a knowledge base of its own."""

import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kr.remote import ServerGone, SharedServer
from tests.support.mcp_servers import Scenario, StandIn, context7_server
from tests.support.program import Project, request
from tests.support.servers import TOKEN, Served, serving_here
from tests.support.web_servers import Reply, as_json, page, redirect, web_server

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

RETURN = """
session_id: s-1
story_key: 3-1
phase: dev-execution
event_type: general_agent_failure
agent_return: {status: failure, errors: [{message: a list has no key, suggestion: Give rows a key}]}
"""
HOOK = {"hook_event_name": "SubagentStart", "agent_type": "dev-runner", "session_id": "s-1"}
Session = tuple[tuple[tuple[str, ...], str], ...]
SESSION: Session = (
    (("research", "--request", "-", "--include-report"), json.dumps(request())),
    (("research", "--request", "-"), "story_key: x"),
    (("lessons", "record", "--request", "-"), RETURN),
    (("entries", "list", "--status", "fresh"), ""),
    (("entries", "show", "vue-repeatable-options", "--report"), ""),
    (("entries", "show", "nothing"), ""),
    (("search", "repeatable", "key"), ""),
    (("stats",), ""),
    (("research", "--request", "-"), json.dumps(request())),
    (("research", "--request", "-", "--use", "nothing"), json.dumps(request())),
    (("research", "vue", "How do I make an option repeatable?", "--session-id", "s-2"), ""),
    (("lessons", "record", "--request", "-"), "no request"),
    (("lessons", "inject", "--phase", "dev-execution", "--session-id", "s-3"), ""),
    (("lessons", "inject", "--phase", "nonsense", "--session-id", "s-3"), ""),
    (("research", "--request", "-"), ": no yaml ["),  # which the server never hears of
    (("hook",), json.dumps(HOOK)),
)


@pytest.fixture(scope="module")
def context7() -> Iterator[StandIn]:
    with context7_server() as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, context7: StandIn) -> Project:
    project = Project(tmp_path_factory.mktemp("served"))
    project.use_context7(context7.url)
    return project


@pytest.fixture(scope="module")
def server(served: Project) -> Iterator[Served]:
    with serving_here(served) as started:
        yield started


@pytest.fixture
def client(tmp_path: Path) -> Project:
    """A container: it has no source and no knowledge base."""
    return Project(tmp_path / "client")


def told(session: Session, project: Project, more: Mapping[str, str]) -> list[tuple[int, str, str]]:
    """What a session of commands says, without what no two runs have in common."""
    said: list[tuple[int, str, str]] = []
    for arguments, stdin in session:
        done = project.run(*arguments, stdin=stdin, more=more)
        out, err = (
            re.sub(r"\d{4}-\d\d-\d\d[T0-9:.Z]*|\d+\.\d+", "N", stream.decode()).replace(
                str(project.root), "ROOT"
            )
            for stream in (done.stdout, done.stderr)
        )
        said.append((done.returncode, out, err))
    return said


@pytest.mark.effort(len(SESSION), 8)
def test_every_shared_command_says_the_same(
    tmp_path: Path, context7: StandIn, served: Project, server: Served, effort: int
) -> None:
    """All of them with ``--all``."""
    session = SESSION[:effort]
    client, local = Project(tmp_path / "client"), Project(tmp_path / "local")
    local.use_context7(context7.url)
    shared = [
        (status, out.replace(str(served.root), "ROOT"), err)
        for status, out, err in told(session, client, {"KR_SERVER": server.url, "KR_TOKEN": TOKEN})
    ]
    assert shared == told(session, local, {})
    assert not client.base.exists()


def test_a_server_that_is_gone_is_an_error_that_names_it(client: Project) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    done = client.run("research", "--request", "-", stdin=json.dumps(request()), more={"KR_SERVER": url})
    assert done.returncode == 1
    assert f"KR_SERVER: {url} can''t be reached" in done.stdout.decode()
    done = client.run("stats", more={"KR_SERVER": url})
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"KR_SERVER: {url} can't be reached" in done.stderr.decode()
    unread = client.run("research", "--request", "-", stdin=": no yaml [", more={"KR_SERVER": url})
    assert (unread.returncode, b"the request is broken" in unread.stdout) == (1, True)
    assert not client.base.exists()
    changed = client.run("entries", "remove", "nothing", more={"KR_SERVER": url})
    assert b"works on the local knowledge base" in changed.stderr


def test_a_server_that_refuses_is_an_error(server: Served, client: Project) -> None:
    for more in ({"KR_SERVER": server.url}, {"KR_SERVER": "ftp://x"}, {"KR_SERVER": "http://user@x"}):
        done = client.run("research", "--request", "-", stdin=json.dumps(request()), more=more)
        assert (done.returncode, done.stdout) == (2, b""), more
        assert b"KR_SERVER" in done.stderr
    assert not client.base.exists()


def test_a_server_with_too_much_to_do_is_asked_again_and_then_let_be(tmp_path: Path, client: Project) -> None:
    served = Project(tmp_path / "busy")
    with context7_server(Scenario(delay=10)) as slow:
        served.use_context7(slow.url)
        with serving_here(served, None, max_requests=1) as busy:
            document = json.dumps(request())
            head = f"POST /v1/research HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(document)}\r\n\r\n"
            with socket.create_connection(busy.address) as asking:
                asking.sendall((head + document).encode())
                while not slow.calls():
                    time.sleep(0.02)
                for path in ("/v1/stats", "/metrics"):
                    answer = busy.get(path)
                    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
                done = client.run("research", "--request", "-", stdin=document, more={"KR_SERVER": busy.url})
                assert done.returncode == 1
                assert b"answers HTTP 429: 1 requests are at work" in done.stdout
                assert asking.recv(12) == b"HTTP/1.1 200"
                found = SharedServer(url=busy.url, token=None, timeout=30).get("/v1/stats", "requests")
            assert found["requests"]["total"] == 1


def test_what_is_no_server_of_kr_is_told_alike_by_every_command(server: Served, client: Project) -> None:
    saved = ("save", "vue", "How are rows kept?", "--answer", "With a key.")
    commands: Session = (
        (("research", "vue", "How are rows kept?"), ""),
        (("search", "rows"), ""),
        (("stats",), ""),
        (saved, ""),
        (("lessons", "inject", "--phase", "dev-execution"), ""),
    )
    others = (page("<h1>It works!</h1>"), Reply(status=501), Reply(status=404), as_json({"ok": True}))
    for reply in others:
        with web_server(lambda _, reply=reply: reply) as other:  # type: ignore[misc]
            for arguments, _ in commands:
                done = client.run(*arguments, more={"KR_SERVER": other.url})
                assert (done.returncode, done.stdout) == (2, b""), arguments
                assert f"{other.url} is no `kr serve` of this version: " in done.stderr.decode()
    more = {"KR_SERVER": f"{server.url}/kr", "KR_TOKEN": TOKEN}
    done = client.run("search", "repeatable", more=more)
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"{server.url}/kr is no `kr serve`".encode() in done.stderr
    assert not client.base.exists()


DRIP = Reply(headers={"content-length": "1000000"}, body=b" " * 1000, pause=0.1)
"""Blanks, one after the other, for longer than any test."""
BUSY = Reply(status=429, headers={"retry-after": "120"}, body=b'{"detail": "too much"}')
SLOW = Reply(delay=100)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (DRIP, "gave no answer within 2 s"),
        (SLOW, "gave no answer within 2 s"),
        (BUSY, "answers HTTP 429: too much"),
    ],
    ids=["drip", "slow", "busy"],
)
def test_an_answer_has_an_end_in_time(reply: Reply, told: str) -> None:
    with web_server(lambda _: reply) as server:
        with pytest.raises(ServerGone, match=told):
            SharedServer(url=server.url, token=None, timeout=2).get("/v1/stats", "requests")
        assert len(server.requests()) == 1


@pytest.mark.parametrize(("reply", "why"), [(DRIP, b"within 3 s"), (BUSY, b"HTTP 429")], ids=["drip", "busy"])
def test_a_hook_stops_nobody_when_the_server_does_not_answer(
    client: Project, reply: Reply, why: bytes
) -> None:
    """Claude Code waits ten seconds for all of it."""
    with web_server(lambda _: reply) as server:
        done = client.run("hook", stdin=json.dumps(HOOK), more={"KR_SERVER": server.url})
        assert len(server.requests()) == 1
    assert done.returncode == 0
    assert why in done.stderr


def test_the_token_is_sent_to_no_redirect(client: Project) -> None:
    with web_server(lambda _: redirect("/elsewhere", 307)) as server:
        more = {"KR_SERVER": server.url, "KR_TOKEN": TOKEN}
        done = client.run("research", "--request", "-", stdin=json.dumps(request()), more=more)
        seen = [(it.path, it.headers["authorization"]) for it in server.requests()]
    assert seen == [("/v1/research", f"Bearer {TOKEN}")]
    assert done.returncode == 2
    assert b"elsewhere" in done.stderr
    assert TOKEN.encode() not in done.stderr


def test_a_lesson_that_is_added_reaches_the_server(client: Project, server: Served, served: Project) -> None:
    words = ("lessons", "add", "Tokens are printed", "--fix", "Mask them in the logger", "--tag", "logging")
    done = client.run(*words, "--format", "json", more={"KR_SERVER": server.url, "KR_TOKEN": TOKEN})
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "recorded"), done.stderr
    assert not client.base.exists()
    listed = served.run("lessons", "list", "--format", "json")
    assert "Tokens are printed: Mask them in the logger" in [
        it["summary"] for it in json.loads(listed.stdout)
    ]


def test_a_finding_is_about_the_version_that_the_clients_project_uses(
    client: Project, server: Served, served: Project
) -> None:
    locked = {"": {"dependencies": {"zod": "^4"}}, "node_modules/zod": {"version": "4.1.2"}}
    (client.root / "package.json").write_text('{"dependencies": {"zod": "^4"}}')
    (client.root / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": locked}))
    words = (
        "save",
        "zod",
        "How are unknown keys refused?",
        "--answer",
        "z.strictObject",
        "--session-id",
        "s",
    )
    done = client.run(*words, more={"KR_SERVER": server.url, "KR_TOKEN": TOKEN})
    assert done.returncode == 0, done.stderr
    assert served.sql("SELECT framework_version FROM entries WHERE framework = 'zod'") == [("4.1.2",)]
