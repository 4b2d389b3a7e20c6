import json
from datetime import timedelta
from pathlib import Path

import pytest

from kr.store import entries, lookup, saving
from kr.store.engine import Store
from tests.support.stores import NOW, draft, insert_entry, sql, together


def make(store: Store) -> Store:
    with store.write():
        return store


def test_rows_by_plain_sql_are_read(store: Store) -> None:
    make(store)
    insert_entry(store, "mine", framework="click", tags='["a", "b"]', sha256=None)
    insert_entry(store, "odd", tags="x, y", status="odd", confidence="sure", topic="strange wheel")
    sql(store, "UPDATE entries SET origin = 'researched' WHERE id = 'odd'")
    with store.read() as tx:
        mine, odd = entries.all(tx)
    assert (mine.framework, mine.tags, mine.origin) == ("click", ("a", "b"), "excerpt")
    assert (odd.tags, odd.status, odd.confidence, odd.origin) == ((), "stale", "low", "imported")


def test_the_order_of_accesses_is_exact_though_the_clock_jumps_back(store: Store) -> None:
    make(store)
    for name in "abcd":
        insert_entry(store, name, last_accessed="2026-10-01")
    moments = [NOW, NOW, NOW - timedelta(days=400), NOW - timedelta(days=1), NOW + timedelta(hours=1), NOW]
    order = ["a", "c", "b", "a", "d", "b"]
    for name, moment in zip(order, moments, strict=True):
        with store.write() as tx:
            accessed = lookup.touch(tx, name, moment)
            assert accessed is not None
            assert accessed >= "2026-10-01"
    evicted = sql(store, "SELECT id FROM next_evictions ORDER BY position")
    assert [row[0] for row in evicted] == ["c", "a", "d", "b"]


@pytest.mark.processes
def test_no_touch_of_parallel_processes_is_lost(store: Store, base: Path) -> None:
    saving.save(store, draft(), "# text\n", NOW)
    together("touch-on", base, [("click-repeatable-options", 20)] * 4)
    # With one clock for all, each touch adds its microsecond.
    assert sql(store, "SELECT last_accessed FROM entries") == [("2026-10-01T12:00:00.000080Z",)]


def test_a_mark_of_staleness_is_stored_once_and_forgotten_on_renewal(store: Store) -> None:
    saved = saving.save(store, draft(), "# text\n", NOW)
    with store.write() as tx:
        assert entries.mark_stale(tx, saved.entry.id, "another major version")
        assert not entries.mark_stale(tx, saved.entry.id, "again")
    assert sql(store, "SELECT status, stale_reason FROM entries") == [("stale", "another major version")]
    saving.save(store, draft(), "# new\n", NOW)
    assert sql(store, "SELECT status, stale_reason FROM entries") == [("fresh", None)]


def test_tags_are_stored_as_json_that_people_can_read(store: Store) -> None:
    saving.save(store, draft(tags=("虚拟滚动", "a")), "# text\n", NOW)
    [[tags]] = sql(store, "SELECT tags FROM entries")
    assert json.loads(tags) == ["虚拟滚动", "a"]
    assert "虚拟滚动" in tags
