"""``kr serve`` and ``kr mcp`` as processes, and clients that talk to them."""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2
import uvicorn
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from kr.server.access import Access, Policy
from kr.server.http import create_http_app
from kr.server.worker import Workers
from tests.support.program import Project

TOKEN = "a-token-of-this-test-0123456789"


@dataclass
class Answer:
    """An HTTP answer: its status, headers in lower case, and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """An address, and how to ask there."""

    url: str

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    def request(
        self, method: str, path: str, body: Any = None, *, timeout: float = 60, **headers: str
    ) -> Answer:
        """Make one request; a mapping or list is sent as JSON, a word of a header's name ends with ``_``."""
        connection = http.client.HTTPConnection(*self.address, timeout=timeout)
        data = json.dumps(body).encode() if isinstance(body, dict | list) else body
        try:
            connection.request(
                method, path, data, {name.replace("_", "-"): value for name, value in headers.items()}
            )
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, told, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: Any) -> Answer:
        return self.request("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: Any) -> Answer:
        return self.request("POST", path, body, **headers)


@dataclass
class Server(Served):
    """A ``kr serve``, and what it has logged."""

    process: "subprocess.Popen[bytes]"
    log: list[str] = field(default_factory=list)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextmanager
def serving(project: Project, *arguments: str, **env: str) -> Iterator[Server]:
    """Run ``kr serve`` on a free port; it is stopped at the end, if it has not ended before."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kr", "serve", "--port", "0", *arguments],
        cwd=project.root,
        env=project.environ(**env),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    server = Server("", process)
    try:
        for line in process.stderr:
            server.log.append(line.decode())
            if " kr serves " in server.log[-1]:
                break
        server.url = server.log[-1].split()[-1]
        reader = threading.Thread(target=_keep_log, args=(server,), daemon=True)
        reader.start()
        yield server
        assert server.stop() == 0
        reader.join(timeout=10)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


@contextmanager
def listening(app: Access) -> Iterator[Served]:
    """Serve an application of this process on a free port of loopback."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Served(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join(timeout=30)


@contextmanager
def serving_here(project: Project, token: str | None = TOKEN, *, max_requests: int = 16) -> Iterator[Served]:
    """Serve a project from this process: what ``kr serve`` does, without its start."""
    project.clock.now = datetime.now(UTC)
    policy = Policy(names=("127.0.0.1",), token=token)
    with project.app() as app:
        workers = Workers(app, workers=4, max_calls=max_requests)
        with listening(create_http_app(workers, policy)) as served:
            yield served


def _keep_log(server: Server) -> None:
    assert server.process.stderr is not None
    for line in server.process.stderr:
        server.log.append(line.decode())


def stdio_parameters(project: Project) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "kr", "mcp"], cwd=project.root, env=project.environ()
    )


@asynccontextmanager
async def mcp_over_stdio(project: Project) -> AsyncIterator[Client]:
    """Talk to a ``kr mcp`` of its own through the SDK's client."""
    async with Client(stdio_client(stdio_parameters(project))) as client:
        yield client


@asynccontextmanager
async def mcp_over_http(url: str, token: str | None = None) -> AsyncIterator[Client]:
    """Talk to the ``/mcp`` of a server through the SDK's client."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http_client,
        Client(streamable_http_client(f"{url}/mcp", http_client=http_client)) as client,
    ):
        yield client
