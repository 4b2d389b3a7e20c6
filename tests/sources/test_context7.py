from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.errors import SourceFailure
from kr.models import Learned, Query
from kr.settings.model import Server
from kr.sources.base import Answer, Ask
from kr.sources.context7 import (
    Context7,
    Library,
    choose_version,
    fits,
    parse_documentation,
)
from tests.support.mcp_servers import DOCS, Call, Scenario, context7_server

QUESTION = "How do I make an option repeatable?"
REDIRECT = "Library /vuejs/old has been redirected to this library: /vuejs/docs."
NO_TAG = 'Tag "v3.5.1" not found for library "/vuejs/docs". Available tags: v2.7.16'
NO_LIBRARY = 'Library "/vuejs/old" not found. Please check the library ID.'

LEARNED: list[Learned] = []
"""What the last question taught, the newest last."""


def ask(framework: str = "vue", version: str = "3.x", library_id: str | None = None) -> Ask:
    query = Query(
        framework=framework, framework_version=version, topic="options", tags=("cli",), question=QUESTION
    )
    return Ask(query=query, known=Learned(library_id=library_id), learn=LEARNED.append)


def run(scenario: Scenario, asked: Ask) -> tuple[Answer | SourceFailure, list[Call]]:
    LEARNED.clear()
    with context7_server(scenario) as server:
        try:
            result: Answer | SourceFailure = Context7(Server(url=server.url)).ask(asked, timeout=20)
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
    assert (answer.url, answer.version) == ("https://context7.com/vuejs/docs", "v3.5.1")
    assert (LEARNED[-1].library_id, LEARNED[-1].repository) == ("/vuejs/docs", "vuejs/docs")


def test_a_text_that_was_cut_says_so() -> None:
    found, _ = run(Scenario(docs=[DOCS + "word " * 250_000]), ask())
    assert isinstance(found, Answer)
    assert [passage.is_cut for passage in found.passages] == [False, True]


@pytest.mark.parametrize("gone", [NO_LIBRARY, REDIRECT])
def test_a_remembered_library_that_is_gone_is_resolved_again(gone: str) -> None:
    answer, calls = run(Scenario(docs=[gone, DOCS]), ask(library_id="/vuejs/old"))
    assert [call.tool for call in calls] == ["query-docs", "resolve-library-id", "query-docs"]
    assert isinstance(answer, Answer)
    assert LEARNED[-1].library_id == "/vuejs/docs"


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
        (Scenario(resolve=["No libraries found matching the provided name."]), "No libraries found", False),
        (Scenario(resolve=[""]), "an empty answer", True),
        (Scenario(docs=["Rate limit exceeded. Please try again later."]), "Rate limit exceeded", True),
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


# --- what the server says


def library(library_id: str, title: str = "Something Else", **more: Any) -> Library:
    return Library(id=library_id, title=title, **more)


@pytest.mark.parametrize(
    ("framework", "found"),
    [
        ("vue", library("/vuejs/vue")),
        ("spring-boot", library("/x/y", "Spring Boot")),
        ("@vue/reactivity", library("/vuejs/reactivity")),
        ("@vue/reactivity", library("/npm/x", "@vue/reactivity")),
        ("vercel/next.js", library("/vercel/next.js")),
    ],
)
def test_the_same_framework_fits(framework: str, found: Library) -> None:
    assert fits(framework, found)


@pytest.mark.parametrize(
    ("framework", "found"),
    [
        ("vue", library("/huangshuwei/vue-easytable", "vue-easytable")),
        ("c", library("/x/y", "C++")),
        ("@vue/reactivity", library("/someone/reactivity")),
        ("vercel/next.js", library("/someone/next.js")),
        ("", library("/x/y")),
    ],
)
def test_something_else_does_not_fit(framework: str, found: Library) -> None:
    assert not fits(framework, found)


@pytest.mark.parametrize(
    ("wanted", "listed", "chosen"),
    [
        ("v15", ["v15.0.9", "v15.10.1", "v15.9.9"], "v15.10.1"),
        ("14", ["v15.1.8", "v14.3.0-canary.87"], "v14.3.0-canary.87"),
        ("15", ["v15.2.0-canary.1", "v15.1.8"], "v15.1.8"),
        ("15.1.2", ["v15.1.8", "v15.1.2"], "v15.1.2"),
        (">=2,<3", ["3.0.0", "2.7.16"], "2.7.16"),
        ("1", ["v15.1.8", "10.0"], None),
        ("latest", ["v15.1.8"], None),
    ],
)
def test_a_listed_version_of_the_wanted_major_is_chosen(
    wanted: str, listed: list[str], chosen: str | None
) -> None:
    assert choose_version(wanted, listed) == chosen


def test_documentation_is_read_block_by_block() -> None:
    first, second = parse_documentation(DOCS)
    assert (first.title, first.url) == (
        "Make an option repeatable",
        "https://github.com/vuejs/docs/blob/main/src/guide/options.md",
    )
    assert first.text.endswith(
        "```js\nconst option = { multiple: true }\n### not a title\nSource: not a source\n```"
    )
    assert second.text == "An option is read once unless it says otherwise."


@pytest.mark.parametrize(
    "text", ["", "### Title only\n\ntext", "### T\n\nSource: https://a.example/\n\n", "plain text"]
)
def test_what_has_not_the_shape_is_no_documentation(text: str) -> None:
    assert parse_documentation(text) == ()


@given(st.text(max_size=300))
def test_reading_documentation_never_raises(text: str) -> None:
    assert all(passage.text.strip() for passage in parse_documentation(DOCS + text))
    parse_documentation(text)
