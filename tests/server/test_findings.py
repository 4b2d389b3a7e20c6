"""Saving and rating over HTTP and MCP, and what careless clients send (rule 3.1, 3.10, 8)."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from kr.server.mcp import create_mcp_server
from kr.server.worker import Workers
from kr.text import tokens_of
from tests.support.program import Project
from tests.support.servers import Served, serving_here

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("database_url")]

FINDING: dict[str, Any] = {
    "framework": "zod",
    "framework_version": "4.1",
    "question": "How do I reject unknown keys?",
    "answer": "Use `z.strictObject`: unknown keys are errors then.",
    "code": "z.strictObject({ name: z.string() })",
    "sources": ["https://zod.dev/api#objects"],
    "verified_by": "npm test",
    "session_id": "agent-1",
}
OTHER_WORDS = "Can unknown keys of an object be refused?"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    with serving_here(project, token=None) as found:
        yield found


def request_of(question: str, **overrides: Any) -> dict[str, Any]:
    query = {
        "framework": "zod",
        "framework_version": "4.1",
        "topic": question,
        "tags": ["keys"],
        "question": question,
    }
    return {
        "story_key": "1-1",
        "mode": "research",
        "session_id": "agent-2",
        "research_query": query,
        "config_overrides": overrides,
    }


def talk(project: Project, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Call tools one after the other; returns their results, as the SDK's client reads them."""

    async def session() -> list[Any]:
        with project.app() as app:
            async with Client(create_mcp_server(Workers(app, workers=2))) as client:
                return [await client.call_tool(tool, given) for tool, given in calls]

    return asyncio.run(session())


def content(result: Any) -> Any:
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


# HTTP


def test_what_one_saves_over_http_another_gets(served: Served) -> None:
    saved = served.post("/v1/findings", FINDING)
    assert saved.status == 200
    results = saved.json["results"]
    assert (saved.json["status"], results["revision"], results["replaced"]) == ("saved", 1, None)
    assert (results["confidence"], results["index_count"]) == ("medium", 1)
    report = served.get(f"/v1/entries/{results['id']}/report")
    assert b"z.strictObject" in report.body
    assert b"Verified by: npm test" in report.body
    hit = served.post("/v1/research?include_report=true", request_of(FINDING["question"])).json
    assert (hit["status"], hit["results"]["cache_entry_id"]) == ("cache-hit", results["id"])
    assert tokens_of(json.dumps(hit)) <= 600  # rule 11
    improved = served.post(
        "/v1/findings", {**FINDING, "entry": results["id"], "answer": "Use `.strict()`."}
    ).json
    assert (improved["results"]["revision"], improved["results"]["replaced"]) == (2, 1)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff\xfe\x00", b"- a", b"1"])
def test_what_is_no_finding_at_all_is_told(served: Served, body: bytes) -> None:
    for path in ("/v1/findings", "/v1/entries/x/ratings"):
        refused = served.post(path, body)
        assert refused.status == 422, refused.body
    assert served.post("/v1/findings", body).json["errors"][0]["field"] == "request"


def test_what_is_too_long_is_refused_with_the_count(served: Served) -> None:
    refused = served.post("/v1/findings", {**FINDING, "answer": "word " * 1200})
    (error,) = refused.json["errors"]
    assert (refused.status, error["field"]) == (422, "answer")
    assert error["message"].startswith(f"{tokens_of('word ' * 1200) + tokens_of(FINDING['code'])} tokens")
    assert served.get("/v1/entries").json["total"] == 0


def test_an_entry_that_is_not_there_is_named_with_the_nearest(served: Served) -> None:
    entry_id = served.post("/v1/findings", FINDING).json["results"]["id"]
    improved = served.post("/v1/findings", {**FINDING, "entry": f"{entry_id}x"})
    assert improved.status == 422
    assert entry_id in improved.json["errors"][0]["message"]
    rated = served.post(f"/v1/entries/{entry_id}x/ratings", {"outcome": "worked"})
    assert (rated.status, rated.headers["content-type"]) == (404, "application/problem+json")
    assert entry_id in rated.json["detail"]


def test_ratings_count_once_for_a_session_and_withdraw(served: Served) -> None:
    entry_id = served.post("/v1/findings", FINDING).json["results"]["id"]
    path = f"/v1/entries/{entry_id}/ratings"
    word = {"outcome": "wrong", "note": "gone in 5", "session_id": "agent-2"}
    served.post(path, word)
    rated = served.post(path, word)
    assert rated.status == 200
    told = {name: rated.json[name] for name in ("id", "worked", "wrong", "withdrawn")}
    assert told == {"id": entry_id, "worked": 0, "wrong": 1, "withdrawn": True}
    offered = served.post("/v1/research", request_of(FINDING["question"], if_unsure="candidates")).json
    assert offered["status"] != "cache-hit"
    assert offered["results"]["related"][0]["note"] == "gone in 5"
    last = served.post(path, {"outcome": "worked", "session_id": "agent-2"}).json
    assert (last["worked"], last["wrong"], last["withdrawn"], last["confidence"]) == (1, 0, False, "high")
    for bad, field in (
        ({}, "outcome"),
        ({"outcome": "fine"}, "outcome"),
        ({"outcome": "worked", "note": [1]}, "note"),
    ):
        refused = served.post(path, bad)
        assert (refused.status, field in refused.json["detail"]) == (422, True)


