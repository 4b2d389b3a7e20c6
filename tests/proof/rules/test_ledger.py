"""How long a source that fails is left alone."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from kr.store import ledger
from kr.store.engine import Store
from tests.support.stores import NOW


def fail(store: Store, at: datetime, **given: Any) -> ledger.Circuit:
    with store.write() as tx:
        return ledger.record_failure(
            tx, "a", "no", now=at, failures=given.pop("failures", 1), pause_seconds=60, **given
        )


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [(None, 60), (0.5, 60), (1.0, 1), (90.0, 90), (3600.0, 3600), (9000.0, 3600)]
)
def test_a_pause_is_what_the_source_asks_for_from_a_second_to_an_hour(
    store: Store, retry_after: float | None, seconds: int
) -> None:
    opened = fail(store, NOW, retry_after=retry_after)
    assert opened.open_until == f"{NOW + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def test_a_pause_doubles_with_each_opening_to_a_quarter_of_an_hour(store: Store) -> None:
    at, pauses = NOW, []
    for _ in range(40):
        opened = fail(store, at)
        assert opened.open_until is not None
        until = datetime.fromisoformat(opened.open_until)
        pauses.append((until - at).total_seconds())
        at = until
    assert pauses == [60, 120, 240, 480, *[900] * 36]
