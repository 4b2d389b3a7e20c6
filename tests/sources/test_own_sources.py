"""A folder of documents and a tool of any MCP server, as sources of one's own."""

import json
import sys
from pathlib import Path

import pytest

from kr.errors import SourceFailure, SourceNotAsked
from kr.models import Query
from kr.settings import load_settings
from kr.sources import build_source
from kr.sources.base import Ask, Source
from kr.sources.local_docs import Folder
from kr.text import Tree

SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("acme")

@server.tool()
def search_docs(text: str, framework: str = "") -> str:
    """Search."""
    if text == "nothing":
        return ""
    return f"# Limits\\n\\n{framework}: {text}\\n\\n## More\\n\\nAsk for a burst."

server.run()
'''


def ask(question: str, framework: str = "acme") -> Ask:
    return Ask(
        query=Query(framework=framework, framework_version="1", topic=question, tags=(), question=question)
    )


def folder(root: Path, framework: str | None = "acme") -> Folder:
    return Folder(
        name="handbook",
        folder=root / "handbook",
        framework=framework,
        environ={"XDG_CACHE_HOME": str(root / "cache")},
    )


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    for number in range(40):
        file = tmp_path / "handbook" / f"part{number % 4}" / f"note{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Note {number}\n\nAbout meetings, budgets and travels of team {number}.\n")
    (tmp_path / "handbook" / "oncall.rst").write_text(
        "On call\n=======\n\nAcknowledge an alert within five minutes.\n"
    )
    return tmp_path


def test_a_folder_is_found_in_other_words_than_its_own(handbook: Path) -> None:
    found = folder(handbook).ask(ask("How fast must alerts be acknowledged?"), timeout=10)
    assert (found.source, found.is_gap) == ("handbook", False)
    assert (found.passages[0].title, found.passages[0].url) == ("oncall.rst: On call", "handbook")


def test_what_changes_on_disk_is_found_anew(handbook: Path) -> None:
    source, question = folder(handbook), ask("How fast must alerts be acknowledged?")
    source.ask(question, timeout=10)
    file = handbook / "handbook" / "oncall.rst"
    file.write_text(file.read_text().replace("five", "nine"))
    assert "nine minutes" in source.ask(question, timeout=10).passages[0].text
    file.unlink()
    with pytest.raises(SourceFailure, match="no document has a word"):
        source.ask(question, timeout=10)


def test_a_folder_about_another_framework_is_not_asked(handbook: Path) -> None:
    with pytest.raises(SourceNotAsked):
        folder(handbook).ask(ask("alerts", framework="vue"), timeout=10)
    assert folder(handbook, None).ask(ask("alerts", framework="vue"), timeout=10).passages


def test_links_out_of_a_folder_and_binaries_are_not_read(handbook: Path) -> None:
    (handbook / "secret.md").write_text("The secret alert.")
    (handbook / "handbook" / "link.md").symlink_to(handbook / "secret.md")
    (handbook / "handbook" / "all").symlink_to(handbook)
    (handbook / "handbook" / "data.md").write_bytes(b"alert" * 10_000 + b"\0")
    found = folder(handbook, None).ask(ask("Which alert?"), timeout=10)
    assert [passage.title for passage in found.passages] == ["oncall.rst: On call"]


def test_secrets_of_own_pages_are_masked(handbook: Path) -> None:
    (handbook / "handbook" / "deploy.md").write_text("# Deploy\n\nexport API_TOKEN=hunter2hunter2hunter2\n")
    found = folder(handbook, None).ask(ask("Which token deploys?"), timeout=10)
    assert "API_TOKEN" in repr(found)
    assert "hunter2" not in repr(found)


def test_a_folder_that_is_not_there_says_so_without_its_place(tmp_path: Path) -> None:
    with pytest.raises(SourceFailure) as caught:
        folder(tmp_path).check()
    assert str(tmp_path) not in caught.value.reason
    (tmp_path / "handbook").mkdir()
    with pytest.raises(SourceFailure, match="holds no document"):
        folder(tmp_path).check()


def first_source(root: Path, section: Tree) -> Source:
    (root / "kr.yaml").write_text(json.dumps({"knowledge_research": section}))
    settings = load_settings(config=root / "kr.yaml", knowledge_base=None, environ={}, cwd=root)
    return build_source(settings.knowledge_research.sources[0], settings, {})


def test_any_servers_tool_answers(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    own: Tree = {"name": "wiki", "server": "acme", "tool": "search_docs", "argument": "text"}
    servers: Tree = {"acme": {"command": sys.executable, "args": [str(tmp_path / "server.py")]}}
    source = first_source(tmp_path, {"sources": [own, "web_search"], "servers": servers})
    found = source.ask(ask("How many?"), timeout=60)
    assert [(passage.title, passage.text) for passage in found.passages] == [
        ("Limits", "acme: How many?"),
        ("Limits > More", "Ask for a burst."),
    ]
    assert (found.source, source.is_charged, found.is_gap) == ("wiki", True, False)
    with pytest.raises(SourceFailure, match="an empty answer"):
        source.ask(ask("nothing"), timeout=60)


def test_a_tool_without_its_server_is_unavailable(tmp_path: Path) -> None:
    source = first_source(tmp_path, {"sources": [{"name": "wiki", "server": "acme", "tool": "t"}]})
    with pytest.raises(SourceNotAsked, match="no server of this name"):
        source.ask(ask("anything"), timeout=1)
