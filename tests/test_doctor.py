"""``kr doctor`` on knowledge bases that something is wrong with: found, said, repaired, nothing lost."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kr.app import App
from kr.store import SCHEMA_VERSION, backup, entries, saving
from kr.store.engine import Store
from kr.transfer.export_yaml import export_yaml
from tests.support.program import Project
from tests.support.stores import draft, obey_permissions, protected, sql

REPORT = """# {framework} - {topic}

**Framework:** {framework}
**Version:** 3.5
**Research Date:** 2026-11-20
**Confidence:** high
**Sources:** https://example.org/

## Summary

Text.

## Details

## Code Examples

## Caveats & Version-Specific Notes

## Source Attribution

- Source 1: https://example.org/ (via context7)
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def report(project: Project) -> dict[str, Any]:
    with project.app() as app:
        return app.doctor()


def repair(project: Project) -> dict[str, Any]:
    with project.app() as app:
        return app.doctor(repair=True)


def found(value: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["check"], row["severity"]) for row in value["findings"]]


def keep(project: Project, *topics: str, framework: str = "vue") -> None:
    with project.app() as app:
        for topic in topics:
            text = REPORT.format(framework=framework, topic=topic)
            saving.save(app.store, draft(framework, topic, framework_version="3.5"), text, project.clock())
    export(project)


def export(project: Project) -> None:
    with project.app() as app:
        export_yaml(app.store, project.base)


def remove_database(project: Project) -> None:
    for path in project.base.glob("kr.db*"):
        path.unlink()


def put(project: Project, path: str, text: str) -> Path:
    target = project.base / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def ids(project: Project) -> list[str]:
    return [entry for (entry,) in project.sql("SELECT id FROM entries ORDER BY id")]


def state(base: Path) -> dict[str, bytes]:
    return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def test_nothing_there_is_no_problem_and_stays_so(project: Project) -> None:
    assert found(report(project)) == [("database", "information")]
    assert repair(project)["repaired"] == []
    assert not project.base.exists()


def test_a_sound_knowledge_base_has_no_findings(project: Project) -> None:
    keep(project, "slots", "plugins")
    before = state(project.base)
    assert report(project)["findings"] == []
    assert repair(project)["repaired"] == []
    assert state(project.base) == before


def forget_texts(project: Project) -> None:
    project.sql("UPDATE entries SET sha256 = NULL")
    for table in ("revisions", "report_texts"):
        project.sql(f"DELETE FROM {table}")


