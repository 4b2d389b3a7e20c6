"""What one agent found out, every agent has: one story with real clients and processes, over MCP, HTTP and the command line.

``TRANSCRIPT=FILE scripts/test tests/server/test_what_one_found_out.py`` writes down what was said, for the documentation.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Project
from tests.support.servers import Server, mcp_over_http, mcp_over_stdio, serving

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

QUESTION = "How do I reject unknown keys?"
OTHER_WORDS = "Can unknown keys of an object be refused?"
FINDING = {
    "framework": "zod",
    "framework_version": "4.1",
    "question": QUESTION,
    "answer": "Use `z.object({...}).strict()`: unknown keys are errors then.",
    "code": "z.object({ name: z.string() }).strict().parse({ name: 'a', age: 1 }) // throws",
    "verified_by": "npm test",
    "session_id": "agent-a",
}
BETTER = {
    "answer": "Use `z.strictObject({...})`: unknown keys are errors then. `.strict()` is the older way.",
    "code": "z.strictObject({ name: z.string() }).parse({ name: 'a', age: 1 }) // throws",
}


class Transcript:
    """What was said, by whom; the parts of the answers that matter."""

    def __init__(self, title: str) -> None:
        self._lines = [f"## {title}", ""]

    def note(self, who: str, call: str, answer: Any) -> None:
        shown = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, indent=2)
        shown = shown.replace("\\n", "\n")  # a report is read as it stands
        self._lines += [f"### {who}", "", "````text", call, "````", "", "````text", shown.strip(), "````", ""]

    def write(self) -> None:
        """Add it to the file that was asked for, if one was."""
        if place := os.environ.get("TRANSCRIPT"):
            with Path(place).open("a", encoding="utf-8") as file:
                file.write("\n".join(self._lines) + "\n")


class Story:
    """The clients of one knowledge base, each as its agent has it."""

    def __init__(self, project: Project, server: Server, title: str) -> None:
        self.project = project
        self.server = server
        self.transcript = Transcript(title)

    def tool(self, who: str, name: str, given: dict[str, Any], *shown: str, stdio: bool = True) -> Any:
        """Call a tool over MCP, in a process of its own or over the server."""

        async def call() -> Any:
            client = mcp_over_stdio(self.project) if stdio else mcp_over_http(self.server.url)
            async with client as session:
                return (await session.call_tool(name, given)).structured_content

        answer = asyncio.run(call())
        how = "MCP over stdio" if stdio else "MCP over HTTP"
        self.transcript.note(f"{who}, {how}", f"{name} {_json(given)}", _part(answer, shown))
        return answer

    def ask(self, who: str, question: str, session_id: str, *shown: str) -> Any:
        """Ask over HTTP, in words of one's own."""
        query = {
            "framework": "zod",
            "framework_version": "4.1",
            "topic": question,
            "tags": ["keys"],
            "question": question,
        }
        body = {
            "story_key": "1-1",
            "mode": "research",
            "session_id": session_id,
            "research_query": query,
            "config_overrides": {"if_unsure": "candidates"},
        }
        answer = self.server.post("/v1/research?include_report=true", body).json
        self.transcript.note(f"{who}, HTTP", f"POST /v1/research {_json(query)}", _part(answer, shown))
        return answer

    def command(self, who: str, *arguments: str) -> str:
        done = self.project.run(*arguments, "--format", "text")
        assert done.returncode == 0, done.stderr.decode()
        said = done.stdout.decode()
        line = " ".join(word if " " not in word else f'"{word}"' for word in arguments)
        self.transcript.note(f"{who}, at the command line", f"$ kr {line}", said)
        return said

    def entry(self, entry_id: str) -> Any:
        return self.server.get(f"/v1/entries/{entry_id}").json


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _part(answer: Any, shown: tuple[str, ...]) -> Any:
    """Keep the keys that a reader wants to see, wherever they stand."""
    flat = {**answer, **(answer.get("results") or {})}
    return {name: flat[name] for name in shown} if shown else answer


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def server(project: Project) -> Iterator[Server]:
    with serving(project) as found:
        yield found


