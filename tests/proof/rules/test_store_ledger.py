"""What processes share: a story's budget, leases, how long a failing source is left alone, what was learned (SPEC 3.4, 3.5)."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kr.models import Learned
from kr.store import ledger, lookup
from kr.store.engine import Row, Store
from tests.support.stores import NOW, call, sql

SOME = settings(max_examples=20, suppress_health_check=list(HealthCheck))
OWNERS = st.sampled_from(["a", "b", "c"])
DEEDS = st.sampled_from(["reserve", "reserve", "reserve", "settle", "fail", "release", "renew"])
STEPS = st.lists(st.tuples(DEEDS, OWNERS, st.sampled_from([0, 0, 1, 7, 15])), max_size=14)
TURNS = st.tuples(st.sampled_from(["acquire", "acquire", "release"]), OWNERS, st.sampled_from([0, 4, 10]))


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


# --- a budget


@SOME
@given(STEPS, st.integers(0, 4) | st.none())
def test_a_story_is_charged_what_was_reserved_and_never_more_than_its_limit(
    store: Store, steps: list[tuple[str, str, int]], limit: int | None
) -> None:
    """A reservation lives for 15 seconds, unless its owner renews it, settles its call or gives it back."""
    with store.write() as tx:
        tx.execute("DELETE FROM reservations")
        tx.execute("DELETE FROM source_calls")
    held: dict[str, tuple[str, float]] = {}
    seconds, charged, is_late = 0.0, 0, False
    for what, owner, pause in steps:
        seconds += pause
        living = {it: (who, end) for it, (who, end) in held.items() if end > seconds}
        mine = [it for it, (who, _) in held.items() if who == owner]
        with store.write() as tx:
            if what == "reserve":
                held = living
                told, held_id = ledger.reserve(tx, "s", "1-1", limit=limit, owner=owner, now=later(seconds))
                free = limit is None or charged + len(held) < limit
                outcome = "granted" if free else "in_flight" if limit and charged < limit else "exhausted"
                assert (told, held_id is not None) == (outcome, free)
                if held_id is not None:
                    held[held_id] = (owner, seconds + 15)
            elif what in {"settle", "fail"} and mine:
                is_late |= mine[0] not in living
                ledger.record_call(tx, mine[0], call(charged=what == "settle"))
                charged += what == "settle"
                del held[mine[0]]
            elif what == "release":
                assert ledger.release_all(tx, owner) == len(mine)
                held = {it: row for it, row in held.items() if row[0] != owner}
            elif what == "renew":
                assert ledger.renew(tx, owner, now=later(seconds)) == len(mine)
                held |= dict.fromkeys(mine, (owner, seconds + 15))
            assert ledger.reserved(tx, "s", "1-1") == len(held)
            assert lookup.spent(tx, "s", "1-1") == charged
            assert lookup.spent(tx, "s", "1-2") == lookup.spent(tx, "t", "1-1") == 0
    assert limit is None or is_late or charged <= limit


def test_a_call_is_written_down_with_all_that_is_known_of_it(store: Store) -> None:
    told = call(duration_ms=12, url="https://a.example/", reason="r", charged=True, answer_tokens=7)
    with store.write() as tx:
        ledger.record_call(tx, None, told)
        ledger.record_call(tx, None, call(outcome="timeout"))
    columns = "source, outcome, charged, duration_ms, url, reason, answer_tokens, session_id, story_key, at"
    rows = sql(store, f"SELECT {columns} FROM source_calls ORDER BY outcome")
    at = "2026-10-01T12:00:00.000000Z"
    assert [(row[:2], bool(row[2]), row[3:]) for row in rows] == [
        (("context7", "success"), True, (12, "https://a.example/", "r", 7, "s", "1-1", at)),
        (("context7", "timeout"), False, (None, None, None, None, "s", "1-1", at)),
    ]


@SOME
@given(st.lists(TURNS, max_size=12))
def test_one_owner_at_a_time_has_a_lease_until_it_lets_go_or_its_time_is_over(
    store: Store, turns: list[tuple[str, str, int]]
) -> None:
    with store.write() as tx:
        tx.execute("DELETE FROM leases")
        assert ledger.acquire_lease(tx, "another question", "d", now=NOW, ttl=1000)
    who, end, seconds = "", 0.0, 0.0
    for what, owner, pause in turns:
        seconds += pause
        with store.write() as tx:
            if what == "release":
                assert ledger.release_lease(tx, "k", owner) == (who == owner)
                who = "" if who == owner else who
                continue
            is_won = not who or who == owner or end <= seconds
            assert ledger.acquire_lease(tx, "k", owner, now=later(seconds), ttl=10) == is_won
            if is_won:
                who, end = owner, seconds + 10


# --- a breaker


def fail(store: Store, at: datetime, failures: int = 1, **given: Any) -> Row:
    with store.write() as tx:
        ledger.record_failure(tx, "a", "no", now=at, failures=failures, pause_seconds=60, **given)
        [found] = ledger.circuits(tx)
    return found


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [(None, 60), (0.5, 60), (1.0, 1), (90.0, 90), (3600.0, 3600), (9000.0, 3600)]
)
def test_a_pause_is_what_the_source_asks_for_from_a_second_to_an_hour(
    store: Store, retry_after: float | None, seconds: int
) -> None:
    opened = fail(store, NOW, retry_after=retry_after)
    assert opened["open_until"] == f"{later(seconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def test_a_pause_doubles_with_each_opening_to_a_quarter_of_an_hour(store: Store) -> None:
    at, pauses = NOW, []
    for _ in range(40):
        opened = fail(store, at)
        assert opened["open_until"] is not None
        until = datetime.fromisoformat(opened["open_until"])
        pauses.append((until - at).total_seconds())
        at = until
    assert pauses == [60, 120, 240, 480, *[900] * 36]


@pytest.mark.parametrize("failures", [1, 3])
def test_so_many_failures_in_a_row_open_it_and_a_success_begins_anew(store: Store, failures: int) -> None:
    for _ in range(2):
        for number in range(1, failures + 1):
            found = fail(store, NOW, failures=failures)
            assert (found["failures"], found["opened_times"]) == (number, int(number == failures))
            assert found["last_error"] == "no"
        with store.write() as tx:
            assert ledger.circuit(tx, "b") is None
            ledger.record_success(tx, "a")
            assert ledger.circuits(tx) == []


def test_a_breaker_that_is_off_never_opens(store: Store) -> None:
    assert fail(store, NOW, failures=0, retry_after=60.0)["open_until"] is None


def test_what_was_learned_of_a_framework_is_kept_under_all_of_its_names(store: Store) -> None:
    with store.write() as tx:
        assert ledger.library(tx, "vue") is None
        ledger.learn_library(tx, "Vue.js", Learned(library_id="/vuejs/core", versions=("v3", "v2")), now=NOW)
        ledger.learn_library(tx, "vue", Learned(repository="vuejs/core"), now=later(1))
        ledger.learn_library(tx, "vue", Learned(), now=later(2))
        known = ledger.library(tx, "VUE")
        assert known is not None
        assert (known.library_id, known.versions, known.repository) == (
            "/vuejs/core",
            ("v3", "v2"),
            "vuejs/core",
        )
        assert known.learned_at == "2026-10-01T12:00:01.000000Z"
        assert ledger.library(tx, "react") is None
