"""Looking through index and archive, and changing them by hand, on a real knowledge base."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kr.app import App
from kr.errors import KrError, UnknownEntry
from kr.models import PLACEHOLDER_MARK
from kr.store import entries, lookup, saving
from kr.text import strip_invisible
from tests.support.program import Project
from tests.support.stores import draft

KEYS = (
    "id framework framework_version topic question tags path created last_accessed status confidence".split()
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def app(project: Project) -> Iterator[App]:
    with project.app() as opened:
        yield opened


def save(app: App, project: Project, framework: str = "vue", topic: str = "slots", **changes: Any) -> str:
    text = changes.pop("text", f"# {framework} {topic}\n")
    return saving.save(app.store, draft(framework, topic, **changes), text, project.clock()).entry.id


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


def test_the_last_accessed_is_listed_first(app: App, project: Project) -> None:
    for topic in ("a", "b", "c"):
        save(app, project, topic=topic)
    with app.store.write() as tx:
        lookup.touch(tx, "vue-b", project.clock())
    rows = app.catalog.page()["entries"]
    assert ids(rows) == ["vue-b", "vue-c", "vue-a"]
    assert list(rows[0]) == [*KEYS, "origin"]
    assert ids(app.catalog.page(limit=2)["entries"]) == ["vue-b", "vue-c"]


def lose_text(project: Project, entry_id: str, path: str) -> None:
    (project.base / path).unlink()
    project.sql("UPDATE entries SET sha256 = NULL WHERE id = ?", entry_id)


def test_an_entry_whose_text_is_lost_is_not_fresh(app: App, project: Project) -> None:
    lost, kept = save(app, project, topic="a"), save(app, project, topic="b")
    lose_text(project, lost, app.catalog.entry(lost)["path"])
    shown = app.catalog.entry(lost)
    assert (shown["status"], shown["stale_because"]) == ("stale", ["missing report"])
    assert ids(app.catalog.page(status="fresh")["entries"]) == [kept]
    assert ids(app.catalog.page(status="stale")["entries"]) == [lost]
    assert {row["id"]: row["status"] for row in app.catalog.search("vue")} == {lost: "stale", kept: "fresh"}


def test_a_list_is_filtered_by_framework_and_by_status_of_today(app: App, project: Project) -> None:
    old = save(app, project, "Vue", "old")
    project.clock.pass_days(31)
    new, other = save(app, project, "VUE", "new"), save(app, project, "click")
    assert ids(app.catalog.page(framework=" vue ")["entries"]) == [new, old]
    assert ids(app.catalog.page(status="stale")["entries"]) == [old]
    assert ids(app.catalog.page(status="fresh")["entries"]) == [other, new]
    assert app.catalog.page(framework="none")["entries"] == []
    shown = app.catalog.entry(old)
    assert shown["status"] == "stale"
    assert shown["stale_because"] == ["last accessed 31 days ago, more than 30"]
    assert project.sql("SELECT status FROM entries WHERE id = ?", old) == [("fresh",)]


def test_show_tells_all_and_the_report(app: App, project: Project) -> None:
    entry_id = save(app, project)
    save(app, project, text="# two\n")
    with app.store.write() as tx:
        entries.mark_stale(tx, entry_id, "the version changed")
    shown = app.catalog.entry(entry_id, report=True)
    assert list(shown)[: len(KEYS)] == KEYS
    assert (shown["revisions"], shown["archived"], shown["report"]) == (1, 0, "# two\n")
    assert shown["stale_because"] == ["the version changed"]
    lose_text(project, entry_id, shown["path"])
    assert app.catalog.entry(entry_id, report=True)["report"] is None


def test_a_finding_is_found_before_what_was_excerpted_of_installed_documentation(
    app: App, project: Project
) -> None:
    save(app, project, topic="named slots slots slots", fresh_until="2027-01-01T00:00:00.000000Z")
    save(app, project, topic="templates with slots", origin="finding", written_by="agent:a")
    save(app, project, topic="named parts", origin="finding", written_by="agent:a")
    rows = app.catalog.search("slots")
    assert ids(rows) == ["vue-templates-with-slots", "vue-named-slots-slots-slots"]
    rows = app.catalog.search("named slots")
    assert (len(rows), ids(rows)[-1]) == (3, "vue-named-slots-slots-slots")


def test_what_every_report_says_by_its_template_is_not_searched(app: App) -> None:
    finding = {"framework": "vue", "question": "How is a slot named?", "answer": "Write v-slot:name."}
    app.save_finding({**finding, "session_id": "a"})
    assert ids(app.catalog.search("named slot")) == ["vue-slot-named"]
    for words in ("research date", "confidence", "summary details", "attribution"):
        assert app.catalog.search(words) == []


def test_remove_and_restore_are_exported(app: App, project: Project) -> None:
    entry_id = save(app, project)
    removed = app.catalog.remove([entry_id])
    assert (ids(removed["removed"]), removed["index_count"], removed["warnings"]) == ([entry_id], 0, [])
    assert list(removed["removed"][0]) == [*KEYS, "archived_at", "reason", "archive_id"]
    index, archive = project.base / "index.yaml", project.base / "_archived-index.yaml"
    assert yaml.safe_load(index.read_text()) == []
    assert [(item["id"], item["reason"]) for item in yaml.safe_load(archive.read_text())] == [
        (entry_id, "manual")
    ]
    restored = app.catalog.restore(entry_id)
    assert (restored["entry"]["status"], restored["index_count"], restored["warnings"]) == ("fresh", 1, [])
    assert ids(yaml.safe_load(index.read_text())) == [entry_id]
    assert yaml.safe_load(archive.read_text()) == []
    assert app.catalog.archive() == []


def test_a_failed_export_is_told_and_changes_nothing_else(app: App, project: Project) -> None:
    entry_id = save(app, project)
    (project.base / "index.yaml").mkdir()
    removed = app.catalog.remove([entry_id])
    assert any("export_failed" in warning and "index.yaml" in warning for warning in removed["warnings"])
    assert ids(app.catalog.archive()) == [entry_id]


def test_a_restored_placeholder_is_no_answer(app: App, project: Project) -> None:
    entry_id = save(app, project, origin="placeholder", status="stale", text=f"# a\n\n{PLACEHOLDER_MARK}\n")
    app.catalog.remove([entry_id])
    restored = app.catalog.restore(entry_id)
    assert restored["entry"]["status"] == "stale"
    assert any("placeholder" in warning for warning in restored["warnings"])
    assert app.catalog.entry(entry_id)["stale_because"][0].startswith("a placeholder")


def test_of_several_archived_ones_the_newest_comes_back_or_the_chosen_one(app: App, project: Project) -> None:
    for text in ("# one\n", "# two\n", "# three\n"):
        entry_id = save(app, project, text=text)
        app.catalog.remove([entry_id])
        project.clock.pass_days(1)
    rows = app.catalog.archive(framework="vue")
    assert [row["archived_at"][:10] for row in rows] == ["2026-11-23", "2026-11-22", "2026-11-21"]
    path = project.base / rows[0]["path"]
    app.catalog.restore("vue-slots")
    assert path.read_text() == "# three\n"
    app.catalog.restore("vue-slots", archive_id=rows[2]["archive_id"])
    assert path.read_text() == "# one\n"
    app.catalog.restore("vue-slots", archive_id=rows[1]["archive_id"])
    assert path.read_text() == "# two\n"
    with pytest.raises(UnknownEntry, match="archive id"):
        app.catalog.restore("vue-slots", archive_id=2**70)


def test_history_and_a_revisions_text(app: App, project: Project) -> None:
    entry_id = save(app, project, text="# one\n")
    save(app, project, text="# two\n")
    [row] = app.catalog.history(entry_id)
    assert (row["revision"], row["confidence"], row["framework_version"]) == (1, "high", "8.2")
    assert app.catalog.revision(entry_id, 1)["text"] == "# one\n"
    assert app.catalog.restore_revision(entry_id, 1)["entry"]["id"] == entry_id
    assert [item["revision"] for item in app.catalog.history(entry_id)] == [1, 2]
    app.catalog.remove([entry_id])
    assert len(app.catalog.history(entry_id)) == 2
    with pytest.raises(UnknownEntry, match=f"kr archive restore {entry_id}"):
        app.catalog.restore_revision(entry_id, 1)


def test_an_unknown_id_offers_the_nearest(app: App, project: Project) -> None:
    save(app, project, topic="slots")
    save(app, project, "click", "repeatable options")
    with pytest.raises(UnknownEntry, match=r'"vue-slts"; nearest: vue-slots$'):
        app.catalog.entry("vue-slts")
    with pytest.raises(UnknownEntry, match="nearest: vue-slots"):
        app.catalog.remove(["vue-slts"])
    with pytest.raises(UnknownEntry, match="kr entries list shows them"):
        app.catalog.history("kubernetes")
    app.catalog.remove(["vue-slots"])
    with pytest.raises(UnknownEntry, match="kr archive restore vue-slots"):
        app.catalog.entry("vue-slots")
    with pytest.raises(UnknownEntry, match="nearest: vue-slots"):
        app.catalog.restore("vue-slot")
    with pytest.raises(UnknownEntry, match="it is live"):
        app.catalog.restore("click-repeatable-options")


def test_one_unknown_id_of_several_removes_nothing(app: App, project: Project) -> None:
    entry_id = save(app, project)
    with pytest.raises(UnknownEntry):
        app.catalog.remove([entry_id, "unknown"])
    assert ids(app.catalog.page()["entries"]) == [entry_id]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.text(st.characters(), max_size=40)
    | st.just("x" * 100_000)
    | st.just("\x1b[2J\x00'; DROP TABLE entries")
)
def test_odd_ids_are_harmless(app: App, text: str) -> None:
    for ask in (app.catalog.entry, app.catalog.history, app.catalog.restore):
        with pytest.raises(KrError) as caught:
            ask(text)
        assert strip_invisible(str(caught.value)) == str(caught.value)
        assert len(str(caught.value)) < 1000
    assert app.catalog.search(text) == []
    assert app.catalog.page(framework=text)["entries"] == app.catalog.archive(framework=text) == []