# MCP


def test_what_one_agent_saves_over_mcp_another_is_offered_uses_and_rates(project: Project) -> None:
    (saved,) = talk(project, ("save_finding", FINDING))
    entry_id = content(saved)["results"]["id"]
    asked = {"framework": "zod", "question": OTHER_WORDS, "framework_version": "4.1", "session_id": "agent-2"}
    offered, used, rated, again = talk(
        project,
        ("research", asked),
        ("research", {**asked, "use": entry_id}),
        ("rate_report", {"id": entry_id, "outcome": "worked", "session_id": "agent-2"}),
        ("research", {**asked, "session_id": "agent-3"}),
    )
    candidate = content(offered)["results"]["candidate_report"]
    assert (content(offered)["status"], candidate["id"]) == ("candidates", entry_id)
    assert "z.strictObject" in candidate["text"]
    assert (content(used)["status"], content(used)["results"]["cache_entry_id"]) == ("cache-hit", entry_id)
    assert (content(rated)["worked"], content(rated)["confidence"]) == (1, "high")
    assert content(again)["status"] == "cache-hit"  # the wording is proved
    assert content(again)["results"]["match"]["tier"] == "framework+wording"


def test_search_finds_a_finding_and_a_lesson(project: Project) -> None:
    failed = {
        "status": "failure",
        "errors": [{"message": "unknown keys slipped in", "suggestion": "Use strictObject"}],
    }
    record = {"phase": "dev-execution", "event_type": "general_agent_failure", "agent_return": failed}
    _, _, found, none = talk(
        project,
        ("save_finding", FINDING),
        ("lessons_record", record),
        ("search", {"query": "strictObject"}),
        ("search", {"query": "strictObject", "framework": "vue"}),
    )
    (entry,) = content(found)["entries"]
    assert set(entry) == {"id", "framework", "framework_version", "topic", "status", "passage"}
    assert "strictObject" in entry["passage"]
    assert ["strictObject" in lesson["passage"] for lesson in content(found)["lessons"]] == [True]
    assert content(none)["entries"] == []


def test_arguments_in_other_forms_are_taken_as_they_are_meant(project: Project) -> None:
    careless = {
        **FINDING,
        "tags": '["strict", "keys"]',
        "sources": '["https://zod.dev"]',
        "entry": "",
        "topic": None,
    }
    saved, searched, read, asked, used = talk(
        project,
        ("save_finding", {**careless, "framework_version": 4.1}),
        ("search", {"query": "strictObject", "limit": "5", "framework": ""}),
        ("read_report", {"id": "zod-reject-unknown-keys", "max_tokens": "500.0", "section": ""}),
        (
            "research",
            {
                "framework": "zod",
                "question": OTHER_WORDS,
                "framework_version": 4.1,
                "tags": '["strict"]',
                "use": "",
                "refresh": "false",
                "max_calls": "0",
                "timeout_seconds": "soon",
                "max_tokens": 40.0,
                "story_key": "",
                "session_id": None,
                "if_unsure": "",
            },
        ),
        (
            "research",
            {
                "framework": "zod",
                "question": OTHER_WORDS,
                "use": "zod-reject-unknown-keys",
                "tags": ["strict"],
            },
        ),
    )
    assert content(saved)["status"] == "saved"
    assert len(content(searched)["entries"]) == 1
    assert (content(read)["framework_version"], content(read)["is_cut"]) == ("4.1", False)
    assert content(asked)["status"] == "candidates"
    assert content(asked)["results"]["budget_remaining"] == 0
    assert any("timeout_seconds" in note for note in content(asked)["results"]["degradation_notes"])
    assert tokens_of(content(asked)["results"]["candidate_report"]["text"]) <= 60
    assert content(used)["status"] == "cache-hit"
    kept = project.sql("SELECT framework_version, tags FROM requests WHERE status = 'candidates'")
    assert kept == [("4.1", '["strict"]')]
    assert project.sql("SELECT tags FROM entries") == [('["strict", "keys"]',)]


def test_mcp_is_served_with_and_without_the_last_slash_and_without_a_redirect(served: Served) -> None:
    async def tools(path: str) -> list[str]:
        async with (
            httpx2.AsyncClient(timeout=60, follow_redirects=False) as http_client,
            Client(streamable_http_client(f"{served.url}{path}", http_client=http_client)) as client,
        ):
            saved = content(await client.call_tool("save_finding", FINDING))
            assert saved["status"] == "saved"
            return [tool.name for tool in (await client.list_tools()).tools]

    for path in ("/mcp", "/mcp/"):
        assert len(asyncio.run(tools(path))) == 7
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        sent = served.post(
            path, body, content_type="application/json", accept="application/json, text/event-stream"
        )
        assert sent.status not in {301, 302, 307, 308}
        assert served.get(path, accept="text/event-stream").status == 405
