from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.sources.context7_text import (
    Library,
    choose_library,
    choose_version,
    fits,
    is_library_id,
    parse_documentation,
    parse_libraries,
    read_failure,
    repository_of,
    split_version,
)
from tests.support.mcp_servers import DOCS, LIBRARIES


def library(library_id: str, title: str = "Something Else", **more: Any) -> Library:
    return Library(id=library_id, title=title, **more)


def test_a_list_of_libraries_is_read() -> None:
    assert parse_libraries(LIBRARIES)[1:] == [
        library(
            "/vuejs/docs",
            "Vue.js",
            description="The documentation of Vue.js",
            reputation="High",
            benchmark=91.5,
            snippets=2512,
            versions=("v3.5.1", "v2.7.16"),
        ),
        library(
            "/vercel/next.js",
            "Next.js",
            description="The React framework for the web",
            reputation="High",
            benchmark=92.0,
            snippets=3200,
            versions=("v15.1.8", "v14.3.0-canary.87"),
        ),
    ]


def test_an_item_with_an_unusable_id_is_left_out() -> None:
    text = "- Title: Vue\n- Context7-compatible library ID: /a/../../x y\n"
    assert parse_libraries(text) == []


@given(st.text(max_size=400))
def test_reading_libraries_never_raises(text: str) -> None:
    assert all(is_library_id(found.id) for found in parse_libraries(text + LIBRARIES))


@pytest.mark.parametrize(
    ("framework", "found"),
    [
        ("vue", library("/vuejs/vue")),
        ("Vue.js", library("/vuejs/vue")),
        ("vue", library("/websites/whatever", "Vue.js")),
        ("next.js", library("/vercel/next.js")),
        ("nextjs", library("/vercel/next.js")),
        ("next", library("/vercel/next.js")),
        ("react", library("/facebook/react")),
        ("react", library("/reactjs/react.dev", "React")),
        ("spring boot", library("/spring-projects/spring-boot")),
        ("spring-boot", library("/x/y", "Spring Boot")),
        ("spring_boot", library("/spring-projects/spring-boot")),
        ("@vue/reactivity", library("/vuejs/reactivity")),
        ("@vue/reactivity", library("/npm/x", "@vue/reactivity")),
        ("vercel/next.js", library("/vercel/next.js")),
        ("C++", library("/x/y", "C++")),
        ("vue", library("/x/y", "ＶＵＥ")),
    ],
)
def test_the_same_framework_fits(framework: str, found: Library) -> None:
    assert fits(framework, found)


@pytest.mark.parametrize(
    ("framework", "found"),
    [
        ("vue", library("/huangshuwei/vue-easytable", "vue-easytable")),
        ("vue", library("/vuejs/vue-router", "Vue Router")),
        ("react", library("/x/react-native", "React Native")),
        ("c", library("/x/y", "C++")),
        ("c++", library("/x/c", "C")),
        ("c#", library("/x/c", "C")),
        ("@vue/reactivity", library("/someone/reactivity")),
        ("vercel/next.js", library("/someone/next.js")),
        ("", library("/x/y")),
        ("...", library("/x/y", "")),
    ],
)
def test_something_else_does_not_fit(framework: str, found: Library) -> None:
    assert not fits(framework, found)


