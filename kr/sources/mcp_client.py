"""The synchronous seam over the official MCP SDK: ``converse`` holds one session with a server, over HTTP or as a child process.

No exception of the SDK, its HTTP client or the system leaves this module, and no secret of the configuration. The SDK hides status and
headers of a bad answer and bounds no JSON: hooks of its HTTP client note the one and bound the other.
"""

import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO, TypeVar, cast
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx2
import mcp_types
from anyio.abc import ByteReceiveStream, ByteSendStream, ObjectReceiveStream, ObjectSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.settings.model import Server
from kr.sources.addresses import CheckedTransport, Network
from kr.sources.event_loop import run
from kr.sources.reasons import (
    connection_reason,
    leaves,
    one_line,
    pause_asked_for,
    quoted,
    secrets_of,
    status_reason,
    without_secrets,
)

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

for _name in ("client", "mcp"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)  # what they log is reported as a reason instead

T = TypeVar("T")

MAX_TEXT = 1024 * 1024
"""Bytes of a tool's text; the rest is cut."""

MAX_MESSAGE = 8 * 1024 * 1024
"""Bytes of one message, which may hold a text twice and escaped; what is longer is not read to its end."""

MAX_REDIRECTS = 5

_FAREWELL = 1.0
"""Seconds for leaving a session whose answer is there."""

