from datetime import datetime, timedelta

from kr.models import Learned
from kr.store import ledger
from kr.store.engine import Store
from kr.store.ledger import Circuit
from kr.store.lookup import RequestRow
from tests.support.stores import NOW


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_one_owner_holds_a_lease_until_it_lets_go_or_expires(store: Store) -> None:
    with store.write() as tx:
        assert ledger.acquire_lease(tx, "k", "a", now=NOW, ttl=10)
        assert ledger.acquire_lease(tx, "k", "a", now=NOW, ttl=10)
        assert not ledger.acquire_lease(tx, "k", "b", now=later(9), ttl=10)
        assert ledger.acquire_lease(tx, "other", "b", now=NOW, ttl=10)
        assert ledger.acquire_lease(tx, "k", "a", now=later(9), ttl=10)
        assert ledger.acquire_lease(tx, "k", "b", now=later(19), ttl=10)
        assert not ledger.acquire_lease(tx, "k", "a", now=later(19), ttl=10)
        assert not ledger.release_lease(tx, "k", "a")
        assert ledger.release_lease(tx, "k", "b")
        assert ledger.acquire_lease(tx, "k", "a", now=later(19), ttl=10)


def fail(store: Store, seconds: float, **changes: float) -> Circuit:
    with store.write() as tx:
        return ledger.record_failure(
            tx,
            "context7",
            "refused",
            now=later(seconds),
            failures=int(changes.get("failures", 3)),
            pause_seconds=60,
            retry_after=changes.get("retry_after"),
        )


def admits(store: Store, seconds: float) -> bool:
    with store.write() as tx:
        return ledger.admit(tx, "context7", now=later(seconds), probe_seconds=30)


def test_a_breaker_opens_after_failures_in_a_row_and_doubles(store: Store) -> None:
    assert fail(store, 0).open_until is None
    with store.write() as tx:
        ledger.record_success(tx, "context7")
    for _ in range(2):
        fail(store, 0)
        assert admits(store, 0)
    assert fail(store, 0).opened_times == 1
    assert not admits(store, 59.9)
    # A failure that was under way doesn't count as another opening.
    assert fail(store, 1).opened_times == 1
    assert admits(store, 60)
    assert fail(store, 60).opened_times == 2
    assert not admits(store, 60 + 119)
    assert admits(store, 60 + 120)


def test_a_pause_that_is_asked_for_while_it_is_open_is_no_further_opening(store: Store) -> None:
    for _ in range(3):
        fail(store, 0)
    assert fail(store, 1, retry_after=90).opened_times == 1
    assert not admits(store, 90.9)
    assert admits(store, 91)
    assert fail(store, 91).opened_times == 2
    assert not admits(store, 91 + 119)
    assert admits(store, 91 + 120)


def test_one_process_probes_a_half_open_breaker(store: Store) -> None:
    for _ in range(3):
        fail(store, 0)
    assert admits(store, 60)
    assert not admits(store, 61)
    assert admits(store, 92)
    with store.write() as tx:
        ledger.record_success(tx, "context7")
        assert ledger.circuit(tx, "context7") == Circuit(source="context7")
    assert admits(store, 61)


def test_a_source_that_names_its_pause_gets_it(store: Store) -> None:
    assert fail(store, 0, retry_after=7200).open_until == "2026-10-01T13:00:00.000000Z"
    assert not admits(store, 3599)
    assert admits(store, 3600)


def test_a_breaker_may_be_off(store: Store) -> None:
    for _ in range(9):
        assert fail(store, 0, failures=0, retry_after=60).open_until is None
    assert admits(store, 0)


def test_what_was_learned_about_a_framework_is_remembered(store: Store) -> None:
    with store.write() as tx:
        assert ledger.library(tx, "Click") is None
        ledger.learn_library(tx, "Click", Learned(), now=NOW)
        assert ledger.library(tx, "Click") is None
        ledger.learn_library(tx, "Click", Learned(library_id="/pallets/click"), now=NOW)
        ledger.learn_library(tx, " click ", Learned(repository="pallets/click"), now=NOW)
        known = ledger.library(tx, "CLICK")
    assert known is not None
    assert (known.library_id, known.repository) == ("/pallets/click", "pallets/click")


def request(number: int, **changes: str | int | None) -> RequestRow:
    values: dict[str, str | int | None] = {"framework": "Click", "status": "success", "story_key": "1-1"}
    return RequestRow(
        id=f"r{number}",
        at="2026-10-01T12:00:00.000000Z",
        mode="research",
        **(values | changes),  # type: ignore[arg-type]
    )


def test_small_facts_are_kept(store: Store) -> None:
    with store.write() as tx:
        assert tx.fact("index.yaml") is None
        tx.note("index.yaml", "one")
        tx.note("index.yaml", "two")
        assert tx.fact("index.yaml") == "two"
