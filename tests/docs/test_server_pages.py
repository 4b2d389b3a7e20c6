"""docs/server.md, docs/agents.md and deploy/ against a server that runs: what they tell a reader to do works."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from kr.server.serve import make_policy
from tests.docs.test_documentation import DOCS, blocks
from tests.support.forked import shared
from tests.support.program import Project
from tests.support.servers import TOKEN, Served, mcp_over_http, serving_here
from tests.support.stores import ROOT

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

SERVER, AGENTS, README = DOCS / "server.md", DOCS / "agents.md", ROOT / "README.md"
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("served"))
    (made.root / "requirements.txt").write_text("click==8.2.1\n")
    return made


@pytest.fixture(scope="module")
def server(project: Project) -> Iterator[Served]:
    with serving_here(project) as started:
        yield started


def run(block: str, project: Project, **more: str) -> str:
    environ = project.environ(**more)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=project.root,
        env={**environ, "PATH": f"{Path(shared()).parent}{os.pathsep}{environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, (block, done.stdout, done.stderr)
    return done.stdout


def test_the_commands_of_the_page_work(tmp_path: Path, server: Served) -> None:
    client = Project(tmp_path / "client")
    asked = [run(block, client, KR_SERVER=server.url, KR_TOKEN=TOKEN) for block in blocks(SERVER, "sh")]
    assert "kr_requests_total" in asked[0]
    assert len(asked) == 2
    assert not client.base.exists()
    modes = server.get("/v1/stats", Authorization=f"Bearer {TOKEN}").json["requests"]["by_mode"]
    assert {"research", "lessons-inject"} <= modes.keys()


def test_the_configurations_for_clients_work(project: Project, server: Served) -> None:
    configurations = [
        json.loads(block)["mcpServers"]["kr"]
        for block in [*blocks(AGENTS, "json"), *blocks(README, "json")]
        if "mcpServers" in block
    ]
    started = [given for given in configurations if "command" in given]
    assert {(given["command"], *given["args"]) for given in started} == {("kr", "mcp")}
    (shared,) = (given for given in configurations if "url" in given)
    assert shared["headers"] == {"Authorization": "Bearer ${KR_TOKEN}"}
    kr = shutil.which("kr", path=Path(sys.executable).parent)
    assert kr is not None

    async def names() -> list[set[str]]:
        parameters = StdioServerParameters(command=kr, args=["mcp"], cwd=project.root, env=project.environ())
        async with Client(stdio_client(parameters)) as local, mcp_over_http(server.url, TOKEN) as far:
            return [{tool.name for tool in (await client.list_tools()).tools} for client in (local, far)]

    tools = AGENTS.read_text(encoding="utf-8").partition("\n## The tools\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `(\w+)` \|", tools, re.MULTILINE))
    assert asyncio.run(names()) == [told, told]


def test_every_path_of_the_interface_stands_on_the_page(server: Served) -> None:
    described = server.get("/openapi.json", Authorization=f"Bearer {TOKEN}").json["paths"]
    told = {
        path.replace("{id}", "{entry_id}")
        for path in re.findall(r"/[\w/{}.]+", SERVER.read_text(encoding="utf-8"))
    }
    assert set(described) <= told


def test_the_container_runs_a_command_that_there_is() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert text.index("\nUSER kr\n") < text.index("\nENTRYPOINT")
    for pattern in (r"^VOLUME /data$", r"^HEALTHCHECK ", r"KR_KNOWLEDGE_BASE_PATH=/data"):
        assert re.search(pattern, text, re.MULTILINE), pattern
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    assert all((ROOT / name).exists() for names in copied for name in names.split())
    for name in ("pyproject.toml", "alembic.ini", "migrations", "kr"):
        assert any(name in names.split() for names in copied), f"the wheel is built of {name}"
    command = json.loads(re.findall(r"^CMD (\[.+\])$", text, re.MULTILINE)[-1])
    assert command[0] == "serve"
    policy = make_policy(command[2], [command[4]], TOKEN)
    assert "kr" in policy.names


def test_compose_gives_the_server_its_token_and_the_agent_the_server() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    server, agent, database = services["kr"], services["agent"], services["database"]
    assert "KR_TOKEN" in server["environment"]
    assert agent["environment"]["KR_SERVER"] == "http://kr:8765"
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).resolve().is_file()
    assert server["environment"]["KR_DATABASE_URL"].endswith("@database:5432/kr")
    assert "POSTGRES_PASSWORD" in database["environment"]


def test_the_unit_starts_the_server_and_gives_it_time_to_drain() -> None:
    unit = (DEPLOY / "kr.service").read_text(encoding="utf-8")
    assert "ExecStart=/opt/kr/bin/kr serve --host 127.0.0.1 --port 8765\n" in unit
    assert "User=kr\n" in unit
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here")
    done = subprocess.run(
        [analyze, "verify", str(DEPLOY / "kr.service")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    wrong = [
        line for line in done.stderr.splitlines() if "kr.service" in line and "not executable" not in line
    ]
    assert wrong == []
