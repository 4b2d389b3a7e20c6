"""``kr mcp`` as agents' programs meet it: a process of its own, and the SDK's client."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from kr.server.mcp import TOOLS, create_mcp_server
from kr.server.worker import Workers
from tests.support.mcp_servers import Scenario, StandIn, context7_server
from tests.support.program import Project
from tests.support.servers import mcp_over_stdio

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

ARGUMENTS = {  # rule 8; what may be left out ends with `?`
    "research": "framework question framework_version? topic? tags? story_key? session_id? max_calls? "
    "timeout_seconds? if_unsure? use? refresh? max_tokens?",
    "read_report": "id section? max_tokens?",
    "search": "query framework? limit?",
    "save_finding": "framework question answer code? caveats? sources? verified_by? framework_version? topic? tags? "
    "entry? story_key? session_id?",
    "rate_report": "id outcome note? session_id?",
    "lessons_inject": "phase? framework? query? files? story_key? session_id?",
    "lessons_record": "lesson? event_type? agent_return? phase? story_key? session_id? framework_context?",
}
QUESTION = {
    "framework": "vue",
    "framework_version": "3.5",
    "question": "How do I make an option repeatable?",
    "topic": "repeatable options",
    "tags": ["options", "configuration"],
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server() as server:
        project.use_context7(server.url)
        yield server


@asynccontextmanager
async def in_process(project: Project) -> AsyncIterator[Client]:
    """The SDK's client on the very server, without a process and a wire between them."""
    with project.app() as app:
        async with Client(create_mcp_server(Workers(app, workers=2))) as client:
            yield client


def content(result: Any) -> Any:
    """What a tool answered, which its text tells as well."""
    assert json.loads(text(result)) == result.structured_content
    return result.structured_content


def text(result: Any) -> str:
    return str(result.content[0].text)


def test_the_tools_are_those_of_the_specification() -> None:
    for tool in TOOLS:
        required = set(tool.input_schema["required"])
        given = [name if name in required else f"{name}?" for name in tool.input_schema["properties"]]
        assert " ".join(given) == ARGUMENTS[tool.name]
    assert [tool.name for tool in TOOLS] == list(ARGUMENTS)


def test_the_tools_cost_an_agent_less_than_a_thousand_tokens() -> None:
    told = "".join(f"{tool.name}{tool.description}{json.dumps(tool.input_schema)}" for tool in TOOLS)
    assert len(told) / 4 < 1000


def test_a_session_from_the_miss_to_the_hit_by_the_new_wording(project: Project, context7: StandIn) -> None:
    reworded = {**QUESTION, "topic": "accept many values", "tags": ["multiple"]}
    reworded["question"] = "Which setting lets an option be repeatable?"
    steps: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total) == (len(steps) + 1, None)
        steps.append(str(message))

    async def session() -> None:
        async with mcp_over_stdio(project) as client:
            missed = content(await client.call_tool("research", QUESTION, progress_callback=note))
            assert missed["status"] == "success"
            assert "multiple: true" in missed["results"]["report"]
            assert steps == ["asking context7"]

            unsure = content(await client.call_tool("research", reworded))
            assert (unsure["status"], unsure["results"]["report"]) == ("candidates", None)
            offered = unsure["results"]["related"][0]["id"]
            assert offered == missed["results"]["cache_entry_id"]
            candidate = unsure["results"]["candidate_report"]
            assert (candidate["id"], "multiple: true" in candidate["text"]) == (offered, True)

            read = content(await client.call_tool("read_report", {"id": offered, "section": "summary"}))
            assert read["text"].startswith("## Summary")
            assert (read["framework"], read["confidence"], read["is_cut"]) == ("vue", "high", False)

            used = content(await client.call_tool("research", {**reworded, "use": offered}))
            assert used["status"] == "cache-hit"
            # One session's choice ranks; that of a second one makes the wording serve by itself.
            again = content(await client.call_tool("research", {**reworded, "session_id": "another"}))
            assert (again["status"], again["results"]["related"][0]["id"]) == ("candidates", offered)
            await client.call_tool("research", {**reworded, "use": offered, "session_id": "another"})
            again = content(await client.call_tool("research", reworded))
            assert (again["status"], again["results"]["cache_entry_id"]) == ("cache-hit", offered)

            found = content(await client.call_tool("search", {"query": "repeatable"}))
            assert [entry["id"] for entry in found["entries"]] == [offered]
            assert found["entries"][0]["passage"]

    asyncio.run(session())
    assert [call.tool for call in context7.calls()] == ["resolve-library-id", "query-docs"]


