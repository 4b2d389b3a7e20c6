"""Many processes at once: one research for one question, and no story above its budget."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kr.store.lookup import UNDER_WAY
from tests.support.forked import shared
from tests.support.mcp_servers import Scenario, StandIn, context7_server
from tests.support.program import Project, request

PROCESSES = 16
OF_ITS_OWN = (sys.executable, "-m", "kr")

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def slow_context7(project: Project) -> Iterator[StandIn]:
    with context7_server(Scenario(delay=1.0)) as server:
        project.use_context7(server.url)
        yield server


def start(project: Project, document: dict[str, Any], *program: str) -> "subprocess.Popen[bytes]":
    """Start a research; one that gets a signal is of a ``program`` of its own, not of one that forks."""
    path = project.root / f"request-{time.monotonic_ns()}.json"
    path.write_text(json.dumps(document))
    return subprocess.Popen(
        [*(program or [shared()]), "research", "--request", str(path), "--format", "json"],
        cwd=project.root,
        env=project.environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def answers(processes: Sequence["subprocess.Popen[bytes]"]) -> list[dict[str, Any]]:
    gathered = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert b"Traceback" not in err, err.decode()
        gathered.append(json.loads(out))
    return gathered


def about(subject: str) -> dict[str, Any]:
    return request(topic=subject, tags=subject.split(), question=f"What is {subject}?")


def docs_calls(server: StandIn) -> int:
    return sum(call.tool == "query-docs" for call in server.calls())


def test_identical_questions_make_one_research(project: Project, slow_context7: StandIn) -> None:
    processes = [start(project, request(story_key=f"{number}-1")) for number in range(PROCESSES)]
    statuses = Counter(answer["status"] for answer in answers(processes))
    assert statuses == {"success": 1, "cache-hit": PROCESSES - 1}
    assert docs_calls(slow_context7) == 1
    assert project.sql("SELECT sum(charged) FROM source_calls") == [(1,)]


def test_identical_questions_share_a_degraded_answer_too(project: Project) -> None:
    with context7_server(
        Scenario(delay=5.0, docs=["Rate limit exceeded. Please try again later."])
    ) as server:
        project.use_context7(server.url)
        gathered = answers([start(project, request(story_key=f"{number}-1")) for number in range(8)])
        # A process that starts after the first research has ended makes a new one: that is no herd.
        assert docs_calls(server) <= 3
    assert {answer["status"] for answer in gathered} == {"degraded"}


def test_a_waiter_takes_over_from_a_killed_researcher(project: Project, slow_context7: StandIn) -> None:
    first = start(project, request(), *OF_ITS_OWN)
    give_up = time.monotonic() + 30
    while not slow_context7.calls() and time.monotonic() < give_up:
        time.sleep(0.02)
    first.send_signal(signal.SIGSTOP)  # or it ends before the others wait, where the machine is slow
    others = [start(project, request(story_key=f"{number}-2")) for number in range(4)]
    first.kill()
    first.communicate()
    killed = time.monotonic()
    statuses = Counter(answer["status"] for answer in answers(others))
    assert statuses == {"success": 1, "cache-hit": 3}
    assert time.monotonic() - killed < 25
    assert project.sql("SELECT sum(charged) FROM source_calls") == [(1,)]
    assert project.sql("SELECT status, error FROM requests WHERE story_key = '3-1'") == [
        ("failure", UNDER_WAY)
    ]


def test_parallel_questions_of_one_story_never_overspend(project: Project, slow_context7: StandIn) -> None:
    processes = [start(project, about(f"subject{number} matter{number}")) for number in range(PROCESSES)]
    gathered = answers(processes)
    assert Counter(answer["status"] for answer in gathered) == {
        "success": 3,
        "budget-exhausted": PROCESSES - 3,
    }
    assert project.sql("SELECT sum(charged) FROM source_calls") == [(3,)]
    assert docs_calls(slow_context7) == 3
    assert project.sql("SELECT count(*) FROM reservations") == [(0,)]
    assert min(answer["results"]["budget_remaining"] for answer in gathered) == 0


def test_a_call_that_a_killed_process_held_is_not_lost_to_the_story(
    project: Project, slow_context7: StandIn
) -> None:
    doomed = start(project, about("doomed"), *OF_ITS_OWN)
    give_up = time.monotonic() + 30
    while not slow_context7.calls() and time.monotonic() < give_up:
        time.sleep(0.02)
    doomed.kill()
    doomed.communicate()
    processes = [start(project, about(f"subject{number} matter{number}")) for number in range(5)]
    statuses = Counter(answer["status"] for answer in answers(processes))
    assert statuses == {"success": 3, "budget-exhausted": 2}
    assert project.sql("SELECT sum(charged) FROM source_calls") == [(3,)]


def test_first_use_by_many_processes_at_once(project: Project) -> None:
    """Creating a database is a race (facts: ``alembic upgrade`` at once failed in 13 of 15 trials)."""
    processes = [start(project, request(framework=f"framework{number}")) for number in range(PROCESSES)]
    gathered = answers(processes)
    assert all(answer["results"]["index_updated"] for answer in gathered)
    assert project.sql("SELECT count(*) FROM entries") == [(PROCESSES,)]
    assert (project.base / "index.yaml").read_text().count("\n- id: ") == PROCESSES
