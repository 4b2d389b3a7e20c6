"""Vectors of entries' needs: one for each model, gone with the entry."""

import pytest

from kr.matching.vectors import pack
from kr.store.store import Store
from kr.values import Entry
from tests.support.stores import NOW, draft, sql

ONE, OTHER = pack([1.0, 0.0]), pack([0.0, 1.0])


@pytest.fixture
def entry(store: Store) -> Entry:
    return store.save_report(draft(), "# text\n", NOW).entry


def test_each_model_has_its_own(store: Store, entry: Entry) -> None:
    with store.write() as unit:
        unit.vectors.put("small", {entry.id: ONE})
        unit.vectors.put("large", {entry.id: OTHER})
    with store.read() as unit:
        assert unit.vectors.of("small", [entry.id, "unknown"]) == {entry.id: ONE}
        assert unit.vectors.of("large", [entry.id]) == {entry.id: OTHER}
        assert unit.vectors.of("none", [entry.id]) == unit.vectors.of("small", []) == {}


def test_a_newer_one_takes_its_place(store: Store, entry: Entry) -> None:
    with store.write() as unit:
        unit.vectors.put("small", {entry.id: ONE})
        unit.vectors.put("small", {entry.id: OTHER})
        assert unit.vectors.of("small", [entry.id]) == {entry.id: OTHER}


def test_an_entry_that_is_gone_by_now_is_passed_over(store: Store, entry: Entry) -> None:
    with store.write() as unit:
        unit.vectors.put("small", {"gone": ONE, entry.id: ONE})
        assert unit.vectors.of("small", ["gone", entry.id]) == {entry.id: ONE}


def test_forgotten_for_every_model(store: Store, entry: Entry) -> None:
    with store.write() as unit:
        unit.vectors.put("small", {entry.id: ONE})
        unit.vectors.put("large", {entry.id: ONE})
        unit.vectors.forget([entry.id, "gone"])
        assert unit.vectors.of("small", [entry.id]) == unit.vectors.of("large", [entry.id]) == {}


def test_they_go_with_their_entry(store: Store, entry: Entry) -> None:
    with store.write() as unit:
        unit.vectors.put("small", {entry.id: ONE})
    with store.write() as unit:
        assert unit.archive.move(entry.id, "manual", NOW)
    assert sql(store.path, "SELECT count(*) FROM entry_vectors") == [(0,)]
