"""An MCP server over HTTP or as a child process: bounded, watched, and its exceptions said in a few words.

Over HTTP the SDK hides status and headers of a bad answer, and bounds no JSON: hooks of the HTTP client note the status, end the session
where a second attempt is no use, and bound the body. Of a child process it bounds no line, leaves grandchildren, and may take four
seconds to stop: the transport here has a process group of its own, which is gone when it is left.
"""

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import httpx2
import mcp_types
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import MCPError
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.models import ServerConfig
from kr.sources.base import retry_after_seconds, status_reason
from kr.sources.http_exchange import is_metadata_address

if TYPE_CHECKING:
    from anyio.abc import Process
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams


T = TypeVar("T")


def translate(error: BaseException, *, command: str | None) -> SourceFailure:
    """Say a foreign exception by its first telling leaf; an invalid URL, header or argument, maybe secret, is not repeated."""
    leaves = list(_leaves(error))
    for leaf in leaves:
        found = _of_protocol(leaf) or _of_connection(leaf, command)
        if found is not None:
            return found
    return SourceFailure(f"the session failed ({type(leaves[0] if leaves else error).__name__})")


def _of_protocol(leaf: BaseException) -> SourceFailure | None:
    match leaf:
        case SourceFailure():
            return leaf
        case MCPError() if leaf.code == mcp_types.PARSE_ERROR:
            return SourceFailure("the answer is no JSON-RPC message")
        case MCPError():
            return SourceFailure("the session failed", said=leaf.message)
        case ValidationError():
            return SourceFailure("the answer does not follow the protocol")
    return None


def _of_connection(leaf: BaseException, command: str | None) -> SourceFailure | None:
    match leaf:
        case httpx2.TimeoutException() | TimeoutError():
            return SourceTimeout("the connection timed out")
        case httpx2.ConnectError():
            return SourceFailure(f"cannot connect: {_cause(leaf)}")
        case (
            httpx2.InvalidURL() | httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError() | UnicodeError()
        ):
            return SourceNotAsked("the server's URL or headers are not valid")
        case httpx2.HTTPError() | httpx2.StreamError():
            return SourceFailure(f"the connection broke ({type(leaf).__name__})")
        case FileNotFoundError() if command:
            return SourceFailure(f"command not found: {command}")
        case OSError():
            return SourceFailure(f"the system refused: {leaf.strerror or type(leaf).__name__}")
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _cause(error: BaseException) -> str:
    """Find the system's own words beneath a connection error, which says little by itself."""
    inner: BaseException | None = error
    while inner is not None:
        for leaf in _leaves(inner):
            if isinstance(leaf, socket.gaierror):
                return leaf.strerror or "name lookup failed"
            if isinstance(leaf, OSError) and leaf.errno is not None and leaf.errno > 0:
                return os.strerror(leaf.errno)
        inner = inner.__cause__ or inner.__context__
    return str(error) or type(error).__name__


MAX_MESSAGE = 8 * 1024 * 1024
"""Bytes of one message, which may hold a text twice and escaped; what is longer is not read to its end."""

MAX_REDIRECTS = 5
"""Redirects of one request, as of a page."""

_LOOKUP = 2.0
"""Seconds for looking up a server's address beforehand."""

# 404, 405 and 400 are what older servers say to the newer handshake; the SDK then tries the older one.
_FINAL = frozenset({401, 402, 403, 407, 429, 502, 503, 504})


@dataclass
class Wire:
    """What was seen on the way. ``status`` is the last bad one of a POST, ``redirects`` counts those in a row."""

    cancel: Callable[[], None]
    failure: SourceFailure | None = None
    status: int | None = None
    redirect: str | None = None
    redirects: int = 0

    def fail(self, failure: SourceFailure) -> None:
        self.failure = self.failure or failure
        self.cancel()

    def refusal(self) -> SourceFailure:
        """Say the last bad status, and where a redirect that is not followed leads."""
        where = f", a redirect to {self.redirect} that is not followed" if self.redirect else ""
        return SourceFailure(status_reason(self.status or 0) + where)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE:
                self._wire.fail(SourceFailure("the answer is larger than 8 MiB"))
                await anyio.lowlevel.checkpoint()
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def http_client(
    headers: dict[str, str], wire: Wire, *, seconds: float
) -> AsyncIterator[httpx2.AsyncClient]:
    """Open the HTTP client whose responses ``wire`` watches. Redirects are the SDK's: within the origin only."""
    checked: set[str] = set()

    async def before(request: httpx2.Request) -> None:
        host = request.url.host
        if host in checked:
            return
        checked.add(host)
        if await _is_metadata_host(host):
            wire.fail(
                SourceFailure("the server's address is a link-local or metadata address, which is refused")
            )
            await anyio.lowlevel.checkpoint()

    async def after(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            _note(response, wire)
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in {"", "identity"}:
            wire.fail(SourceFailure("the answer is compressed, which was not asked for"))
        if wire.failure is not None:
            await anyio.lowlevel.checkpoint()
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, wire)

    async with httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=seconds,
        event_hooks={"request": [before], "response": [after]},
    ) as client:
        yield client


def http_transport(url: str, client: httpx2.AsyncClient) -> "Transport":
    return streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE)


