"""A signal ends the program with the signal's status, whatever becomes of its exception."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.program import Project
from tests.support.stores import ROOT


def test_an_interrupt_before_the_handlers_are_there_just_ends_it(project: Project, tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import signal; signal.raise_signal(signal.SIGINT)")
    done = subprocess.run(
        [sys.executable, "-m", "kr", "--version"],
        capture_output=True,
        env=project.environ() | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.processes
@pytest.mark.parametrize("delay", [0.05, 0.3, 0.7, 1.2])
def test_a_signal_at_any_moment_ends_without_a_traceback(project: Project, delay: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kr", "research", "vue", "What is a slot?"],
        cwd=project.root,
        env=project.environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(delay)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    # Before its handler is in place, and after the work is done, the kernel's own ending is fine.
    assert process.returncode in {143, -signal.SIGTERM, 0}
    assert b"Traceback" not in errors
    assert b"bug in kr" not in errors
