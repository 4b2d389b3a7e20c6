"""A fleet on one knowledge base: agents over MCP and HTTP at once, killed at any moment, and a crowd for a minute."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_servers import Scenario, StandIn, context7_server
from tests.support.program import Project, request
from tests.support.servers import Server, serving

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600), pytest.mark.usefixtures("database_url")]

AGENT = """
import asyncio, json, sys
from tests.support.program import Project
from tests.support.servers import Server, mcp_over_http, mcp_over_stdio

async def work(client, questions):
    for question in questions:
        result = await client.call_tool("research", question)
        print(json.dumps(result.structured_content), flush=True)

async def main():
    kind, url, questions = json.loads(sys.argv[1])
    connected = mcp_over_http(url) if kind == "http" else mcp_over_stdio(PROJECT)
    async with connected as client:
        await work(client, questions)

PROJECT = Project(__import__("pathlib").Path.cwd(), env=json.loads(sys.argv[2]))
asyncio.run(main())
"""
SUBJECTS = ("slots", "watchers", "routing guards", "transitions", "directives", "stores")
AGENTS = 8
BUDGET = 3


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server(Scenario(delay=0.3)) as stand_in:
        project.use_context7(stand_in.url)
        yield stand_in


def question(subject: str, agent: int) -> dict[str, Any]:
    """One subject is asked by all in the same words; who pays for it differs between pairs of agents."""
    return {
        "framework": "vue",
        "framework_version": "3.5",
        "topic": subject,
        "tags": [subject.split(maxsplit=1)[0]],
        "question": f"How do {subject} work?",
        "session_id": "sprint-1",
        "story_key": f"{agent // 2}-1",
        "if_unsure": "research",
    }


def start(
    project: Project, kind: str, url: str, questions: list[dict[str, Any]]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", AGENT, json.dumps([kind, url, questions]), json.dumps(project.env)],
        cwd=project.root,
        env=project.environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # an agent over stdio is killed together with its `kr mcp`
    )


def kill(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.effort(6, 0)
def test_eight_agents_with_kills_lose_nothing_and_never_overspend(
    project: Project, context7: StandIn, effort: int
) -> None:
    """Half over MCP stdio, half over HTTP."""
    if not effort:
        pytest.skip("starts two dozen processes; --all runs it")
    subjects, count, kills = SUBJECTS[:effort], AGENTS, 4
    chance = random.Random(12)
    answered: list[dict[str, Any]] = []
    with serving(project) as server:
        orders = [chance.sample(subjects, len(subjects)) for _ in range(count)]
        kinds = ["stdio" if agent % 2 else "http" for agent in range(count)]
        agents = [
            start(project, kind, server.url, [question(subject, agent) for subject in order])
            for agent, (kind, order) in enumerate(zip(kinds, orders, strict=True))
        ]
        for victim in chance.sample(range(count), kills):
            wait_for_call(context7)
            kill(agents[victim])
            agents[victim].wait()
            questions = [question(subject, victim) for subject in orders[victim]]
            agents.append(start(project, kinds[victim], server.url, questions))
        for agent in agents:
            out, err = agent.communicate(timeout=300)
            assert agent.returncode in {0, -signal.SIGKILL}, err.decode()
            answered += [json.loads(line) for line in out.splitlines()]
        assert server.get("/v1/stats").json["spending"]["charged"] <= len(subjects) + kills

    assert {answer["status"] for answer in answered} <= {"success", "cache-hit"}
    # Nothing lost: every subject has its entry, and its report as the database tells it.
    entries = project.sql("SELECT topic, path, status FROM entries ORDER BY topic")
    assert [topic for topic, _, _ in entries] == sorted(subjects)
    assert all((project.base / path).read_text(encoding="utf-8") for _, path, _ in entries)
    assert project.run("db", "check").returncode == 0
    # One research for identical questions, save those whose researcher was killed before it could tell.
    researched = Counter(call.arguments["query"] for call in context7.calls() if call.tool == "query-docs")
    assert len(researched) == len(subjects)
    assert researched.total() <= len(subjects) + kills
    overspent = project.sql(
        "SELECT r.story_key, sum(c.charged) AS spent FROM source_calls c JOIN requests r ON r.id = c.request_id "
        "GROUP BY r.session_id, r.story_key HAVING spent > ?",
        BUDGET,
    )
    assert overspent == []
    assert project.sql("SELECT count(*) FROM leases") == [(0,)]
    assert project.sql("SELECT count(*) FROM requests WHERE status = 'success'")[0][0] >= len(subjects)


def wait_for_call(context7: StandIn) -> None:
    seen = len(context7.calls())
    for _ in range(100):
        if len(context7.calls()) > seen:
            return
        time.sleep(0.05)


def memory(server: Server) -> int:
    """Resident bytes of a server."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) * 1024


MOST_LESSONS = 25
"""Of one client, each time that the crowd is let loose."""


@pytest.mark.effort(60, 1)
def test_sixty_four_clients_at_once(project: Project, context7: StandIn, effort: int) -> None:
    """For a minute with ``--all``: no error, no lost write, memory flat.

    The lessons are counted, not timed: a faster machine would write more of them, and the server remembers each.
    """
    assert context7.url in project.env["KR_SERVERS"]
    clients, wrong = 64, list[Any]()
    sent = Counter[str]()
    lock = threading.Lock()

    def work(number: int, server: Server, end: float) -> None:
        chance = random.Random(number)
        lessons_left = MOST_LESSONS
        while time.monotonic() < end:
            if lessons_left and chance.random() < 0.1:
                lessons_left -= 1
                body = lesson(number, sent["lesson"])
                answer = server.post("/v1/lessons/record", body)
                kind, is_good = "lesson", answer.status == 200 and answer.json["status"] == "recorded"
            else:
                answer = server.post("/v1/research", request(story_key=f"{number}-1"))
                is_good = answer.status == 200 and answer.json["status"] == "cache-hit"
                # A hit waits 200 ms for a writer at most, and says then that its row may be lost.
                kind = "hit" if is_good and answer.json["results"]["index_updated"] else "unwritten hit"
            with lock:
                sent[kind] += 1
                if not is_good:
                    wrong.append((answer.status, answer.body[:500]))

    with serving(project) as server:
        assert server.post("/v1/research", request()).json["status"] == "success"
        crowd(work, clients, server, seconds=min(3, effort))  # every thread and connection is made
        before = memory(server)
        crowd(work, clients, server, seconds=effort)
        after = memory(server)
    assert wrong == []
    [(rows,)] = project.sql("SELECT count(*) FROM requests WHERE status = 'cache-hit'")
    assert sent["hit"] <= rows <= sent["hit"] + sent["unwritten hit"]
    lines = (project.base / "lessons" / "_lessons-learned.md").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("- [") for line in lines) == sent["lesson"]
    assert after < before * 1.2, (before, after)


def crowd(work: Any, clients: int, server: Server, *, seconds: float) -> None:
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=work, args=(number, server, end)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def lesson(number: int, count: int) -> dict[str, Any]:
    """A failure that no other client had: words that no other lesson shares."""
    words = " ".join(f"{name}{number}x{count}" for name in ("Alpha", "beta", "gamma", "delta", "epsilon"))
    return {
        "session_id": f"s-{number}",
        "story_key": f"{number}-1",
        "phase": "dev-execution",
        "event_type": "general_agent_failure",
        "agent_return": {"status": "failure", "errors": [{"message": words, "suggestion": f"Use {words}"}]},
    }
