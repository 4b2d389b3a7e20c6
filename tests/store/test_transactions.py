"""What a transaction is, on both databases."""

import pytest

from kr.errors import StoreUnwritable
from kr.store import entries, saving
from kr.store.engine import Store, Transaction
from tests.support.stores import NOW, draft


def test_a_read_cannot_write(store: Store) -> None:
    with store.write() as tx:
        tx.note("key", "value")
    with pytest.raises(StoreUnwritable), store.read() as tx:
        tx.note("key", "value")


def put_and_fail(tx: Transaction) -> None:
    tx.note("key", "value")
    raise ZeroDivisionError


def test_a_write_that_fails_leaves_nothing_and_can_be_repeated(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.write() as tx:
        put_and_fail(tx)
    with store.read() as tx:
        assert tx.fact("key") is None
    with store.read() as tx:
        assert entries.count(tx) == 0


def test_a_snapshot_does_not_see_what_is_written_meanwhile(store: Store) -> None:
    with store.read() as tx:
        assert entries.count(tx) == 0
    with store.read() as tx:
        assert entries.count(tx) == 0
        saving.save(store, draft(), "# text\n", NOW)
        assert entries.count(tx) == 0
    with store.read() as tx:
        assert entries.count(tx) == 1
