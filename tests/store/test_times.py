from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr import times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# All of time but its ends, where a zone or a microsecond more would leave it.
moments = st.timedeltas(
    min_value=datetime(1, 1, 2, tzinfo=UTC) - EPOCH, max_value=datetime(9999, 12, 30, tzinfo=UTC) - EPOCH
).map(lambda distance: EPOCH + distance)


@given(moments, moments)
def test_text_order_is_time_order(one: datetime, other: datetime) -> None:
    assert (times.to_text(one) < times.to_text(other)) == (one < other)


@given(moments, moments)
def test_an_access_is_later_than_those_before(now: datetime, before: datetime) -> None:
    accessed = times.after(now, times.to_text(before))
    assert accessed > times.to_text(before)
    assert times.from_text(accessed) >= now


def test_what_is_no_time_does_not_stop_an_access() -> None:
    now = datetime(2026, 10, 1, tzinfo=UTC)
    assert {times.after(now, newest) for newest in ("yesterday", "")} == {times.to_text(now)}


@pytest.mark.parametrize(
    "text", ["2026-10-01", "2026-10-01T00:00:00Z", "2026-10-01 00:00:00", " 2026-10-01T02:00:00+02:00 "]
)
def test_times_that_people_write_are_read(text: str) -> None:
    assert times.from_text(text) == datetime(2026, 10, 1, tzinfo=UTC)


def test_a_bare_date_sorts_at_the_start_of_its_day() -> None:
    midnight = datetime(2026, 10, 1, tzinfo=UTC)
    assert times.to_text(midnight - timedelta(microseconds=1)) < "2026-10-01" < times.to_text(midnight)
