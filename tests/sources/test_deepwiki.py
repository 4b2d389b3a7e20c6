import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.errors import SourceFailure
from kr.models import Learned, Query
from kr.settings.model import Server
from kr.sources.base import Answer, Ask
from kr.sources.mcp_client import ToolText
from kr.sources.mcp_tools import DeepWiki, read_answer, repository_for
from tests.support.mcp_servers import WIKI, Call, Scenario, deepwiki_server

QUESTION = "How do I make an option repeatable?"
NOT_INDEXED = "Error processing question: Repository not found. Visit https://deepwiki.com to index it. Requested repos: o/r"


def ask(framework: str = "vue", repository: str | None = None) -> Ask:
    query = Query(
        framework=framework, framework_version="3.x", topic="options", tags=("cli",), question=QUESTION
    )
    return Ask(query=query, known=Learned(repository=repository))


@pytest.mark.parametrize("scenario", [Scenario(), Scenario(old_names=True), Scenario(legacy=True)])
def test_the_question_tool_of_either_name_is_asked(scenario: Scenario) -> None:
    with deepwiki_server(scenario) as server:
        answer = DeepWiki(Server(url=server.url)).ask(ask(repository="vuejs/core"), timeout=20)
        name = "ask_question" if scenario.old_names else "ask_wiki_question"
        assert server.calls() == [Call(name, {"repoName": "vuejs/core", "question": QUESTION})]
    assert answer.url == "https://deepwiki.com/vuejs/core"
    told = "\n\n".join(passage.text for passage in answer.passages)
    assert [
        line
        for line in WIKI.partition("\n\nWiki pages")[0].split("\n")
        if line and not line.startswith("#") and line not in told
    ] == []


@pytest.mark.parametrize("is_error", [True, False])
def test_a_repository_that_is_not_indexed_is_no_fault(is_error: bool) -> None:
    with (
        deepwiki_server(Scenario(wiki=[NOT_INDEXED], is_error=is_error)) as server,
        pytest.raises(SourceFailure, match="Repository not found") as caught,
    ):
        DeepWiki(Server(url=server.url)).ask(ask(repository="o/r"), timeout=20)
    assert not caught.value.is_fault


def test_without_a_repository_nothing_is_asked() -> None:
    with deepwiki_server() as server:
        with pytest.raises(SourceFailure, match="no repository known for vue") as caught:
            DeepWiki(Server(url=server.url)).ask(ask(), timeout=20)
        assert server.requests() == []
    assert not caught.value.is_fault


@pytest.mark.parametrize(
    ("framework", "repository", "found"),
    [
        ("vue", "vuejs/core", "vuejs/core"),
        ("vercel/next.js", None, "vercel/next.js"),
        ("vercel/next.js", "not valid", "vercel/next.js"),
        ("@vue/reactivity", None, None),
        ("vue", "o/..", None),
        ("vue", "https://github.com/o/r", None),
    ],
)
def test_the_repository_is_taken_when_it_is_well_formed(
    framework: str, repository: str | None, found: str | None
) -> None:
    assert repository_for(ask(framework, repository)) == found


def read(text: str) -> Answer:
    return read_answer(ToolText(text, is_error=False), "o/r")


@pytest.mark.parametrize(
    "text",
    [
        "Error processing question: something broke",
        "Error fetching wiki for o/r: timeout",
        "Rate limit exceeded",
        "",
        "Wiki pages you might want to explore:\n- [x](https://deepwiki.com/o/r)\n",
    ],
)
def test_what_is_no_answer_is_a_failure(text: str) -> None:
    with pytest.raises(SourceFailure):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "Error handling in FastAPI is done with exception handlers.",
        "When git says `Repository not found`, check the URL.",
        "Rate limits are set per route:\n\n- one\n- two",
    ],
)
def test_an_answer_about_errors_is_an_answer(text: str) -> None:
    answer = read(text)
    assert answer == Answer(source="deepwiki", passages=answer.passages, url="https://deepwiki.com/o/r")
    assert answer.passages[0].text == text


@given(st.text(max_size=200))
def test_what_stands_before_the_navigation_is_kept(text: str) -> None:
    body = f"Start\n{text}\nend."
    end = "\n\nWiki pages you might want to explore:\n- [a](b)\n\nView this search on DeepWiki: https://deepwiki.com/search/x_1\n"
    assert read(body + end) == read(body)
