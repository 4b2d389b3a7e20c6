from collections.abc import Sequence

import pytest

from kr.errors import SourceFailure
from kr.models import Answer, Query, ServerConfig
from kr.sources.base import Ask
from kr.sources.context7 import Context7
from tests.support.mcp_servers import DOCS, LIBRARIES, Call, Raw, Scenario, context7_server, stdio_command

QUESTION = "How do I make an option repeatable?"
REDIRECT = "Library /vuejs/old has been redirected to this library: /vuejs/docs."
NO_TAG = 'Tag "v3.5.1" not found for library "/vuejs/docs". Available tags: v2.7.16'
NO_LIBRARY = 'Library "/vuejs/old" not found. Please check the library ID.'


def ask(framework: str = "vue", version: str = "3.x", library_id: str | None = None) -> Ask:
    query = Query(
        framework=framework, framework_version=version, topic="options", tags=("cli",), question=QUESTION
    )
    return Ask(query=query, library_id=library_id)


def run(scenario: Scenario, asked: Ask) -> tuple[Answer | SourceFailure, list[Call]]:
    with context7_server(scenario) as server:
        try:
            result: Answer | SourceFailure = Context7(ServerConfig(url=server.url)).ask(asked, timeout=20)
        except SourceFailure as failure:
            result = failure
        return result, server.calls()


def queried(calls: Sequence[Call]) -> list[str]:
    return [call.arguments["libraryId"] for call in calls if call.tool == "query-docs"]


def test_the_framework_is_resolved_and_its_documentation_asked_for() -> None:
    answer, calls = run(Scenario(), ask())
    assert calls == [
        Call("resolve-library-id", {"query": QUESTION, "libraryName": "vue"}),
        Call("query-docs", {"libraryId": "/vuejs/docs/v3.5.1", "query": QUESTION}),
    ]
    assert isinstance(answer, Answer)
    assert len(answer.passages) == 2
    assert (answer.url, answer.library_id, answer.version, answer.repository) == (
        "https://context7.com/vuejs/docs",
        "/vuejs/docs",
        "v3.5.1",
        "vuejs/docs",
    )


SITE = LIBRARIES.replace("/vuejs/docs", "/websites/vuejs_org").replace(
    "The documentation of Vue.js", "See https://github.com/vuejs/core"
)


@pytest.mark.parametrize("docs", [DOCS, "Rate limit exceeded. Please try again later."])
def test_the_description_tells_the_repository_where_the_id_is_none(docs: str) -> None:
    found, _ = run(Scenario(resolve=[SITE], docs=[docs]), ask())
    assert (found.library_id, found.repository) == ("/websites/vuejs_org", "vuejs/core")


def test_a_source_line_tells_the_repository_of_a_remembered_library() -> None:
    found, _ = run(Scenario(), ask(library_id="/websites/vuejs_org"))
    assert found.repository == "vuejs/docs"


def test_a_text_that_was_cut_says_so() -> None:
    found, _ = run(Scenario(docs=[DOCS + "word " * 250_000]), ask())
    assert isinstance(found, Answer)
    assert [passage.is_cut for passage in found.passages] == [False, True]


def test_a_version_that_is_not_listed_is_not_asked_for() -> None:
    answer, calls = run(Scenario(), ask(version="1.x"))
    assert queried(calls) == ["/vuejs/docs"]
    assert isinstance(answer, Answer)
    assert answer.version is None


def test_a_remembered_library_is_one_call() -> None:
    answer, calls = run(Scenario(), ask(library_id="/vuejs/docs"))
    assert [call.tool for call in calls] == ["query-docs"]
    assert isinstance(answer, Answer)
    assert answer.library_id == "/vuejs/docs"


def test_a_remembered_library_that_is_gone_is_resolved_again() -> None:
    answer, calls = run(Scenario(docs=[NO_LIBRARY, DOCS]), ask(library_id="/vuejs/old"))
    assert [call.tool for call in calls] == ["query-docs", "resolve-library-id", "query-docs"]
    assert isinstance(answer, Answer)
    assert answer.library_id == "/vuejs/docs"


def test_a_redirect_is_followed_and_remembered() -> None:
    answer, calls = run(Scenario(docs=[REDIRECT, DOCS]), ask(library_id="/vuejs/old"))
    assert queried(calls) == ["/vuejs/old", "/vuejs/docs"]
    assert isinstance(answer, Answer)
    assert answer.library_id == "/vuejs/docs"


