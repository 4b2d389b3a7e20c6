"""The synchronous seam over the official MCP SDK (SPEC 3.5, facts on the MCP client): ``converse`` runs one session.

Its event loop has a thread of its own: a signal may raise in the caller's at any moment without tearing the loop apart, the deadline
holds even when the loop does not come back. No exception of the SDK, its HTTP client or the system leaves this module.
"""

import asyncio
import importlib
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kr.cancellation import broken_off
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.models import ServerConfig
from kr.sources.base import credentials_of, one_line, quoted, secrets_of, without_secrets

if TYPE_CHECKING:
    import anyio
    from mcp.client import Client


T = TypeVar("T")

MAX_TEXT = 1024 * 1024
"""Bytes of a tool's text; the rest is cut (SPEC 3.7)."""

_PAGES = 10
"""Pages of a tool list that are read at most."""

_FAREWELL = 1.0
"""Seconds for leaving a session whose answer is there."""

_STOPPING = 2.5
"""Seconds that a session may take to stop after its deadline or an interruption."""


@dataclass(frozen=True, slots=True)
class ToolText:
    """What a tool answered: its text, whether the server called it an error, and whether there was more."""

    text: str
    is_error: bool
    is_cut: bool = False


class McpSession:
    """An open session: the tools of the server, and a way to call them."""

    def __init__(
        self, client: "Client", tools: Mapping[str, frozenset[str]], credentials: Iterable[str]
    ) -> None:
        self._client = client
        self._credentials = tuple(credentials)
        self.tools = tools
        """Names of the tools, each with the names of its arguments."""

    def choose(self, *names: str) -> str:
        for name in names:
            if name in self.tools:
                return name
        raise SourceFailure(f"the server has no tool {' or '.join(names)}")

    async def call(self, name: str, arguments: Mapping[str, str | int]) -> ToolText:
        """Call a tool. The text is that of its text blocks, else of ``structuredContent.result``."""
        result = await self._client.call_tool(name, dict(arguments))
        text = "\n\n".join(block.text for block in result.content if block.type == "text")
        structured = result.structured_content
        if not text and isinstance(structured, dict) and isinstance(structured.get("result"), str):
            text = structured["result"]
        # A server that repeats its key in a text must not bring it into a report.
        text = without_secrets(text, self._credentials)
        data = text.encode(errors="replace")
        if len(data) <= MAX_TEXT:
            return ToolText(text, bool(result.is_error))
        return ToolText(data[:MAX_TEXT].decode(errors="ignore"), bool(result.is_error), is_cut=True)


Dialogue = Callable[[McpSession], Awaitable[T]]
"""What to do in a session. It may raise ``SourceFailure``."""


def converse(server: ServerConfig, dialogue: Dialogue[T], *, timeout: float) -> T:
    """Hold ``dialogue`` with ``server`` within ``timeout`` seconds, imports apart; leaves no connection and no process.

    Raises ``SourceFailure`` with a line that repeats no secret of the configuration, or ``SourceTimeout``.
    """
    if not server.url and not server.command:
        raise SourceNotAsked("no server is configured")
    prepare()
    run = _Run(server, dialogue, timeout)
    try:
        run.start()
        run.wait()
    finally:
        run.stop()
    return run.result()


