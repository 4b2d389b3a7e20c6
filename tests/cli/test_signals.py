"""A signal ends the program with the signal's status, whatever becomes of its exception."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
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


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_research_while_another_program_holds_the_database(
    project: Project, number: signal.Signals
) -> None:
    """The lease is given back by who waits for nobody: it expires by itself."""
    assert project.run("db", "upgrade").returncode == 0
    with closing(sqlite3.connect(project.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        process = subprocess.Popen(
            [sys.executable, "-m", "kr", "--verbose", "research", "vue", "What is a slot?"],
            cwd=project.root,
            env=project.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        while b"nothing is served" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(number)
        try:
            assert process.wait(timeout=20) == 128 + number
        finally:
            process.kill()
            process.communicate()
