"""Shell completion: the scripts, and what Tab offers from the database, without making one."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kr.cli.completion import SHELLS
from kr.store.store import Store
from tests.support.program import Project
from tests.support.stores import draft


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def keep(project: Project, framework: str, topic: str) -> None:
    with project.app() as app:
        app.store.save_report(draft(framework, topic), f"# {topic}\n", project.clock())


def offered(project: Project, *words: str) -> list[str]:
    """What the completion script would be told for the last of the words."""
    done = subprocess.run(
        [sys.executable, "-m", "kr"],
        cwd=project.root,
        env=project.environ(
            _KR_COMPLETE="bash_complete", COMP_WORDS=" ".join(("kr", *words)), COMP_CWORD=str(len(words))
        ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_a_script(project: Project, shell: str) -> None:
    done = project.run("completion", shell)
    assert done.returncode == 0
    assert f"_KR_COMPLETE={shell}_complete" in done.stdout.decode()
    program = shutil.which(shell)
    if program is not None:
        checked = subprocess.run(
            [program, "-n"], input=done.stdout, capture_output=True, timeout=30, check=False
        )
        assert (checked.returncode, checked.stderr) == (0, b"")


def test_another_shell_is_a_wrong_command_line(project: Project) -> None:
    assert project.run("completion", "cmd.exe").returncode == 2


def test_frameworks_are_completed_in_any_case(project: Project) -> None:
    keep(project, "Vue", "slots")
    keep(project, "vue", "plugins")
    keep(project, "Vite", "plugins")
    keep(project, "click", "options")
    assert sorted(map(str.casefold, offered(project, "research", "v"))) == ["vite", "vue"]
    assert offered(project, "explain", "CL") == ["click"]


def test_a_folder_named_before_the_command_counts(project: Project, tmp_path: Path) -> None:
    other = Project(tmp_path / "other")
    keep(other, "react", "hooks")
    assert offered(project, "research", "r") == []
    assert offered(project, "--kb", str(other.base), "research", "r") == ["react"]


def test_nothing_is_made_and_nothing_said_where_no_database_is(project: Project) -> None:
    assert offered(project, "research", "v") == []
    assert not project.base.exists()


def test_a_broken_database_or_configuration_offers_nothing(project: Project) -> None:
    project.base.mkdir(parents=True)
    project.database.write_text("no database\n" * 500)
    assert offered(project, "research", "v") == []
    (project.root / "kr.yaml").write_text("knowledge_research: {max_entries: many}\n")
    assert offered(project, "research", "v") == []


def test_commands_are_completed(project: Project) -> None:
    assert "doctor" in offered(project, "do")
    assert offered(project, "db", "ba") == ["backup"]


def test_ids_are_completed_where_an_id_is_asked_for(project: Project) -> None:
    keep(project, "vue", "slots")
    keep(project, "vue", "plugins")
    with project.app() as app, app.store.write() as unit:
        unit.archive.move("vue-slots", "manual", project.clock())
    assert offered(project, "entries", "show", "vue") == ["vue-plugins"]
    assert offered(project, "entries", "history", "vue") == ["vue-plugins"]
    assert offered(project, "archive", "restore", "") == ["vue-slots"]


def test_frameworks_and_revisions_are_completed_wherever_they_are_asked_for(project: Project) -> None:
    keep(project, "react", "hooks")
    with project.app() as app:
        for text in ("one", "two", "three"):
            app.store.save_report(draft("vue", "slots"), f"# {text}\n", project.clock())
        with app.store.write() as unit:
            unit.archive.move("react-hooks", "manual", project.clock())
    for words in (("entries", "list"), ("lessons", "inject")):
        assert offered(project, *words, "--framework", "") == ["vue"]
    assert offered(project, "archive", "list", "--framework", "r") == ["react"]
    assert offered(project, "entries", "restore", "vue-slots", "") == ["2", "1"]
    assert offered(project, "entries", "restore", "vue-nothing", "") == []


def test_ids_come_last_used_first(project: Project) -> None:
    keep(project, "vue", "slots")
    keep(project, "vue", "plugins")
    with project.app() as app:
        with app.store.write() as unit:
            unit.entries.touch("vue-slots", project.clock())
        assert Store(None, project.base).complete("entry ids") == ["vue-slots", "vue-plugins"]
        with app.store.write() as unit:
            unit.archive.move("vue-slots", "manual", project.clock())
        assert Store(None, project.base).complete("archived ids") == ["vue-slots"]
    assert Store(None, project.base).complete("entry ids") == ["vue-plugins"]


def test_a_look_leaves_no_file_and_waits_for_nobody(project: Project) -> None:
    keep(project, "vue", "slots")
    before = sorted(project.base.iterdir())
    assert Store(None, project.base).complete("frameworks") == ["vue"]
    assert sorted(project.base.iterdir()) == before
    with project.app() as app, app.store.write():
        began = time.monotonic()
        assert Store(None, project.base).complete("frameworks") == ["vue"]
        assert time.monotonic() - began < 10


def test_phases_are_completed(project: Project) -> None:
    assert offered(project, "lessons", "inject", "--phase", "d") == ["dev-execution"]
    assert offered(project, "lessons", "list", "--phase", "c") == ["code-review"]


def test_an_id_with_commas_is_completed_whole_in_fish(project: Project) -> None:
    keep(project, "vue", "slots")
    project.sql("UPDATE entries SET id = 'a:b,c,d'")
    script = project.run("completion", "fish").stdout.decode()
    assert 'string split --max 1 "," $completion' in script
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("no fish here")
    ask = f'{script}\ncomplete --do-complete "kr entries show "'
    kr = project.root / "kr"
    kr.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kr "$@"\n')
    kr.chmod(0o755)
    path = f"{project.root}:{os.environ['PATH']}"
    done = subprocess.run(
        [fish, "--no-config", "-c", ask],
        cwd=project.root,
        env=project.environ(PATH=path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "a:b,c,d" in done.stdout.splitlines()
