"""Counts of a knowledge base with a known history."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from kr.store import ledger
from tests.support.program import Project
from tests.support.samples import fill


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
    sources = {row["source"]: row for row in value["sources"]}
    assert [*sources] == ["context7", "deepwiki", "web_search"]
    assert (sources["context7"]["asked"], sources["context7"]["success_rate"]) == (2, 0.5)
    assert (sources["deepwiki"]["timeout"], sources["deepwiki"]["circuit"]) == (1, "closed")
    assert (sources["web_search"]["asked"], sources["web_search"]["mean_ms"]) == (2, 1500.0)


def test_an_open_circuit_shows_until_its_pause_is_over(filled: Project) -> None:
    with filled.app() as app:
        with app.store.write() as tx:
            now = filled.clock.now
            ledger.record_failure(tx, "context7", "HTTP 503", now=now, failures=1, pause_seconds=60)
        row = app.stats()["sources"][0]
        assert (row["circuit"], row["last_error"]) == ("open", "HTTP 503")
        filled.clock.now += timedelta(minutes=2)
        assert app.stats()["sources"][0]["circuit"] == "closed"


def test_entries_by_framework_and_status(filled: Project) -> None:
    with filled.app() as app:
        value = app.stats()
    assert (value["index"]["entries"], value["index"]["by_status"]) == (3, {"fresh": 2, "stale": 1})
    assert value["index"]["by_framework"] == {"Vue": 1, "click": 1, "vue": 1}
    assert value["archive"] == {"entries": 1, "by_reason": {"lru": 1}}


def test_the_command_gives_the_same_as_json(filled: Project) -> None:
    done = filled.run("stats", "--format", "json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["requests"]["hits"] == 5
