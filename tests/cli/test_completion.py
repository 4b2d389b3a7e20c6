"""Shell completion: the scripts, and what Tab offers from the database, without making one."""

import os
import shutil
import time
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import pytest
from click.shell_completion import ShellComplete

from kr.cli.completion import SHELLS
from kr.cli.main import cli
from kr.store import archive, entries, lookup, saving
from kr.store.engine import Store
from tests.support.forked import shared
from tests.support.program import Project
from tests.support.stores import draft
from tests.support.terminals import at_terminal


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def keep(project: Project, framework: str, topic: str) -> None:
    with project.app() as app:
        saving.save(app.store, draft(framework, topic), f"# {topic}\n", project.clock())


def offered(project: Project, *words: str) -> list[str]:
    """What a shell would be told for the last of the words; the tests of real shells go through the program."""
    *before, typed = words
    with patch.dict(os.environ, project.environ(), clear=True), chdir(project.root):
        found = ShellComplete(cli, {}, "kr", "_KR_COMPLETE").get_completions(before, typed)
    return [item.value for item in found]


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
    with project.app() as app, app.store.write() as tx:
        archive.move(tx, "vue-slots", "manual", project.clock())
    assert offered(project, "entries", "show", "vue") == ["vue-plugins"]
    assert offered(project, "entries", "history", "vue") == ["vue-plugins"]
    assert offered(project, "archive", "restore", "") == ["vue-slots"]


def test_frameworks_and_revisions_are_completed_wherever_they_are_asked_for(project: Project) -> None:
    keep(project, "react", "hooks")
    with project.app() as app:
        for text in ("one", "two", "three"):
            saving.save(app.store, draft("vue", "slots"), f"# {text}\n", project.clock())
        with app.store.write() as tx:
            archive.move(tx, "react-hooks", "manual", project.clock())
    for words in (("entries", "list"), ("lessons", "inject")):
        assert offered(project, *words, "--framework", "") == ["vue"]
    assert offered(project, "archive", "list", "--framework", "r") == ["react"]
    assert offered(project, "entries", "restore", "vue-slots", "") == ["2", "1"]
    assert offered(project, "entries", "restore", "vue-nothing", "") == []


def complete(project: Project, what: lookup.Completed) -> list[str]:
    with Store(None, project.base, timeout=0.2) as store, store.read() as tx:
        return lookup.complete(tx, what)


def test_ids_come_last_used_first(project: Project) -> None:
    keep(project, "vue", "slots")
    keep(project, "vue", "plugins")
    with project.app() as app:
        with app.store.write() as tx:
            entries.touch(tx, "vue-slots", project.clock())
        assert complete(project, "entry ids") == ["vue-slots", "vue-plugins"]
        with app.store.write() as tx:
            archive.move(tx, "vue-slots", "manual", project.clock())
        assert complete(project, "archived ids") == ["vue-slots"]
    assert complete(project, "entry ids") == ["vue-plugins"]


def test_a_look_leaves_no_file_and_waits_for_nobody(project: Project) -> None:
    keep(project, "vue", "slots")
    before = sorted(project.base.iterdir())
    assert complete(project, "frameworks") == ["vue"]
    assert sorted(project.base.iterdir()) == before
    with project.app() as app, app.store.write():
        began = time.monotonic()
        assert complete(project, "frameworks") == ["vue"]
        assert time.monotonic() - began < 10


def test_phases_are_completed(project: Project) -> None:
    assert offered(project, "lessons", "inject", "--phase", "d") == ["dev-execution"]
    assert offered(project, "lessons", "list", "--phase", "c") == ["code-review"]


SHELLS_AT_WORK = {
    "bash": ("bash --norc --noprofile -i", "mkdir -p k; kr completion bash > k/kr; . k/kr"),
    "zsh": (
        "zsh -f -i",
        "mkdir -p k; kr completion zsh > k/_kr; fpath=(k $fpath); autoload -U compinit; compinit -u -D",
    ),
    "fish": (
        "fish -i",
        "mkdir -p .config/fish/completions; kr completion fish > .config/fish/completions/kr.fish",
    ),
}
"""How each shell is started without what its user has configured, and how its script gets where it belongs."""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_key_press_in_the_real_shell(project: Project, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    keep(project, "vue", "slots")
    keep(project, "vue", "watchers")
    project.sql("UPDATE entries SET id = 'w:1,2,3' WHERE topic = 'watchers'")
    start, install = SHELLS_AT_WORK[shell]
    path = f"{Path(shared()).parent}{os.pathsep}{os.environ['PATH']}"
    env = project.environ(PATH=path, TERM="dumb" if shell == "bash" else "xterm")
    with at_terminal(start.split(), project.root, env, columns=200) as terminal:
        terminal.press(f"{install}; echo IN''STALLED\n")
        terminal.wait_for("INSTALLED")
        for typed, rest in (
            ("kr ent", "ries"),
            ("kr entries show vue", "-slots"),
            ("kr entries show w", "1,2,3"),
            ("kr research v", "ue"),
            ("kr lessons list --phase dev", "-execution"),
        ):
            terminal.press(typed)
            terminal.settle()  # a tab among keys that wait is a tab to zsh
            terminal.press("\t")
            terminal.wait_for(rest)
            terminal.press("\x15")
            terminal.settle()
        terminal.press("exit\n")
