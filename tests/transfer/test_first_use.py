"""An index.yaml beside an empty database: imported by itself, once, before the first look-up."""

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from kr.store.engine import Store
from kr.transfer.import_yaml import import_on_first_use
from tests.support.program import Clock, Project, request


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    query = request()["research_query"]
    item = {
        "id": "vue-options",
        "framework": "vue",
        "framework_version": "3.x",
        "topic": query["topic"],
        "tags": query["tags"],
        "path": "frameworks/vue/options.md",
        "last_accessed": "2026-11-20",
    }
    report = made.base / "frameworks" / "vue" / "options.md"
    report.parent.mkdir(parents=True)
    report.write_text("# vue\n\n**Confidence:** medium\n\n## Summary\n\nUse it.\n")
    (made.base / "index.yaml").write_text(yaml.safe_dump([item]))
    return made


def test_the_first_request_is_a_hit(project: Project) -> None:
    answer = project.research()
    assert answer["status"] == "cache-hit"
    assert answer["results"]["cache_entry_id"] == "vue-options"
    assert answer["results"]["confidence"] == "medium"


def test_what_was_interrupted_is_taken_up_again(project: Project) -> None:
    index = project.base / "index.yaml"
    gone = index.read_text().replace("options", "gone").replace("repeatable", "other")
    (project.base / "_archived-index.yaml").write_text(gone)

    class Interrupted(Store):
        writes = 0

        def write(self, *, timeout: float | None = None, scope: str | None = None) -> Any:
            self.writes += 1
            if self.writes == 3:  # after the live entries, before the archived ones
                raise KeyboardInterrupt
            return super().write(timeout=timeout, scope=scope)

    with Interrupted(None, project.base) as store, pytest.raises(KeyboardInterrupt):
        import_on_first_use(store, project.base, now=Clock()())
    assert project.sql("SELECT count(*) FROM entries") == [(1,)]
    for _ in range(2):
        project.research(request(framework="click"))
        assert project.sql("SELECT id FROM archived_entries") == [("vue-gone",)]


@pytest.mark.parametrize("text", ["{{{", "just text", "- id: [", "\x00"])
def test_a_broken_one_is_a_warning_and_a_miss(
    project: Project, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (project.base / "index.yaml").write_text(text)
    with caplog.at_level(logging.WARNING):
        answer = project.research()
    assert (answer["status"], answer["errors"]) == ("degraded", [])
    assert any("index.yaml: " in record.getMessage() for record in caplog.records)
    (copy,) = project.base.glob("index.yaml.*.bak")
    assert copy.read_text() == text


def test_parallel_first_users_import_once(project: Project) -> None:
    imported: list[bool] = []
    answers: list[dict[str, Any]] = []
    together = threading.Barrier(8)

    def use() -> None:
        together.wait()
        with Store(None, project.base) as store:
            imported.append(import_on_first_use(store, project.base, now=Clock()()))
        answers.append(project.research())

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(imported) == [False] * 7 + [True]
    assert {answer["status"] for answer in answers} == {"cache-hit"}


def test_an_archive_alone_is_taken_in_before_an_export_writes_over_it(project: Project) -> None:
    (project.base / "index.yaml").rename(project.base / "_archived-index.yaml")
    with project.app() as app:
        app.export_yaml()
        assert [row["id"] for row in app.catalog.archive()] == ["vue-options"]
    (item,) = yaml.safe_load((project.base / "_archived-index.yaml").read_text())
    assert item["id"] == "vue-options"