def _note(response: httpx2.Response, wire: Wire) -> None:
    status = response.status_code
    wire.redirects = wire.redirects + 1 if response.has_redirect_location else 0
    if wire.redirects > MAX_REDIRECTS:
        wire.fail(SourceFailure(f"more than {MAX_REDIRECTS} redirects"))
    wire.status = wire.redirect = None  # the handshake may have been refused in its newer form before
    if status < 300:
        return
    wire.status = status
    if response.has_redirect_location:
        wire.redirect = _host_of(response.headers.get("location", ""))
    if status in _FINAL:
        after = retry_after_seconds(response.headers.get("retry-after"), now=datetime.now(UTC))
        wire.fail(SourceFailure(status_reason(status), retry_after=after if status in {429, 503} else None))


def _host_of(location: str) -> str | None:
    """Tell where a redirect leads: the host alone, since paths and queries may carry secrets."""
    try:
        return urlsplit(location).hostname
    except ValueError:
        return None


async def _is_metadata_host(host: str) -> bool:
    """Whether a name leads to a metadata service; one that doesn't resolve, as behind a proxy, is left to the connection."""
    found: Sequence[tuple[object, object, object, object, tuple[object, ...]]] = ()
    try:
        with anyio.move_on_after(_LOOKUP):
            found = await anyio.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(is_metadata_address(str(row[4][0])) for row in found)


MAX_JUNK_LINES = 100
"""Lines on standard output that are no JSON-RPC message; servers started by a package runner print some."""

_TAIL = 2000
_OWN_ACCORD, _TERMINATED = 0.5, 0.5


class StdioServer:
    """One server process in a group of its own. ``kill`` works from any thread."""

    def __init__(self, server: ServerConfig, wire: Wire) -> None:
        self._server = server
        self._wire = wire
        self._group: int | None = None
        self._tail = b""
        self._tail_is_complete = anyio.Event()
        self._in_a_hurry = False
        self.junk_lines = 0
        self.messages = 0

    def hurry(self) -> None:
        self._in_a_hurry = True

    def kill(self) -> None:
        """Kill the whole group at once. The last resort, when the transport could not be left in time."""
        if self._group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)

    @asynccontextmanager
    async def transport(self) -> "AsyncIterator[TransportStreams]":
        """Start the process; leaving stops it: its input is closed, then it is terminated, then killed, with all its children."""
        # A cancellation while it starts, or anything awaited before the try, would leave its children behind.
        with anyio.CancelScope(shield=True):
            process = await _spawn(self._server)
        self._group = process.pid
        into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as tasks, into, incoming, outgoing, from_session:
                tasks.start_soon(self._read, process, into)
                tasks.start_soon(self._keep_tail, process)
                tasks.start_soon(_write, process, from_session)
                try:
                    yield incoming, outgoing
                finally:
                    tasks.cancel_scope.cancel()
        except BaseException:
            self._in_a_hurry = True
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await self._stop(process)

    async def _read(
        self, process: "Process", into: "anyio.abc.ObjectSendStream[SessionMessage | Exception]"
    ) -> None:
        lines = BufferedByteReceiveStream(_piped(process.stdout))
        while True:
            try:
                line = await lines.receive_until(b"\n", MAX_MESSAGE)
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                await self._report_end(process)
                return
            except anyio.DelimiterNotFound:
                self._wire.fail(SourceFailure("the answer is larger than 8 MiB"))
                return
            if line.strip():
                await self._hand_on(line, into)

    async def _hand_on(
        self, line: bytes, into: "anyio.abc.ObjectSendStream[SessionMessage | Exception]"
    ) -> None:
        try:
            message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self.junk_lines += 1
            if self.junk_lines > MAX_JUNK_LINES:
                self._wire.fail(SourceFailure("the server writes what is no JSON-RPC message"))
            return
        self.messages += 1
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await into.send(SessionMessage(message))

    async def _report_end(self, process: "Process") -> None:
        """Say that the server closed its output: end the session, with what it said last."""
        with anyio.move_on_after(_OWN_ACCORD):
            await process.wait()
            await self._tail_is_complete.wait()
        status = process.returncode
        how = "closed its output" if status is None else f"ended with exit status {status}"
        lines = self._tail.decode(errors="replace").strip().splitlines()
        self._wire.fail(SourceFailure(f"the server {how}", said=lines[-1] if lines else ""))

    async def _keep_tail(self, process: "Process") -> None:
        with suppress(anyio.BrokenResourceError):
            async for chunk in _piped(process.stderr):
                self._tail = (self._tail + chunk)[-_TAIL:]
        self._tail_is_complete.set()

    async def _stop(self, process: "Process") -> None:
        """Close its input, then terminate, then kill; every wait is bounded."""
        with suppress(OSError, anyio.BrokenResourceError):
            await _piped(process.stdin).aclose()
        if not self._in_a_hurry:
            with anyio.move_on_after(_OWN_ACCORD):
                await process.wait()
        await terminate_posix_process_tree(process, _TERMINATED)
        await process.aclose()


def _piped(stream: T | None) -> T:
    """Every standard stream of a process is a pipe, as it is started here."""
    if stream is None:
        raise SourceFailure("the server has no pipe")
    return stream


async def _write(process: "Process", from_session: "anyio.abc.ObjectReceiveStream[SessionMessage]") -> None:
    # A server that is gone is reported by the end of its output.
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for item in from_session:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            await _piped(process.stdin).send(line)


async def _spawn(server: ServerConfig) -> "Process":
    command = [server.command or "", *server.args]
    try:
        return await anyio.open_process(
            command, env={**get_default_environment(), **server.env}, start_new_session=True
        )
    except ValueError as exc:
        # Not repeated: the invalid argument or variable may hold a secret.
        raise SourceNotAsked("the server's command, arguments or environment are not valid") from exc
