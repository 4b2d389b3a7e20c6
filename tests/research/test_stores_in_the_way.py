"""A database that serves only in part: it can be read alone, or belongs to another folder of reports."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from kr.errors import StoreError
from tests.support.mcp_servers import StandIn, context7_server
from tests.support.program import Project, request
from tests.support.stores import sql


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server() as server:
        project.use_context7(server.url)
        yield server


def told(answer: dict[str, Any]) -> tuple[str, int]:
    return answer["status"], answer["results"]["budget_remaining"]


def test_what_can_not_be_noted_is_spent_all_the_same(
    project: Project, context7: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    project.env["KR_CACHE_MATCH"] = "seed"  # the topic alone asks for something else
    assert told(project.research(request(topic="slots", tags=["slots"]))) == ("success", 2)
    lock = project.base / "kr.db.lock"
    lock.unlink()
    lock.mkdir()  # stops every writer, root included; readers take no lock
    calls = len(context7.calls())
    assert told(project.research()) == ("partial", 1)
    project.env["KR_MAX_CALLS_PER_STORY"] = "1"
    assert told(project.research()) == ("budget-exhausted", 0)
    assert len(context7.calls()) == calls + 1
    warnings = [record for record in caplog.records if str(lock) in record.getMessage()]
    assert len(warnings) == 2  # one in each run


def test_another_base_takes_no_entry_of_a_database_elsewhere(project: Project, context7: StandIn) -> None:
    project.env["KR_DATABASE_URL"] = f"sqlite:///{project.root}/elsewhere.db"
    assert project.research()["status"] == "success"
    other = {**project.env, "KR_KNOWLEDGE_BASE_PATH": "other"}
    answer = Project(project.root, env=other).research()
    assert (answer["status"], answer["results"]["index_updated"]) == ("partial", False)
    assert str(project.base) in answer["errors"][0]["message"]
    before = sql(project.root / "elsewhere.db", "SELECT * FROM entries")
    (project.root / "package.json").write_text('{"dependencies": {"vue": "2.0.0"}}')
    with Project(project.root, env=other).app() as app:
        app.requests.research_document(json.dumps(request(framework_version="2.0")).encode())
        with pytest.raises(StoreError, match=str(project.base)):
            app.catalog.versions(project.root, everything=False, mark_stale=True)
    assert sql(project.root / "elsewhere.db", "SELECT * FROM entries") == before
    done = project.run(
        "research", "--request", "-", "--kb", "named", "--format", "json", stdin=json.dumps(request())
    )
    assert json.loads(done.stdout)["status"] == "success"
    assert (project.root / "named" / "kr.db").is_file()
    assert project.research()["status"] == "cache-hit"
    assert context7.calls()


def test_a_copy_of_the_base_serves_hits_and_changes_nothing(project: Project, context7: StandIn) -> None:
    project.env["KR_DATABASE_URL"] = f"sqlite:///{project.root}/elsewhere.db"
    assert project.research()["status"] == "success"
    copytree(project.base, project.root / "copy")
    before = sql(project.root / "elsewhere.db", "SELECT * FROM entries")
    answer = Project(project.root, env={**project.env, "KR_KNOWLEDGE_BASE_PATH": "copy"}).research()
    assert (answer["status"], answer["results"]["index_updated"]) == ("cache-hit", False)
    assert sql(project.root / "elsewhere.db", "SELECT * FROM entries") == before
    assert len(context7.calls()) == 2


def test_marking_nothing_makes_no_database(project: Project) -> None:
    with project.app() as app:
        assert app.catalog.versions(project.root, everything=False, mark_stale=True) == []
    assert not project.base.exists()
