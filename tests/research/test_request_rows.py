"""What a row of ``requests`` keeps of requests that are no research (rule 5; docs/sql.md)."""

from pathlib import Path
from typing import Any

import pytest

from kr.models import to_plain
from tests.support.program import Project, request


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.mark.parametrize("mode", ["rm -rf /", "", 3, ["research"], None])
def test_a_mode_that_is_none_is_kept_where_it_is_a_text(project: Project, mode: Any) -> None:
    assert project.research(request(mode=mode))["status"] == "failure"
    kept = str(mode) if isinstance(mode, str | int) else None
    assert project.sql("SELECT mode, status FROM requests") == [(kept, "failure")]


def test_a_document_that_is_refused_keeps_whose_it_was(project: Project) -> None:
    text = (
        b"story_key: 3-1\nmode: research\nsession_id: s-1\nresearch_query:\n  topic: &t x\n  tags: [a, *t]\n"
    )
    with project.app() as app:
        answer = to_plain(app.research.document(text))
    assert [answer[key] for key in ("story_key", "mode", "session_id")] == ["3-1", "research", "s-1"]
    assert [error["field"] for error in answer["errors"]] == ["research_query.tags"]
    rows = project.sql("SELECT story_key, mode, session_id, framework FROM requests")
    assert rows == [("3-1", "research", "s-1", None)]