def run_doctor(project: Project, *options: str) -> tuple[int, dict[str, Any]]:
    """Run the program as a user whom file permissions stop."""
    done = subprocess.run(
        [sys.executable, "-m", "kr", "doctor", *options, "--format", "json"],
        cwd=project.root,
        env=project.environ(),
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=obey_permissions,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


@contextmanager
def closed(path: Path) -> Iterator[None]:
    """Take every permission from a file or folder, for as long as the block runs."""
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        yield
    finally:
        path.chmod(mode)


def test_a_lost_report_is_written_back_from_the_text_that_is_kept(project: Project) -> None:
    keep(project, "slots", "plugins")
    lost = project.base / "frameworks/vue/slots.md"
    text = lost.read_bytes()
    lost.unlink()
    (finding,) = report(project)["findings"]
    assert (finding["check"], finding["severity"], finding["subject"]) == (
        "missing_report",
        "warning",
        "vue-slots",
    )
    assert "from the text in the database" in finding["repair"]
    assert not lost.exists()
    value = repair(project)
    assert (value["problems"], value["findings"]) == (0, [])
    assert ids(project) == ["vue-plugins", "vue-slots"]
    assert lost.read_bytes() == text
    assert project.sql("SELECT count(*) FROM archived_entries") == [(0,)]


def test_a_lost_report_whose_text_is_not_kept_is_archived_and_no_return_is_promised(project: Project) -> None:
    keep(project, "slots", "plugins")
    (project.base / "frameworks/vue/slots.md").unlink()
    forget_texts(project)
    (finding,) = report(project)["findings"]
    assert "archive" in finding["repair"]
    assert "kr archive restore" not in finding["repair"]
    assert repair(project)["problems"] == 0
    assert ids(project) == ["vue-plugins"]
    assert project.sql("SELECT id, reason FROM archived_entries") == [("vue-slots", "manual")]
    exported = yaml.safe_load((project.base / "_archived-index.yaml").read_text())
    assert [item["id"] for item in exported] == ["vue-slots"]


def test_an_orphan_report_becomes_an_entry_again(project: Project) -> None:
    keep(project, "slots")
    put(project, "frameworks/c/c.md", REPORT.format(framework="C++", topic="move semantics"))
    assert found(report(project)) == [("orphan", "warning")]
    value = repair(project)
    assert value["problems"] == 0
    row = project.sql(
        "SELECT framework, topic, framework_version, confidence, status, created, last_accessed, tags FROM entries "
        "WHERE path = 'frameworks/c/c.md'"
    )
    day = "2026-11-20T00:00:00.000000Z"
    assert row == [("C++", "move semantics", "3.5", "high", "fresh", day, day, "[]")]
    assert "c-move-semantics" in ids(project)
    assert report(project)["findings"] == []
    with project.app() as app, app.store.read() as tx:
        entry = entries.get(tx, "c-move-semantics")
        assert entry is not None
        assert saving.read_report(app.store, entry) == REPORT.format(framework="C++", topic="move semantics")


def research(project: Project, topic: str, **changes: Any) -> Callable[[App], object]:
    text = REPORT.format(framework="vue", topic=topic)
    made = draft("vue", topic, **{"tags": ("a", "b"), "framework_version": "3.5", **changes})
    return lambda app: saving.save(app.store, made, text, project.clock())


def exports(project: Project) -> list[str]:
    return [(project.base / name).read_text() for name in ("index.yaml", "_archived-index.yaml")]


@pytest.mark.parametrize("table", ["entries", "archived_entries"])
def test_a_missing_index_is_damage_and_comes_back_from_the_exports(project: Project, table: str) -> None:
    keep(project, "slots", "plugins")
    with project.app() as app:
        app.catalog.remove(["vue-plugins"])
    before = exports(project)
    project.sql(f"DROP TABLE {table}")
    (finding,) = [row for row in report(project)["findings"] if row["severity"] == "error"]
    assert f"has no table {table}" in finding["message"]
    assert repair(project)["problems"] == 0
    assert exports(project) == before
    assert len(list(project.base.glob("kr.db.*.damaged"))) == 1


def damage(database: Path) -> bytes:
    content = bytearray(database.read_bytes())
    content[8 * 4096 : 20 * 4096] = b"\xa5" * (12 * 4096)
    database.write_bytes(content)
    return bytes(content)


def test_a_damaged_database_is_kept_and_what_it_held_comes_back(project: Project) -> None:
    keep(project, *(f"topic {number:02}" for number in range(30)))
    before = ids(project)
    broken = damage(project.database)
    first = report(project)
    assert first["problems"]
    assert project.database.read_bytes() == broken
    value = repair(project)
    assert value["problems"] == 0, value
    assert ids(project) == before
    assert backup.check(Store(None, project.base)) == []
    (kept,) = project.base.glob("kr.db.*.damaged")
    assert kept.read_bytes() == broken
    assert all(len(path.read_bytes()) > 100 for path in (project.base / "frameworks/vue").glob("*.md"))


def test_a_deleted_database_is_rebuilt_from_exports_and_reports(project: Project) -> None:
    keep(project, "slots", "plugins", "old things")
    with project.app() as app, app.store.write() as tx:
        entries.archive(tx, "vue-old-things", "lru", project.clock())
    export(project)
    put(project, "frameworks/react/hooks.md", REPORT.format(framework="react", topic="hooks"))
    remove_database(project)
    (finding,) = report(project)["findings"]
    assert (finding["check"], finding["severity"]) == ("database", "error")
    assert "index.yaml and _archived-index.yaml and 4 reports" in finding["message"]
    assert not project.database.exists()
    value = repair(project)
    assert value["problems"] == 0, value
    assert ids(project) == ["react-hooks", "vue-plugins", "vue-slots"]
    assert project.sql("SELECT id, reason FROM archived_entries") == [("vue-old-things", "lru")]
    assert project.sql("SELECT tags FROM entries WHERE id = 'vue-slots'") == [('["options"]',)]


def test_a_deleted_database_is_rebuilt_from_reports_alone(project: Project) -> None:
    keep(project, "slots", "plugins")
    remove_database(project)
    (project.base / "index.yaml").write_text("{{ broken")
    (project.base / "_archived-index.yaml").unlink()
    value = repair(project)
    assert value["problems"] == 0, value
    assert ids(project) == ["vue-plugins", "vue-slots"]
    (copy,) = project.base.glob("index.yaml.*.bak")
    assert copy.read_text() == "{{ broken"


def test_a_newer_database_is_a_problem_that_nobody_repairs(project: Project) -> None:
    keep(project, "slots")
    project.sql(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = state(project.base)
    value = repair(project)
    assert found(value) == [("database", "error")]
    assert (value["problems"], value["repaired"]) == (1, [])
    assert "newer kr" in value["findings"][0]["message"]
    assert state(project.base) == before


def test_a_report_that_somebody_edited_is_told_and_taken_in(project: Project) -> None:
    keep(project, "slots")
    file = put(project, "frameworks/vue/slots.md", "# vue - slots\n\nMine.\n")
    (finding,) = report(project)["findings"]
    assert (finding["check"], finding["severity"], finding["subject"]) == (
        "edited_report",
        "information",
        "vue-slots",
    )
    assert project.sql("SELECT origin FROM entries") == [("excerpt",)]
    assert repair(project)["findings"] == []
    assert project.sql("SELECT origin, written_by, revision FROM entries") == [("finding", "file", 2)]
    assert file.read_text() == "# vue - slots\n\nMine.\n"


def test_another_programs_database_is_left_alone(project: Project) -> None:
    project.base.mkdir(parents=True)
    sql(project.database, "CREATE TABLE songs (name TEXT)")
    value = repair(project)
    assert found(value) == [("database", "error")]
    assert sql(project.database, "SELECT name FROM sqlite_master") == [("songs",)]


def test_a_wrong_database_url_is_a_finding(project: Project) -> None:
    project.env["KR_DATABASE_URL"] = "sqlite:///:memory:"
    value = report(project)
    assert found(value) == [("database", "error")]
    assert "KR_DATABASE_URL" in value["findings"][0]["message"]


@pytest.mark.parametrize("option", [[], ["--repair"]])
def test_what_may_not_be_written_is_left_as_it_is(project: Project, option: list[str]) -> None:
    keep(project, "slots")
    (project.base / "frameworks/vue/slots.md").unlink()
    folders = (project.base / "frameworks", project.base / "frameworks/vue")
    with protected(project.base, *folders, *project.base.glob("kr.db*")):
        status, value = run_doctor(project, *option)
    assert status == 1
    assert all(
        row["done"].startswith("failed: ") for row in value["repaired"] if row["check"] == "missing_report"
    )
    assert ids(project) == ["vue-slots"]


def test_the_command(project: Project) -> None:
    assert project.run("doctor").returncode == 0
    keep(project, "slots")
    (project.base / "frameworks/vue/slots.md").unlink()
    forget_texts(project)
    told = project.run("doctor", "--format", "text")
    assert told.returncode == 1
    assert b"repair move it to the archive" in b" ".join(told.stdout.split())
    assert b"problems: 1\n" in told.stdout
    done = project.run("doctor", "--repair", "--format", "json")
    assert done.returncode == 0
    value = json.loads(done.stdout)
    assert (value["problems"], value["repaired"][0]["done"]) == (0, "archived")


def test_a_table_of_ones_own_is_told_and_costs_nothing(project: Project) -> None:
    """Once a repair replaced the database for it, and earlier texts were gone."""
    keep(project, "slots")
    project.sql("CREATE TABLE mine (id TEXT)")
    [row] = report(project)["findings"]
    assert (row["check"], row["repair"]) == ("integrity", None)
    assert "mine" in row["message"]
    assert repair(project)["repaired"] == []
    assert project.sql("SELECT count(*) FROM mine") == [(0,)]


def test_a_repair_that_fails_is_shown_and_is_none(project: Project) -> None:
    keep(project, "slots")
    file = project.base / "frameworks/vue/slots.md"
    file.unlink()
    file.mkdir()
    done = project.run("doctor", "--repair", "--format", "text")
    assert done.returncode == 1
    shown = done.stdout.decode()
    assert "done failed: frameworks/vue/slots.md can't be written" in shown
    assert "problems: 1\n" in shown
