"""What entries were asked, on its way into another knowledge base (SPEC 3.2 and 6.1)."""

import json
from pathlib import Path
from typing import Any

import pytest

from kr.freshness import to_text
from kr.store import entries, saving, wordings
from kr.store.requests import Need
from tests.support.program import Project, request
from tests.support.stores import draft

TEXTS = ("2.10", "yes", "a: b # c\nsecond line", "虚拟滚动 🎉", "=", "null", "a\u2028b")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    with made.app() as app:
        for version in ("2", "3"):
            made_of = draft(framework_version=version, question=f"How in {version}?")
            saving.save(app.store, made_of, f"# {version}\n", made.clock())
        saving.save(app.store, draft(topic="gone", question="Where is it?"), "# gone\n", made.clock())
    with made.app() as app, app.store.write() as tx:
        entry = entries.of_topic(tx, "click", "repeatable options", "2")
        assert entry is not None
        for number, text in enumerate(TEXTS):
            need = Need("repeatable options", ("options",), text)
            at = to_text(made.clock())
            wordings.keep(tx, entry, need, at=at, session_id="s-1", proved=number == 0)
    with made.app() as app:
        app.catalog.remove(["click-gone"])
    return made


def asked_of(project: Project) -> list[list[tuple[Any, ...]]]:
    return [
        project.sql("SELECT id, framework_version, question FROM entries ORDER BY id"),
        project.sql("SELECT id, question FROM archived_entries ORDER BY id"),
        project.sql(
            "SELECT entry_id, at, topic, tags, question, session_id, proved FROM wordings ORDER BY id"
        ),
    ]


def test_questions_and_wordings_go_along(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "out"
    other = Project(tmp_path / "other")
    other.clock.pass_days(1)
    with project.app() as app, other.app() as theirs:
        app.export_yaml(out)
        for path in ("repeatable-options", "repeatable-options-v2", "repeatable-options-v3", "gone"):
            report = Path("frameworks", "click", f"{path}.md")
            if (project.base / report).exists():
                (out / report).parent.mkdir(parents=True, exist_ok=True)
                (out / report).write_bytes((project.base / report).read_bytes())
        for _ in range(2):
            assert theirs.import_yaml([out]).warnings == []
            assert asked_of(other) == asked_of(project)
    assert len(asked_of(other)[2]) == len(TEXTS)
    again = request(
        framework="click", framework_version="2", topic="another way", question=TEXTS[0], tags=["options"]
    )
    assert other.research(again)["status"] == "cache-hit"


def test_times_go_along_to_the_microsecond_and_a_later_access_stays(project: Project, tmp_path: Path) -> None:
    times = (
        "SELECT id, created, last_accessed, researched_at, fresh_until FROM entries ORDER BY last_accessed"
    )
    with project.app() as app:
        app.export_yaml(tmp_path / "out")
    other = Project(tmp_path / "other")
    other.clock.pass_days(1)
    with other.app() as theirs:
        for _ in range(2):
            assert theirs.import_yaml([tmp_path / "out"]).warnings == []
            assert other.sql(times) == project.sql(times)
    asked = request(
        framework="click", framework_version="2", topic="another way", question=TEXTS[0], tags=["options"]
    )
    assert other.research(asked)["status"] == "cache-hit"
    later = other.sql(times)
    with other.app() as theirs:
        theirs.import_yaml([tmp_path / "out"])
    assert other.sql(times) == later != project.sql(times)


def test_what_is_wrong_is_named_and_the_rest_counts(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with project.app() as app:
        app.export_yaml(out)
        good = {
            "id": "click-repeatable-options-v3",
            "framework": "Click",
            "entry_topic": "Repeatable options",
            "kind": "wording",
            "topic": "options given twice",
            "tags": ["options"],
            "question": "Twice?",
        }
        items = [
            good | {"kind": "guess"},
            {key: value for key, value in good.items() if key != "question"},
            good | {"entry_topic": "another"},
            good | {"id": "nobody"},
            good,
            "no mapping",
        ]
        (out / "_wordings.yaml").write_text(json.dumps(items))
        warnings = app.import_yaml([out]).warnings
    assert [warning.partition(": ")[2] for warning in warnings] == [
        'kind: must be times or writer or question or wording, not "guess"',
        "question: required, but missing",
        "an entry must be a mapping",
    ]
    kept = project.sql("SELECT entry_id, topic FROM wordings WHERE question = 'Twice?'")
    assert kept == [("click-repeatable-options-v3", "options given twice")]


def test_a_mark_for_one_major_version_goes_along(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "out"
    other = Project(tmp_path / "other")
    marks = "SELECT id, status, stale_major FROM entries ORDER BY id"
    with project.app() as app, other.app() as theirs:
        first, second = (row[0] for row in project.sql("SELECT id FROM entries ORDER BY id LIMIT 2"))
        with app.store.write() as tx:
            entries.mark_stale(tx, first, "another version", major="7")
            entries.mark_stale(tx, second, "marked", major=None)
        app.export_yaml(out)
        for _ in range(2):
            assert theirs.import_yaml([out]).warnings == []
            assert other.sql(marks) == project.sql(marks)
    text = (out / "_wordings.yaml").read_text(encoding="utf-8")
    assert text.count("stale_major") == 1
    assert "stale_major" not in (out / "index.yaml").read_text(encoding="utf-8")
