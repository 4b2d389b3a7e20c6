from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr import times

MIDNIGHT = datetime(2026, 10, 1, tzinfo=UTC)
moments = st.timedeltas(timedelta(days=-9000), timedelta(days=9000)).map(lambda distance: MIDNIGHT + distance)


@given(moments, moments)
def test_an_access_is_later_than_those_before_and_sorts_so(now: datetime, before: datetime) -> None:
    accessed = times.after(now, times.to_text(before))
    assert accessed > times.to_text(before)
    assert times.from_text(accessed) >= now


def test_what_is_no_time_does_not_stop_an_access() -> None:
    assert {times.after(MIDNIGHT, newest) for newest in ("yesterday", "")} == {times.to_text(MIDNIGHT)}


@pytest.mark.parametrize(
    "text", ["2026-10-01", "2026-10-01T00:00:00Z", "2026-10-01 00:00:00", " 2026-10-01T02:00:00+02:00 "]
)
def test_times_that_people_write_are_read(text: str) -> None:
    assert times.from_text(text) == MIDNIGHT
