"""``kr explain`` says what research then does, and changes nothing."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from kr.errors import InvalidRequest, StoreError
from tests.support.program import Project, request
from tests.support.stores import draft, insert_entry, sql


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def explain(project: Project, **changes: Any) -> dict[str, Any]:
    with project.app() as app:
        return app.explain(json.dumps(request(**changes)).encode())


def keep(project: Project, topic: str, framework: str = "vue", **changes: Any) -> None:
    with project.app() as app:
        values = {"framework_version": "3.5", "tags": ("options",)} | changes
        app.store.save_report(draft(framework, topic, **values), f"# {topic}\n", project.clock())


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_without_a_database_it_is_a_miss_and_none_is_made(project: Project) -> None:
    value = explain(project)
    assert (value["outcome"], value["considered"]) == ("miss", [])
    assert "no entry has this framework" in value["decision"]
    assert not project.base.exists()


def test_a_hit_is_explained_and_nothing_changes(project: Project) -> None:
    keep(project, "repeatable options")
    keep(project, "routing guards", tags=("router",))
    keep(project, "repeatable options", framework="react")
    before = fingerprint(project.base)
    value = explain(project)
    assert fingerprint(project.base) == before
    assert (value["outcome"], value["entry_id"]) == ("hit", "vue-repeatable-options")
    first, second = value["considered"]
    assert (first["id"], first["tier"], first["refused"]) == (
        "vue-repeatable-options",
        "framework+topic+tags",
        None,
    )
    assert (first["topic_overlap"], first["shared_tags"], first["freshness"]) == (1.0, ["options"], "fresh")
    assert second["id"] == "vue-routing-guards"
    assert "below 0.70" in second["refused"]
    assert project.research()["results"]["cache_entry_id"] == value["entry_id"]


def test_a_weaker_entry_says_what_it_stands_behind(project: Project) -> None:
    keep(project, "repeatable options")
    keep(project, "options with default values")
    value = explain(project)
    assert value["considered"][1]["tier"] == "framework+tags"
    assert "vue-repeatable-options answers in a better tier" in value["considered"][1]["refused"]


def test_a_stale_entry_is_not_marked(project: Project) -> None:
    keep(project, "repeatable options", framework_version="2.7")
    value = explain(project)
    (row,) = value["considered"]
    assert (value["outcome"], row["freshness"]) == ("stale", "stale")
    assert row["refused"] == "stale: version 2.7, asked for 3.5"
    assert "as the baseline" in value["decision"]
    assert project.sql("SELECT status, stale_reason FROM entries") == [("fresh", None)]


def test_an_entry_that_counts_as_archived_says_so(project: Project) -> None:
    keep(project, "repeatable options")
    project.clock.pass_days(61)
    value = explain(project)
    assert (value["outcome"], value["entry_id"]) == ("miss", None)
    assert "more than 60 days" in value["considered"][0]["refused"]


def test_a_lost_report_is_a_miss_and_its_row_stays(project: Project) -> None:
    keep(project, "repeatable options")
    (project.base / "frameworks/vue/repeatable-options.md").unlink()
    value = explain(project)
    assert (value["outcome"], value["entry_id"]) == ("miss", None)
    assert "missing or empty" in value["considered"][0]["refused"]
    assert project.sql("SELECT count(*) FROM entries") == [(1,)]


def test_a_framework_that_is_written_alike_is_offered(project: Project) -> None:
    keep(project, "repeatable options", framework="Vue.js")
    assert explain(project, framework="vuejs")["nearest_frameworks"] == ["Vue.js"]


def test_a_negated_topic_is_refused_with_a_reason(project: Project) -> None:
    keep(project, "disable strict mode")
    value = explain(project, topic="enable strict mode")
    assert value["outcome"] == "miss"
    assert value["considered"][0]["refused"]


@pytest.mark.parametrize("data", [b"", b"mode: research", b"{{"])
def test_a_bad_request_is_refused(project: Project, data: bytes) -> None:
    with project.app() as app, pytest.raises(InvalidRequest):
        app.explain(data)


def test_a_lessons_request_is_refused(project: Project) -> None:
    data = {
        "story_key": "1-1",
        "mode": "lessons-inject",
        "session_id": "s",
        "lessons_inject": {"phase": "code-review"},
    }
    with project.app() as app, pytest.raises(InvalidRequest, match="mode"):
        app.explain(data)


def test_an_older_database_is_not_upgraded_by_a_look(project: Project) -> None:
    keep(project, "repeatable options")
    sql(project.database, "PRAGMA user_version = 1")
    with pytest.raises(StoreError, match="kr db upgrade"):
        explain(project)
    assert sql(project.database, "PRAGMA user_version") == [(1,)]


def test_the_command_takes_both_forms(project: Project) -> None:
    keep(project, "repeatable options")
    insert_entry(project.database, "by-hand", framework="vue", topic="something else", tags="[]")
    words = project.run(
        "explain", "vue", "How?", "--topic", "repeatable options", "--tag", "options", "--format", "json"
    )
    document = project.run("explain", "--request", "-", "--format", "text", stdin=json.dumps(request()))
    assert json.loads(words.stdout)["outcome"] == "hit"
    assert document.stdout.decode().startswith("hit  vue-repeatable-options would be served from the cache\n")
    assert b"refused" in document.stdout
    assert project.run("explain", "vue").returncode == 2
    assert project.sql("SELECT count(*) FROM requests") == [(0,)]
