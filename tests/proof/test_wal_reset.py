"""SQLite's WAL-reset bug (``tests.proof.wal_reset``): it is there without kr's lock, and not with it."""

import subprocess
import sys

import pytest

from tests.support.stores import ROOT


@pytest.mark.processes
def test_no_commit_comes_into_a_checkpoint() -> None:
    command = [sys.executable, "-m", "tests.proof.wal_reset"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.stdout.startswith("skipped"):
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