# What no second attempt mends. 404, 405 and 400 are what older servers say to the newer handshake; the SDK then tries the older one.
_FINAL = frozenset({401, 402, 403, 407, 429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class ToolText:
    """What a tool answered: its text, whether the server called it an error, and whether there was more."""

    text: str
    is_error: bool
    is_cut: bool = False


class McpSession:
    """An open session: the tools of the server, and a way to call them."""

    def __init__(
        self, client: Client, tools: Mapping[str, frozenset[str]], credentials: Iterable[str]
    ) -> None:
        self._client = client
        self._credentials = tuple(credentials)
        self.tools = tools
        """Names of the tools, each with the names of its arguments."""

    def choose(self, *names: str) -> str:
        """Return the first of these tools that the server has. Raises ``SourceFailure`` where it has none."""
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
        data = without_secrets(text, self._credentials).encode(errors="replace")
        is_cut = len(data) > MAX_TEXT
        return ToolText(data[:MAX_TEXT].decode(errors="ignore"), bool(result.is_error), is_cut)


Dialogue = Callable[[McpSession], Awaitable[T]]
"""What to do in a session. It may raise ``SourceFailure``."""


@dataclass
class _Noted:
    """What was seen of a session from outside: why it is over, the last bad status, and what the process wrote to standard error."""

    errors: TextIO = field(repr=False)
    failure: SourceFailure | None = None
    error: Exception | None = None
    status: str | None = None
    redirects: int = 0

    def ended(self, failure: SourceFailure) -> SourceFailure:
        """Note why the session is over, since the SDK may swallow what is raised."""
        self.failure = failure
        return failure


def converse(server: Server | None, dialogue: Dialogue[T], *, timeout: float) -> T:
    """Hold ``dialogue`` with ``server`` within ``timeout`` seconds; leaves no connection and no process.

    Raises ``SourceFailure`` with a line that repeats no secret of the configuration, or ``SourceTimeout``.
    """
    if server is None:
        raise SourceNotAsked("not configured: knowledge_research.servers has no server of this name")
    answers: list[T] = []
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        noted = _Noted(cast("TextIO", errors))

        async def work() -> None:
            try:
                await _session(server, dialogue, noted, answers)
            except Exception as error:
                if not answers:
                    raise _harmless(_failure(error, noted, server), server) from error

        try:
            run(work, timeout=timeout)
        except SourceTimeout as late:
            if not answers:
                raise noted.failure or late from None
    return answers[0]


async def _session(server: Server, dialogue: Dialogue[T], noted: _Noted, answers: list[T]) -> None:
    with anyio.CancelScope() as scope:
        async with _client(server, noted) as client:
            try:
                listed = (await client.list_tools()).tools
                tools = {it.name: frozenset(it.input_schema.get("properties") or ()) for it in listed}
                session = McpSession(client, tools, secrets_of(server, surely=True))
                answers.append(await dialogue(session))
            except Exception as error:  # noqa: BLE001  # kept, since task groups on the way out would wrap it
                noted.error = error
            scope.deadline = anyio.current_time() + _FAREWELL
    if not answers:
        raise noted.error or SourceTimeout("no answer in time")


@asynccontextmanager
async def _client(server: Server, noted: _Noted) -> AsyncIterator[Client]:
    if server.url:
        async with (
            _http_client(server, noted) as http,
            Client(
                streamable_http_client(server.url, http_client=http, max_sse_event_size=MAX_MESSAGE),
                cache=None,
            ) as client,
        ):
            yield client
        return
    async with Client(process_transport(server, noted.errors), cache=None) as client:
        yield client


def _http_client(server: Server, noted: _Noted) -> httpx2.AsyncClient:
    """Return the HTTP client of a session: its addresses are checked, its answers bounded and noted. A proxy resolves names itself."""

    async def note(response: httpx2.Response) -> None:
        _note(response, noted)

    url = httpx2.URL(server.url or "")
    is_proxied = not {url.scheme, "all"}.isdisjoint(getproxies()) and not proxy_bypass(url.host)
    return httpx2.AsyncClient(
        headers={**server.headers, "Accept-Encoding": "identity"},
        timeout=None,
        event_hooks={"response": [note]},
        # It may be private: the server is the user's own choice.
        transport=None if is_proxied else CheckedTransport(Network(allow_private=True)),
    )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, noted: _Noted) -> None:
        self._inner = inner
        self._noted = noted

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE:
                raise self._noted.ended(SourceFailure("the answer is larger than 8 MiB"))
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _note(response: httpx2.Response, noted: _Noted) -> None:
    """Note a bad status, and end the session where another attempt is no use. Raises ``SourceFailure``."""
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise noted.ended(SourceFailure("the answer is compressed, which was not asked for"))
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, noted)
    if response.request.method != "POST":
        return
    noted.redirects = noted.redirects + 1 if response.has_redirect_location else 0
    if noted.redirects > MAX_REDIRECTS:
        raise noted.ended(SourceFailure(f"more than {MAX_REDIRECTS} redirects"))
    status = response.status_code
    if status in _FINAL:
        pause = pause_asked_for(status, response.headers.get("retry-after"))
        raise noted.ended(SourceFailure(status_reason(status), retry_after=pause))
    # An earlier bad status is forgotten: the handshake may have been refused in its newer form.
    noted.status = None if status < 300 else status_reason(status)
    if response.has_redirect_location:  # the host alone: paths and queries may carry secrets
        host = response.url.join(response.headers["location"]).host
        noted.status = f"{status_reason(status)}, a redirect to {host} that is not followed"


def _failure(error: Exception, noted: _Noted, server: Server) -> SourceFailure:
    """Say in a few words why there is no answer: what was noted on the way tells more than the SDK's own error."""
    if noted.failure is not None:
        return noted.failure
    found = list(leaves(noted.error or error))
    known = next((leaf for leaf in found if isinstance(leaf, SourceFailure)), None)
    if known is not None:
        return known
    if noted.status is not None:
        return SourceFailure(noted.status)
    said = "" if server.url else _last_line(noted.errors)
    translated = (_translated(leaf, server.command, said) for leaf in found)
    unknown = SourceFailure(f"the session failed ({type(found[0]).__name__})", said=said)
    return next(filter(None, translated), unknown)