def test_the_best_fitting_library_is_chosen_over_a_better_one_that_does_not_fit() -> None:
    chosen = choose_library("vue", parse_libraries(LIBRARIES))
    assert chosen is not None
    assert chosen.id == "/vuejs/docs"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"reputation": "High"}, {"reputation": "Medium", "benchmark": 99.0}),
        ({"reputation": "Low"}, {"benchmark": 99.0, "snippets": 9}),
        ({"benchmark": 90.0}, {"benchmark": 80.0, "snippets": 9999}),
        ({"snippets": 20}, {"snippets": 10}),
        ({}, {}),
    ],
)
def test_reputation_then_benchmark_then_snippets_decide(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    better, worse = library("/a/vue", **first), library("/b/vue", **second)
    assert choose_library("vue", [better, worse]) == better
    if first != second:
        assert choose_library("vue", [worse, better]) == better


@pytest.mark.parametrize(
    ("wanted", "listed", "chosen"),
    [
        ("15.x", ["v15.1.8", "v14.3.0-canary.87"], "v15.1.8"),
        ("^15.1", ["v15.0.9", "v15.1.8", "v15.1.2", "v15.3.0"], "v15.1.8"),
        ("v15", ["v15.0.9", "v15.10.1", "v15.9.9"], "v15.10.1"),
        ("14", ["v15.1.8", "v14.3.0-canary.87"], "v14.3.0-canary.87"),
        ("15", ["v15.2.0-canary.1", "v15.1.8"], "v15.1.8"),
        ("15.1.2", ["v15.1.8", "v15.1.2"], "v15.1.2"),
        (">=2,<3", ["3.0.0", "2.7.16"], "2.7.16"),
        ("3.4", ["v3.3.1", "v3.5.1"], "v3.5.1"),
        ("13", ["v15.1.8"], None),
        ("1", ["v15.1.8", "10.0"], None),
        ("latest", ["v15.1.8"], None),
        ("unknown", ["v15.1.8"], None),
        ("15", [], None),
    ],
)
def test_a_listed_version_of_the_wanted_major_is_chosen(
    wanted: str, listed: list[str], chosen: str | None
) -> None:
    assert choose_version(wanted, listed) == chosen


@given(
    st.text(max_size=20), st.lists(st.from_regex(r"v?\d{1,3}(\.\d{1,3}){0,2}", fullmatch=True), max_size=5)
)
def test_a_chosen_version_is_a_listed_one(wanted: str, listed: list[str]) -> None:
    assert choose_version(wanted, listed) in {None, *listed}


@pytest.mark.parametrize(
    ("library_id", "repository"),
    [
        ("/vercel/next.js", "vercel/next.js"),
        ("/websites/vuejs_org", None),
        ("/llmstxt/vuejs_llms", None),
        ("/npm/vue", None),
        ("/packages/vue", None),
        ("/docs/vue", None),
        ("/vercel/next.js/v15.1.8", None),
        ("/a/..", None),
    ],
)
def test_only_a_github_path_names_a_repository(library_id: str, repository: str | None) -> None:
    assert repository_of(library_id) == repository


def test_a_version_is_parted_from_the_id() -> None:
    assert split_version("/vercel/next.js/v15.1.8") == ("/vercel/next.js", "v15.1.8")
    assert split_version("/vercel/next.js") == ("/vercel/next.js", None)
    assert split_version("/websites/vuejs/2.0") == ("/websites/vuejs/2.0", None)


@pytest.mark.parametrize(
    "text",
    ["", "vercel/next.js", "/one", "/a/b c", "/a/../b", "/a/b?x=1", "/a/b\n", "/a//b", "/" + "a/" * 300],
)
def test_what_is_no_library_id(text: str) -> None:
    assert not is_library_id(text)


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


def test_a_line_of_dashes_in_the_prose_parts_nothing() -> None:
    (passage,) = parse_documentation(
        "### T\n\nSource: https://a.example/\n\nabove\n\n" + "-" * 32 + "\n\nbelow\n"
    )
    assert passage.text == "above\n\n" + "-" * 32 + "\n\nbelow"


def test_a_fence_that_is_never_closed_does_not_swallow_the_next_block() -> None:
    text = (
        "### A\nSource: https://a.example/\n```js\ncode\n\n"
        + "-" * 32
        + "\n\n### B\nSource: https://b.example/\nprose\n"
    )
    assert [passage.title for passage in parse_documentation(text)] == ["A", "B"]


def test_a_source_that_is_no_address_gives_no_url() -> None:
    (passage,) = parse_documentation("### T\nSource: javascript:alert(1)\n\ntext")
    assert passage.url is None


@pytest.mark.parametrize(
    "text", ["", "### Title only\n\ntext", "### T\n\nSource: https://a.example/\n\n", "plain text"]
)
def test_what_has_not_the_shape_is_no_documentation(text: str) -> None:
    assert parse_documentation(text) == ()


def test_code_below_a_title_is_documentation_without_a_source_too() -> None:
    text = "### Title\n\nprose\n\n```js\na()\n```"
    (passage,) = parse_documentation(f"{text}\n")
    assert passage.text == text


@pytest.mark.parametrize("text", ["### An error occurred", "### Title\nprose"])
def test_a_title_alone_is_no_documentation(text: str) -> None:
    assert parse_documentation(text) == ()


CODE = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C"]), max_size=40).filter(
    lambda line: "`" not in line and "\n" not in line
)


