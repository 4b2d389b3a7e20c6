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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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

    ``delay`` is waited before the first byte; ``pause`` after each byte of the body, which is sent ``repeat`` times; ``cut`` promises one
    byte more than is sent.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    raw: bytes | None = None
    delay: float = 0.0
    pause: float = 0.0
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


class WebServer(ThreadingHTTPServer):
    """A server that answers as ``respond`` says. ``tls`` makes it one for https."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, respond: Responder, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.respond = respond
        self.seen: list[Request] = []
        self.stopped = threading.Event()
        self.port: int = self.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def requests(self) -> list[Request]:
        """Everything that was asked so far, in order."""
        return list(self.seen)


class _Handler(BaseHTTPRequestHandler):
    server: WebServer

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(method=self.command, target=self.path, headers=headers, body=body)
        self.server.seen.append(request)
        with suppress(OSError):  # the client had enough
            self._send(self.server.respond(request))

    do_POST = do_GET  # noqa: N815

    def _send(self, reply: Reply) -> None:
        if self.server.stopped.wait(reply.delay):
            return
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            return
        self.wfile.write(reply.head())
        for _ in range(reply.repeat):
            step = 1 if reply.pause else max(1, len(reply.body))
            for at in range(0, len(reply.body), step):
                self.wfile.write(reply.body[at : at + step])
                if self.server.stopped.wait(reply.pause):
                    return

    def log_message(self, *_: object) -> None:
        """Nothing is written to standard error."""


@contextmanager
def web_server(
    replies: Mapping[str, Reply] | Responder, tls: ssl.SSLContext | None = None
) -> Iterator[WebServer]:
    """Serve pages by their path, or as a function says."""

    def by_path(request: Request) -> Reply:
        assert not callable(replies)
        return replies.get(request.path, Reply(status=404))

    with WebServer(replies if callable(replies) else by_path, tls) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stopped.set()
            server.shutdown()
            thread.join(5)


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
        answer: dict[str, object] = {
            "results": [
                {"url": server.url + url if url.startswith("/") else url, "title": title}
                for url, title in found
            ]
        }
        is_brave = request.path.startswith("/res/")
        return search or as_json({"type": "search", "web": answer} if is_brave else answer)

    with web_server(respond) as server:
        yield server


def refused_url() -> str:
    """An address on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def web_search(*, api_key: str = "", **settings: Any) -> WebSearch:
    """Make the source for these settings, its key in a variable."""
    config = SearchProvider(**{"api_key_env": "SEARCH_KEY" if api_key else None, **settings})
    return WebSearch(config, {config.api_key_env or "": api_key})
