"""A story's budget when an interrupt strikes while a call is being reserved."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pytest

from kr.freshness import to_text
from kr.research.budget import LedgerBudget, Payer
from kr.research.shelf import Shelf
from kr.store import ledger
from kr.store.engine import Store
from kr.store.requests import RequestRow
from tests.support.interrupts import Interrupter
from tests.support.stores import NOW


def clock() -> datetime:
    return NOW


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_an_interrupted_call_reserved_is_given_back(tmp_path: Path) -> None:
    interrupted = 0
    with Store(None, tmp_path / "knowledge-base") as store:
        for number in range(1, 300):
            row = RequestRow(id=f"r{number}", at=to_text(NOW), mode="research", status="failure")
            payer = Payer(request=row, session_id="s", story_key="1-1", owner=uuid4().hex)
            budget = LedgerBudget(Shelf(store), payer, per_story=3, max_calls=None, clock=clock)
            interrupter = Interrupter(number)
            with suppress(KeyboardInterrupt), interrupter.watching():
                budget.reserve(patience=0)
            budget.give_back()
            with store.read() as tx:
                assert ledger.reserved(tx, "s", "1-1") == 0
            if interrupter.left > 0:
                break
            interrupted += 1
    assert 5 < interrupted < 299
