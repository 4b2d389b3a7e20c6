"""The one benchmark of ranking, on one of its files (rule 3.2): ``scripts/ranking`` tells all eight."""

import subprocess
import sys

from tests.support.stores import ROOT


def test_a_file_of_labelled_needs_is_ranked_as_well_as_is_promised() -> None:
    command = [sys.executable, "-m", "scripts.ranking", "--floors", "tests/data/ranking/sharing-1.yaml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "served wrong" in done.stdout
