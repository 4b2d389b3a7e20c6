"""Importing into a real knowledge base: what becomes of entries, reports and archive."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kr.errors import EntryConflict
from kr.transfer.import_yaml import Imported
from tests.support.program import Project, request

REPORT = (
    "# {0}\n\n**Version:** 3\n**Research Date:** 2026-10-02\n**Confidence:** high\n\n## Summary\n\n{0}.\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    folder = tmp_path / "old"
    folder.mkdir()
    return folder


def item(topic: str = "slots", **changes: Any) -> dict[str, Any]:
    slug = topic.replace(" ", "-")
    values = {
        "id": f"vue-{slug}",
        "framework": "vue",
        "framework_version": "3.5",
        "topic": topic,
        "tags": ["a", "b"],
        "path": f"frameworks/vue/{slug}.md",
        "created": "2026-10-01",
        "last_accessed": "2026-11-01",
        "status": "fresh",
    }
    return {key: value for key, value in {**values, **changes}.items() if value is not ...}


def write_index(
    folder: Path, items: Sequence[dict[str, Any]], *, name: str = "index.yaml", reports: bool = True
) -> Path:
    """Write an index, and the reports of its live entries that are missing."""
    folder.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(it, ensure_ascii=False) for it in items)
    (folder / name).write_text(f"[{lines}]", encoding="utf-8")
    for each in items if reports and name == "index.yaml" else ():
        is_live = each.get("status") != "archived" and ".." not in each["path"]
        if is_live and not (folder / each["path"]).exists():
            write_report(folder, each["path"])
    return folder


def write_report(folder: Path, path: str, text: str | None = None) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text if text is not None else REPORT.format(path), encoding="utf-8")
    return file


def run(project: Project, *sources: Path) -> Imported:
    with project.app() as app:
        return app.import_yaml(sources)


def counts(result: Imported) -> dict[str, int]:
    plain = result.plain()
    assert not result.unreadable
    names = ("imported", "updated", "unchanged", "archived", "refused")
    return {name: plain[name] for name in names if plain[name]}


def reasons(result: Imported) -> list[str]:
    return [refused.reason for refused in result.refused]


def rows(project: Project, columns: str, table: str = "entries") -> list[tuple[Any, ...]]:
    return project.sql(f"SELECT {columns} FROM {table} ORDER BY id")


def test_twice_changes_nothing(project: Project, old: Path) -> None:
    write_index(
        old,
        [
            item("one"),
            item("two", last_accessed=..., created=..., tags=..., status=...),
            item("lost", last_accessed="2099-01-01"),
            item("three", id=..., last_accessed="2026-11-01 10:00:00"),
            item("gone", status="archived"),
            item("bad", path="../x.md"),
        ],
    )
    (old / "frameworks/vue/lost.md").unlink()
    write_index(
        old, [item("kept", archived_at="2026-10-20T00:00:00Z", reason="lru")], name="_archived-index.yaml"
    )
    first = run(project, old)
    assert counts(first) == {"imported": 3, "archived": 2, "refused": 2}
    assert (
        reasons(first)[0] == "path: there is no report at frameworks/vue/lost.md, so that it is not indexed"
    )
    before = dump(project)
    project.clock.pass_days(3)
    again = run(project, old)
    assert (counts(again), reasons(again)) == ({"unchanged": 5, "refused": 2}, reasons(first))
    assert dump(project) == before


def dump(project: Project) -> tuple[object, ...]:
    files = {str(file): file.read_bytes() for file in project.base.rglob("*.md")}
    exported = [(project.base / name).read_bytes() for name in ("index.yaml", "_archived-index.yaml")]
    tables = [rows(project, "*", table) for table in ("entries", "archived_entries")]
    return files, exported, tables


def test_what_the_guard_archived_does_not_come_back(project: Project, old: Path) -> None:
    project.env["KR_MAX_ENTRIES"] = "3"
    write_index(
        old,
        [item(f"topic {n}", last_accessed=f"2026-11-{n:02}") for n in range(1, 7)]
        + [item("ancient", last_accessed="2025-01-01")],
    )
    first = run(project, old)
    assert counts(first) == {"imported": 7}
    assert [row[0] for row in rows(project, "id")] == ["vue-topic-4", "vue-topic-5", "vue-topic-6"]
    assert counts(run(project, old)) == {"unchanged": 7}
    assert project.sql("SELECT count(*) FROM archived_entries") == [(4,)]


def test_the_newer_access_wins(project: Project, old: Path) -> None:
    write_index(old, [item(last_accessed="2026-11-02", framework_version="3.5")])
    run(project, old)
    write_index(old, [item(last_accessed="2026-11-01", framework_version="3.4", tags=["old"])])
    assert counts(run(project, old)) == {"unchanged": 1}
    write_index(old, [item(last_accessed="2026-11-03", framework_version="3.6", tags=...)])
    assert counts(run(project, old)) == {"updated": 1}
    ((version, tags, accessed),) = rows(project, "framework_version, tags, last_accessed")
    assert (version, tags, accessed[:10]) == ("3.6", '["a", "b"]', "2026-11-03")


def test_an_update_with_another_text_leaves_the_old_one_in_the_history(project: Project, old: Path) -> None:
    write_index(old, [item()])
    file = write_report(old, "frameworks/vue/slots.md", "# first\n")
    run(project, old)
    write_index(old, [item(last_accessed="2026-11-10")])
    file.write_text("# second\n")
    assert counts(run(project, old)) == {"updated": 1}
    ((path,),) = rows(project, "path")
    assert path == "frameworks/vue/slots.md"
    assert (project.base / path).read_text() == "# second\n"
    kept = project.sql("SELECT text FROM report_texts JOIN revisions USING (sha256)")
    assert kept == [("# first\n",)]


VERSIONS = "framework_version, sha256 IS NULL, confidence"


@pytest.mark.parametrize("place", ["in place", "elsewhere"])
def test_an_archived_entry_is_not_given_the_text_of_a_live_one(
    project: Project, old: Path, place: str
) -> None:
    folder = project.base if place == "in place" else old
    write_report(folder, "frameworks/vue/slots.md")
    write_index(folder, [item(framework_version="2.x")])
    gone = item(framework_version="1.x", archived_at="2026-10-20", status="archived")
    write_index(folder, [gone], name="_archived-index.yaml")
    run(project, folder)
    assert rows(project, VERSIONS) == [("2.x", 0, "high")]
    assert rows(project, VERSIONS, "archived_entries") == [("1.x", 1, "low")]
    with project.app() as app, pytest.raises(EntryConflict, match="its text is lost"):
        app.catalog.restore("vue-slots")
    assert project.research()["status"] != "failure"
    assert rows(project, VERSIONS, "archived_entries") == [("1.x", 1, "low")]


def test_symlinks_lead_nowhere(project: Project, old: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret\n")
    (old / "frameworks" / "vue").mkdir(parents=True)
    (old / "frameworks" / "vue" / "slots.md").symlink_to(secret)
    (old / "out").symlink_to(tmp_path)
    (old / "frameworks" / "d.md").mkdir()
    write_index(old, [item(), item("two", path="out/secret.md"), item("dir", path="frameworks/d.md")])
    result = run(project, old)
    assert counts(result) == {"refused": 3}
    assert all("is not a readable file within" in reason for reason in reasons(result))
    assert not list(project.base.rglob("*.md"))


def test_nothing_is_written_through_a_symlink(project: Project, old: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    project.base.mkdir(parents=True)
    (project.base / "frameworks").symlink_to(outside)
    write_index(old, [item()])
    write_report(old, "frameworks/vue/slots.md")
    (reason,) = reasons(run(project, old))
    assert (
        f"{project.base}/frameworks/vue/slots.md: the report can't be written: frameworks is a symb" in reason
    )
    assert not list(outside.iterdir())


def test_files_that_cannot_be_read(project: Project, old: Path, tmp_path: Path) -> None:
    (old / "broken.yaml").write_text("{{{")
    write_index(old, [item()])
    empty = tmp_path / "empty"
    empty.mkdir()
    result = run(project, old / "broken.yaml", old, tmp_path / "nowhere.yaml", empty, Path("/dev/zero"))
    assert result.counts["imported"] == 1
    told = {Path(file.file).name: file.reason for file in result.unreadable}
    assert told["broken.yaml"] == "line 1, column 1: it must be a list"
    assert told["nowhere.yaml"] == "can't be read: No such file or directory"
    assert told["empty"] == "holds neither index.yaml nor _archived-index.yaml"
    assert told["zero"] == "is not a regular file"


def test_export_import_into_an_empty_base_export_gives_equal_bytes(project: Project, tmp_path: Path) -> None:
    project.env["KR_MAX_ENTRIES"] = "4"
    for number in range(7):
        project.research(request(topic=f"topic {'abcdefg'[number]} thing", tags=[f"t{number}"]))
        project.clock.pass_days(9)
    names = ("index.yaml", "_archived-index.yaml")
    before = [(project.base / name).read_bytes() for name in names]
    assert before[1].count(b"\n- id: ") == 3
    again = Project(tmp_path / "again", env=dict(project.env), clock=project.clock)
    assert counts(run(again, project.base)) == {"imported": 4, "archived": 3}
    assert [(again.base / name).read_bytes() for name in names] == before
    out = tmp_path / "yaml only"
    with project.app() as app:
        app.export_yaml(out)
    bare = Project(tmp_path / "bare", env=dict(project.env), clock=project.clock)
    run(bare, out)
    assert [(bare.base / name).read_bytes() for name in names] == before


HOSTILE = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.sampled_from(["a", "b", "", "../a", None]),
            "framework": st.sampled_from(["vue", "Vue", "c++", "c", "", ["x"]]),
            "topic": st.sampled_from(["one", "two", "ONE", " "]),
            "path": st.sampled_from(["a.md", "b.md", "x/../../a.md", "c/a.md", "/a.md", "a.md/b.md"]),
            "tags": st.sampled_from([["a"], "a", [], None, [["x"]]]),
            "last_accessed": st.sampled_from(["2026-11-01", "2026-11-02", "2099-01-01", "x", None]),
            "status": st.sampled_from(["fresh", "stale", "archived", "x"]),
        },
    ),
    max_size=8,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=HOSTILE, reports=st.sets(st.sampled_from(["a.md", "b.md", "c/a.md"])))
def test_any_index_is_taken_in_twice_alike(
    tmp_path_factory: pytest.TempPathFactory, items: list[dict[str, Any]], reports: set[str]
) -> None:
    root = tmp_path_factory.mktemp("any")
    project = Project(root / "project")
    old = write_index(root / "old", items, reports=False)
    for path in reports:
        write_report(old, path)
    first = run(project, old)
    assert sum(first.counts.values()) + len(first.refused) == len(items)
    before = dump(project) if first.has_changed else None
    again = run(project, old)
    assert not again.has_changed
    # Of a live item without a report an archived one of the same index may have been taken in meanwhile: it is known then.
    assert set(again.refused) <= set(first.refused)
    if before is not None:
        assert dump(project) == before
        live = rows(project, "id, path, framework_key, topic_key")
        assert len({(path, *pair) for _, path, *pair in live}) >= len({path for _, path, *_ in live})
        assert len({path for _, path, *_ in live}) == len({(path, *pair) for _, path, *pair in live})
    assert {file.name for file in root.iterdir()} <= {"project", "old"}