@given(st.lists(CODE, min_size=1, max_size=6), st.sampled_from(["js", "python", "c++", ""]))
def test_code_is_kept_to_the_letter(code: list[str], language: str) -> None:
    block = "\n".join([f"```{language}", *code, "```"])
    text = f"### A\n\nSource: https://a.example/\n\n{block}\n\n### B\n\nSource: https://b.example/\n\nprose"
    passages = parse_documentation(text)
    assert [passage.title for passage in passages] == ["A", "B"]
    assert passages[0].text == block


@given(st.text(max_size=300))
def test_reading_documentation_never_raises(text: str) -> None:
    assert all(passage.text.strip() for passage in parse_documentation(DOCS + text))
    parse_documentation(text)


FAILURES = [
    ("Rate limit exceeded. Please try again later.", "other", True),
    (
        "Invalid API key. Please check your API key. API keys should start with 'ctx7sk' prefix.",
        "other",
        True,
    ),
    ('No libraries found for "NAME". Try a different search term.', "unknown_library", False),
    ("No libraries found matching the provided name.", "unknown_library", False),
    (
        'Tag "v9.9.9" not found for library "/vercel/next.js". Available tags: v15.1.8, v14.3.0-canary.87',
        "unknown_tag",
        False,
    ),
    ('Library "/owner/repo" not found. Please check the library ID.', "unknown_library", False),
    ("Search failed: Service temporarily unavailable", "other", True),
    ("An error occurred while processing your request", "other", True),
    ("Library /err-301/old has been redirected to this library: /vercel/next.js.", "redirected", True),
    (
        '{"error":"library_not_finalized","message":"Library /owner/repo not finalized yet."}',
        "unknown_library",
        False,
    ),
    ("", "other", True),
    ("  \n ", "other", True),
    ('{"error": "quota", "message": "Monthly quota exceeded"}', "other", True),
]


@pytest.mark.parametrize(("text", "kind", "is_fault"), FAILURES)
def test_every_known_failure_text_is_read(text: str, kind: str, is_fault: bool) -> None:
    assert parse_documentation(text) == ()
    failure = read_failure(text)
    assert (failure.kind, failure.is_fault) == (kind, is_fault)
    assert bool(failure.said) == bool(text.strip())


def test_a_redirect_names_the_new_library() -> None:
    assert (
        read_failure("Library /a/old has been redirected to this library: /vercel/next.js.").detail
        == "/vercel/next.js"
    )
    assert read_failure("Library /a/old has been redirected to this library: /../x").detail is None


def test_a_raw_body_is_said_by_its_message() -> None:
    text = '{"error":"library_not_finalized","message":"Library /owner/repo not finalized yet."}'
    assert read_failure(text).said == "Library /owner/repo not finalized yet."


@given(st.text(max_size=300))
def test_reading_a_failure_never_raises(text: str) -> None:
    failure = read_failure(text)
    assert failure.said.isprintable()
    assert len(failure.said) <= 200
