"""``kr serve`` as its clients meet it: a process, loopback sockets, and the SDK's client for ``/mcp``."""

import json
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.mcp_servers import Scenario, StandIn, context7_server
from tests.support.program import Project, request
from tests.support.servers import TOKEN, Answer, Server, serving

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

PROBLEM = "application/problem+json"
INJECT = {"story_key": "3-1", "session_id": "s-1", "lessons_inject": {"phase": "dev-execution"}}
RECORD = {
    "session_id": "s-1",
    "story_key": "3-1",
    "phase": "dev-execution",
    "event_type": "general_agent_failure",
    "agent_return": {
        "status": "failure",
        "errors": [{"message": "a list has no key", "suggestion": "Give rows a key"}],
    },
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server(Scenario(delay=0.5)) as stand_in:
        project.use_context7(stand_in.url)
        yield stand_in


@pytest.fixture(scope="module")
def server(project: Project, context7: StandIn) -> Iterator[Server]:
    assert context7.url in project.env["KR_SERVERS"]
    with serving(project, KR_TOKEN="") as started:
        yield started


def is_problem(answer: Answer, status: int, *words: str) -> bool:
    told = answer.json
    assert (answer.status, told["status"]) == (status, status), answer
    assert answer.headers["content-type"] == PROBLEM
    assert all(word in told["detail"] for word in words), told
    return True


def test_a_question_is_researched_once_and_then_read(server: Server, context7: StandIn) -> None:
    first = server.post("/v1/research?include_report=true", request())
    assert (first.status, first.json["status"]) == (200, "success")
    again = server.post("/v1/research", request(story_key="9-9"))
    assert (again.status, again.json["status"]) == (200, "cache-hit")
    entry_id = again.json["results"]["cache_entry_id"]

    listed = server.get("/v1/entries?framework=Vue&limit=1").json
    assert (listed["total"], [entry["id"] for entry in listed["entries"]]) == (1, [entry_id])
    assert server.get("/v1/entries?offset=1").json == {"entries": [], "total": 1}
    assert server.get(f"/v1/entries/{entry_id}").json["topic"] == "repeatable options"
    report = server.get(f"/v1/entries/{entry_id}/report")
    assert report.headers["content-type"].startswith("text/markdown")
    assert report.body.decode() == first.json["results"]["report"]
    found = server.get("/v1/search?q=repeatable").json["entries"]
    assert [entry["id"] for entry in found] == [entry_id]
    stats = server.get("/v1/stats").json
    assert (stats["requests"]["hits"], stats["spending"]["charged"]) == (1, 1)
    assert len(context7.calls()) == 2


def test_lessons_are_recorded_and_given(server: Server) -> None:
    recorded = server.post("/v1/lessons/record", RECORD)
    assert (recorded.status, recorded.json["status"]) == (200, "recorded")
    given = server.post("/v1/lessons/inject", INJECT)
    assert "Give rows a key" in given.json["results"]["injection_block"]
    skipped = server.post("/v1/lessons/record", b"no request")
    assert (skipped.status, skipped.json["status"]) == (200, "skipped")


def test_what_is_wrong_is_told(server: Server) -> None:
    # So long that it comes in parts.
    failed = server.post("/v1/research", {**request(), "story_key": "x", "more": "y" * 500_000})
    assert (failed.status, failed.json["status"]) == (422, "failure")
    assert [error["field"] for error in failed.json["errors"]] == ["story_key"]
    assert is_problem(server.get("/v1/entries/nothing"), 404, "nothing")
    assert is_problem(server.get("/v1/entries?limit=many"), 422, "limit")
    assert is_problem(server.get("/v1/search"), 422, "q")
    assert is_problem(server.get("/nowhere"), 404)
    assert is_problem(server.request("PATCH", "/v1/entries"), 405)
    assert server.request("PATCH", "/v1/entries").headers["allow"] == "GET"


def test_a_page_of_another_site_can_not_call_it(server: Server) -> None:
    host = "{}:{}".format(*server.address)
    # Its own name, which it lets point to 127.0.0.1 once the page is loaded.
    assert is_problem(server.get("/v1/stats", Host="evil.example"), 403, "Host")
    assert is_problem(server.get("/v1/stats", Host="evil.example:80@" + host), 403, "Host")
    for origin in ("http://evil.example", "null", "http://localhost:1", f"http://{host}.evil.example"):
        assert is_problem(server.post("/v1/research", request(), Origin=origin), 403, "Origin")
        assert is_problem(server.post("/mcp", {}, Origin=origin), 403, "Origin")
    assert server.get("/v1/stats", Origin=f"http://{host}").status == 200
    assert server.get("/v1/stats", Host="localhost").status == 200


def test_a_body_that_is_too_large_is_not_read_to_its_end(server: Server) -> None:
    assert is_problem(server.post("/v1/research", b" " * (2**20 + 1)), 413)
    with socket.create_connection(server.address, timeout=30) as endless:
        endless.sendall(
            b"POST /v1/research HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        sent = 0
        try:
            while sent < 64 * 2**20:
                endless.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                sent += 0x10000
        except OSError:  # it hung up
            pass
        assert sent < 32 * 2**20
    assert server.get("/healthz").status == 200


def test_prometheus_reads_the_counts(server: Server) -> None:
    told = server.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = told.body.decode().splitlines()
    assert any(line.startswith('kr_research_requests_total{result="hit"}') for line in lines)
    assert "kr_calls_charged_total 1.0" in lines
    assert 'kr_circuit_open{source="context7"} 0.0' in lines


def wait_until(condition: Any) -> None:
    deadline = threading.Event()
    for _ in range(400):
        if condition():
            return
        deadline.wait(0.05)
    raise AssertionError("it never came")


def test_an_address_that_others_reach_needs_a_token(project: Project) -> None:
    refused = project.run("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert b"KR_TOKEN" in refused.stderr
    assert project.run("serve", more={"KR_TOKEN": "short"}).returncode == 2


def test_the_token_opens_it_and_stands_in_no_log_and_sigterm_lets_what_is_under_way_end(
    project: Project,
) -> None:
    answers: list[Answer] = []
    outside = ("--host", "0.0.0.0", "--allow-host", "KR.internal")
    with context7_server(Scenario(delay=1.5)) as slow:
        project.use_context7(slow.url)
        with serving(project, *outside, KR_TOKEN=TOKEN) as server:
            server.url = server.url.replace("0.0.0.0", "127.0.0.1")
            the_token_opens(server)
            asked = request(topic="draining", tags=["drain"], question="How is a server drained?")
            given = {"Authorization": f"Bearer {TOKEN}"}
            asking = threading.Thread(
                target=lambda: answers.append(server.post("/v1/research", asked, **given))
            )
            asking.start()
            wait_until(slow.calls)
            server.process.send_signal(signal.SIGTERM)
            asking.join(timeout=60)
            assert (
                server.process.wait(timeout=60) == 0
            )  # a second signal might come when nobody handles it any more
    assert [answer.json["status"] for answer in answers] == ["success"]
    with pytest.raises(ConnectionRefusedError):
        server.get("/healthz")
    written = "".join(server.log)
    assert TOKEN not in written
    assert "secret-in-a-query" not in written
    assert "GET /v1/stats 401 in" in written
    assert "GET /v1/stats 200 in" in written


def the_token_opens(server: Server) -> None:
    """And nothing else does."""
    refused = server.get("/v1/stats?token=secret-in-a-query")
    assert is_problem(refused, 401)
    assert "Bearer" in refused.headers["www-authenticate"]
    assert server.get("/healthz").status == 200
    for given in (f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ", f"Digest {TOKEN}", "Bearer \xe9"):
        assert server.get("/v1/stats", Authorization=given).status == 401
    for given in (f"Bearer {TOKEN}", f"bearer {TOKEN}"):
        assert server.get("/v1/stats", Authorization=given, Host="kr.internal:8765").status == 200
    assert server.get("/mcp").status == 401
    described = server.get("/openapi.json", Authorization=f"Bearer {TOKEN}").json
    assert "bearer" in json.dumps(described).lower()
