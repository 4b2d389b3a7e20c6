"""The synchronous seam over the official MCP SDK: ``converse`` holds one session with a server, over HTTP or as a child process.

No exception of the SDK, its HTTP client or the system leaves this module, and no secret of the configuration. The SDK hides status and
headers of a bad answer and bounds no JSON: a hook of its HTTP client notes the one and bounds the other.
"""

import logging
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from typing import Generic, TextIO, TypeVar, cast
from urllib.parse import parse_qsl, urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx2
import mcp_types
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import ValidationError

from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.settings.model import Server
from kr.sources.network import CheckedTransport, Network, connection_reason, run, status_failure
from kr.text import one_line

for _name in ("client", "mcp"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)  # what they log is reported as a reason instead

T = TypeVar("T")
MAX_TEXT = 1024 * 1024
"""Bytes of a tool's text; the rest is cut."""
MAX_MESSAGE = 8 * 1024 * 1024
"""Bytes of one HTTP answer, which may hold a text twice and escaped; what is longer is not read to its end."""
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


@dataclass(frozen=True, slots=True)
class McpSession:
    """An open session, and a way to call the server's tools: their names, each with the names of its arguments."""

    client: Client
    tools: Mapping[str, frozenset[str]]
    credentials: tuple[str, ...]

    def choose(self, *names: str) -> str:
        """Return the first of these tools that the server has. Raises ``SourceFailure`` where it has none."""
        for name in names:
            if name in self.tools:
                return name
        raise SourceFailure(f"the server has no tool {' or '.join(names)}")

    async def call(self, name: str, arguments: Mapping[str, str | int]) -> ToolText:
        """Call a tool with the arguments that it takes. The text is that of its text blocks, else of ``structuredContent.result``."""
        taken = self.tools[name] or arguments.keys()
        given = {key: value for key, value in arguments.items() if key in taken}
        result = await self.client.call_tool(name, given)
        text = "\n\n".join(block.text for block in result.content if block.type == "text")
        text = text or str((result.structured_content or {}).get("result") or "")
        # A server that repeats its key in a text must not bring it into a report.
        data = without_secrets(text, self.credentials).encode(errors="replace")
        is_cut = len(data) > MAX_TEXT
        return ToolText(data[:MAX_TEXT].decode(errors="ignore"), bool(result.is_error), is_cut)


Dialogue = Callable[[McpSession], Awaitable[T]]
"""What to do in a session. It may raise ``SourceFailure``."""


def converse(server: Server | None, dialogue: Dialogue[T], *, timeout: float) -> T:
    """Hold ``dialogue`` with ``server`` within ``timeout`` seconds; leaves no connection and no process.

    Raises ``SourceFailure`` with a line that repeats no secret of the configuration, or ``SourceTimeout``.
    """
    if server is None:
        raise SourceNotAsked("not configured: knowledge_research.servers has no server of this name")
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        session = _Session(server, dialogue, cast("TextIO", errors))
        try:
            run(session.hold, timeout=timeout)
        except SourceTimeout as late:
            if not session.answers:
                raise session.bad_answer or late from None
        return session.answers[0]


