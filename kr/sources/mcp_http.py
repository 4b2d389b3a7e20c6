"""An MCP server over HTTP: the SDK's transport, bounded and watched.

The SDK reports a bad HTTP answer without its status and headers, and reads a JSON answer of any size. Hooks
of the HTTP client see every response first. They note the status, end the session at once where a second
attempt would be no use (rate limits, refused credentials, gateways), and bound the body.
"""

import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import httpx2
from mcp.client.streamable_http import streamable_http_client

from kr.errors import SourceFailure
from kr.sources.addresses import is_metadata_address
from kr.sources.reasons import retry_after_seconds

if TYPE_CHECKING:
    from mcp.client import Transport

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
    """What was seen on the way, for a better reason than the SDK can give.

    ``fail`` ends the session with ``failure``; ``status`` is the last bad HTTP status of a POST; ``redirects``
    counts those in a row.
    """

    cancel: Callable[[], None]
    failure: SourceFailure | None = None
    status: int | None = None
    redirect: str | None = None
    redirects: int = 0

    def fail(self, failure: SourceFailure) -> None:
        """Keep the first failure and end the session."""
        self.failure = self.failure or failure
        self.cancel()

    def refusal(self) -> SourceFailure:
        """Say the last bad status, and where a redirect that is not followed leads."""
        where = f", a redirect to {self.redirect} that is not followed" if self.redirect else ""
        return SourceFailure(status_reason(self.status or 0) + where)


class _Bounded(httpx2.AsyncByteStream):
    """A response body that ends the session when it passes ``MAX_MESSAGE``."""

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
    """Build the SDK's transport over ``client``."""
    return streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE)


def status_reason(status: int) -> str:
    """Say an HTTP status: ``HTTP 429 Too Many Requests``."""
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


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
    """Whether a name leads to a cloud's metadata service; one that doesn't resolve is left to the connection.

    Behind a proxy there may be no name server to ask, so that the answer is not waited for at length.
    """
    found: Sequence[tuple[object, object, object, object, tuple[object, ...]]] = ()
    try:
        with anyio.move_on_after(_LOOKUP):
            found = await anyio.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(is_metadata_address(str(row[4][0])) for row in found)
