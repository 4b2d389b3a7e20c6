from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.models import Entry, EntryStatus, Origin
from kr.research.decide import judge
from kr.settings.model import KnowledgeResearch
from kr.times import major, parse_time, same_major

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
ENTRY = Entry(
    id="vue-scroll",
    framework="vue",
    framework_version="2.x",
    topic="scroll",
    tags=("scroll",),
    path="frameworks/vue/scroll.md",
    created="2026-03-15",
    last_accessed="2026-03-15T11:00:00.000000Z",
    status="fresh",
    confidence="high",
)
LIMITS = KnowledgeResearch()


def _ago(days: int) -> str:
    return (NOW - timedelta(days=days)).date().isoformat()


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (0, "fresh"),
        (30, "fresh"),
        (31, "stale"),
        (60, "stale"),
        (61, "archived"),
        (5000, "archived"),
        (-400, "fresh"),
    ],
)
@pytest.mark.parametrize(
    "suffix", ["", "T00:00:00.000000Z", "T23:59:59.999999Z", " 08:00:00+00:00", "T10:00"]
)
def test_age_is_whole_utc_days_and_limits_are_more_than(days: int, suffix: str, expected: str) -> None:
    entry = replace(ENTRY, last_accessed=_ago(days) + suffix)
    for hour in (
        timedelta(hours=-12),
        timedelta(),
        timedelta(hours=11, minutes=59, seconds=59, microseconds=999999),
    ):
        assert judge(entry, "2.x", LIMITS, NOW + hour).status == expected


def test_the_border_is_utc_midnight_whatever_zone_now_is_in() -> None:
    entry = replace(ENTRY, last_accessed="2026-01-31T23:59:59.999999Z")
    last = datetime(2026, 3, 2, 23, 59, 59, 999999, tzinfo=UTC)
    assert judge(entry, "2", LIMITS, last).status == "fresh"
    assert judge(entry, "2", LIMITS, last + timedelta(microseconds=1)).status == "stale"
    shanghai = timezone(timedelta(hours=8))
    assert judge(entry, "2", LIMITS, last.astimezone(shanghai)).status == "fresh"
    assert (
        judge(replace(entry, last_accessed="2026-02-01T07:59:59+08:00"), "2", LIMITS, last).status == "fresh"
    )
    assert (
        judge(replace(entry, last_accessed="2026-01-31T07:59:59+08:00"), "2", LIMITS, last).status == "stale"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.x", 2),
        ("^2.7", 2),
        ("v2", 2),
        (">=2,<3", 2),
        ("~> 2.1", 2),
        ("02", 2),
        ("２.1", 2),
        ("2.10", 2),
        ("0.28", 0),
        ("latest", None),
        ("unknown", None),
        ("", None),
        ("*", None),
    ],
)
def test_major(text: str, expected: int | None) -> None:
    assert major(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2.x", "^2.7", True),
        ("v2", ">=2,<3", True),
        ("2.x", "3", False),
        ("latest", "latest", True),
        ("latest", " Latest ", True),
        ("latest", "next", False),
        ("latest", "3.4", False),
        ("unknown", "3", True),
        ("unknown", "latest", True),
        ("Unknown", "unknown", True),
    ],
)
def test_same_major(one: str, other: str, same: bool) -> None:
    assert same_major(one, other) is same
    assert same_major(other, one) is same
    expected = "fresh" if same else "stale"
    assert judge(replace(ENTRY, framework_version=one), other, LIMITS, NOW).status == expected


def test_max_age_counts_from_the_research_however_often_it_is_read() -> None:
    limits = KnowledgeResearch(max_age_days=90)
    old = replace(ENTRY, created=_ago(400), researched_at=_ago(91))
    assert judge(old, "2", LIMITS, NOW).status == "fresh"
    assert judge(old, "2", limits, NOW).status == "stale"
    assert judge(replace(old, researched_at=_ago(90)), "2", limits, NOW).status == "fresh"
    assert judge(replace(old, researched_at=None), "2", limits, NOW).status == "stale"
    assert judge(replace(old, researched_at=None, created=_ago(90)), "2", limits, NOW).status == "fresh"


def test_fresh_until_is_a_hard_end() -> None:
    entry = replace(ENTRY, origin="excerpt", fresh_until="2026-03-15T12:00:00.000000Z")
    assert judge(entry, "2", LIMITS, NOW - timedelta(microseconds=1)).status == "fresh"
    assert judge(entry, "2", LIMITS, NOW).status == "stale"


@pytest.mark.parametrize(
    "bad", ["", "yesterday", "2026-13-01", "0001-01-01T00:00:00+14:00", "2026-02-30", "\x00"]
)
def test_a_date_that_cannot_be_read_is_stale_not_a_crash(bad: str) -> None:
    assert parse_time(bad) is None
    for entry in (
        replace(ENTRY, last_accessed=bad),
        replace(ENTRY, researched_at="x"),
        replace(ENTRY, fresh_until=bad),
    ):
        verdict = judge(entry, "2", KnowledgeResearch(max_age_days=90), NOW)
        assert verdict.status == "stale"
        assert verdict.reasons


_ENTRIES = st.builds(
    lambda accessed, created, status, origin, version: replace(
        ENTRY,
        last_accessed=accessed,
        created=created,
        status=status,
        origin=origin,
        framework_version=version,
    ),
    accessed=st.text(max_size=12) | st.dates().map(str) | st.datetimes().map(str),
    created=st.dates().map(str),
    status=st.sampled_from(get_args(EntryStatus)),
    origin=st.sampled_from(get_args(Origin)),
    version=st.text(max_size=8),
)


@given(_ENTRIES, st.text(max_size=8), st.integers(0, 4000))
def test_waiting_never_makes_an_entry_fresher(entry: Entry, version: str, days: int) -> None:
    order = ["fresh", "stale", "archived"]
    now = judge(entry, version, KnowledgeResearch(max_age_days=100), NOW)
    later = judge(entry, version, KnowledgeResearch(max_age_days=100), NOW + timedelta(days=days))
    assert order.index(now.status) <= order.index(later.status)
    assert bool(now.reasons) == (now.status != "fresh")
