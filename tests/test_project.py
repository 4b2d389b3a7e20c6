"""``kr versions`` and ``kr warm``: what a project uses, what the cache lacks of it, and asking within one budget."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kr.app import App
from kr.project import TOPIC
from kr.store import saving
from tests.support.mcp_servers import StandIn, context7_server
from tests.support.program import Project
from tests.support.stores import draft


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    depend(project, vue="^3.5", next="15.1.8", **{"vue-easytable": "2"})
    return project


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server() as server:
        project.use_context7(server.url)
        yield server


def depend(project: Project, **dependencies: str) -> None:
    (project.root / "package.json").write_text(json.dumps({"dependencies": dependencies}))


def save(app: App, project: Project, framework: str, **changes: Any) -> None:
    saving.save(app.store, draft(framework, "a topic", **changes), "# text\n", project.clock())


def states(rows: list[dict[str, Any]], key: str = "state") -> dict[str, str]:
    return {row["framework"]: row[key] for row in rows}


def warm_up(app: App, **wanted: Any) -> tuple[list[dict[str, Any]], list[str]]:
    told: list[str] = []
    return app.warm_up(tell=told.append, **wanted), told


def test_what_is_lacking_comes_first(project: Project) -> None:
    with project.app() as app:
        save(app, project, "Vue", framework_version="3")
        save(app, project, "next", framework_version="14")
        assert app.warm() == [
            {"framework": "vue-easytable", "version": "2", "fresh": 0, "stale": 0, "state": "missing"},
            {"framework": "next", "version": "15.1.8", "fresh": 0, "stale": 1, "state": "stale"},
            {"framework": "vue", "version": "^3.5", "fresh": 1, "stale": 0, "state": "fresh"},
        ]
        project.clock.pass_days(31)
        assert states(app.warm())["vue"] == "stale"


def test_what_is_lacking_is_researched_once(project: Project, context7: StandIn) -> None:
    with project.app() as app:
        save(app, project, "next", framework_version="15")
        rows, told = warm_up(app, max_calls=5)
        assert states(rows, "status") == {"vue": "success", "vue-easytable": "success", "next": "fresh"}
        assert told == ["[1/2] vue ^3.5", "[2/2] vue-easytable 2"]
        assert all(row["report_path"] for row in rows if row["status"] == "success")
        assert states(app.warm()) == dict.fromkeys(("vue", "vue-easytable", "next"), "fresh")
        asked = len(context7.calls())
        assert states(warm_up(app)[0], "status") == dict.fromkeys(("vue", "vue-easytable", "next"), "fresh")
        assert len(context7.calls()) == asked
    assert project.sql("SELECT DISTINCT topic FROM requests") == [(TOPIC,)]
    assert project.sql("SELECT count(DISTINCT session_id), min(story_key), max(story_key) FROM requests") == [
        (1, "0-0", "0-0")
    ]
    assert project.sql("SELECT framework_version FROM entries WHERE framework = 'vue'") == [("^3.5",)]


@pytest.mark.parametrize(
    ("wanted", "researched"), [({"max_calls": 1}, 1), ({"max_calls": 0}, 0), ({"limit": 2}, 2)]
)
def test_the_budget_and_the_limit_are_of_the_whole_run(
    project: Project, context7: StandIn, wanted: dict[str, int], researched: int
) -> None:
    with project.app() as app:
        rows, told = warm_up(app, **wanted)
        statuses = list(states(rows, "status").values())
        assert (statuses.count("success"), statuses.count("skipped")) == (researched, 3 - researched)
        assert all(row["note"] for row in rows if row["status"] == "skipped")
        assert len(told) == researched
        assert len(app.catalog.page()["entries"]) == researched
    assert len([call for call in context7.calls() if call.tool == "query-docs"]) == researched


def test_where_no_source_answers_it_gives_up(project: Project) -> None:
    depend(project, **{f"package-{number}": "1" for number in range(6)})
    with project.app() as app:
        rows, _ = warm_up(app)
        assert [row["status"] for row in rows] == ["degraded"] * 3 + ["skipped"] * 3
        assert rows[-1]["note"] == "no source answers"
        assert len(app.catalog.page()["entries"]) == 3


def test_known_names_come_first_and_tools_last(project: Project) -> None:
    (project.root / "package.json").write_text(
        json.dumps(
            {"dependencies": {"left": "1", "vue": "3"}, "devDependencies": {"eslint": "9", "zzz": "3"}}
        )
    )
    with project.app() as app:
        assert [row["framework"] for row in app.warm()] == ["vue", "left", "eslint", "zzz"]


def test_frameworks_by_name(project: Project) -> None:
    with project.app() as app:
        rows = app.warm(names=("Next.js", "fastapi"))
    assert [(row["framework"], row["version"]) for row in rows] == [
        ("next", "15.1.8"),
        ("fastapi", "unknown"),
    ]


@pytest.fixture
def locked(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    lock = {
        "lockfileVersion": 3,
        "packages": {
            "": {"dependencies": {"vue": "^3.0.0", "axios": "^1"}},
            "node_modules/vue": {"version": "3.5.2"},
            "node_modules/lodash": {"version": "4.17.21"},
        },
    }
    manifest = {"dependencies": {"vue": "^3.0.0", "axios": "^1"}}
    (project.root / "package.json").write_text(json.dumps(manifest))
    (project.root / "package-lock.json").write_text(json.dumps(lock))
    return project


@pytest.fixture
def app(locked: Project) -> Iterator[App]:
    with locked.app() as opened:
        yield opened


def save_version(app: App, locked: Project, framework: str, version: str) -> str:
    made = draft(framework, f"topic {version}", framework_version=version)
    return saving.save(app.store, made, f"# {version}\n", locked.clock()).entry.id


def test_a_lock_file_wins_over_a_range(app: App) -> None:
    assert app.versions() == [
        {"framework": "axios", "version": "^1", "package": "axios", "file": "package.json", "direct": True},
        {
            "framework": "vue",
            "version": "3.5.2",
            "package": "vue",
            "file": "package-lock.json",
            "direct": True,
        },
    ]
    assert [row["framework"] for row in app.versions(everything=True)] == ["axios", "vue", "lodash"]


def test_what_names_no_version_has_the_one_that_is_installed(locked: Project) -> None:
    locked.root.joinpath("package.json").unlink()
    locked.root.joinpath("package-lock.json").unlink()
    (locked.root / "requirements.txt").write_text("click\nhttpx\nanyio>=4\n")
    info = locked.root / ".venv" / "lib" / "python3.11" / "site-packages" / "click-8.2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: click\nVersion: 8.2.1\n")
    (locked.root / ".venv" / "pyvenv.cfg").write_text("")
    with locked.app() as app:
        assert {row["framework"]: (row["version"], row["file"]) for row in app.versions()} == {
            "anyio": (">=4", "requirements.txt"),
            "click": ("8.2.1", ".venv"),
            "httpx": ("unknown", "requirements.txt"),
        }
        old = save_version(app, locked, "click", "7.1")
        assert {row["framework"]: row["version"] for row in app.warm()}["click"] == "8.2.1"
        assert {row["version"] for row in app.warm(names=["click", "gone"])} == {"8.2.1", "unknown"}
        marked = app.versions(mark_stale=True)
    assert [row["marked_stale"] for row in marked if row["framework"] == "click"] == [[old]]


def test_a_broken_file_is_a_warning(app: App, locked: Project, caplog: pytest.LogCaptureFixture) -> None:
    (locked.root / "Cargo.toml").write_text("[dependencies\n")
    *rows, last = app.versions()
    assert len(rows) == 2
    assert (last["framework"], last["file"]) == (None, "Cargo.toml")
    assert "it is not valid TOML" in last["note"]
    assert "Cargo.toml" in caplog.text


def test_entries_of_another_major_are_marked_once(app: App, locked: Project) -> None:
    old = save_version(app, locked, "Vue", "2.7.16")
    kept = [save_version(app, locked, "vue", version) for version in ("3.4", "unknown", "^3")]
    other = save_version(app, locked, "react", "18")
    indirect = save_version(app, locked, "lodash", "3.0")
    rows = {row["framework"]: row["marked_stale"] for row in app.versions(mark_stale=True)}
    assert rows == {"axios": [], "vue": [old]}
    status = dict(locked.sql("SELECT id, status FROM entries"))
    assert status == {old: "stale", other: "fresh", indirect: "fresh"} | dict.fromkeys(kept, "fresh")
    assert app.catalog.entry(old)["stale_because"] == ["version 2.7.16, the project uses 3.5.2"]
    exported = yaml.safe_load((locked.base / "index.yaml").read_text())
    assert {item["id"]: item["status"] for item in exported}[old] == "stale"
    assert all(not row["marked_stale"] for row in app.versions(mark_stale=True))
    everything = {
        row["framework"]: row["marked_stale"] for row in app.versions(mark_stale=True, everything=True)
    }
    assert everything["lodash"] == [indirect]


def test_an_entry_fits_when_one_of_several_versions_does(app: App, locked: Project) -> None:
    member = locked.root / "packages" / "old"
    member.mkdir(parents=True)
    (locked.root / "package-lock.json").unlink()
    (locked.root / "package.json").write_text('{"workspaces": ["packages/*"], "dependencies": {"vue": "^3"}}')
    (member / "package.json").write_text('{"name": "old", "dependencies": {"vue": "^2"}}')
    save_version(app, locked, "vue", "2.7")
    marked = save_version(app, locked, "vue", "1.0")
    rows = app.versions(mark_stale=True)
    assert [entry for row in rows for entry in row["marked_stale"]] == [marked]
