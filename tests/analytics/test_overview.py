"""What the page shows beyond the counts of ``kr stats``: days, stories, needs (SPEC 3.2, 8)."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kr import analytics as overview
from kr.errors import UnknownEntry
from kr.freshness import to_text
from kr.store import ledger, requests, restoring, saving
from kr.store.engine import Store
from kr.store.ledger import SourceCall
from kr.store.requests import RequestRow
from tests.support.stores import NOW, draft, sql

REPORT = "x" * 400
"""A hundred tokens."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(None, tmp_path / "base") as made:
        yield made


def ask(
    store: Store,
    request_id: str,
    *,
    days: int = 0,
    status: str = "success",
    topic: str = "slots",
    question: str = "What is a slot?",
    **more: Any,
) -> None:
    row = RequestRow(
        id=request_id,
        at=to_text(NOW - timedelta(days=days)),
        mode="research",
        status=status,
        session_id="s",
        story_key="1-1",
        framework="vue",
        topic=topic,
        question=question,
        **more,
    )
    with store.write() as tx:
        requests.record(tx, row)


def answered(store: Store, request_id: str, *tokens: int | None) -> None:
    calls = [
        SourceCall(
            request_id=request_id,
            at=to_text(NOW),
            source="context7",
            outcome="success",
            session_id="s",
            story_key="1-1",
            charged=True,
            answer_tokens=number,
        )
        for number in tokens
    ]
    with store.write() as tx:
        for call in calls:
            ledger.settle(tx, None, call)


def miss(
    store: Store, request_id: str, *near: str, topic: str = "slots", question: str = "What is a slot?"
) -> None:
    row = RequestRow(
        id=request_id,
        at=to_text(NOW - timedelta(days=request_id == "m1")),
        mode="research",
        status="candidates",
        framework="vue",
        topic=topic,
        question=question,
        tags='["slots"]',
        candidates=json.dumps([{"id": it, "score": 1.0} for it in near]),
    )
    with store.write() as tx:
        requests.record(tx, row)


def test_without_a_database_there_are_thirty_empty_days_and_nothing_else(store: Store) -> None:
    course = overview.course(store, NOW)
    assert (len(course.days), course.requests, course.spared_tokens, course.measured) == (30, 0, 0, 0)
    assert course.days[-1].day == NOW.date()
    assert overview.stories(store, limit=10) == ([], 0)
    assert overview.open_needs(store, limit=10) == overview.OpenNeeds()
    assert not store.path.exists()


def test_requests_of_one_need_are_one_and_what_was_asked_most_goes_first(store: Store) -> None:
    entry = saving.save(store, draft("vue", "slots in depth"), REPORT, NOW).entry
    gone = saving.save(store, draft("vue", "old"), REPORT, NOW).entry
    restoring.remove(store, [gone.id], NOW)
    miss(store, "m0", entry.id, topic="other", question="Another need?")
    miss(store, "m1", entry.id, gone.id, "never-there")
    miss(store, "m2", entry.id, gone.id, "never-there", question="what is a  SLOT?", topic="Slots")
    needs = overview.open_needs(store, limit=10)
    first = needs.shown[0]
    assert (needs.total, first.request_id, first.asked, first.tags) == (2, "m2", 2, ("slots",))
    assert [near.standing for near in first.offered] == ["live", "archived", "gone"]
    assert first.offered[0].topic == "slots in depth"
    assert [need.request_id for need in overview.open_needs(store, limit=1, offset=1).shown] == ["m0"]


def test_settling_keeps_the_wording_and_closes_all_requests_of_the_need(store: Store) -> None:
    entry = saving.save(store, draft("vue", "slots in depth"), REPORT, NOW).entry
    for number in range(3):
        miss(store, f"m{number}", entry.id)
    assert overview.settle(store, "m1", entry.id, NOW) == 3
    (wording,) = overview.wordings(store, entry.id)
    assert (wording.topic, wording.tags, wording.question) == ("slots", ("slots",), "What is a slot?")
    assert overview.open_needs(store, limit=10).total == 0
    assert sql(store.path, "SELECT DISTINCT answered_by FROM requests") == [(entry.id,)]


def test_what_was_not_offered_or_is_not_there_settles_nothing(store: Store) -> None:
    entry = saving.save(store, draft("vue", "slots in depth"), REPORT, NOW).entry
    gone = saving.save(store, draft("vue", "old"), REPORT, NOW).entry
    other = saving.save(store, draft("vue", "other"), REPORT, NOW).entry
    restoring.remove(store, [gone.id], NOW)
    miss(store, "m1", entry.id, gone.id)
    for request_id, entry_id in (("m1", other.id), ("m1", gone.id), ("m1", "never"), ("none", entry.id)):
        with pytest.raises(UnknownEntry):
            overview.settle(store, request_id, entry_id, NOW)
    assert overview.open_needs(store, limit=10).total == 1
    assert overview.wordings(store, other.id) == []


def test_stories_are_told_by_what_they_were_charged(store: Store) -> None:
    ask(store, "r1")
    ask(store, "h1", status="cache-hit")
    ask(store, "f1", status="failure")
    answered(store, "r1", 100, 200)
    (story,), total = overview.stories(store, limit=10)
    assert (story.session_id, story.story_key, story.requests, story.hits, story.charged) == (
        "s",
        "1-1",
        2,
        1,
        2,
    )
    assert (total, overview.stories(store, limit=10, offset=1)) == (1, ([], 1))
