"""A database that serves only in part: it can be read alone, or belongs to another folder of reports."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_servers import StandIn, context7_server
from tests.support.program import Project, request


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


def test_marking_nothing_makes_no_database(project: Project) -> None:
    with project.app() as app:
        assert app.versions(mark_stale=True) == []
    assert not project.base.exists()
