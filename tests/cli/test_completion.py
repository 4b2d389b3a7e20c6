"""``kr completion``: the scripts, and what a shell is offered at a key press."""

import shutil
import subprocess

import pytest

from tests.support.program import Project


def offered(project: Project, *words: str) -> list[str]:
    """Ask as bash does: all words but the last are typed, the last is being completed."""
    more = {
        "_KR_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("kr", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = project.run(more=more)
    return [line.partition(",")[2] for line in done.stdout.decode().splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one_that_it_takes(project: Project, shell: str) -> None:
    done = project.run("completion", shell)
    assert done.returncode == 0
    assert b"_KR_COMPLETE" in done.stdout
    if shutil.which(shell):
        checked = subprocess.run(
            [shell, "-n"], input=done.stdout, capture_output=True, check=False, timeout=30
        )
        assert checked.returncode == 0


def test_commands_and_options_are_offered(project: Project) -> None:
    assert "research" in offered(project, "res")
    assert "approve" in offered(project, "review", "a")
    assert "--if-unsure" in offered(project, "research", "--if")


def test_an_unknown_shell_is_a_wrong_command_line(project: Project) -> None:
    assert project.run("completion", "tcsh").returncode == 2