def test_a_redirect_is_followed_once_in_each_attempt() -> None:
    failure, calls = run(Scenario(docs=[REDIRECT]), ask(library_id="/vuejs/old"))
    assert isinstance(failure, SourceFailure)
    assert queried(calls) == ["/vuejs/old", "/vuejs/docs", "/vuejs/docs/v3.5.1", "/vuejs/docs/v3.5.1"]


def test_an_unknown_tag_is_left_out() -> None:
    answer, calls = run(Scenario(docs=[NO_TAG, DOCS]), ask())
    assert queried(calls) == ["/vuejs/docs/v3.5.1", "/vuejs/docs"]
    assert isinstance(answer, Answer)
    assert answer.version is None


def test_no_fitting_library_asks_for_no_documentation() -> None:
    failure, calls = run(Scenario(), ask(framework="svelte"))
    assert isinstance(failure, SourceFailure)
    assert failure.reason == "no library fits svelte"
    assert not failure.is_fault
    assert [call.tool for call in calls] == ["resolve-library-id"]


@pytest.mark.parametrize(
    ("scenario", "reason", "is_fault"),
    [
        (Scenario(resolve=["Rate limit exceeded. Please try again later."]), "Rate limit exceeded", True),
        (Scenario(resolve=["Search failed: Service temporarily unavailable"]), "Search failed", True),
        (Scenario(resolve=["No libraries found matching the provided name."]), "No libraries found", False),
        (Scenario(resolve=[""]), "an empty answer", True),
        (Scenario(docs=["Rate limit exceeded. Please try again later."]), "Rate limit exceeded", True),
        (Scenario(docs=["Invalid API key. Please check your API key."]), "Invalid API key", True),
        (Scenario(docs=[NO_LIBRARY]), "Library", False),
        (
            Scenario(docs=['{"error":"library_not_finalized","message":"Library /o/r not finalized yet."}']),
            "Library /o/r",
            False,
        ),
        (
            Scenario(docs=["Some prose that has no shape.\nAnd a second line."]),
            "Some prose that has no shape. And",
            True,
        ),
        (Scenario(is_error=True), "Available Libraries", True),
    ],
)
def test_a_failure_that_looks_like_success_is_a_failure(
    scenario: Scenario, reason: str, is_fault: bool
) -> None:
    failure, _ = run(scenario, ask())
    assert isinstance(failure, SourceFailure)
    assert failure.reason.startswith((reason, f'no documentation; it says "{reason}'))
    assert failure.is_fault is is_fault


def test_the_older_tool_is_called_by_its_own_arguments() -> None:
    answer, calls = run(Scenario(old_names=True), ask())
    assert isinstance(answer, Answer)
    assert calls[0] == Call("resolve-library-id", {"libraryName": "vue"})
    assert calls[1].tool == "get-library-docs"
    assert calls[1].arguments["context7CompatibleLibraryID"] == "/vuejs/docs/v3.5.1"
    assert calls[1].arguments["topic"] == QUESTION


def test_a_server_that_only_knows_the_older_protocol_answers() -> None:
    answer, _ = run(Scenario(legacy=True), ask())
    assert isinstance(answer, Answer)


def test_another_server_is_told_apart_by_its_tools() -> None:
    from tests.support.mcp_servers import deepwiki_server

    with deepwiki_server() as server, pytest.raises(SourceFailure, match="no tool resolve-library-id"):
        Context7(ServerConfig(url=server.url)).ask(ask(), timeout=20)


def test_a_rate_limit_is_met_once() -> None:
    with context7_server(Scenario(raw=Raw(status=429, headers={"retry-after": "30"}))) as server:
        with pytest.raises(SourceFailure) as caught:
            Context7(ServerConfig(url=server.url)).ask(ask(), timeout=20)
        assert caught.value.retry_after == 30.0
        assert len(server.requests()) == 1


def test_over_stdio_it_is_the_same_server() -> None:
    command, args = stdio_command("context7", Scenario())
    answer = Context7(ServerConfig(command=command, args=args)).ask(ask(), timeout=30)
    assert answer.library_id == "/vuejs/docs"


def test_the_bearer_goes_to_the_server() -> None:
    with context7_server() as server:
        source = Context7(ServerConfig(url=server.url, headers={"Authorization": "Bearer abc"}))
        source.ask(ask(), timeout=20)
        assert {request.headers["authorization"] for request in server.requests()} == {"Bearer abc"}


def test_no_server_configured_is_no_fault() -> None:
    with pytest.raises(SourceFailure) as caught:
        Context7(ServerConfig()).ask(ask(), timeout=1)
    assert not caught.value.is_fault
