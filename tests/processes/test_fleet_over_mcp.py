"""Agents that ask and save over MCP at the same time lose nothing (rule 3.10, 11); ``scripts/bench_fleet.py`` with its figures."""

import json
import subprocess
import sys

import pytest

from tests.support.stores import ROOT

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.mark.effort(20, 2)
@pytest.mark.parametrize("way", [[], ["--http"]])
def test_nothing_that_was_acknowledged_is_lost(way: list[str], effort: int) -> None:
    clients = 8 if effort > 2 else 4
    done = subprocess.run(
        [
            *(sys.executable, "-m", "scripts.bench_fleet", *way),
            *("--clients", str(clients), "--seconds", str(effort), "--save-every", "4"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["lost"], told["errors"]) == (0, 0)
    assert told["saved"] > clients
    assert told["answers"]["cache-hit"] > 0
