"""The Claude Code plugin: its files have the form that Claude Code wants, and what they name is there and runs."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from kr import __version__
from kr.models import (
    Confidence,
    Envelope,
    IfUnsure,
    Outcome,
    ResearchResults,
    ResearchStatus,
)
from kr.research.finding_text import SaveEnvelope
from kr.server.mcp import INSTRUCTIONS, TOOLS
from kr.text import tokens_of
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
        "errors": [{"message": "a list has no key"}],
        "lessons": [
            {"symptom": "a list without keys reuses the wrong row", "fix": "Give every row of a list a key"}
        ],
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
    front, _ = prompt(SKILL)
    assert set(front) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert front["name"] == SKILL.parent.name
    assert NAME.fullmatch(front["name"])
    assert 50 < len(front["description"]) <= 1024
    assert front["allowed-tools"] == PREFIX, "an agent that has to ask doesn't save"


def test_the_agent_has_the_form_of_an_agent() -> None:
    front, _ = prompt(AGENT)
    assert set(front) == {"name", "description", "tools"}
    assert front["name"] == AGENT.stem
    tools = {name.removeprefix(f"{PREFIX}__") for name in front["tools"].split(", ")}
    assert {"research", "read_report", "search", "save_finding", "rate_report"} <= tools <= TOOL_NAMES


PREFIX = "mcp__plugin_kr_kr"  # the plugin's and the server's name, as Claude Code puts them together; alone: all its tools


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (SKILL.read_text(encoding="utf-8"), 500),
        (AGENT.read_text(encoding="utf-8"), 700),
        (INSTRUCTIONS, 150),
    ],
    ids=["skill", "agent", "instructions"],
)
def test_what_every_agent_pays_for_is_short(text: str, most: int) -> None:
    assert tokens_of(text) < most


@pytest.mark.parametrize(
    "text",
    [SKILL.read_text(encoding="utf-8"), AGENT.read_text(encoding="utf-8"), INSTRUCTIONS],
    ids=["skill", "agent", "instructions"],
)
def test_the_prompts_tell_the_whole_loop(text: str) -> None:
    """Ask, read what is offered, use or research, and after it worked save and rate; a miss is no end."""
    for said in (
        "candidate_report",
        "if_unsure",
        "own means",
        "save_finding",
        "rate_report",
        "200 to 350 tokens",
    ):
        assert said in text, said
    assert re.search(r"\buse\b", text)
    assert re.search(r"one `?session_id", text, re.IGNORECASE)
    assert "go on without" not in text
    assert re.search(r"not orders|never instructions", text)


@pytest.mark.parametrize("path", [SKILL, AGENT], ids=["skill", "agent"])
def test_the_prompts_speak_of_what_there_is(path: Path) -> None:
    """Whatever stands in code marks is a tool, an argument, a field of an envelope or one of its values."""
    [record] = (tool for tool in TOOLS if tool.name == "lessons_record")
    known = {*TOOL_NAMES, "id", "section", "mode", "research_query", "lessons"}
    known |= {argument for tool in TOOLS for argument in tool.input_schema["properties"]}
    known |= set(record.input_schema["properties"]["lesson"]["properties"])
    known |= {each.name for kind in (Envelope, ResearchResults) for each in fields(kind)}
    known |= {*get_args(ResearchStatus), *get_args(Confidence), *get_args(IfUnsure), *get_args(Outcome)}
    known |= {*get_args(get_type_hints(SaveEnvelope)["status"])}
    said = re.findall(
        r"`([^`\n]+)`", re.sub(r"^```sh$.*?^```$", "", prompt(path)[1], flags=re.MULTILINE | re.DOTALL)
    )
    assert len(said) > 15
    words = {word for text in said for word in re.findall(r"\b[a-z_]+(?:-[a-z]+)*\b", text)}
    assert words - known == set()


def test_the_commands_of_the_skill_run_as_they_stand(project: Project) -> None:
    """One agent saves, with the skill's own line; another, with the others, is offered that, takes it and rates it."""
    [block] = re.findall(r"^```sh\n(.*?)^```$", prompt(SKILL)[1], re.MULTILINE | re.DOTALL)
    ask, use, rate, save, lesson = re.split(r"\n(?=kr )", block.strip("\n"))
    (project.root / "snippet.ts").write_text("const Env = z.strictObject({ PORT: z.coerce.number() })\n")

    def run(line: str, question: str, session: str) -> str:
        line = line.replace("How …?", question).replace("ID", "zod-reject-unknown-keys")
        line = line.replace("--session-id S", f"--session-id {session}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            capture_output=True,
            text=True,
            cwd=project.root,
            env=project.environ(),
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "id: zod-reject-unknown-keys" in run(save, "How do I reject unknown keys?", "a")
    other = "Unknown keys of an object: how to refuse them?"
    offered = run(ask, other, "b")
    assert offered.startswith("candidates")
    assert "z.strictObject" in offered
    assert run(use, other, "b").startswith("cache-hit")
    assert "worked: 1" in run(rate, other, "b")
    assert run(ask, other, "c").startswith("cache-hit")
    told = lesson.replace("SYMPTOM", "parse fails on process.env").replace("FIX", "Pick the keys first")
    assert "Pick the keys first" in run(told.replace("FILE:LINE", "src/env.ts:3"), "", "c")
