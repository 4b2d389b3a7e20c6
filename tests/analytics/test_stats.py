"""Counts of a knowledge base with a known history."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kr.analytics import by_age
from kr.cli.maintenance import bar, spark, stats_view
from kr.store import entries, ledger, meta
from tests.support.program import Project
from tests.support.samples import add_request, fill
from tests.support.stores import sql


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", env={"KR_ARCHIVE_AFTER_DAYS": "1000"})


@pytest.fixture
def filled(project: Project) -> Project:
    with project.app() as app:
        fill(app.store, project.clock.now)
    return project


def test_an_absent_knowledge_base_counts_nothing_and_is_not_made(project: Project) -> None:
    with project.app() as app:
        value = app.stats()
    assert value["requests"]["total"] == value["index"]["entries"] == value["spending"]["charged"] == 0
    assert value["requests"]["hit_rate"] is None
    assert not project.base.exists()
    assert "0 research" in stats_view(value)


def test_an_absent_and_an_empty_knowledge_base_have_the_same_shape(project: Project) -> None:
    with project.app() as app:
        absent = app.stats()
        with app.store.write() as tx:
            assert entries.count(tx) == 0
        assert app.stats() == absent


def test_hits_and_misses(filled: Project) -> None:
    with filled.app() as app:
        value = app.stats()
    assert value["requests"] == {
        "total": 11,
        "research": 10,
        "hits": 5,
        "misses": 5,
        "hit_rate": 0.5,
        "by_mode": {"research": 11},
        "by_status": {"cache-hit": 5, "degraded": 3, "failure": 1, "partial": 1, "success": 1},
    }
    assert value["spared"] == {"tokens": 0, "seconds": 0, "answers": 0}  # test_spared.py has the rest


def test_spending_and_sources(filled: Project) -> None:
    with filled.app() as app:
        value = app.stats()
    (story,) = value["spending"]["by_story"]
    assert (value["spending"]["charged"], value["spending"]["stories"]) == (3, 1)
    assert (story["story_key"], story["charged"], story["uncharged"]) == ("3-1", 3, 3)
    for number in range(3):
        sql(
            filled.database,
            "INSERT INTO source_calls (at, session_id, story_key, source, outcome, charged, duration_ms)"
            f" VALUES ('2026-11-21T00:00:00.000000Z', 'terminal-{number}', '0-0', 'context7', 'success', {number and 1}, 5)",
        )
    with filled.app() as app:
        asked = app.stats()
    assert asked["spending"]["by_story"] == [story]
    assert asked["spending"]["single_questions"] == {"questions": 3, "charged": 2, "uncharged": 1}
    assert "Spending: 5 calls for 1 story and 3 questions of no story" in stats_view(asked)
    assert "  questions of no story: 2 calls, 1 not charged" in stats_view(asked)
    sources = {row["source"]: row for row in value["sources"]}
    assert [*sources] == ["context7", "deepwiki", "web_search"]
    assert (sources["context7"]["asked"], sources["context7"]["success_rate"]) == (2, 0.5)
    assert (sources["deepwiki"]["timeout"], sources["deepwiki"]["circuit"]) == (1, "closed")
    assert (sources["web_search"]["asked"], sources["web_search"]["mean_ms"]) == (2, 1500.0)


def test_other_names_of_a_framework_are_counted_with_it(project: Project) -> None:
    project.env["KR_ALIASES"] = json.dumps({"our-ui": "vue"})
    with project.app() as app:
        with app.store.write() as tx:
            meta.put(tx, "key", "value")
        named = ("vue", "cache-hit"), ("Vue.js", "degraded"), ("our-ui", "cache-hit"), ("click", "success")
        for number, (framework, status) in enumerate(named):
            add_request(app.store, str(number), "2026-11-21T00:00:00.000000Z", status, framework=framework)
        assert app.stats()["hit_rate_by_framework"] == [
            {"framework": "our-ui", "requests": 3, "hits": 2, "hit_rate": 0.6667},
            {"framework": "click", "requests": 1, "hits": 0, "hit_rate": 0.0},
        ]


def test_an_open_circuit_shows_until_its_pause_is_over(filled: Project) -> None:
    with filled.app() as app:
        with app.store.write() as tx:
            circuit = ledger.record_failure(
                tx, "context7", "HTTP 503", now=filled.clock.now, failures=1, pause_seconds=60
            )
        row = app.stats()["sources"][0]
        assert (row["circuit"], row["open_until"], row["last_error"]) == (
            "open",
            circuit.open_until,
            "HTTP 503",
        )
        assert circuit.open_until is not None
        assert f"paused until {circuit.open_until[11:19]} UTC: HTTP 503" in stats_view(app.stats())
        filled.clock.now += timedelta(minutes=2)
        assert app.stats()["sources"][0]["circuit"] == "closed"


def test_entries_by_age_framework_and_status(filled: Project) -> None:
    with filled.app() as app:
        index = app.stats()["index"]
        archive = app.stats()["archive"]
    assert (index["entries"], index["by_status"]) == (3, {"fresh": 2, "stale": 1})
    assert index["by_framework"] == {"Vue": 2, "click": 1}
    assert index["by_age"] == {
        "today": 2,
        "1-7 days": 0,
        "8-30 days": 0,
        "31-60 days": 1,
        "over 60 days": 0,
    }
    assert archive == {"entries": 1, "by_reason": {"lru": 1}}


@pytest.mark.parametrize(
    ("days", "age"),
    [
        (-3, "today"),
        (0, "today"),
        (1, "1-7 days"),
        (7, "1-7 days"),
        (8, "8-30 days"),
        (30, "8-30 days"),
        (31, "31-60 days"),
        (60, "31-60 days"),
        (61, "over 60 days"),
    ],
)
def test_the_edges_of_the_ages_are_those_of_freshness(days: int, age: str) -> None:
    today = date(2026, 11, 21)
    counted = by_age([(today - timedelta(days=days)).isoformat()], today)
    assert {name for name, number in counted.items() if number} == {age}


def test_an_unreadable_date_has_an_age_of_its_own() -> None:
    assert by_age(["last week"], date(2026, 11, 21))["unreadable date"] == 1


@given(st.lists(st.datetimes(timezones=st.just(UTC)) | st.text(max_size=12), max_size=30))
def test_every_entry_has_one_age(accesses: list[datetime | str]) -> None:
    texts = [access if isinstance(access, str) else access.isoformat() for access in accesses]
    assert sum(by_age(texts, date(2026, 11, 21)).values()) == len(texts)


@given(st.floats(0, 1))
def test_a_bar_has_one_width_and_hides_nothing(share: float) -> None:
    drawn = bar(share)
    assert len(drawn) == len(bar(1.0))
    assert ("█" in drawn) == (share > 0)


def test_the_last_days_are_drawn_up_to_today(filled: Project) -> None:
    with filled.app() as app:
        lines = click.unstyle(stats_view(app.stats())).splitlines()
    requests, rate = lines[lines.index("The last 30 days") + 1 :][:2]
    # A research three and two days ago; five hits and a miss yesterday; two misses today.
    assert requests[33:] == " " * 26 + "▂▂▇▃ most 6"
    assert rate[33:] == " " * 26 + "▁▁▆▁ 50%, -"


@pytest.mark.parametrize(("share", "drawn"), [(None, " "), (0.0, "▁"), (0.5, "▄"), (1.0, "▇")])
def test_a_day_is_one_cell(share: float | None, drawn: str) -> None:
    assert spark([share]) == drawn


def test_the_view_fits_80_columns(filled: Project) -> None:
    sql(filled.database, "UPDATE entries SET framework = ?", "a\nvery " * 30)
    with filled.app() as app:
        lines = click.unstyle(stats_view(app.stats())).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("50% of 10" in line or "50%" in line for line in lines)


@pytest.mark.parametrize("name", ["组件" * 30, "响应式" * 5, "é" * 40, "vue"])
def test_the_view_counts_cells_not_characters(filled: Project, name: str) -> None:
    sql(filled.database, "UPDATE entries SET framework = ?", name)
    sql(filled.database, "UPDATE requests SET framework = ?", name)
    sql(filled.database, "UPDATE source_calls SET source = ?, duration_ms = 119999", name)
    with filled.app() as app:
        lines = click.unstyle(stats_view(app.stats())).splitlines()
    assert max(map(cell_len, lines)) <= 80
    starts = {
        cell_len(line[: line.index(next(sign for sign in line if sign in "█░"))])
        for line in lines
        if "█" in line
    }
    assert len(starts) == 1


def test_the_command_gives_the_same_as_json(filled: Project) -> None:
    done = filled.run("stats", "--format", "json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["requests"]["hits"] == 5
