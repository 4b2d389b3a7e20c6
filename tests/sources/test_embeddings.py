"""The client of a server of embeddings, against servers on loopback that serve real HTTP, good and bad ones."""

import json
import logging
import math
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kr.errors import SourceFailure, SourceTimeout
from kr.matching.vectors import cosine, pack
from kr.sources.model_server import MOST_TEXTS, Embeddings
from tests.support.web_servers import Reply, Request, WebServer, as_json, page, web_server

KEY = "secret-key-of-embeddings"


def rows(*vectors: object) -> dict[str, object]:
    return {"object": "list", "data": [{"index": n, "embedding": v} for n, v in enumerate(vectors)]}


def by_length(request: Request) -> Reply:
    texts = json.loads(request.body)["input"]
    return as_json(rows(*([len(text), 1.0] for text in texts)))


@pytest.fixture
def good() -> Iterator[WebServer]:
    with web_server(by_length) as server:
        yield server


def ask(url: str, *texts: str, timeout: float = 10.0) -> list[bytes]:
    return Embeddings(base_url=url, model="tiny", api_key=KEY).embed(texts or ("a",), timeout=timeout)


def why(reply: Reply, *texts: str) -> str:
    with web_server({"/embeddings": reply}) as server, pytest.raises(SourceFailure) as caught:
        ask(server.url, *texts)
    assert "127.0.0.1" not in caught.value.reason
    assert KEY not in caught.value.reason
    return caught.value.reason


def test_each_text_has_its_vector(good: WebServer) -> None:
    assert ask(f"{good.url}/v1/", "a", "abc") == [pack([1, 1]), pack([3, 1])]
    (asked,) = good.requests()
    assert (asked.method, asked.path) == ("POST", "/v1/embeddings")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(asked.body) == {"model": "tiny", "input": ["a", "abc"], "encoding_format": "float"}


def test_a_local_server_needs_no_key(good: WebServer) -> None:
    Embeddings(base_url=good.url, model="tiny").embed(["a"], timeout=10)
    assert "authorization" not in good.requests()[0].headers


def test_the_order_is_what_the_server_says_it_is() -> None:
    answer = {"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]}
    with web_server({"/embeddings": as_json(answer)}) as server:
        assert ask(server.url, "a", "b") == [pack([1, 0]), pack([0, 1])]


def test_a_long_text_is_cut(good: WebServer) -> None:
    ask(good.url, "word " * 10_000)
    assert len(json.loads(good.requests()[0].body)["input"][0]) == 2000


def test_a_large_model_and_many_texts_fit() -> None:
    vector = [math.sin(number) for number in range(4096)]
    with web_server({"/embeddings": as_json(rows(*[vector] * MOST_TEXTS))}) as server:
        found = ask(server.url, *["text"] * MOST_TEXTS)
    assert len(found) == MOST_TEXTS
    assert cosine(found[0], found[-1]) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        "vector",
        {"data": None},
        {"data": []},
        {"data": [{"embedding": [1.0]}]},
        {"data": [{"index": "0", "embedding": [1.0]}]},
        {"data": [{"index": [], "embedding": [1.0]}]},
        {"error": {"message": f"no model for {KEY}"}},
        rows("AACAPwAAgD8="),
        rows({}),
        rows([]),
        rows([0.0, 0.0]),
        rows(["1.0"]),
        rows([True]),
        rows([[1.0]]),
        rows([None, 1.0]),
        rows([math.nan]),
        rows([math.inf, 1.0]),
        rows([10**400]),
        rows([1.0] * 10_000),
    ],
    ids=lambda answer: str(answer)[:50],
)
def test_what_is_no_embedding_is_refused(answer: object) -> None:
    assert why(as_json(answer)) == "the model of embeddings gave no embeddings"


@pytest.mark.parametrize("vectors", [[[1.0], [1.0, 2.0]], [[1.0]], [[1.0]] * 3])
def test_vectors_that_are_not_one_for_each_text_are_refused(vectors: list[list[float]]) -> None:
    assert why(as_json(rows(*vectors)), "a", "b").startswith("the model of embeddings gave ")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=401, body=f'{{"error": "bad key {KEY}"}}'.encode()), "HTTP 401"),
        (Reply(status=404), "HTTP 404"),
        (Reply(status=302, headers={"location": "http://127.0.0.1/elsewhere"}), "HTTP 302"),
        (page("<html>busy</html>"), "answer is no JSON"),
        (page("[" * 100_000, "application/json"), "answer is no JSON"),
        (page(b"\xff\xfe\x00", "application/json"), "answer is no JSON"),
        (page("[1, 2", "application/json", cut=True), "the connection was cut"),
        (page(b"[" + b"0.5," * 25_000, "application/json", repeat=20), "the answer is too long"),
        (Reply(raw=b"no http at all\r\n\r\n"), "the connection was cut or the answer is no HTTP"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_server_that_fails_says_how(reply: Reply, reason: str) -> None:
    assert reason in why(reply)


def test_a_busy_server_names_its_pause() -> None:
    with (
        web_server({"/embeddings": Reply(status=429, headers={"retry-after": "7"})}) as server,
        pytest.raises(SourceFailure) as caught,
    ):
        ask(server.url)
    assert caught.value.retry_after == 7.0


def test_a_server_that_is_away_costs_no_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(SourceFailure, match="refused") as caught:
        ask(f"http://127.0.0.1:{port}/v1")
    assert str(port) not in caught.value.reason


@pytest.mark.parametrize("slow", [Reply(delay=30), page("[" * 500, pause=0.2)], ids=["silent", "trickling"])
def test_a_slow_server_is_left_at_the_timeout(slow: Reply) -> None:
    with web_server({"/embeddings": slow}) as server:
        start = time.monotonic()
        with pytest.raises(SourceTimeout, match="no answer in time"):
            ask(server.url, timeout=0.5)
        assert time.monotonic() - start < 15


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://[::1", "http://169.254.169.254/v1"])
def test_an_address_that_can_not_be_asked(url: str) -> None:
    with pytest.raises(SourceFailure, match="the model of embeddings: "):
        ask(url)


def test_no_secret_and_no_text_is_logged(good: WebServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ask(good.url, "a question that concerns nobody")
    assert KEY not in caplog.text
    assert "concerns nobody" not in caplog.text
    assert KEY not in repr(Embeddings(base_url="http://u:p@h", model="tiny", api_key=KEY))
    assert "u:p" not in repr(Embeddings(base_url="http://u:p@h", model="tiny", api_key=KEY))


def test_building_a_client_loads_no_network() -> None:
    code = (
        "import sys; from kr.sources.model_server import Embeddings; Embeddings(base_url='http://h', model='m');"
        "sys.exit(any(name in sys.modules for name in ('httpx', 'httpcore', 'ssl', 'socket', 'sqlalchemy')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
