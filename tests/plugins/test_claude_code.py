"""The Claude Code plugin: its files have the form that Claude Code wants, and what they name is there and runs."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from kr import __version__
from kr.contracts.envelopes import ResearchEnvelope, ResearchResults
from kr.server.mcp import TOOLS
from kr.values import Confidence, IfUnsure, ResearchStatus
from tests.support.forked import shared
from tests.support.program import Project
from tests.support.stores import ROOT

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

MARKETPLACE = ROOT / ".claude-plugin" / "marketplace.json"
PLUGIN = ROOT / "plugins" / "claude-code"
SKILL = PLUGIN / "skills" / "ask-kr" / "SKILL.md"
AGENT = PLUGIN / "agents" / "bso-knowledge-researcher.md"

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
EVENTS = {"SessionStart", "SubagentStart", "PostToolUseFailure", "SubagentStop"}
TOOL_NAMES = {tool.name for tool in TOOLS}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def prompt(path: Path) -> tuple[dict[str, str], str]:
    """Part a prompt into its front matter and its text."""
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), body


def hooks() -> Iterator[tuple[str, dict[str, Any]]]:
    for event, entries in read(PLUGIN / "hooks" / "hooks.json")["hooks"].items():
        for entry in entries:
            assert set(entry) <= {"matcher", "hooks"}
            for hook in entry["hooks"]:
                yield event, hook


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project that is not the repository, with ``kr`` on the path."""
    project = Project(tmp_path / "project")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kr").symlink_to(shared())
    project.env["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return project


def tools_of(project: Project, server: Mapping[str, Any]) -> set[str]:
    """Start an MCP server as a client does that was given this configuration, and list its tools."""

    async def listed() -> set[str]:
        parameters = StdioServerParameters(
            command=server["command"], args=server["args"], env=project.environ(), cwd=project.root
        )
        async with Client(stdio_client(parameters)) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    return asyncio.run(listed())


def hook(project: Project, command: Mapping[str, Any], told: Mapping[str, Any]) -> Any:
    """Run a hook as Claude Code does; gives its answer."""
    done = subprocess.run(
        [command["command"], *command["args"]],
        input=json.dumps({"session_id": "s-1", "cwd": str(project.root), **told}),
        capture_output=True,
        text=True,
        cwd=project.root,
        env=project.environ(),
        timeout=command["timeout"] * 6,  # the machine of the tests is a busy one
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout) if done.stdout else None


def test_it_installs_from_a_clone() -> None:
    marketplace, plugin = read(MARKETPLACE), read(PLUGIN / ".claude-plugin" / "plugin.json")
    assert NAME.fullmatch(marketplace["name"])
    assert marketplace["owner"]["name"]
    [listed] = marketplace["plugins"]
    assert listed["source"].startswith("./")
    assert (ROOT / listed["source"]).resolve() == PLUGIN
    assert listed["name"] == plugin["name"] == "kr"
    assert NAME.fullmatch(plugin["name"])
    assert plugin["version"] == __version__
    assert plugin["author"]["name"]
    assert listed["description"] == plugin["description"]


@pytest.mark.skipif(shutil.which("claude") is None, reason="Claude Code is not installed here")
@pytest.mark.parametrize("folder", [ROOT, PLUGIN], ids=["marketplace", "plugin"])
def test_claude_code_finds_no_fault(folder: Path) -> None:
    command = ["claude", "plugin", "validate", "--strict", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


def test_the_server_that_it_names_starts_and_has_the_tools(project: Project) -> None:
    servers = read(PLUGIN / ".mcp.json")["mcpServers"]
    assert set(servers) == {"kr"}
    assert tools_of(project, servers["kr"]) == TOOL_NAMES


def test_its_hooks_hand_a_failure_on_to_the_next_agent(project: Project) -> None:
    found = list(hooks())
    assert {event for event, _ in found} == EVENTS
    assert all(command["type"] == "command" and command["timeout"] == 10 for _, command in found)
    commands = dict(found)
    failure = {
        "status": "failure",
        "errors": [{"message": "a list has no key", "suggestion": "Give every row of a list a key"}],
    }
    stopped = {
        "hook_event_name": "SubagentStop",
        "agent_type": "dev-runner",
        "last_assistant_message": f"```json\n{json.dumps(failure)}\n```",
    }
    assert hook(project, commands["SubagentStop"], stopped) is None
    failed = {
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": "python manage.py migrate"},
        "error": "Exit code 1\ndjango.db.utils.OperationalError: no such table: orders",
        "is_interrupt": False,
    }
    assert hook(project, commands["PostToolUseFailure"], failed) is None
    for event, more in (
        ("SessionStart", {"source": "startup"}),
        ("SubagentStart", {"agent_type": "dev-runner"}),
    ):
        given = hook(project, commands[event], {"hook_event_name": event, **more})["hookSpecificOutput"]
        assert given["hookEventName"] == event
        assert "Give every row of a list a key" in given["additionalContext"]
        assert len(given["additionalContext"]) <= 10_000


def test_the_skill_has_the_form_of_a_skill() -> None:
    front, body = prompt(SKILL)
    assert set(front) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert front["name"] == SKILL.parent.name
    assert NAME.fullmatch(front["name"])
    assert 50 < len(front["description"]) <= 1024
    assert len(body) / 4 < 600, "every use of it costs that many tokens"
    assert_tools(front["allowed-tools"].split())


def test_the_agent_has_the_form_of_an_agent() -> None:
    front, body = prompt(AGENT)
    assert set(front) == {"name", "description", "tools"}
    assert front["name"] == AGENT.stem
    assert len(body) / 4 < 600
    assert_tools(front["tools"].split(", "))


def assert_tools(names: list[str]) -> None:
    prefix = "mcp__plugin_kr_kr__"  # the plugin's and the server's name, as Claude Code puts them together
    assert {name.removeprefix(prefix) for name in names} == {"research", "read_report", "search_entries"}
    assert all(name.startswith(prefix) for name in names)


@pytest.mark.parametrize("path", [SKILL, AGENT], ids=["skill", "agent"])
def test_the_prompts_speak_of_what_there_is(path: Path) -> None:
    """Whatever stands in code marks is a tool, an argument, a field of the envelope or one of its values."""
    known = {*TOOL_NAMES, "id", "section", "mode", "research_query"}
    known |= {argument for tool in TOOLS for argument in tool.input_schema["properties"]}
    known |= {*ResearchEnvelope.names(), *ResearchResults.names()}
    known |= {*get_args(ResearchStatus), *get_args(Confidence), *get_args(IfUnsure)}
    said = re.findall(r"`([^`]+)`", prompt(path)[1])
    texts = [text for text in said if not text.startswith("kr research")]
    words = {word for text in texts for word in re.findall(r"\b[a-z_]+(?:-[a-z]+)*\b", text)}
    assert words - known == {"true"} & words
