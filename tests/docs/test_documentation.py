"""README.md and docs/ against the program: nothing undocumented, nothing stale, nothing that does not run."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kr.cli.main import GROUPS, cli
from kr.settings import OWN_NAMES, load_settings
from kr.settings.model import Configuration, Section
from scripts import docs
from tests.support.environments import install_click
from tests.support.forked import shared
from tests.support.stores import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
WRITTEN = [
    ROOT / "README.md",
    *(
        DOCS / name
        for name in (
            "README.md",
            "agents.md",
            "findings.md",
            "knowledge-base.md",
            "questions.md",
            "integration.md",
            "workflows.md",
        )
    ),
]
NOT_RUN = {
    "claude plugin": "needs Claude Code; tests/plugins runs what the plugin names",
    "scripts/quickstart": "makes an environment, which takes minutes",
    "scripts/test ": "these are the tests, and what takes as long",
}
"""Blocks of the shell that are not run here: how they begin, and why."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WHOLE_PAGE = re.compile(r"^````markdown\n(.*?)^````$", re.MULTILINE | re.DOTALL)
"""A page that is shown as an example, with blocks of its own."""
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^()\s]+)\)")


def blocks(page: Path, language: str) -> list[str]:
    text = WHOLE_PAGE.sub("", page.read_text(encoding="utf-8"))
    return [block for kind, block in BLOCK.findall(text) if kind == language]


def is_run(block: str) -> bool:
    return not block.startswith(tuple(NOT_RUN))


def commands(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, name
            yield from commands(child, *path, name)


def keys(section: type[Section], *path: str) -> Iterator[tuple[str, ...]]:
    for name, key in section.keys.items():
        yield (*path, name)
        if key.section is not None:
            yield from keys(key.section, *path, name, *(["NAME"] if name == "servers" else []))


class TestGeneratedPages:
    def test_none_is_stale(self) -> None:
        assert docs.stale() == [], "run scripts/docs"

    def test_a_changed_a_missing_and_a_left_over_page_are_told(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        docs.write(tmp_path)
        assert docs.stale(tmp_path) == []
        (tmp_path / "configuration.md").write_text("# Old\n")
        (tmp_path / "commands" / "db.md").unlink()
        (tmp_path / "commands" / "gone.md").write_text("# kr gone\n")
        assert docs.stale(tmp_path) == ["commands/db.md", "commands/gone.md", "configuration.md"]
        docs.write(tmp_path)
        assert docs.stale(tmp_path) == []
        assert "docs/commands/gone.md" in capsys.readouterr().out

    def test_the_terminal_does_not_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        assert docs.stale() == []


NAMES = [name for rows in GROUPS.values() for name, _, _ in rows]


class TestCommands:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_command_has_a_page_with_all_below_it(self, name: str) -> None:
        page = (DOCS / "commands" / f"{name}.md").read_text(encoding="utf-8")
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for path, below in commands(command, "kr", name):
            called = " ".join(path)
            assert re.search(rf"^##? {called}$", page, re.MULTILINE), called
            assert f"Usage: {called} " in page
            assert below.help, called
            for parameter in below.params:
                shown = (
                    parameter.opts
                    if isinstance(parameter, click.Option)
                    else [parameter.make_metavar(click.Context(below))]
                )
                assert all(opt in page for opt in shown), (called, shown)

    def test_every_help_fits_80_columns_and_has_an_example(self) -> None:
        for command, context in docs.everything():
            lines = command.get_help(context).splitlines()
            assert max(map(len, lines)) <= 80, context.command_path
            assert any(re.match(r" *Examples?", line) for line in lines), context.command_path

    def test_the_index_links_every_page(self) -> None:
        index = (DOCS / "commands" / "README.md").read_text(encoding="utf-8")
        assert all(f"({name}.md)" in index for name in NAMES)


class TestSettings:
    REFERENCE = (DOCS / "configuration.md").read_text(encoding="utf-8")

    @pytest.mark.parametrize("path", sorted(keys(Configuration)), ids=".".join)
    def test_every_key_is_explained(self, path: tuple[str, ...]) -> None:
        if len(path) == 1:
            assert f"\n## {path[0]}\n" in self.REFERENCE
        else:
            _, _, section = self.REFERENCE.partition(f"\n## {path[0]}\n")
            assert re.search(rf"^\| `{re.escape('.'.join(path[1:]))}` \| \S", section, re.MULTILINE)

    @pytest.mark.parametrize("name", sorted(OWN_NAMES))
    def test_every_variable_that_is_no_key_is_explained(self, name: str) -> None:
        assert f"| `{name}` |" in self.REFERENCE


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that depends on click, which is installed in its own environment; no source is asked."""
    folder = tmp_path / "project"
    folder.mkdir()
    install_click(folder)
    (folder / "requirements.txt").write_text("click==8.2.1\n")
    return folder


def shell(block: str, project: Path) -> "subprocess.CompletedProcess[str]":
    """Run a block as a reader does who has ``kr`` on the path; the first failure ends it."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("KR_")}
    environ |= {
        "HOME": str(project.parent),
        "PATH": f"{Path(shared()).parent}{os.pathsep}{environ.get('PATH', '')}",
        "KR_SOURCES": "[]",
        "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
    }
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        capture_output=True,
        text=True,
        cwd=project,
        env=environ,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_shell_block_runs(page: Path, project: Path) -> None:
    for block in filter(is_run, blocks(page, "sh")):
        done = shell(block, project)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


def test_the_readme_begins_with_the_loop_and_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    loop, _, _ = text.partition("\n## ")
    steps = ("degraded", "kr save", "candidates", "--use", "kr rate", "cache-hit", "spared  tokens")
    found = [loop.index(step) for step in steps]
    assert found == sorted(found)


def test_what_is_not_run_is_there() -> None:
    found = [block for page in WRITTEN for block in blocks(page, "sh")]
    assert all(any(block.startswith(start) for block in found) for start in NOT_RUN)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_configuration_block_loads(page: Path, project: Path) -> None:
    for block in blocks(page, "yaml"):
        config = project / "kr.yaml"
        config.write_text(block)
        environ = {"CONTEXT7_API_KEY": "secret", "HOME": str(project)}
        settings = load_settings(config=config, knowledge_base=None, environ=environ, cwd=project)
        assert settings.warnings == (), block


def test_the_workflow_template_of_the_page_runs(project: Path) -> None:
    [template] = WHOLE_PAGE.findall((DOCS / "workflows.md").read_text(encoding="utf-8"))
    (project / "release.md").write_text(template)
    go = "kr workflow validate release; kr workflow start release --set version=1; kr workflow approve ask"
    done = shell(go, project)
    assert done.returncode == 0, done.stderr
    assert "release-1.tar to us as stable" in done.stdout


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_json_block_is_json(page: Path) -> None:
    for block in blocks(page, "json"):
        json.loads(block)


def test_the_paths_of_the_architecture_are_there() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:kr|migrations|scripts)/[\w./-]+)`", page))
    assert len(named) > 40
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    rooms = {f"kr/{path.name}/" for path in (ROOT / "kr").iterdir() if (path / "__init__.py").exists()}
    assert rooms <= named
