"""The child process of ``mcp_servers``: real MCP servers that follow a script. Run as a program only.

``mcp_host.py http FD`` serves any number of stand-ins on an inherited socket; ``mcp_host.py stdio KIND SCENARIO``
serves one over standard input and output.
"""

import asyncio
import contextlib
import inspect
import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent

Asgi = Callable[..., Awaitable[None]]
Scope = MutableMapping[str, Any]
Texts = list[str]


class StandIn:
    """One scripted server and what it saw."""

    def __init__(self, kind: str, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.server = MCPServer(kind, log_level="CRITICAL")
        for name, texts, argument_names in self._tools(kind):
            self._add(name, list(texts), argument_names)
        self.app: Asgi | None = None
        self.stop = asyncio.Event()

    def _tools(self, kind: str) -> list[tuple[str, Texts, tuple[str, ...]]]:
        script, is_old = self.scenario, self.scenario["old_names"]
        if kind == "deepwiki":
            name = "ask_question" if is_old else "ask_wiki_question"
            return [
                ("read_wiki_structure", ["1 Overview"], ("repoName",)),
                (name, script["wiki"], ("repoName", "question")),
            ]
        if is_old:
            return [
                ("resolve-library-id", script["resolve"], ("libraryName",)),
                ("get-library-docs", script["docs"], ("context7CompatibleLibraryID", "topic", "tokens")),
            ]
        return [
            ("resolve-library-id", script["resolve"], ("query", "libraryName")),
            ("query-docs", script["docs"], ("libraryId", "query")),
        ]

    def _add(self, name: str, texts: Texts, argument_names: tuple[str, ...]) -> None:
        async def answer(**arguments: Any) -> CallToolResult:
            self.calls.append((name, arguments))
            await anyio.sleep(self.scenario["delay"])
            text = texts.pop(0) if len(texts) > 1 else texts[0]
            return CallToolResult(content=[TextContent(text=text)], is_error=self.scenario["is_error"])

        # The tool's schema is read from the signature, which differs by tool.
        answer.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, annotation=int if name == "tokens" else str
                )
                for name in argument_names
            ],
            return_annotation=CallToolResult,
        )
        self.server.add_tool(answer, name=name, structured_output=False)

    async def run(self) -> None:
        app = self.server.streamable_http_app(
            streamable_http_path="/mcp", stateless_http=not self.scenario["legacy"]
        )
        async with app.router.lifespan_context(app):
            self.app = app
            await self.stop.wait()


class Host:
    """Routes requests to stand-ins and scripts the bad answers."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.stand_ins: dict[str, StandIn] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = await _body(receive)
        first, _, rest = scope["path"].strip("/").partition("/")
        if first == "control":
            await _reply(send, 200, {}, json.dumps(await self.control(scope["method"], rest, body)).encode())
            return
        stand_in = self.stand_ins.get(first)
        if stand_in is None:
            await _reply(send, 404, {}, b"")
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        stand_in.requests.append((scope["method"], headers))
        if not await self.scripted(stand_in, body, send):
            assert stand_in.app is not None
            inner = {**scope, "path": "/" + rest, "raw_path": b"/" + rest.encode()}
            await stand_in.app(inner, _replay(body, receive), send)

    async def control(self, method: str, key: str, body: bytes) -> Any:
        if method == "PUT":
            stand_in = self.stand_ins[key] = StandIn(**json.loads(body))
            task = asyncio.create_task(stand_in.run())
            self.tasks.add(task)
            while stand_in.app is None:  # noqa: ASYNC110  # a test server
                await asyncio.sleep(0.001)
            return {}
        stand_in = self.stand_ins[key]
        if method == "DELETE":
            del self.stand_ins[key]
            stand_in.stop.set()
        return {"calls": stand_in.calls, "requests": stand_in.requests}

    async def scripted(self, stand_in: StandIn, body: bytes, send: Any) -> bool:
        """Answer as the scenario's ``raw`` says, if it says so for this request."""
        method = json.loads(body).get("method") if body.startswith(b"{") else None
        if stand_in.scenario["legacy"] and method == "server/discover":
            await _reply(send, 400, {}, b"")
            return True
        raw = stand_in.scenario["raw"]
        if raw is None or (raw["when"] == "call" and method != "tools/call"):
            return False
        await asyncio.sleep(raw["delay"])
        headers = {name: value.replace("{origin}", self.origin) for name, value in raw["headers"].items()}
        if raw["cut"]:
            headers["content-length"] = str(len(raw["body"]) * raw["repeat"] + 1000)
        await _reply(send, raw["status"], headers, raw["body"].encode(), repeat=raw["repeat"], cut=raw["cut"])
        return True


async def _body(receive: Any) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Any) -> Callable[[], Awaitable[Any]]:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Any:
        return waiting.pop() if waiting else await receive()

    return replay


async def _reply(
    send: Any, status: int, headers: dict[str, str], body: bytes, *, repeat: int = 1, cut: bool = False
) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    for _ in range(repeat):
        await send({"type": "http.response.body", "body": body, "more_body": True})
    if cut:
        raise ConnectionError("cut")
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _serve(listener: socket.socket) -> None:
    host, port = listener.getsockname()
    app = Host(f"http://{host}:{port}")
    config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listener])


def _end_with_owner() -> None:
    """End when whoever started this has ended, also by ``kill -9``: then nobody holds the other end of standard input."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    logging.disable(logging.CRITICAL)
    if sys.argv[1] == "stdio":
        stand_in = StandIn(sys.argv[2], json.loads(sys.argv[3]))
        stand_in.server.run("stdio")
        return
    threading.Thread(target=_end_with_owner, daemon=True).start()
    with contextlib.closing(socket.socket(fileno=int(sys.argv[2]))) as listener:
        asyncio.run(_serve(listener))


if __name__ == "__main__":
    main()
