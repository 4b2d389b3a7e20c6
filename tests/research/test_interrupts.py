"""What a miss holds in the database is given back, wherever an interrupt strikes."""

from contextlib import suppress
from pathlib import Path

import pytest

from kr.research.chain import Chain, lease, lease_key
from kr.research.llm import Author
from kr.store import ledger
from tests.support.interrupts import Interrupter
from tests.support.program import Project
from tests.support.runs import run_of

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
MOST = 400
"""Calls of functions that reserving takes at most."""


def test_what_an_interrupted_call_reserved_is_given_back(tmp_path: Path) -> None:
    interrupted = 0
    with Project(tmp_path / "project").app() as app:
        for number in range(1, MOST):
            run = run_of(app)
            chain = Chain(run, Author(run))
            interrupter = Interrupter(number)
            with suppress(KeyboardInterrupt), interrupter.watching():
                chain.reserve()
            chain.give_back()
            with app.store.read() as tx:
                assert ledger.reserved(tx, "s-1", "3-1") == 0
            if interrupter.left > 0:
                break
            interrupted += 1
    assert 5 < interrupted < MOST - 1


def test_an_interrupt_leaves_no_lease(tmp_path: Path) -> None:
    interrupted = 0
    with Project(tmp_path / "project").app() as app:
        key = lease_key(run_of(app))
        for number in range(1, MOST):
            run = run_of(app)
            held = lease(run)
            interrupter = Interrupter(number)
            with suppress(KeyboardInterrupt), interrupter.watching():
                held.__enter__()
            is_held = interrupter.left > 0
            with app.store.read() as tx:
                assert (tx.value("SELECT owner FROM leases WHERE key = :key", key=key) is not None) is is_held
            if is_held:
                held.__exit__(None, None, None)
                break
            interrupted += 1
        with app.store.read() as tx:
            assert tx.value("SELECT owner FROM leases WHERE key = :key", key=key) is None
    assert 5 < interrupted < MOST - 1
