"""The source ``web_search`` against stand-ins for its providers and for pages."""

import json
import logging
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kr.errors import SourceFailure, SourceTimeout
from kr.models import Query
from kr.sources.base import Answer, Ask
from kr.sources.web_search import WebSearch
from tests.support.web_servers import (
    Reply,
    Request,
    WebServer,
    as_json,
    page,
    redirect,
    search_server,
    web_search,
    web_server,
)

KEY = "key-0123456789-never-shown"

ASK = Ask(
    query=Query(
        framework="vue",
        framework_version="3.4",
        topic="virtual scroll",
        tags=("scroll",),
        question="How do I turn\non virtual scroll?",
    )
)

ARTICLE = "<title>{0}</title><main><h1>{0}</h1><p>Virtual scroll, page {0}.</p><pre><code class=language-js>on()</code></pre></main>"


def article(name: str) -> Reply:
    return page(ARTICLE.format(name))


def searxng(server: WebServer | str, **more: Any) -> WebSearch:
    url = server if isinstance(server, str) else server.url
    return web_search(provider="searxng", url=url, allow_private_addresses=True, **more)


def ask(source: WebSearch, timeout: float = 15.0) -> Answer:
    return source.ask(ASK, timeout=timeout)


def failure(source: WebSearch, timeout: float = 15.0) -> SourceFailure:
    with pytest.raises(SourceFailure) as caught:
        source.ask(ASK, timeout=timeout)
    assert caught.value.reason.isprintable()
    assert 0 < len(caught.value.reason) <= 200
    return caught.value


# --- asking ---------------------------------------------------------------------------------------------


def test_searxng_is_asked_for_json() -> None:
    with search_server({"/a": article("A")}) as server:
        answer = ask(searxng(server.url + "/"))
        first = server.requests()[0]
    assert (first.method, first.path) == ("GET", "/search")
    assert parse_qs(urlsplit(first.target).query) == {
        "q": ["vue 3.4 How do I turn on virtual scroll?"],
        "format": ["json"],
    }
    assert answer.source == "web_search"
    assert [passage.url for passage in answer.passages] == [server.url + "/a"]
    assert answer.url == server.url + "/a"
    assert answer.passages[0].title == "A"
    assert answer.passages[0].text == "Virtual scroll, page A.\n\n```\non()\n```"


def test_brave_is_asked_with_its_token() -> None:
    with search_server({"/a": article("A")}) as server:
        ask(web_search(provider="brave", url=server.url, api_key=KEY, allow_private_addresses=True))
        first, second = server.requests()
    assert (first.method, first.path) == ("GET", "/res/v1/web/search")
    assert first.headers["x-subscription-token"] == KEY
    assert parse_qs(urlsplit(first.target).query)["q"] == ["vue 3.4 How do I turn on virtual scroll?"]
    assert KEY not in str(second)


def test_tavily_is_asked_with_a_bearer_token() -> None:
    with search_server({"/a": article("A")}) as server:
        ask(web_search(provider="tavily", url=server.url, api_key=KEY, allow_private_addresses=True))
        first, second = server.requests()
    assert (first.method, first.path) == ("POST", "/search")
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.headers["content-type"] == "application/json"
    assert json.loads(first.body)["query"] == "vue 3.4 How do I turn on virtual scroll?"
    assert KEY not in str(second)


def test_auto_takes_what_is_configured() -> None:
    def provider(**options: Any) -> str:
        return web_search(provider="auto", **options).provider

    assert provider() == "duckduckgo"
    assert provider(url="http://a.example", api_key=KEY, api_key_env="SOME_KEY") == "searxng"
    assert provider(api_key=KEY, api_key_env="MY_TAVILY_KEY") == "tavily"
    assert provider(api_key=KEY, api_key_env="SEARCH_KEY") == "brave"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"provider": "searxng"}, "searxng needs its address: set web_search.url"),
        ({"provider": "brave"}, "brave needs an API key: set web_search.api_key_env"),
        ({"provider": "tavily", "api_key": "  "}, "tavily needs an API key: set web_search.api_key_env"),
        (
            {"provider": "brave", "api_key": "a\nb"},
            "brave: the API key has characters that no header can carry",
        ),
    ],
)
def test_what_was_never_configured_is_no_fault(options: dict[str, Any], reason: str) -> None:
    found = failure(web_search(**options))
    assert (found.reason, found.is_fault) == (reason, False)


# --- pages ----------------------------------------------------------------------------------------------