class _Run(Generic[T]):
    def __init__(self, server: ServerConfig, dialogue: Dialogue[T], timeout: float) -> None:
        from kr.sources.mcp_transports import StdioServer, Wire

        self._server = server
        self._dialogue = dialogue
        self._timeout = timeout
        self._wire: Wire = Wire(self._cancel)
        self._process = None if server.url else StdioServer(server, self._wire)
        self._thread = threading.Thread(target=self._work, name="kr-mcp", daemon=True)
        self._finished = threading.Event()
        self._awake = threading.Event()  # finished, or nobody waits any more
        self._stop_requested = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scope: anyio.CancelScope | None = None
        self._value: list[T] = []
        self._error: BaseException | None = None
        self._is_late = False

    def start(self) -> None:
        self._thread.start()

    def wait(self) -> None:
        with broken_off(self._awake.set):
            self._awake.wait(self._timeout + _STOPPING)

    def stop(self) -> None:
        """End the session if it still runs, and its process in any case."""
        if not self._thread.is_alive():
            return
        try:
            if not self._finished.is_set():
                self._stop_requested = True
                if self._loop is not None:
                    with suppress(RuntimeError):  # the loop has just closed
                        self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(_STOPPING)
        finally:
            if self._thread.is_alive() and self._process is not None:
                self._process.kill()

    def result(self) -> T:
        if self._value:
            return self._value[0]
        raise self._failure() from self._error

    def _work(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_quiet_loop) as runner:
                self._loop = runner.get_loop()
                runner.run(self._session())
        except BaseException as exc:  # noqa: BLE001  # the thread's edge: the caller's thread translates it
            self._error = self._error or exc
        finally:
            self._finished.set()
            self._awake.set()

    def _cancel(self) -> None:
        if self._process is not None:
            self._process.hurry()
        if self._scope is not None:
            self._scope.cancel()

    async def _session(self) -> None:
        import anyio

        with anyio.move_on_after(self._timeout) as self._scope:
            if self._stop_requested:
                return
            async with self._client() as client:
                try:
                    tools = await _list_tools(client)
                    self._value.append(
                        await self._dialogue(McpSession(client, tools, credentials_of(self._server)))
                    )
                except Exception as exc:  # noqa: BLE001  # kept, since task groups on the way out would wrap it
                    self._error = exc
                self._scope.deadline = min(self._scope.deadline, anyio.current_time() + _FAREWELL)
        self._is_late = self._scope.cancelled_caught and self._wire.failure is None

    @asynccontextmanager
    async def _client(self) -> "AsyncIterator[Client]":
        from mcp.client import Client

        from kr.sources.mcp_transports import http_client, http_transport

        if self._process is not None:
            async with Client(self._process.transport(), cache=None) as client:
                yield client
            return
        async with (
            http_client(dict(self._server.headers), self._wire, seconds=self._timeout) as http,
            Client(http_transport(self._server.url or "", http), cache=None) as client,
        ):
            yield client

    def _failure(self) -> SourceFailure:
        found = self._told()
        secrets = secrets_of(self._server)
        words = f"; it says {quoted(without_secrets(found.said, secrets))}" if found.said.strip() else ""
        reason = one_line(without_secrets(found.reason, secrets)) + words
        told = copy(found)
        told.reason, told.args = reason, (reason,)
        return told

    def _told(self) -> SourceFailure:
        if self._wire.failure is not None:
            return self._wire.failure
        if isinstance(self._error, SourceFailure):
            return self._error
        if self._is_late or self._error is None:
            if self._process is not None and self._process.junk_lines and not self._process.messages:
                return SourceFailure("the server writes what is no JSON-RPC message")
            return SourceTimeout(f"no answer within {self._timeout:.3g} s")
        if self._wire.status is not None:
            return self._wire.refusal()
        from kr.sources.mcp_transports import translate

        return translate(self._error, command=self._server.command)


async def _list_tools(client: "Client") -> dict[str, frozenset[str]]:
    tools: dict[str, frozenset[str]] = {}
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            properties = tool.input_schema.get("properties")
            tools[tool.name] = frozenset(properties if isinstance(properties, dict) else ())
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def prepare() -> None:
    """Import the SDK, and keep its diagnostics off standard error: each is reported as a reason instead."""
    for name in ("mcp.client", "kr.sources.mcp_transports"):
        importlib.import_module(name)  # all of them before the clock starts

    for name in ("client", "mcp.client", "mcp.shared", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _quiet_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_debug(False)
    loop.set_exception_handler(lambda _loop, _context: None)
    loop.set_default_executor(_DaemonExecutor())
    return loop


class _DaemonExecutor(ThreadPoolExecutor):
    """Threads that nobody waits for: a name server that is silent must not hold up the program's end."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as exc:  # noqa: BLE001  # handed on to whoever waits
                future.set_exception(exc)

        threading.Thread(target=work, name="kr-mcp-lookup", daemon=True).start()
        return future
