"""A machine that is not well (``tests.proof.faults``), and what goes wrong while kr has the knowledge base open."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.proof.faults import modes
from tests.support.program import Project, request
from tests.support.stores import ROOT, sql


@pytest.mark.processes
@pytest.mark.timeout(600)
def test_each_fault_ends_as_promised() -> None:
    command = [sys.executable, "-m", "tests.proof.faults"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]


FINDING = {"framework": "vue", "question": "How do slots work?", "answer": "Mark-first.", "session_id": "a"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    with project.app() as app:
        assert app.save_finding(FINDING).status == "saved"
    return project


def ask(project: Project) -> dict[str, Any]:
    return project.research(request(topic="slots work", framework_version="unknown"))


@pytest.mark.parametrize("days", [365, -365])
def test_a_clock_that_jumps_a_year_loses_nothing(project: Project, days: int) -> None:
    """A year on, what nobody used for so long is archived by the next write, and comes back; a year back, nothing happens."""
    [(before,)] = sql(project.database, "SELECT last_accessed FROM entries")
    project.clock.pass_days(days)
    assert ask(project)["status"] == ("degraded" if days > 0 else "cache-hit")
    with project.app() as app:
        saved = app.save_finding(FINDING | {"question": "How do guards work?", "answer": "Mark-second."})
        assert saved.status == "saved"
        assert app.doctor()["problems"] == 0
    newest = "SELECT max(last_accessed), id FROM entries WHERE origin = 'finding'"
    assert sql(project.database, newest)[0][1] == "vue-guards-work"
    assert sql(project.database, newest)[0][0] > before
    project.clock.pass_days(-days)
    if days > 0:
        assert project.run("archive", "restore", "vue-slots-work").returncode == 0
    assert ask(project)["status"] == "cache-hit"
    assert "Mark-first." in str(sql(project.database, "SELECT text FROM reports"))


_SERVE = """
import json, sys
from pathlib import Path
from kr.models import to_plain
from tests.proof.faults import obeying
from tests.support.program import Project, request

project = Project(Path(sys.argv[1]))
obeying()
with project.app() as app:
    for line in sys.stdin:
        try:
            asked = request(topic="slots work", framework_version="unknown")
            found = to_plain(app.research.document(json.dumps(asked).encode()))
            told = [found["status"], found["results"]["index_updated"]]
            saved = app.save_finding(dict(json.loads(line), session_id="a"))
            told.append(saved.status)
        except Exception as error:
            told.append(type(error).__name__)
        print(json.dumps(told), flush=True)
"""


@pytest.mark.processes
def test_a_permission_that_is_lost_and_given_back_while_kr_runs(project: Project) -> None:
    """What is open goes on being read; what is acknowledged is there; afterwards everything is as before."""
    command, pipe = [sys.executable, "-c", _SERVE, str(project.root)], subprocess.PIPE
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environ) as process:

        def serve(mark: str) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            finding = {"framework": "vue", "question": f"What is {mark}?", "answer": f"{mark}."}
            process.stdin.write(f"{json.dumps(finding)}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        assert serve("one") == '["cache-hit", true, "saved"]'
        with contextmanager(modes)(project, 0, 0):
            lost = serve("two")
        assert serve("three") == '["cache-hit", true, "saved"]'
        process.communicate()
    assert lost == '["degraded", false, "StoreUnwritable"]'
    kept = str(sql(project.database, "SELECT text FROM reports"))
    assert [mark in kept for mark in ("one.", "two.", "three.")] == [True, False, True]
