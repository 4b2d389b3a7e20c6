import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kr.errors import StoreBusy
from kr.store.files import file_lock
from tests.support.stores import ROOT

HOLD = """
import sys, time
from pathlib import Path
from kr.store.files import file_lock
with file_lock(Path(sys.argv[1]), timeout=10):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(path)]
    holder = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_threads_exclude_each_other(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            with file_lock(tmp_path / "db.lock", timeout=20):
                inside.append(number)
                most.append(len(inside))
                time.sleep(0)
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 160
    assert max(most) == 1


def test_a_lock_held_too_long_is_busy_and_a_killed_holder_frees_it(tmp_path: Path) -> None:
    path = tmp_path / "db.lock"
    holder = hold(path)
    try:
        started = time.monotonic()
        with pytest.raises(StoreBusy, match=r"db\.lock"), file_lock(path, timeout=0.3):
            pass
        assert 0.25 < time.monotonic() - started < 5
        os.kill(holder.pid, signal.SIGKILL)
        # The wait that was given up must not take the lock with it.
        for _ in range(3):
            with file_lock(path, timeout=5):
                pass
    finally:
        holder.kill()
        holder.communicate()


def test_who_waited_for_a_removed_file_locks_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "db.lock"
    holder = hold(path)
    waiting = threading.Event()
    locked: list[bool] = []

    def wait() -> None:
        waiting.set()
        with file_lock(path, timeout=10):
            locked.append(path.exists())

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    time.sleep(0.2)
    path.unlink()
    holder.kill()
    holder.communicate()
    thread.join()
    assert locked == [True]
