"""A knowledge base with a history: a few rows in every public table, written by plain SQL."""

import json
from datetime import datetime, timedelta
from typing import Any

from kr.store import entries, saving
from kr.store.engine import Store
from kr.times import to_text
from tests.support.stores import draft, sql

RESEARCH_MS = 4_000
HIT_MS = 20


def fill(store: Store, now: datetime) -> None:
    """Two researches that cost three calls together, five hits, a failure, an archived entry, two lessons."""
    saving.save(store, draft(), "# click - repeatable options\n", now - timedelta(days=40))
    saving.save(store, draft("Vue", "slots", tags=("Configuration", "slots")), "# Vue - slots\n", now)
    saving.save(store, draft("vue", "plugins", confidence="low", status="stale"), "# vue - plugins\n", now)
    saving.save(store, draft("vue", "old things"), "# vue - old things\n", now - timedelta(days=2))
    with store.write() as tx:
        entries.archive(tx, "vue-old-things", "lru", now - timedelta(days=1))
    rows: list[tuple[str, int, str, str, str, int]] = [
        ("r1", 3, "success", "click", "repeatable options", RESEARCH_MS),
        ("r2", 2, "partial", "vue", "slots", RESEARCH_MS),
        *((f"h{number}", 1, "cache-hit", "Vue", "slots", HIT_MS) for number in range(5)),
        ("d1", 1, "degraded", "vue", "never found", 900),
        ("d2", 0, "degraded", "vue", "Never found", 900),
        ("d3", 0, "degraded", "vue", "old things", 900),
        ("f1", 0, "failure", "vue", "slots", 0),
    ]
    for number, (request_id, days, status, framework, topic, duration) in enumerate(rows):
        at = to_text(now - timedelta(days=days) + timedelta(seconds=number))
        add_request(store, request_id, at, status, framework=framework, topic=topic, duration_ms=duration)
    add_call(store, "r1", "context7", "unavailable", charged=False, reason="HTTP 503", now=now)
    add_call(store, "r1", "web_search", "success", charged=True, duration=2_000, now=now)
    add_call(store, "r2", "context7", "success", charged=True, duration=500, now=now)
    add_call(store, "r2", "deepwiki", "timeout", charged=False, reason="no answer in 9 s", now=now)
    add_call(store, "r2", "web_search", "success", charged=True, duration=1_000, now=now)
    add_call(store, "d1", "web_search", "skipped", charged=False, now=now)
    for number, recurred in enumerate((0, 2)):
        add_lesson(store, f"l{number}", recurred)


def add_request(store: Store, request_id: str, at: str, status: str, **values: str | int) -> None:
    """Add a research request; ``values`` are framework, topic and duration_ms."""
    row: dict[str, object] = {"id": request_id, "at": at, "mode": "research", "status": status}
    row |= {"session_id": "s-1", "story_key": "3-1", **values}
    marks = ",".join("?" * len(row))
    sql(store.path, f"INSERT INTO requests ({', '.join(row)}) VALUES ({marks})", *row.values())


def add_call(
    store: Store,
    request_id: str,
    source: str,
    outcome: str,
    *,
    charged: bool,
    now: datetime,
    duration: int | None = None,
    reason: str | None = None,
) -> None:
    values: tuple[Any, ...] = (request_id, to_text(now), source, outcome, charged, duration, reason)
    columns = "request_id, at, source, outcome, charged, duration_ms, reason, session_id, story_key"
    sql(store.path, f"INSERT INTO source_calls ({columns}) VALUES (?,?,?,?,?,?,?,'s-1','3-1')", *values)


def add_lesson(store: Store, lesson: str, recurred: int) -> None:
    values = (
        lesson,
        "2026-09-01",
        "code-review",
        json.dumps(["code-review"]),
        f"Lesson {lesson}.",
        recurred,
        recurred,
    )
    columns = "id, date, phase, tags, summary, recurred, recurred_after_injection, injected"
    sql(store.path, f"INSERT INTO lessons ({columns}) VALUES (?,?,?,?,?,?,?,3)", *values)
