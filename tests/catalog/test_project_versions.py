"""``kr versions``: what a project depends on, held against the index."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kr.app import App
from kr.store import saving
from tests.support.program import Project
from tests.support.stores import draft


@pytest.fixture
def project(tmp_path: Path) -> Project:
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
def app(project: Project) -> Iterator[App]:
    with project.app() as opened:
        yield opened


def save(app: App, project: Project, framework: str, version: str) -> str:
    made = draft(framework, f"topic {version}", framework_version=version)
    return saving.save(app.store, made, f"# {version}\n", project.clock()).entry.id


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


def test_what_names_no_version_has_the_one_that_is_installed(project: Project) -> None:
    project.root.joinpath("package.json").unlink()
    project.root.joinpath("package-lock.json").unlink()
    (project.root / "requirements.txt").write_text("click\nhttpx\nanyio>=4\n")
    info = project.root / ".venv" / "lib" / "python3.11" / "site-packages" / "click-8.2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: click\nVersion: 8.2.1\n")
    (project.root / ".venv" / "pyvenv.cfg").write_text("")
    with project.app() as app:
        assert {row["framework"]: (row["version"], row["file"]) for row in app.versions()} == {
            "anyio": (">=4", "requirements.txt"),
            "click": ("8.2.1", ".venv"),
            "httpx": ("unknown", "requirements.txt"),
        }
        old = save(app, project, "click", "7.1")
        assert {row["framework"]: row["version"] for row in app.warm()}["click"] == "8.2.1"
        assert {row["version"] for row in app.warm(names=["click", "gone"])} == {"8.2.1", "unknown"}
        marked = app.versions(mark_stale=True)
    assert [row["marked_stale"] for row in marked if row["framework"] == "click"] == [[old]]


def test_looking_needs_no_database(app: App, project: Project) -> None:
    app.versions()
    assert not project.base.exists()


def test_another_folder(app: App, project: Project) -> None:
    other = project.root / "other"
    other.mkdir()
    (other / "go.mod").write_text("module x\n\nrequire github.com/gin-gonic/gin v1.9.1\n")
    assert [row["framework"] for row in app.versions(Path("other"))] == ["gin"]
    assert [row["framework"] for row in app.versions(other)] == ["gin"]


def test_a_broken_file_is_a_warning(app: App, project: Project, caplog: pytest.LogCaptureFixture) -> None:
    (project.root / "Cargo.toml").write_text("[dependencies\n")
    assert len(app.versions()) == 2
    assert "Cargo.toml" in caplog.text


def test_entries_of_another_major_are_marked_once(app: App, project: Project) -> None:
    old = save(app, project, "Vue", "2.7.16")
    kept = [save(app, project, "vue", version) for version in ("3.4", "unknown", "^3")]
    other = save(app, project, "react", "18")
    indirect = save(app, project, "lodash", "3.0")
    rows = {row["framework"]: row["marked_stale"] for row in app.versions(mark_stale=True)}
    assert rows == {"axios": [], "vue": [old]}
    status = dict(project.sql("SELECT id, status FROM entries"))
    assert status == {old: "stale", other: "fresh", indirect: "fresh"} | dict.fromkeys(kept, "fresh")
    assert app.catalog.entry(old)["stale_because"] == ["version 2.7.16, the project uses 3.5.2"]
    exported = yaml.safe_load((project.base / "index.yaml").read_text())
    assert {item["id"]: item["status"] for item in exported}[old] == "stale"
    assert all(not row["marked_stale"] for row in app.versions(mark_stale=True))
    everything = {
        row["framework"]: row["marked_stale"] for row in app.versions(mark_stale=True, everything=True)
    }
    assert everything["lodash"] == [indirect]


def test_an_entry_fits_when_one_of_several_versions_does(app: App, project: Project) -> None:
    member = project.root / "packages" / "old"
    member.mkdir(parents=True)
    (project.root / "package-lock.json").unlink()
    (project.root / "package.json").write_text(
        '{"workspaces": ["packages/*"], "dependencies": {"vue": "^3"}}'
    )
    (member / "package.json").write_text('{"name": "old", "dependencies": {"vue": "^2"}}')
    save(app, project, "vue", "2.7")
    marked = save(app, project, "vue", "1.0")
    rows = app.versions(mark_stale=True)
    assert [entry for row in rows for entry in row["marked_stale"]] == [marked]
