from datetime import timedelta
from pathlib import Path

import pytest

from kr.store import ledger, lookup
from kr.store.engine import Store
from tests.support.stores import NOW, start, together


def reserve(
    store: Store, limit: int | None = 3, *, owner: str = "me", later: float = 0.0
) -> tuple[str, str | None]:
    with store.write() as tx:
        return ledger.reserve(tx, "s", "1-1", limit=limit, owner=owner, now=NOW + timedelta(seconds=later))


@pytest.mark.processes
def test_writers_at_once_never_overspend(base: Path) -> None:
    limit = 10
    answers = together("spend", base, [(owner, limit) for owner in range(4)])
    with Store(None, base) as store, store.read() as tx:
        spent = lookup.spent(tx, "s", "1-1")
        assert ledger.reserved(tx, "s", "1-1") == 0
    # 4 x 6 turns, two thirds of which charge: more wishes than the budget has. Who is refused at the end may have been so for the
    # sake of three calls in flight that were not charged then.
    assert spent == sum(map(int, answers))
    assert limit - 3 <= spent <= limit


def test_a_killed_process_gives_its_call_back_by_expiry(store: Store, base: Path) -> None:
    process = start("reserve-and-die", base, 1)
    process.communicate(timeout=30)
    assert reserve(store, 1, later=1)[0] == "in_flight"
    assert reserve(store, 1, later=16)[0] == "granted"