def test_the_first_three_results_are_read_in_their_order_and_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=10)

    def respond(request: Request) -> Reply:
        if request.path == "/search":
            found = [{"url": f"{server.url}/{name}", "title": name} for name in "abcd"]
            return as_json({"results": found})
        together.wait()
        return article(request.path[1:])

    with web_server(respond) as server:
        answer = ask(searxng(server))
        assert [passage.title for passage in answer.passages] == ["a", "b", "c"]
        assert not [request for request in server.requests() if request.path == "/d"]


def test_results_that_are_no_pages_or_the_same_page_do_not_count() -> None:
    results = [
        ("ftp://docs.example/a", "ftp"),
        ("/a#one", "A"),
        ("/a#two", "A again"),
        ("javascript:alert(1)", "no"),
        ("/b", "B"),
        ("/c", "C"),
    ]
    with search_server({f"/{name}": article(name) for name in "abc"}, results=results) as server:
        assert [passage.title for passage in ask(searxng(server)).passages] == ["a", "b", "c"]


def test_a_page_that_cannot_be_read_is_no_answer() -> None:
    pages = {"/a": Reply(status=404), "/b": article("b"), "/c": page(b"%PDF", "application/pdf")}
    with search_server(pages) as server:
        assert [passage.title for passage in ask(searxng(server)).passages] == ["b"]


def test_no_readable_page_is_a_failure_that_says_why() -> None:
    with search_server({"/page": redirect("/page")}) as server:
        found = failure(searxng(server))
    assert found.reason == "could not read any of 1 pages: more than 5 redirects"
    assert not found.is_fault


def test_private_pages_are_refused_unless_allowed() -> None:
    with search_server({"/a": article("A")}) as server:
        source = web_search(provider="searxng", url=server.url)
        assert failure(source).reason == "could not read any of 1 pages: the host is a private address"
        assert [request.path for request in server.requests()] == ["/search"]


def test_a_slow_page_does_not_hold_up_the_others() -> None:
    with search_server({"/a": article("A"), "/b": Reply(delay=60)}) as server:
        started = time.monotonic()
        answer = ask(searxng(server), timeout=6)
        assert time.monotonic() - started < 30
    assert [passage.title for passage in answer.passages] == ["A"]


def test_a_page_that_is_cut_is_told() -> None:
    lines = "line of a long page about a virtual scroll\n" * 4096
    pages = {
        "/a": article("A"),
        "/b": page(lines, "text/plain", repeat=100),
    }
    with search_server(pages) as server:
        found = ask(searxng(server), timeout=120).passages
    assert {passage.is_cut: (passage.url or "")[-2:] for passage in found} == {False: "/a", True: "/b"}
    with search_server({"/c": page("<main>" + f"<p>{'many words ' * 100}</p>" * 1_000)}) as server:
        assert {passage.is_cut for passage in ask(searxng(server), timeout=120).passages} == {True}


# --- providers that fail ----------------------------------------------------------------------------------

FAILURES: dict[str, tuple[Reply, str]] = {
    "unauthorized": (Reply(status=401, body=KEY.encode()), "searxng: HTTP 401 Unauthorized"),
    "redirect": (
        redirect(f"http://localhost/?key={KEY}"),
        "searxng: HTTP 302 Found, a redirect that is not followed",
    ),
    "no results": (as_json({"error": KEY}), "searxng: the answer is not of the documented shape"),
    "results without an address": (
        as_json({"results": [{"url": 7}, {"title": "x"}]}),
        "searxng: the answer has no result with a web address",
    ),
}


@pytest.mark.parametrize(("reply", "reason"), FAILURES.values(), ids=FAILURES.keys())
def test_a_provider_that_fails_is_named_with_its_reason(reply: Reply, reason: str) -> None:
    with search_server(search=reply) as server:
        found = failure(searxng(server))
    assert (found.reason, found.is_fault, found.retry_after) == (reason, True, None)
    assert not isinstance(found, SourceTimeout)


@pytest.mark.parametrize("provider", ["brave", "tavily", "searxng"])
def test_no_message_shows_a_secret(
    provider: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with search_server(search=FAILURES["redirect"][0]) as server:
        url = server.url.replace("http://", f"http://user:{KEY}@") + f"/?token={KEY}"
        source = web_search(provider=provider, url=url, api_key=KEY)
        found = failure(source)
    shown = found.reason + repr(source) + repr(found) + caplog.text + "".join(capfd.readouterr())
    assert KEY not in shown
