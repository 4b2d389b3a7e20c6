"""The wheel, installed where no source tree is, driven from outside."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = ["kr", "migrations", "alembic.ini", "pyproject.toml", "README.md", "LICENSE"]

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build from a copy of the source, which is gone afterwards."""
    source = tmp_path_factory.mktemp("source") / "kr"
    source.mkdir()
    for name in SHIPPED:
        item = ROOT / name
        if item.is_dir():
            shutil.copytree(item, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(item, source / name)
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)],
        check=True,
        capture_output=True,
    )
    shutil.rmtree(source)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it alone into an environment that borrows the dependencies of this one, but not its kr."""
    place = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = place / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
        capture_output=True,
    )
    site = next((place / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin" / "kr"


def run(program: Path, folder: Path, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("KR_", "PYTHON"))}
    environ.pop("VIRTUAL_ENV", None)
    environ |= {
        "HOME": str(folder),
        "KR_SOURCES": "[]",
        "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
        "VIRTUAL_ENV": str(program.parents[1]),
    }
    return subprocess.run(
        [str(program), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environ,
        timeout=120,
        check=False,
    )


def test_the_wheel_carries_its_migrations_and_nothing_of_the_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "kr/alembic.ini" in names
    assert "kr/py.typed" in names
    assert "kr/workflows/templates/deployment.md" in names
    assert any(name.startswith("kr/migrations/versions/") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "migrations/", "scripts/"))]
    assert not [name for name in names if "__pycache__" in name]


def test_the_installed_program_is_not_the_source_tree(program: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(program.parent / "python"), "-c", "import kr; print(kr.__file__)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert str(program.parents[1]) in done.stdout


def test_first_use_migrates_and_keeps_what_it_found(program: Path, tmp_path: Path) -> None:
    assert run(program, tmp_path, "init").returncode == 0
    first = run(
        program, tmp_path, "research", "click", "How do I make an option repeatable?", "--format", "json"
    )
    assert first.returncode == 0
    (told,) = first.stderr.splitlines()
    assert told.startswith("warning: ")
    assert "--framework-version" in told
    answer = json.loads(first.stdout)
    assert (answer["status"], answer["results"]["index_updated"]) == ("degraded", True)
    database = tmp_path / ".kr" / "kr.db"
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] >= 1
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    second = run(
        program, tmp_path, "research", "click", "How do I make an option repeatable?", "--format", "json"
    )
    assert json.loads(second.stdout)["status"] == "degraded", "a placeholder is never served as an answer"


def test_a_request_document_goes_through(program: Path, tmp_path: Path) -> None:
    document = {
        "story_key": "3-1",
        "mode": "research",
        "session_id": "s",
        "research_query": {
            "framework": "vue-easytable",
            "framework_version": "2.x",
            "topic": "virtual scrolling configuration",
            "tags": ["virtual-scroll"],
            "question": "How to configure virtual scrolling with dynamic row heights?",
        },
    }
    done = run(
        program, tmp_path, "research", "--request", "-", "--format", "json", stdin=json.dumps(document)
    )
    assert json.loads(done.stdout)["results"]["report_path"] == (
        "frameworks/vue-easytable/virtual-scrolling-configuration.md"
    )


def test_the_version_is_told(program: Path, tmp_path: Path) -> None:
    from kr import __version__

    assert __version__ in run(program, tmp_path, "--version").stdout
