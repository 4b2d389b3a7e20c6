"""``kr explain`` says what research then does, and changes nothing."""

import hashlib
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kr.store import saving
from kr.times import to_text
from tests.support.program import Project, request
from tests.support.stores import draft


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def explain(project: Project, **changes: Any) -> dict[str, Any]:
    with project.app() as app:
        return app.explain(json.dumps(request(**changes)).encode())


def keep(project: Project, topic: str, framework: str = "vue", **changes: Any) -> None:
    with project.app() as app:
        values = {"framework_version": "3.5", "tags": ("options",)} | changes
        saving.save(app.store, draft(framework, topic, **values), f"# {topic}\n", project.clock())


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_without_a_database_it_is_a_miss_and_none_is_made(project: Project) -> None:
    value = explain(project)
    assert (value["outcome"], value["considered"]) == ("miss", [])
    assert not project.base.exists()


def test_a_hit_is_explained_and_nothing_changes(project: Project) -> None:
    keep(project, "repeatable options")
    keep(project, "repeatable arguments")
    keep(project, "repeatable options", framework="react")
    before = fingerprint(project.base)
    value = explain(project)
    assert fingerprint(project.base) == before
    assert (value["outcome"], value["entry_id"]) == ("hit", "vue-repeatable-options")
    first, second = value["considered"]
    assert (first["id"], first["tier"]) == ("vue-repeatable-options", "framework+topic+tags")
    assert (first["score"] > second["score"], first["freshness"]) == (True, "fresh")
    assert second["id"] == "vue-repeatable-arguments"
    assert "repeatable options" in first["summary"]
    assert "repeatable arguments" in second["summary"]
    assert second["refused"] == "not the same topic, question or keywords: it is only offered"
    assert project.research()["results"]["cache_entry_id"] == value["entry_id"]


def test_a_stale_entry_is_not_marked(project: Project) -> None:
    keep(project, "repeatable options", framework_version="2.7")
    value = explain(project)
    (row,) = value["considered"]
    assert (value["outcome"], row["freshness"]) == ("stale", "stale")
    assert row["refused"] == "stale: version 2.7, asked for 3.5"
    assert project.sql("SELECT status, stale_reason FROM entries") == [("fresh", None)]


def test_what_is_said_to_be_offered_is_what_research_offers(project: Project) -> None:
    for number in range(4):
        keep(project, f"option number {number}")
    keep(project, "arguments of a command", tags=("x",))
    tomorrow = to_text(project.clock() + timedelta(days=1))
    keep(project, "watchers", question="What is watched?", tags=("option",), fresh_until=tomorrow)
    asked = {
        "topic": "option of a number",
        "question": "Which number has an option that takes arguments?",
        "config_overrides": {"if_unsure": "candidates"},
    }
    told = {row["id"] for row in explain(project, **asked)["considered"] if "only offered" in row["refused"]}
    results = project.research(request(**asked))["results"]
    assert told == {row["id"] for row in results["related"]}
    assert len(told) == 3


def test_the_command_takes_both_forms(project: Project) -> None:
    keep(project, "repeatable options")
    words = project.run(
        "explain", "vue", "How?", "--topic", "repeatable options", "--tag", "options", "--format", "json"
    )
    document = project.run("explain", "--request", "-", "--format", "text", stdin=json.dumps(request()))
    assert json.loads(words.stdout)["outcome"] == "hit"
    assert document.stdout.startswith(b"outcome: hit\nentry id: vue-repeatable-options\n")
    assert project.run("explain", "vue").returncode == 2
    assert project.sql("SELECT count(*) FROM requests") == [(0,)]
