"""What the suite itself promises to the tests in it."""

import subprocess
import sys

from tests.support.stores import ROOT

IGNORING = """
import signal, subprocess, sys
from tests.support.signals import default_in_children

numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM]
for number in numbers:
    signal.signal(number, signal.SIG_IGN)
child = [sys.executable, "-S", "-c", "import os, signal, sys; os.kill(os.getpid(), int(sys.argv[1])); print('lives')"]
with default_in_children():
    for number in numbers:
        print(subprocess.run([*child, str(int(number))], stderr=subprocess.DEVNULL).returncode)
        signal.raise_signal(number)
print([signal.getsignal(number).name for number in numbers])
"""


def test_children_obey_the_signals_that_the_suite_was_started_to_ignore() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IGNORING], cwd=ROOT, capture_output=True, text=True, check=True
    )
    # Python makes of SIGINT an exception that ends it by the same signal.
    assert done.stdout.splitlines() == ["-1", "-2", "-3", "-15", str(["SIG_IGN"] * 4)]
