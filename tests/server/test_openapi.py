"""The description of the interface against the interface: schemathesis makes requests of it and judges the answers."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import Project
from tests.support.servers import serving

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.mark.effort(100, 0)
def test_schemathesis_finds_no_fault(tmp_path: Path, effort: int) -> None:
    if not effort:
        pytest.skip("takes a minute; --all runs it")
    project = Project(tmp_path / "project")
    schemathesis = Path(sys.executable).with_name("st")
    with serving(project) as server:
        done = subprocess.run(
            [
                schemathesis,
                *("run", f"{server.url}/openapi.json", "--phases", "examples,coverage,fuzzing"),
                # The schemas are for readers: not all that they let through is taken.
                *("--exclude-checks", "positive_data_acceptance"),
                *("--max-examples", str(effort), "--max-time", "120", "--warnings", "off", "--seed", "1"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:]
