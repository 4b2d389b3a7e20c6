"""A fleet on one knowledge base: a crowd over HTTP for a minute."""

import random
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


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server(Scenario(delay=0.3)) as stand_in:
        project.use_context7(stand_in.url)
        yield stand_in


MOST_LESSONS = 25
"""Of one client, each time that the crowd is let loose."""


@pytest.mark.effort(20, 1)
def test_sixty_four_clients_at_once(project: Project, context7: StandIn, effort: int) -> None:
    """For a minute with ``--all``: no error, no lost write.

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
        crowd(work, clients, server, seconds=3 * effort)
    assert wrong == []
    [(rows,)] = project.sql("SELECT count(*) FROM requests WHERE status = 'cache-hit'")
    assert sent["hit"] <= rows <= sent["hit"] + sent["unwritten hit"]
    lines = (project.base / "lessons" / "_lessons-learned.md").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("- [") for line in lines) == sent["lesson"]


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
