"""A remembered version is that of the project as it is now."""

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kr.packages.dependencies import version_of
from kr.packages.witness import VersionMemory, now_ns, watched
from tests.packages.test_installed import distribution, environment, node


def _look(
    project: Path, framework: str, environ: dict[str, str], key: str = "key"
) -> tuple[str | None, bool]:
    """Return the version, and whether it was remembered."""
    base = project / "_bmad-output"
    base.mkdir(parents=True, exist_ok=True)
    memory = VersionMemory(base, key, framework, environ)
    known = memory.recall()
    if known is not None:
        return known[0], True
    started = now_ns()
    with watched() as seen:
        version = version_of(project, framework, environ)
    memory.remember(version, seen, started_ns=started)
    return version, False


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _renew(project: Path) -> None:
    site = project / ".venv" / "lib" / "python3.11" / "site-packages"
    shutil.rmtree(site / "click-2.0.dist-info")
    distribution(site, "click", [], version="2.1")


def _renew_in_place(project: Path) -> None:
    path = project / ".venv/lib/python3.11/site-packages/click-2.0.dist-info/METADATA"
    path.write_text(path.read_text().replace("Version: 2.0", "Version: 2.2"))


def _install(project: Path) -> None:
    node(project, "click", "9.9.9")


_LOCK = '[[package]]\nname = "click"\nversion = "8.3.1"\nsource = { registry = "x" }\n'


@pytest.mark.parametrize(
    ("framework", "before", "change", "after"),
    [
        ("click", "2.0", lambda p: _write(p / "requirements.txt", "click==8.2.0\n"), "8.2.0"),
        ("click", "2.0", lambda p: _write(p / "requirements" / "dev.txt", "click==8.2.2\n"), "8.2.2"),
        ("click", "2.0", lambda p: _write(p / "uv.lock", _LOCK), "8.3.1"),
        ("click", "2.0", _renew, "2.1"),
        ("click", "2.0", _renew_in_place, "2.2"),
        ("click", "2.0", _install, "9.9.9"),
        ("click", "2.0", lambda p: shutil.rmtree(p / ".venv"), None),
        ("vue", "^3.4.0", lambda p: _write(p / "package.json", '{"dependencies": {"vue": "^3.5.0"}}'), "^3.5.0"),
        ("vue", "^3.4.0", lambda p: (p / "package.json").unlink(), None),
        ("vue", "^3.4.0", lambda p: (p / "other.json").replace(p / "package.json"), "^2.7.0"),
        ("left-pad", "1.3.0", lambda p: _write(p / "node_modules/left-pad/package.json", json.dumps({"name": "left-pad", "version": "1.3.1"})), "1.3.1"),
        ("left-pad", "1.3.0", lambda p: shutil.rmtree(p / "node_modules"), None),
        ("tokio", None, lambda p: _write(p / "Cargo.toml", '[dependencies]\ntokio = "1.40"\n'), "1.40"),
        ("tokio", None, lambda p: _write(p.parent / "Cargo.toml", '[dependencies]\ntokio = "1.41"\n'), "1.41"),
    ],
)  # fmt: skip
def test_what_changes_is_seen_at_once(
    tmp_path: Path, framework: str, before: str | None, change: Callable[[Path], object], after: str | None
) -> None:
    project = tmp_path / "repository" / "project"
    _write(project.parent / ".git" / "HEAD", "")
    _write(project / "requirements.txt", "click\n")
    _write(project / "package.json", '{"dependencies": {"vue": "^3.4.0"}}')
    _write(project / "other.json", '{"dependencies": {"vue": "^2.7.0"}}')
    node(project, "left-pad", "1.3.0")
    distribution(environment(project / ".venv"), "click", [], version="2.0")
    environ = {"PATH": str(tmp_path)}
    time.sleep(0.15)  # what was written just now is not remembered
    assert _look(project, framework, environ) == (before, False)
    assert _look(project, framework, environ) == (before, True)
    _write(project / "_bmad-output" / "index.yaml", "")
    _write(project.parent / ".git" / "index", "")
    assert _look(project, framework, environ)[0] == before
    change(project)
    assert _look(project, framework, environ) == (after, False)


def test_what_was_written_just_now_is_read_again(tmp_path: Path) -> None:
    _write(tmp_path / "project" / ".git" / "HEAD", "")
    _write(tmp_path / "project" / "package.json", '{"dependencies": {"vue": "^3.4.0"}}')
    assert _look(tmp_path / "project", "vue", {}) == ("^3.4.0", False)
    assert _look(tmp_path / "project", "vue", {}) == ("^3.4.0", False)


def test_another_environment_or_configuration_is_another_finding(tmp_path: Path) -> None:
    project, one, other = tmp_path / "project", tmp_path / "one", tmp_path / "other"
    _write(project / ".git" / "HEAD", "")
    distribution(environment(one), "click", [], version="1.0")
    distribution(environment(other), "click", [], version="2.0")
    time.sleep(0.15)
    for place, version in ((one, "1.0"), (other, "2.0")):
        for is_remembered in (False, True):
            assert _look(project, "click", {"VIRTUAL_ENV": str(place)}) == (version, is_remembered)
    assert _look(project, "click", {"VIRTUAL_ENV": str(one)}, "changed")[1] is False
    assert _look(project, "click", {"VIRTUAL_ENV": str(one)}, "")[1] is False
    assert _look(project, "click", {"VIRTUAL_ENV": str(one)}, "")[1] is False


def test_a_python_on_the_path_is_remembered(tmp_path: Path) -> None:
    project, program = tmp_path / "project", tmp_path / "bin" / "python"
    _write(project / ".git" / "HEAD", "")
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    time.sleep(0.15)
    environ = {"PATH": str(program.parent)}
    assert _look(project, "surely-not-installed", environ) == (None, False)
    assert _look(project, "surely-not-installed", environ) == (None, True)
