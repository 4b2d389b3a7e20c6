"""``kr entries`` and ``kr archive`` as processes: forms, formats, exit statuses, and when they ask."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kr.store import saving
from tests.support.program import Project
from tests.support.stores import draft
from tests.support.terminals import seen


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    with project.app() as app:
        for topic in ("slots", "virtual scrolling"):
            for text in ("# one\n", "# two \x1b[2J\n"):
                saving.save(app.store, draft("vue", topic, tags=("ui",)), text, project.clock())
    return project


def answer(project: Project, *arguments: str, status: int = 0) -> Any:
    done = project.run(*arguments)
    assert done.returncode == status, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return yaml.safe_load(done.stdout) if status == 0 else done.stderr.decode()


def test_what_was_rated_wrong_is_listed_as_withdrawn(project: Project) -> None:
    answer(project, "rate", "vue-slots", "--wrong", "--session-id", "a")
    assert [row["id"] for row in answer(project, "entries", "list", "--status", "withdrawn")] == ["vue-slots"]
    assert answer(project, "entries", "list", "--status", "fresh")[0]["id"] == "vue-virtual-scrolling"
    shown = answer(project, "entries", "show", "vue-slots")
    assert (shown["status"], shown["stale_because"]) == ("withdrawn", ["rated wrong"])
    assert [row["status"] for row in answer(project, "search", "slots")["entries"]] == ["withdrawn"]


def test_every_command_in_every_format(project: Project) -> None:
    rows = answer(project, "entries", "list")
    assert [row["id"] for row in rows] == ["vue-virtual-scrolling", "vue-slots"]
    assert all("question" in row and row["origin"] for row in rows)
    as_json = project.run("--format", "json", "entries", "show", "vue-slots", "--report")
    assert json.loads(as_json.stdout)["report"].startswith("# two")
    between = project.run("--format", "json", "search", "scroll")
    after = project.run("search", "scroll", "--format", "json")
    assert json.loads(between.stdout) == json.loads(after.stdout)
    text = project.run("entries", "show", "vue-slots", "--report", "--format", "text").stdout
    assert b"# two" in text
    assert b"\x1b" not in text
    assert answer(project, "entries", "history", "vue-slots")[0]["revision"] == 1
    assert answer(project, "entries", "history", "vue-slots", "--revision", "1")["text"] == "# one\n"
    restored = answer(project, "entries", "restore", "vue-slots", "1")
    assert (restored["entry"]["status"], restored["replaced"], restored["archived"]) == ("fresh", 2, [])


def test_remove_and_restore_without_a_terminal(project: Project) -> None:
    assert answer(project, "entries", "remove", "vue-slots")["index_count"] == 1
    assert [row["reason"] for row in answer(project, "archive", "list")] == ["manual"]
    assert "kr archive restore vue-slots" in answer(project, "entries", "show", "vue-slots", status=1)
    assert answer(project, "archive", "restore", "vue-slots")["index_count"] == 2
    assert "it is live" in answer(project, "archive", "restore", "vue-slots", status=1)
    assert answer(project, "archive", "list") == []


def test_an_unknown_id_is_status_one_with_the_nearest(project: Project) -> None:
    assert "nearest: vue-slots" in answer(project, "entries", "show", "vue-slot", status=1)
    as_json = project.run("entries", "show", "nope", "--format", "json")
    assert (as_json.returncode, as_json.stdout) == (1, b"")
    assert "names the nearest ones" in project.run("entries", "--help").stdout.decode()
    assert "nearest: vue-slots" in answer(project, "entries", "remove", "vue-slot", status=1)


def test_rows_can_play_no_tricks_on_a_terminal(project: Project) -> None:
    project.sql(
        "UPDATE entries SET id = ?, tags = ? WHERE id = 'vue-slots'", "a\x1b[2J\nb", '["\\u001b]0;x\\u0007"]'
    )
    for command in (["list"], ["show", "--report", "a\x1b[2J\nb"]):
        done = project.run("entries", *command, "--format", "text")
        assert done.returncode == 0, done.stderr
        assert b"\x1b" not in done.stdout
        assert b"\x07" not in done.stdout


NARROW = {"TERM": "dumb", "COLUMNS": "80"}


def test_tables_keep_within_eighty_columns(project: Project) -> None:
    with project.app() as app:
        long = draft("a-framework-with-a-long-name", "topic " * 20, tags=tuple(f"tag-{n}" for n in range(20)))
        saving.save(app.store, long, "# text\n", project.clock())
        entry_id = app.catalog.page()["entries"][0]["id"]
        app.catalog.remove([entry_id])
        app.catalog.restore(entry_id)
        app.catalog.remove(["vue-slots"])
        archived = draft("a-framework-with-a-long-name", "other " * 20)
        saving.save(app.store, archived, "# text\n", project.clock())
        app.catalog.remove([app.catalog.page()["entries"][0]["id"]])
    for command in (["entries", "list"], ["search", "topic"], ["archive", "list"]):
        lines = seen(project, *command, more=NARROW).splitlines()
        assert len(lines) > 1
        assert max(map(len, lines)) <= 80


def test_a_restored_database_is_not_undone_by_what_stands_beside_it(project: Project) -> None:
    def save(question: str, answer: str) -> None:
        assert (
            project.run(
                "save", "zod", question, "--answer", answer, more={"KR_AUTO_EXPORT": "true"}
            ).returncode
            == 0
        )

    save("What is strict?", "The good text.")
    assert project.run("db", "backup", "kept.db").returncode == 0
    save("What is strict?", "A bad text.")
    save("What is evil?", "Evil.")
    assert project.run("db", "restore", "kept.db").returncode == 0
    save("What is harmless?", "Nothing.")
    ids = {row["id"] for row in answer(project, "entries", "list")}
    assert {"zod-strict", "zod-harmless"} <= ids
    assert "zod-evil" not in ids
    assert "The good text." in answer(project, "entries", "show", "zod-strict", "--report")["report"]
    [aside] = (project.base / "frameworks" / "zod").glob("strict.md.*.bak")
    assert "A bad text." in aside.read_text()


def test_a_wide_terminal_shows_lists_as_tables_and_a_narrow_one_as_paragraphs(project: Project) -> None:
    project.run("save", "vue", "How is a slot filled?", "--answer", "Use `<template #name>`.")
    wide = seen(project, "entries", "list", more={"COLUMNS": "140"}).splitlines()
    assert wide[0].split() == [
        "id",
        "question",
        "framework",
        "version",
        "origin",
        "status",
        "confidence",
        "last",
        "accessed",
    ]
    assert wide[1].index("How is a slot filled?") == wide[0].index("question")
    narrow = seen(project, "entries", "list", more={"COLUMNS": "50"})
    assert "question How is a slot filled?" in " ".join(narrow.split())
    assert max(map(len, narrow.splitlines())) <= 50