class _Session(Generic[T]):
    """One session: its answer, and what was seen of it from outside, since the SDK swallows some of what is raised."""

    def __init__(self, server: Server, dialogue: Dialogue[T], errors: TextIO) -> None:
        self.answers: list[T] = []
        self.bad_answer: SourceFailure | None = None
        """What was wrong with the last answer over HTTP. An earlier one is forgotten: the newer handshake may have been refused."""
        self._server = server
        self._dialogue = dialogue
        self._errors = errors
        """What a server process writes to standard error."""

    async def hold(self) -> None:
        error: Exception | None = None
        try:
            with anyio.CancelScope() as scope:
                async with AsyncExitStack() as stack:
                    client = await self._client(stack, scope)
                    try:
                        listed = (await client.list_tools()).tools
                        tools = {it.name: frozenset(it.input_schema.get("properties") or ()) for it in listed}
                        session = McpSession(client, tools, secrets_of(self._server, surely=True))
                        self.answers.append(await self._dialogue(session))
                    except Exception as its_own:  # noqa: BLE001  # task groups on the way out would wrap it
                        error = its_own
                    scope.deadline = anyio.current_time() + _FAREWELL
        except Exception as on_the_way:  # noqa: BLE001  # of the SDK, its HTTP client, the system: translated
            error = error or on_the_way
        if not self.answers:
            raise self._harmless(self._failure(error or TimeoutError())) from error

    async def _client(self, stack: AsyncExitStack, scope: anyio.CancelScope) -> Client:
        server = self._server
        if server.url:
            http = await stack.enter_async_context(self._http_client(server.url))
            transport = streamable_http_client(server.url, http_client=http, max_sse_event_size=MAX_MESSAGE)
            return await stack.enter_async_context(Client(transport, cache=None))
        process = StdioServerParameters(
            command=server.command or "",
            args=list(server.args),
            env=dict(server.env),
            encoding_error_handler="replace",
        )
        scope.shield = True  # cancelled while it starts, it would be left behind
        streams = await stack.enter_async_context(stdio_client(process, self._errors))
        scope.shield = False
        return await stack.enter_async_context(Client(nullcontext(streams), cache=None))

    def _http_client(self, url: str) -> httpx2.AsyncClient:
        """Return the client: its addresses are checked, its answers bounded and noted. A proxy resolves names itself."""
        parsed = httpx2.URL(url)
        is_proxied = not {parsed.scheme, "all"}.isdisjoint(getproxies()) and not proxy_bypass(parsed.host)
        return httpx2.AsyncClient(
            headers={**self._server.headers, "Accept-Encoding": "identity"},
            timeout=None,
            max_redirects=5,
            event_hooks={"response": [self._note]},
            # It may be private: the server is the user's own choice.
            transport=None if is_proxied else CheckedTransport(Network(allow_private=True)),
        )

    async def _note(self, response: httpx2.Response) -> None:
        """Note a bad answer, and end the session where another attempt is no use. Raises ``SourceFailure``."""
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise self._ended(SourceFailure("the answer is compressed, which was not asked for"))
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, self._ended)
        if response.request.method != "POST":
            return
        status, more = response.status_code, ""
        if response.has_redirect_location:  # the host alone: paths and queries may carry secrets
            host = response.url.join(response.headers["location"]).host
            more = f", a redirect to {host} that is not followed"
        self.bad_answer = status_failure(status, response.headers, more=more) if status >= 300 else None
        if self.bad_answer is not None and status in _FINAL:
            raise self.bad_answer

    def _ended(self, failure: SourceFailure) -> SourceFailure:
        self.bad_answer = failure
        return failure

    def _failure(self, error: Exception) -> SourceFailure:
        """Say in a few words why there is no answer: what was noted on the way tells more than the SDK's own error."""
        found = list(_leaves(error))
        known = next((leaf for leaf in found if isinstance(leaf, SourceFailure)), None)
        said = "" if self._server.url else self._last_line()
        translated = (_translated(leaf, self._server.command, said) for leaf in found)
        unknown = SourceFailure(f"the session failed ({type(found[0]).__name__})", said=said)
        return self.bad_answer or known or next(filter(None, translated), unknown)

    def _last_line(self) -> str:
        """Return the last line that a server process wrote to standard error."""
        self._errors.seek(0, 2)
        self._errors.seek(max(0, self._errors.tell() - 2000))
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else ""

    def _harmless(self, failure: SourceFailure) -> SourceFailure:
        """Make the reason one line without secrets, with what the server said in quotation marks."""
        secrets = secrets_of(self._server)
        reason = one_line(without_secrets(failure.reason, secrets), 200)
        if said := one_line(without_secrets(failure.said, secrets), 130).replace('"', "'"):
            reason += f'; it says "{said}"'
        failure.reason, failure.args = reason, (reason,)
        return failure


class _Bounded(httpx2.AsyncByteStream):
    def __init__(
        self, inner: httpx2.AsyncByteStream, ended: Callable[[SourceFailure], SourceFailure]
    ) -> None:
        self._inner = inner
        self._ended = ended

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE:
                raise self._ended(SourceFailure("the answer is larger than 8 MiB"))
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group, however deep, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


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
        case OSError() if command:
            return SourceFailure(f"{command} can't be started: {leaf.strerror or type(leaf).__name__}")
    return None


# --- a reason: one short line, harmless for a terminal, without a secret of the configuration

_SECRET_NAME = re.compile(r"(?i)(?:key|token|secret|password|passwd|auth|bearer)")


def secrets_of(server: Server, *, surely: bool = False) -> tuple[str, ...]:
    """Return everything of a server's configuration that no message may repeat, and the words of each (``Bearer abc``), longest first.

    ``surely``: only what is surely a credential. A text may hold an ordinary header's value, but never one of these.
    """
    named = [*server.headers.items(), *server.env.items()]
    values = [value for name, value in named if not surely or _SECRET_NAME.search(name)]
    for arg, after in zip_longest(server.args, server.args[1:], fillvalue=""):
        name, _, value = arg.partition("=")
        if name.startswith("-") and _SECRET_NAME.search(name):
            values.append(value or after)
    try:
        parts = urlsplit(server.url or "")
        values += [parts.username or "", parts.password or "", parts.query]
        values += [value for _, value in parse_qsl(parts.query)]
    except ValueError:
        values.append(server.url or "")
    shortest = 8 if surely else 4
    found = {part for value in values for part in (value, *value.split())}
    kept = (one for one in found if len(one) >= shortest and one.lower() not in {"bearer", "basic"})
    return tuple(sorted(kept, key=len, reverse=True))


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Put ``***`` for every secret, which are given longest first."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