def _translated(leaf: BaseException, command: str | None, said: str) -> SourceFailure | None:
    """Translate an error of the SDK, its HTTP client or the system; an invalid URL, header or argument, maybe secret, is not repeated."""
    match leaf:
        case MCPError(code=mcp_types.PARSE_ERROR) | ValidationError():
            return SourceFailure("the answer does not follow the protocol", said=said)
        case MCPError(code=mcp_types.CONNECTION_CLOSED) if command:
            return SourceFailure("the server ended without an answer", said=said)
        case MCPError():
            return SourceFailure("the session failed", said=said or leaf.message)
        case httpx2.TimeoutException() | TimeoutError():
            return SourceTimeout("the connection timed out")
        case httpx2.ConnectError():
            return SourceFailure(connection_reason(leaf))
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError() | ValueError():
            return SourceNotAsked("the server's URL, headers, command or environment are not valid")
        case httpx2.HTTPError() | httpx2.StreamError():
            return SourceFailure(f"the connection broke ({type(leaf).__name__})")
        case FileNotFoundError() if command:
            return SourceFailure(f"command not found: {command}")
        case OSError():
            return SourceFailure(f"the system refused: {leaf.strerror or type(leaf).__name__}", said=said)
    return None


def _last_line(errors: TextIO) -> str:
    """Return the last line that a server process wrote to standard error."""
    errors.seek(0, 2)
    errors.seek(max(0, errors.tell() - 2000))
    lines = errors.read().strip().splitlines()
    return lines[-1] if lines else ""


def _harmless(failure: SourceFailure, server: Server) -> SourceFailure:
    """Return a failure whose reason is one line without secrets, with what the server said in quotation marks."""
    secrets = secrets_of(server)
    words = f"; it says {quoted(without_secrets(failure.said, secrets))}" if failure.said.strip() else ""
    reason = one_line(without_secrets(failure.reason, secrets)) + words
    shown = copy(failure)
    shown.reason, shown.args = reason, (reason,)
    return shown


# --- a server as a child process: bounded, and gone with all its children when the session is left. The SDK's own transport leaves
# a process behind that is cancelled while it starts, takes four seconds to stop a stubborn one, and bounds no line.

_OWN_ACCORD, _TERMINATED = 0.5, 0.5
"""Seconds that a process gets to end once its input is closed, and once it was told to terminate."""

_GONE = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)


@asynccontextmanager
async def process_transport(server: Server, errors: TextIO) -> AsyncIterator["TransportStreams"]:
    """Start the server's command, its standard error going to ``errors``; leaving stops it."""
    command = [server.command or "", *server.args]
    env = {**get_default_environment(), **server.env}
    with anyio.CancelScope(shield=True):  # cancelled while it starts, it would be left behind
        process = await anyio.open_process(command, env=env, stderr=errors, start_new_session=True)
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks, into, incoming, outgoing, from_session:
            if process.stdout is not None and process.stdin is not None:  # both are pipes
                tasks.start_soon(_read_messages, process.stdout, into)
                tasks.start_soon(_write_messages, process.stdin, from_session)
            try:
                yield incoming, outgoing
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)


async def _read_messages(
    stdout: ByteReceiveStream, into: ObjectSendStream[SessionMessage | Exception]
) -> None:
    """Hand on the messages of a process until its output ends. Lines that are none are passed over: package runners print some."""
    lines = BufferedByteReceiveStream(stdout)
    with suppress(anyio.EndOfStream, anyio.IncompleteRead, *_GONE):
        while True:
            try:
                line = await lines.receive_until(b"\n", MAX_MESSAGE)
            except anyio.DelimiterNotFound as error:
                raise SourceFailure("the answer is larger than 8 MiB") from error
            with suppress(ValueError):
                message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                await into.send(SessionMessage(message))
    await into.aclose()


async def _write_messages(stdin: ByteSendStream, from_session: ObjectReceiveStream[SessionMessage]) -> None:
    with suppress(*_GONE):  # a process that is gone is noticed by the end of its output
        async for item in from_session:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            await stdin.send(line)


async def _stop(process: Process) -> None:
    """Close its input, then terminate, then kill it with all its children; every wait is bounded."""
    if process.stdin is not None:
        with suppress(*_GONE):
            await process.stdin.aclose()
    with anyio.move_on_after(_OWN_ACCORD):
        await process.wait()
    await terminate_posix_process_tree(process, _TERMINATED)
    await process.aclose()
