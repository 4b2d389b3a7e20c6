"""Which owners of leases and reservations are dead."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kr.store import ledger
from kr.store.engine import Store
from kr.store.lock import is_alive, make_owner
from tests.support.stores import NOW

NAME_ITSELF = "from kr.store.lock import make_owner; print(make_owner(), flush=True); input()"


@contextmanager
def another_owner() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with subprocess.Popen(
        [sys.executable, "-c", NAME_ITSELF], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def test_a_living_process_is_alive() -> None:
    assert is_alive(make_owner()) is True
    with another_owner() as (owner, _):
        assert is_alive(owner) is True


def test_a_process_that_is_killed_is_dead_before_its_parent_has_looked() -> None:
    with another_owner() as (owner, process):
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_alive(owner) is False
        process.wait()
        assert is_alive(owner) is False


def test_another_process_of_the_same_number_is_not_the_owner() -> None:
    machine, pid, _, unique = make_owner().split("/")
    assert is_alive(f"{machine}/{pid}/1/{unique}") is False


def test_what_cannot_be_known_is_unknown() -> None:
    machine, pid, start, unique = make_owner().split("/")
    assert is_alive(f"elsewhere~1/{pid}/{start}/{unique}") is None
    assert is_alive(f"{machine}/x/{start}/{unique}") is None
    assert is_alive("me") is None


def test_what_a_killed_process_held_is_taken_over_at_once(store: Store) -> None:
    with another_owner() as (owner, process), store.write() as tx:
        ledger.record_failure(tx, "context7", "x", now=NOW, failures=1, pause_seconds=0)
        assert ledger.acquire_lease(tx, "k", owner, now=NOW, ttl=600)
        assert ledger.admit(tx, "context7", owner, now=NOW, probe_seconds=600)
        assert ledger.reserve(tx, "s", "1-1", limit=1, owner=owner, now=NOW, ttl=600).outcome == "granted"

        me = make_owner()
        assert not ledger.acquire_lease(tx, "k", me, now=NOW, ttl=600)
        assert not ledger.admit(tx, "context7", me, now=NOW, probe_seconds=600)
        assert ledger.reserve(tx, "s", "1-1", limit=1, owner=me, now=NOW).outcome == "in_flight"

        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its parent has not looked yet
        assert ledger.acquire_lease(tx, "k", me, now=NOW, ttl=600)
        assert ledger.admit(tx, "context7", me, now=NOW, probe_seconds=600)
        assert ledger.reserve(tx, "s", "1-1", limit=1, owner=me, now=NOW).outcome == "granted"
