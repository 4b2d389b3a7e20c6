"""kill -9 at random moments of the deployment, each time gone on with (rule 9): what completed is never done again."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Project

SERVERS = ["a", "b", "c"]
COMMANDS = {
    "test_command": "echo begin run_tests >> log; sleep 0.1; echo end run_tests >> log",
    "build_command": "echo begin build >> log; sleep 0.1; echo end build >> log",
    "deploy_command": "echo begin $SERVER >> log; case $SERVER in a) sleep 0.1;; b) sleep 0.3;; *) sleep 0.5;; esac; "
    "echo end $SERVER >> log",
}
UNITS = ["run_tests", "build", *SERVERS]


@dataclass
class Deployment:
    """One project, in which a deployment is started again and again; ``done`` counts what completed units have done."""

    project: Project
    done: dict[str, int] = field(default_factory=dict)
    finished: list[dict[str, Any]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.project.root

    def state(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.folder / "workflow_state.json").read_text())
        except FileNotFoundError:
            return None
        return found

    def counts(self) -> Counter[str]:
        log = self.folder / "log"
        return Counter(log.read_text().splitlines() if log.exists() else ())

    def next_command(self) -> list[str]:
        """Say what a person would, who sees the state."""
        state = self.state()
        if state is None or state["status"] in {"completed", "failed"}:
            (self.folder / "log").unlink(missing_ok=True)
            self.done.clear()
            values = {"environment": "production", "servers": json.dumps(SERVERS), **COMMANDS}
            sets = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
            return ["workflow", "start", "deployment", *sets]
        if state["status"] == "waiting":
            return ["workflow", "approve", "approve_deployment", "--by", "Ada", "--note", "go"]
        return ["workflow", "run"]

    def turn(self, *, changes: int | None = None, delay: float = 0.0) -> bool:
        """Go on; True when it was killed, ``delay`` seconds after that many changes of the state file."""
        command = [sys.executable, "-m", "kr", *self.next_command()]
        left = -1 if changes is None else changes
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.project.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            seen = self.written()
            while left != 0 and process.poll() is None:
                left -= left > 0 and self.written() != seen
                seen = self.written()
                time.sleep(0.002)
            if left == 0:
                time.sleep(delay)
                process.send_signal(signal.SIGKILL)
            complaint = process.communicate(timeout=100)[1].decode()
        assert "Traceback" not in complaint
        assert process.returncode in {0, -signal.SIGKILL}, complaint
        self.check()
        return process.returncode < 0

    def written(self) -> bytes:
        path = self.folder / "workflow_state.json"
        return path.read_bytes() if path.exists() else b""

    def check(self) -> None:
        """What was completed once has done what it did once, and has not done it again."""
        state = self.state()
        if state is None or any(state["workflow_id"] == ended["workflow_id"] for ended in self.finished):
            return
        counts = self.counts()
        for unit, run in units(state).items():
            if run["status"] != "completed":
                continue
            ends = counts[f"end {unit}"]
            assert self.done.setdefault(unit, ends) == ends, f"{unit} was completed, and has been done again"
            assert 1 <= ends <= 1 + run["interruptions"]
            assert counts[f"begin {unit}"] <= 1 + run["interruptions"]
            if not run["interruptions"]:
                assert ends == counts[f"begin {unit}"] == 1
            else:
                assert run["details"].startswith("Interrupted")
        if state["status"] == "completed":
            self.finished.append(state)


def units(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give what runs a command of its own: steps and the sub-tasks of the deployment."""
    steps = {step["id"]: step for step in state["steps"]}
    tasks = {task["item"]: task for task in steps["deploy"]["sub_tasks"]}
    return {"run_tests": steps["run_tests"], "build": steps["build"], **tasks}


@pytest.mark.processes
@pytest.mark.effort(30, 1)
@pytest.mark.timeout(600)
def test_killed_at_any_moment_it_goes_on_and_repeats_nothing(tmp_path: Path, effort: int) -> None:
    chance = random.Random()
    deployment = Deployment(Project(tmp_path / "project"))
    kills = 0
    while kills < effort:
        kills += deployment.turn(changes=chance.randint(0, 4), delay=chance.uniform(0.0, 0.25))
    # Killed before the next deployment had begun, the state is still that of the one before, whose log is gone.
    while not (state := deployment.state()) or state["status"] != "completed" or not deployment.counts():
        deployment.turn()
    assert state["current_step"] is None
    assert {step["status"] for step in state["steps"]} == {"completed"}
    assert set(units(state)) == set(UNITS)
    counts = deployment.counts()
    assert all(counts[f"end {unit}"] >= 1 for unit in UNITS)
    done = deployment.project.run("workflow", "report")
    assert done.returncode == 0, done.stderr
    report = (deployment.folder / "deployment_report.md").read_text()
    for name in ("Run the tests", "Build the image", "Approve the deployment", "Deploy to the servers"):
        assert name in report
    assert "| Approved by Ada: go. |" in report
    assert report.count("✓ completed") == len(state["steps"]) + len(SERVERS)
    [row] = [
        row
        for row in json.loads(deployment.project.run("workflow", "list", "--format", "json").stdout)
        if row["workflow_id"] == state["workflow_id"]
    ]
    assert (row["status"], row["current_step"]) == ("completed", None)