def withdrawn_improved_and_confirmed(story: Story, entry_id: str, revision: int) -> None:
    """Go on from an entry that is served: it is rated wrong, served to nobody, improved, and confirmed."""
    said = story.command(
        "Agent C",
        "rate",
        entry_id,
        "--wrong",
        "--note",
        "strict() is deprecated in 4",
        "--session-id",
        "agent-c",
    )
    assert "served to nobody" in said
    refused = story.ask("Agent D", QUESTION, "agent-d", "status", "related")
    assert refused["status"] != "cache-hit"
    (related,) = refused["results"]["related"]
    assert (related["id"], related["wrong"]) == (entry_id, 1)
    assert related["note"] == "strict() is deprecated in 4"
    assert "strict() is deprecated in 4" in story.command("A person", "review")

    improved = story.tool(
        "Agent D",
        "save_finding",
        {**FINDING, **BETTER, "entry": entry_id, "session_id": "agent-d"},
        "status",
        "id",
        "revision",
        "replaced",
        "confidence",
    )
    assert improved["status"] == "saved"
    assert improved["results"]["id"] == entry_id
    assert (improved["results"]["revision"], improved["results"]["replaced"]) == (revision + 1, revision)
    hit = story.ask("Agent E", QUESTION, "agent-e", "status", "cache_entry_id", "confidence", "report")
    assert (hit["status"], hit["results"]["cache_entry_id"]) == ("cache-hit", entry_id)
    assert "z.strictObject" in hit["results"]["report"]
    rating = {"id": entry_id, "outcome": "worked", "session_id": "agent-e"}
    rated = story.tool("Agent E", "rate_report", rating, stdio=False)
    assert (rated["worked"], rated["wrong"], rated["confidence"]) == (1, 0, "high")
    assert "Rated wrong" not in story.command("A person", "review")


def test_a_finding_is_saved_found_in_other_words_withdrawn_improved_and_confirmed(
    project: Project, server: Server
) -> None:
    story = Story(project, server, "A finding")
    asked = {
        "framework": "zod",
        "question": QUESTION,
        "framework_version": "4.1",
        "session_id": "agent-a",
    }
    missed = story.tool("Agent A", "research", asked, "status", "degradation_notes")
    assert missed["status"] == "degraded"
    assert any("save_finding" in note for note in missed["results"]["degradation_notes"])
    saved = story.tool(
        "Agent A", "save_finding", FINDING, "status", "id", "revision", "confidence", "related"
    )
    entry_id = saved["results"]["id"]
    assert saved["status"] == "saved"
    offered = story.ask("Agent B", OTHER_WORDS, "agent-b", "status", "candidate_report")
    assert offered["status"] == "candidates"
    assert offered["results"]["candidate_report"]["id"] == entry_id
    assert "strict()" in offered["results"]["candidate_report"]["text"]
    withdrawn_improved_and_confirmed(story, entry_id, story.entry(entry_id)["revision"])
    story.transcript.write()


def test_a_report_file_that_somebody_edited_goes_the_same_way(project: Project, server: Server) -> None:
    story = Story(project, server, "An edited report file")
    saved = story.tool("Agent A", "save_finding", FINDING, "status", "id", "path")
    entry_id, path = saved["results"]["id"], project.base / saved["results"]["path"]
    text = path.read_text(encoding="utf-8")
    edited = text.replace(
        "unknown keys are errors then.", "unknown keys are errors then, in nested objects too."
    )
    assert edited != text
    path.write_text(edited, encoding="utf-8")
    story.transcript.note("Somebody", f"edits {saved['results']['path']}", "…, in nested objects too.")
    hit = story.ask("Agent B", QUESTION, "agent-b", "status", "cache_entry_id", "report")
    assert hit["status"] == "cache-hit"
    assert "in nested objects too" in hit["results"]["report"]
    entry = story.entry(entry_id)
    assert (entry["origin"], entry["written_by"]) == ("finding", "file")
    assert [old["written_by"] for old in _history(story, entry_id)] == ["agent:agent-a"]
    withdrawn_improved_and_confirmed(story, entry_id, entry["revision"])
    assert "nested" not in path.read_text(encoding="utf-8")  # the file is the improved text now
    assert {old["written_by"] for old in _history(story, entry_id)} == {"agent:agent-a", "file"}
    story.transcript.write()


def _history(story: Story, entry_id: str) -> list[dict[str, Any]]:
    done = story.project.run("entries", "history", entry_id, "--format", "json")
    found: Any = json.loads(done.stdout)
    return found if isinstance(found, list) else found["revisions"]
