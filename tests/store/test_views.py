"""Every public view against a recount of its tables in plain Python (rule 5)."""

import random
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kr.store import saving
from kr.store.engine import Store
from tests.support.stores import draft, sql

Row = tuple[Any, ...]
DAYS = [f"2026-09-{day:02}T{hour:02}:00:00.000000Z" for day in (1, 2, 30) for hour in (0, 12, 23)]
PHASES = ["code-review", "dev-execution"]


@pytest.fixture(scope="module", params=range(2))
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A database with a random history: nulls, failures, other modes, interrupted requests, lessons that are gone."""
    chance = random.Random(request.param)
    with Store(None, tmp_path_factory.mktemp("views")) as store:
        for number in range(12):
            made = draft(chance.choice(["vue", "Click"]), f"topic {number}")
            saving.save(store, made, f"# {number}\n", _moment(chance))
        add(store.path, "requests", [_request(chance, number) for number in range(120)])
        add(store.path, "source_calls", [_call(chance) for _ in range(150)])
        add(store.path, "lessons", [_lesson(chance, number) for number in range(30)])
        yield store.path


def _moment(chance: random.Random) -> Any:
    from kr.times import parse_time

    return parse_time(chance.choice(DAYS))


def _request(chance: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "at": chance.choice(DAYS),
        "mode": chance.choice(["research", "research", "research", "lessons-inject", None]),
        "status": chance.choice(["cache-hit", "cache-hit", "success", "degraded", "failure"]),
        "framework": chance.choice(["vue", "Vue ", "click", None]),
    }


def _call(chance: random.Random) -> dict[str, Any]:
    return {
        "at": chance.choice(DAYS),
        "source": chance.choice(["context7", "web_search"]),
        "outcome": chance.choice(["success", "unavailable", "timeout", "skipped"]),
        "charged": chance.choice([0, 1]),
        "duration_ms": chance.choice([None, 10, 25]),
        "session_id": chance.choice(["s-1", "s-2", None]),
        "story_key": chance.choice(["1-1", "1-2"]),
    }


def _lesson(chance: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": f"l{number}",
        "date": f"2026-09-{chance.randint(1, 30):02}",
        "phase": chance.choice(PHASES),
        "tags": "[]",
        "summary": "x",
        "injected": chance.randint(0, 5),
        "recurred": chance.randint(0, 2),
        "gone_at": chance.choice([None, None, DAYS[0]]),
    }


def add(path: Path, table: str, rows: list[dict[str, Any]]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        names = rows[0]
        marks = ", ".join(f":{name}" for name in names)
        connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)


def rows(path: Path, table: str, columns: str) -> list[Row]:
    return sql(path, f"SELECT {columns} FROM {table}")


def ratio(part: int, whole: int) -> float:
    """Round half up to four places, as SQLite does; Python rounds half to even."""
    return int(10_000 * part / whole + 0.5) / 10_000


def rates(pairs: list[tuple[str, str]]) -> dict[str, Row]:
    """Count requests, hits and their rate by name, from pairs of a name and a status."""
    grouped = defaultdict(list)
    for name, status in pairs:
        grouped[name].append(status == "cache-hit")
    return {name: (name, len(hits), sum(hits), ratio(sum(hits), len(hits))) for name, hits in grouped.items()}


def test_hit_rates(database: Path) -> None:
    asked = [
        (at[:10], framework, status)
        for at, mode, framework, status in rows(database, "requests", "at, mode, framework, status")
        if mode == "research" and status != "failure"
    ]
    by_day = rates([(day, status) for day, _, status in asked])
    assert rows(database, "hit_rate_by_day", "*") == [by_day[day] for day in sorted(by_day)]
    named = rates([(name.strip().lower(), status) for _, name, status in asked if name is not None])
    expected = sorted(named.values(), key=lambda row: (-row[1], row[0]))
    assert rows(database, "hit_rate_by_framework", "*") == expected


def test_spending(database: Path) -> None:
    stories = defaultdict(list)
    for session, story, charged, at in rows(database, "source_calls", "session_id, story_key, charged, at"):
        stories[session, story].append((charged, at))
    expected = [
        (
            *story,
            sum(c for c, _ in calls),
            sum(not c for c, _ in calls),
            min(a for _, a in calls),
            max(a for _, a in calls),
        )
        for story, calls in stories.items()
    ]
    expected.sort(key=lambda row: (-row[2], row[0] or "", row[1]))
    assert rows(database, "spending_by_story", "*") == expected


def test_sources(database: Path) -> None:
    sources = defaultdict(list)
    for source, outcome, duration in rows(database, "source_calls", "source, outcome, duration_ms"):
        if outcome != "skipped":
            sources[source].append((outcome, duration))
    expected = []
    for source, calls in sorted(sources.items()):
        outcomes = [outcome for outcome, _ in calls]
        times = [time for _, time in calls if time is not None]
        counts = [outcomes.count(name) for name in ("success", "timeout", "unavailable")]
        mean = round(sum(times) / len(times), 1)
        expected.append((source, len(calls), *counts, ratio(counts[0], len(calls)), mean))
    assert rows(database, "source_reliability", "*") == expected


def test_lessons(database: Path) -> None:
    kept = [
        row[:4]
        for row in rows(database, "lessons", "phase, date, injected, recurred, gone_at")
        if row[4] is None
    ]
    expected = []
    for phase in sorted({row[0] for row in kept}):
        its = [row for row in kept if row[0] == phase]
        given, recurred = sum(row[2] for row in its), sum(row[3] for row in its)
        expected.append((phase, len(its), given, recurred, max(row[1] for row in its)))
    assert rows(database, "lessons_by_phase", "*") == expected
