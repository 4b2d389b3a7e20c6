"""Questions to which candidates were offered, and from which nobody has chosen."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kr import stats
from kr.errors import UnknownEntry
from kr.store import lookup, saving
from kr.store.engine import Store
from kr.times import to_text
from tests.support.stores import NOW, draft, sql

REPORT = "x" * 400
"""A hundred tokens."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(None, tmp_path / "base") as made:
        yield made


def miss(
    store: Store, request_id: str, *near: str, topic: str = "slots", question: str = "What is a slot?"
) -> None:
    row = {
        "id": request_id,
        "at": to_text(NOW - timedelta(days=request_id == "m1")),
        "mode": "research",
        "status": "candidates",
        "framework": "vue",
        "topic": topic,
        "question": question,
        "tags": '["slots"]',
        "candidates": json.dumps([{"id": it, "score": 1.0} for it in near]),
    }
    with store.write() as tx:
        lookup.log_request(tx, row)


def test_without_a_database_there_are_thirty_empty_days_and_nothing_else(store: Store) -> None:
    course = stats.last_days(store, NOW)
    assert (len(course["days"]), course["requests"], course["spared_tokens"]) == (30, 0, 0)
    assert course["days"][-1]["day"] == NOW.date()
    assert stats.open_needs(store, limit=10) == ([], 0)
    assert not store.path.exists()


def test_requests_of_one_need_are_one_and_what_was_asked_most_goes_first(store: Store) -> None:
    entry = saving.save(store, draft("vue", "slots in depth"), REPORT, NOW).entry
    gone = saving.save(store, draft("vue", "old"), REPORT, NOW).entry
    saving.remove(store, [gone.id], NOW)
    miss(store, "m0", entry.id, topic="other", question="Another need?")
    miss(store, "m1", entry.id, gone.id, "never-there")
    miss(store, "m2", entry.id, gone.id, "never-there", topic="Slots")
    needs, total = stats.open_needs(store, limit=10)
    first = needs[0]
    assert (total, first["request"]["id"], first["asked"], first["tags"]) == (2, "m2", 2, ("slots",))
    assert [near["id"] for near in first["offered"]] == [entry.id, gone.id, "never-there"]
    assert [near["entry"] is None for near in first["offered"]] == [False, True, True]
    assert [need["request"]["id"] for need in stats.open_needs(store, limit=1, offset=1)[0]] == ["m0"]


def test_settling_keeps_the_wording_and_closes_all_requests_of_the_need(store: Store) -> None:
    entry = saving.save(store, draft("vue", "slots in depth"), REPORT, NOW).entry
    for number in range(3):
        miss(store, f"m{number}", entry.id)
    assert stats.close_request(store, "m1", entry.id, NOW) == 3
    assert sql(store.path, "SELECT entry_id, topic, tags, question FROM wordings") == [
        (entry.id, "slots", '["slots"]', "What is a slot?")
    ]
    assert stats.open_needs(store, limit=10) == ([], 0)
    assert sql(store.path, "SELECT DISTINCT answered_by FROM requests") == [(entry.id,)]


def test_what_was_not_offered_or_is_not_there_settles_nothing(store: Store) -> None:
    entry = saving.save(store, draft("vue", "slots in depth"), REPORT, NOW).entry
    gone = saving.save(store, draft("vue", "old"), REPORT, NOW).entry
    other = saving.save(store, draft("vue", "other"), REPORT, NOW).entry
    saving.remove(store, [gone.id], NOW)
    miss(store, "m1", entry.id, gone.id)
    for request_id, entry_id in (("m1", other.id), ("m1", gone.id), ("m1", "never"), ("none", entry.id)):
        with pytest.raises(UnknownEntry):
            stats.close_request(store, request_id, entry_id, NOW)
    assert stats.open_needs(store, limit=10)[1] == 1
    assert sql(store.path, "SELECT count(*) FROM wordings") == [(0,)]