def test_a_failure_is_a_tool_error_with_the_same_content(project: Project) -> None:
    async def session() -> None:
        async with in_process(project) as client:
            wrong = await client.call_tool(
                "research", {"framework": "vue", "question": " ", "story_key": "x"}
            )
            assert wrong.is_error
            fields = [error["field"] for error in content(wrong)["errors"]]
            assert {"story_key", "research_query.question"} <= set(fields)
            bare = await client.call_tool("research", {"framework": "vue"})
            assert [error["field"] for error in content(bare)["errors"]] == ["research_query.question"]
            unread = await client.call_tool("read_report", {"id": "nothing"})
            assert unread.is_error
            assert 'no entry has the id "nothing"' in text(unread)
            odd = await client.call_tool("search", {"query": "x", "limit": "many"})
            assert odd.is_error
            assert "limit: Validation failed: must be a whole number from 1" in text(odd)
            for tool, name, given in (
                ("read_report", "section", {"id": "x", "section": {"a": 1}}),
                ("search", "framework", {"query": "x", "framework": ["x"]}),
            ):
                odd = await client.call_tool(tool, given)
                assert odd.is_error
                assert f"{name}: Validation failed: must be text" in text(odd)
            empty = await client.call_tool("lessons_record", {})
            assert empty.is_error
            assert "give lesson: {symptom, fix}" in text(empty)
            odd = await client.call_tool("research", {**QUESTION, "topic": {"a": 1}, "tags": [["x"]]})
            assert odd.is_error
            assert "research_query.topic" in [error["field"] for error in content(odd)["errors"]]

    asyncio.run(session())


def test_a_defect_is_a_tool_error_that_tells_nothing_of_the_inside(caplog: pytest.LogCaptureFixture) -> None:
    no_app: Any = object()

    async def session() -> None:
        async with Client(create_mcp_server(Workers(no_app, workers=2))) as client:
            odd = await client.call_tool("read_report", {"id": "x"})
            assert odd.is_error
            assert text(odd) == "unexpected AttributeError; this is a bug in kr, and its log has more"

    asyncio.run(session())
    assert "read_report" in caplog.text


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def held(project: Project) -> tuple[int, int]:
    """How many leases and reservations there are."""
    (leases,) = project.sql("SELECT count(*) FROM leases")[0]
    (reservations,) = project.sql("SELECT count(*) FROM reservations")[0]
    return leases, reservations


def test_a_cancelled_call_gives_back_what_it_held(project: Project) -> None:
    with context7_server(Scenario(delay=30)) as slow:
        project.use_context7(slow.url)

        async def session() -> None:
            async with mcp_over_stdio(project) as client:
                with anyio.move_on_after(60) as patience:
                    async with anyio.create_task_group() as group:
                        group.start_soon(client.call_tool, "research", QUESTION)
                        await anyio.to_thread.run_sync(until, lambda: bool(slow.calls()))
                        assert held(project) == (1, 1)
                        group.cancel_scope.cancel()
                assert not patience.cancelled_caught
                began = time.monotonic()
                await anyio.to_thread.run_sync(until, lambda: held(project) == (0, 0))
                assert time.monotonic() - began < 5
                # The server is as it was, and the source is not to blame.
                assert (await client.call_tool("search", {"query": "x"})).is_error is False

        asyncio.run(session())
    assert project.sql("SELECT status, error FROM requests") == [("failure", "interrupted: Cancelled")]
    assert project.sql("SELECT count(*) FROM source_calls") == [(0,)]
    assert project.sql("SELECT count(*) FROM circuits WHERE failures > 0") == [(0,)]


WITHOUT_EXTRA = """
import sys
sys.modules.update(dict.fromkeys(["fastapi", "prometheus_client", "jinja2"]))
from kr.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def start(project: Project) -> "subprocess.Popen[bytes]":
    """Start a ``kr mcp`` that has none of what ``kr serve`` needs."""
    return subprocess.Popen(
        [sys.executable, "-c", WITHOUT_EXTRA, "mcp"],
        cwd=project.root,
        env=project.environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def say(process: "subprocess.Popen[bytes]", **message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def shake_hands(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    assert process.stdout is not None
    client = {"name": "a client of an older day", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    say(process, id=1, method="initialize", params=params)
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    say(process, method="notifications/initialized")
    return answer


def test_sigterm_ends_it_in_the_middle_of_a_research(project: Project) -> None:
    with context7_server(Scenario(delay=30)) as slow:
        project.use_context7(slow.url)
        process = start(project)
        assert shake_hands(process)["result"]["serverInfo"]["name"] == "kr"
        say(process, id=2, method="tools/call", params={"name": "research", "arguments": QUESTION})
        until(lambda: bool(slow.calls()))
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in errors) == (143, False)
    assert time.monotonic() - began < 10
    assert held(project) == (0, 0)


def test_a_client_that_hangs_up_ends_it_and_a_broken_line_does_not(project: Project) -> None:
    process = start(project)
    shake_hands(process)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"{no json\n")
    say(process, id=2, method="ping")
    assert json.loads(process.stdout.readline()) == {"jsonrpc": "2.0", "id": 2, "result": {}}
    process.stdout.close()  # the client is gone before it hears the answer
    say(process, id=3, method="ping")
    say(process, id=4, method="ping")
    process.stdin.close()
    assert process.stderr is not None
    with process.stderr as log:
        assert (process.wait(timeout=30), log.read()) == (0, b"")


def test_kr_serve_says_what_it_lacks(project: Project) -> None:
    refused = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA, "serve"],
        cwd=project.root,
        env=project.environ(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 1
    assert re.search(rb"-m pip install .*\[serve\]", refused.stderr)
