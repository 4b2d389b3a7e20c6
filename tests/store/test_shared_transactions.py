"""Short writes of many threads, such as the notes of hits, share transactions."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kr.errors import StoreBusy, StoreError
from kr.store import meta
from kr.store.engine import Store, Transaction
from kr.store.lock import file_lock
from kr.store.sqlite import lock_path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(None, tmp_path) as made:
        with made.write() as tx:
            meta.put(tx, "made", "yes")
        yield made


def kept(store: Store) -> set[str]:
    with store.read() as tx:
        return {row[0] for row in tx.rows("SELECT key FROM meta WHERE key LIKE 'by-%'")}


def test_every_thread_gets_its_own_result_and_a_failure_is_its_own(store: Store) -> None:
    results: dict[int, object] = {}
    together = threading.Barrier(24)

    def work(number: int) -> None:
        def action(tx: Transaction) -> int:
            meta.put(tx, f"by-{number}", "yes")
            if number % 4 == 1:
                raise ZeroDivisionError(number)
            if number % 4 == 2:
                tx.execute("INSERT INTO nowhere VALUES (1)")
            return number

        together.wait()
        try:
            results[number] = store.write_together(action, timeout=20)
        except (ZeroDivisionError, StoreError) as error:
            results[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    good = {number for number in range(24) if number % 4 in {0, 3}}
    assert {number for number, result in results.items() if result == number} == good
    assert all(isinstance(results[number], ZeroDivisionError) for number in range(1, 24, 4))
    assert all(isinstance(results[number], StoreError) for number in range(2, 24, 4))
    assert kept(store) == {f"by-{number}" for number in good}


def test_who_waited_too_long_has_written_nothing_then_or_later(store: Store) -> None:
    busy: list[float] = []

    def work(number: int) -> None:
        began = time.monotonic()
        with pytest.raises(StoreBusy):
            store.write_together(lambda tx: meta.put(tx, f"by-{number}", "yes"), timeout=0.2)
        busy.append(time.monotonic() - began)

    with file_lock(lock_path(store.path), timeout=5):
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert len(busy) == 6
    store.write_together(lambda tx: meta.put(tx, "by-last", "yes"), timeout=20)
    assert kept(store) == {"by-last"}


def test_an_interrupt_is_that_of_the_thread_that_writes_alone(store: Store) -> None:
    errors: list[BaseException] = []
    has_begun, is_there = threading.Event(), threading.Event()

    def interrupted(_: Transaction) -> None:
        has_begun.set()
        is_there.wait(20)
        raise KeyboardInterrupt

    def work(action: Callable[[Transaction], object]) -> None:
        try:
            store.write_together(action, timeout=20)
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)

    first = threading.Thread(target=work, args=(interrupted,))
    first.start()
    assert has_begun.wait(20)
    second = threading.Thread(target=work, args=(lambda tx: meta.put(tx, "by-second", "yes"),))
    second.start()
    time.sleep(0.2)
    is_there.set()
    for thread in (first, second):
        thread.join(60)
    assert [type(error) for error in errors] == [KeyboardInterrupt]
    assert kept(store) == {"by-second"}


def test_a_commit_that_fails_is_told_to_all_who_shared_it(store: Store) -> None:
    def action(tx: Transaction) -> None:
        meta.put(tx, "by-me", "yes")
        tx.connection.execute("ROLLBACK")

    with pytest.raises(StoreError):
        store.write_together(action, timeout=20)
    assert kept(store) == set()
    store.write_together(lambda tx: meta.put(tx, "by-last", "yes"), timeout=20)
    assert kept(store) == {"by-last"}
