"""A sample of the crash sweep (``tests.proof.crashes``): commands that die, or whose disk fails, at some of their system calls."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stores import ROOT

_WALK = """
import json, os, sys
from pathlib import Path
from tests.support.tracer import CannotTrace, trace

folder = Path(sys.argv[1])

def child():
    (folder / "a").write_bytes(b"12345678")
    (folder / "a").rename(folder / "b")
    return 3

def ended(how, at):
    for path in folder.iterdir():
        path.unlink()
    found = trace(child, at=at, how=how, error=28)
    return [found.status, {path.name: path.read_text() for path in folder.iterdir()}]

try:
    points = trace(child).points
    print(json.dumps([points, [ended("kill", at) for at in range(len(points))], ended("tear", 1), ended("fail", 2)]))
except CannotTrace as error:
    print(json.dumps(str(error)))
"""


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    """Run Python: a program of its own, as a process with threads is not to be forked."""
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_child_ends_at_each_point_and_does_nothing_beyond_it(tmp_path: Path) -> None:
    done = run("-c", _WALK, str(tmp_path))
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    if isinstance(found, str):
        pytest.skip(found)
    points, killed, torn, failed = found
    assert points == ["openat", "write", "rename"]
    assert killed == [[-9, {}], [-9, {"a": ""}], [-9, {"a": "12345678"}]]
    assert torn == [-9, {"a": "1234"}]
    assert failed[1] == {"a": "12345678"}
    assert "No space left on device" in done.stderr


@pytest.mark.processes
@pytest.mark.timeout(7_200)
@pytest.mark.effort(60, 2)
def test_a_command_that_dies_at_a_system_call_breaks_no_promise(effort: int) -> None:
    done = run("-m", "tests.proof.crashes", f"--points={effort}")
    if done.stdout.startswith("skipped"):
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr[-4000:]
    assert len(done.stdout.splitlines()) == 2 + 13, done.stdout
