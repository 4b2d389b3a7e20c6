"""A signal that strikes where Python loses exceptions still ends the program, with the signal's status."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.program import Project
from tests.support.stores import ROOT

LOST = """
import gc, os, signal, sys, threading, time, weakref
import kr.cli.main as main

class Thing: pass

def strike(_):
    # The signal arrives within a weak reference's callback: what its handler raises is lost there.
    signal.raise_signal(int(sys.argv[1]))

def work(arguments):
    thing = Thing()
    kept = weakref.ref(thing, strike)
    del thing
    gc.collect()
    time.sleep(20)
    return 0

main._run = work
sys.exit(main.main([]))
"""
WRAPPED = """
import signal, sys, time
import kr.cli.main as main

def work(arguments):
    try:
        signal.raise_signal(int(sys.argv[1]))
        time.sleep(20)
    except BaseException as error:
        raise ValueError(f"native code saw {error!r}")

main._run = work
sys.exit(main.main([]))
"""
IMPORTED = """
import pathlib, sys, tempfile, time
import kr.cli.main as main

SWALLOWS = "import signal, sys\\ntry:\\n    signal.raise_signal(int(sys.argv[1]))\\nexcept BaseException: pass"

def work(arguments):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "swallows.py").write_text(SWALLOWS)
        sys.path.insert(0, folder)
        import swallows
    time.sleep(20)
    return 0

main._run = work
sys.exit(main.main([]))
"""


@pytest.mark.parametrize("program", [LOST, WRAPPED, IMPORTED], ids=["lost", "wrapped", "imported"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_no_signal_is_lost(project: Project, program: str, number: int, status: int) -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program, str(int(number))],
        capture_output=True,
        env=project.environ(),
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, b"")
    assert time.monotonic() - began < 15


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
@pytest.mark.parametrize("delay", [0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 1.2])
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
