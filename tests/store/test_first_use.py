from pathlib import Path

import pytest

from kr.store import entries as entry_rows
from kr.store import saving
from kr.store.engine import Store
from tests.support.stores import sql, together


@pytest.mark.processes
@pytest.mark.effort(32, 12)
def test_processes_that_all_come_first(tmp_path: Path, effort: int) -> None:
    """Creating a database is a race (facts: ``alembic upgrade`` at once failed in 13 of 15 trials)."""
    for number in range(effort // 12):
        come_first(tmp_path / str(number), effort)


def come_first(base: Path, processes: int) -> None:
    answers = together("first-use", base, [(number,) for number in range(processes)])
    assert answers == ["True"] * processes
    assert sql(base / "kr.db", "PRAGMA integrity_check") == [("ok",)]
    assert sql(base / "kr.db", "SELECT count(*) FROM alembic_version") == [(1,)]
    with Store(None, base) as store, store.read() as tx:
        entries = entry_rows.all(tx)
        assert len(entries) == processes
        assert len({entry.last_accessed for entry in entries}) == processes
        assert all(saving.read_report(store, entry) for entry in entries)
    assert not list(base.rglob(".kr-*"))
