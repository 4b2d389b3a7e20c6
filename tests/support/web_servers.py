"""Real servers on loopback that stand in for search providers and for pages of the web, hostile ones too.

::

    with search_server({"/a": page("<h1>A</h1>")}) as server:
        source = WebSearch(provider="searxng", url=server.url, allow_private_addresses=True)
        ...
        server.requests()  # what was asked, in order

Every server takes a free port, answers each connection in a thread, and is gone when its block ends.
"""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from kr.settings.model import SearchProvider
from kr.sources.web_search import WebSearch


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a server was sent. ``headers`` have lower-case names; ``target`` is the path and the query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a server does. ``raw`` is sent instead of a whole HTTP answer.

    ``delay`` is waited before the first byte; ``pause`` after each ``step`` bytes of the body; the body is
    sent ``repeat`` times; ``cut`` promises one byte more than is sent.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    raw: bytes | None = None
    delay: float = 0.0
    pause: float = 0.0
    step: int = 1
    repeat: int = 1
    cut: bool = False

    def head(self) -> bytes:
        length = len(self.body) * self.repeat + self.cut
        headers = {"content-length": str(length), "connection": "close", **self.headers}
        lines = (f"{name}: {value}\r\n" for name, value in headers.items())
        return (f"HTTP/1.1 {self.status} Any\r\n" + "".join(lines) + "\r\n").encode("utf-8")


Responder = Callable[[Request], Reply]


def page(html: str | bytes, content_type: str = "text/html; charset=utf-8", **more: object) -> Reply:
    """A page with an ordinary head."""
    body = html.encode() if isinstance(html, str) else html
    return Reply(headers={"content-type": content_type}, body=body, **more)  # type: ignore[arg-type]


def as_json(value: object) -> Reply:
    return page(json.dumps(value), "application/json")


def redirect(location: str, status: int = 302) -> Reply:
    return Reply(status=status, headers={"location": location})


class WebServer:
    """A server that answers as ``respond`` says. ``tls`` makes it one for https."""

    def __init__(self, respond: Responder, tls: ssl.SSLContext | None = None) -> None:
        self._respond = respond
        self._tls = tls
        self._seen: list[Request] = []
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def requests(self) -> list[Request]:
        """Everything that was asked so far, in order."""
        return list(self._seen)

    def start(self) -> None:
        self._spawn(self._accept)

    def close(self) -> None:
        self._stop.set()
        for thread in list(self._threads):
            thread.join(5)
        self._listener.close()

    def _spawn(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            self._spawn(lambda connection=connection: self._serve(connection))  # type: ignore[misc]

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        try:
            with connection:
                if self._tls is None:
                    self._answer(connection)
                    return
                with self._tls.wrap_socket(connection, server_side=True) as secured:
                    self._answer(secured)
        except OSError:
            return  # the client had enough

    def _answer(self, connection: socket.socket) -> None:
        request = _read(connection)
        if request is None:
            return
        self._seen.append(request)
        reply = self._respond(request)
        if self._stop.wait(reply.delay):
            return
        if reply.raw is not None:
            connection.sendall(reply.raw)
            return
        connection.sendall(reply.head())
        for _ in range(reply.repeat):
            if not reply.pause:
                connection.sendall(reply.body)
                continue
            for at in range(0, len(reply.body), reply.step):
                connection.sendall(reply.body[at : at + reply.step])
                if self._stop.wait(reply.pause):
                    return


def _read(connection: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return None
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    method, target, _ = first.split(" ")
    return Request(method=method, target=target, headers=headers, body=body)


@contextmanager
def web_server(
    replies: Mapping[str, Reply] | Responder, tls: ssl.SSLContext | None = None
) -> Iterator[WebServer]:
    """Serve pages by their path, or as a function says."""

    def by_path(request: Request) -> Reply:
        assert not callable(replies)
        return replies.get(request.path, Reply(status=404))

    server = WebServer(replies if callable(replies) else by_path, tls)
    server.start()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def search_server(
    pages: Mapping[str, Reply] | None = None,
    *,
    results: Sequence[tuple[str, str]] | None = None,
    search: Reply | None = None,
) -> Iterator[WebServer]:
    """Serve the interfaces of SearXNG, Brave and Tavily, and pages by their path.

    ``results`` are the addresses (or paths of this server) and titles that a search gives; by default all
    ``pages`` in order. ``search`` is answered to every search instead.
    """
    pages = pages or {}
    found = results if results is not None else [(path, f"Title of {path}") for path in pages]

    def respond(request: Request) -> Reply:
        if request.path in pages:
            return pages[request.path]
        if request.path not in {"/search", "/res/v1/web/search"}:
            return Reply(status=404)
        return search or as_json(_answer_of(request, [(_absolute(server.url, url), t) for url, t in found]))

    with web_server(respond) as server:
        yield server


def _absolute(base: str, url: str) -> str:
    return base + url if url.startswith("/") else url


def _answer_of(request: Request, results: Sequence[tuple[str, str]]) -> object:
    if request.path.startswith("/res/"):
        return {"type": "search", "web": {"results": [_result("description", *each) for each in results]}}
    return {"query": "?", "results": [_result("content", *each) for each in results]}


def _result(snippet: str, url: str, title: str) -> dict[str, object]:
    return {"url": url, "title": title, snippet: "A snippet.", "score": 1.0}


def refused_url() -> str:
    """An address on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def web_search(*, api_key: str = "", **settings: Any) -> WebSearch:
    """Make the source for these settings, its key in a variable."""
    config = SearchProvider(**{"api_key_env": "SEARCH_KEY" if api_key else None, **settings})
    return WebSearch(config, {config.api_key_env or "": api_key})
