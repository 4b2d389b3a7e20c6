"""The one way to the network: work within a deadline, connections to addresses that were checked, and why there was no answer.

A name is resolved once; it is refused when any of its addresses is; and the connection goes to the very address that was checked.
"""

import asyncio
import ipaddress
import logging
import os
import re
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import TypeVar

import anyio
import httpx2

from kr.cancellation import on_cancel
from kr.errors import SourceFailure, SourceTimeout
from kr.text import one_line

for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(
        logging.CRITICAL + 1
    )  # they log addresses and headers, in which keys stand

T = TypeVar("T")
THREAD = "kr-network"
_STOPPING = 8.0
"""Seconds that the work may take to stop after its deadline or an interruption: a stubborn server process needs most of them."""


def run(work: Callable[[], Awaitable[T]], *, timeout: float) -> T:
    """Return what ``work`` returns within ``timeout`` seconds, and raise what it raises. Raises ``SourceTimeout``.

    Its event loop has a thread of its own: a signal may raise in the caller's thread at any moment without tearing the loop apart, and
    the caller goes on at its deadline even when the loop does not come back.
    """
    done: Future[T] = Future()
    is_over = threading.Event()
    """Set when the work has ended, or when nobody waits for it any more."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _loop, _context: None)  # it would print what is reported anyway
    scope: anyio.CancelScope | None = None

    async def main() -> None:
        nonlocal scope
        with anyio.move_on_after(timeout) as scope:
            if not is_over.is_set():
                done.set_result(await work())

    def stop() -> None:
        if scope is not None:
            scope.cancel()

    def target() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(main())
        except BaseException as error:  # noqa: BLE001  # the thread's end: the caller's thread raises it
            if not done.done():
                done.set_exception(error)
        finally:
            is_over.set()

    thread = threading.Thread(target=target, name=THREAD, daemon=True)
    try:
        thread.start()
        with on_cancel(is_over.set):
            is_over.wait(timeout + _STOPPING)
    finally:
        is_over.set()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(stop)
        if thread.ident is not None:
            thread.join(_STOPPING)
    if done.done():
        return done.result()
    raise SourceTimeout(f"no answer within {timeout:.3g} s")


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a thread that nobody waits for once the caller is cancelled, not even at the program's end."""
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


# --- addresses


class FetchRefused(SourceFailure):
    """What was asked for is not fetched: its address, scheme, redirect or content is not allowed."""


_NEVER = tuple(
    map(
        ipaddress.ip_network,
        (
            "fd00:ec2::254/128",  # metadata of Amazon
            "fd20:ce::254/128",  # of Google
            "100.100.100.200/32",  # of Alibaba
            "168.63.129.16/32",  # of Azure, a public address
            "192.0.0.0/24",  # of Oracle, and for protocols (RFC 6890)
            "240.0.0.0/4",  # reserved, and broadcast
            "2001::/32",  # Teredo and 6to4: tunnels to an IPv4 address
            "2002::/16",
        ),
    )
)
_UNICAST = ipaddress.ip_network("2000::/3")
"""The only part of IPv6 whose addresses are given to hosts (RFC 4291, 2.4)."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def address_refusal(text: str, *, allow_private: bool) -> str | None:
    """Say why an address is not connected to, or None; IPv4 inside IPv6 (mapped, NAT64) is held to the same.

    ``allow_private`` lets private and loopback pass; link-local, metadata, multicast and unspecified never do.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "is no address"
    if isinstance(address, ipaddress.IPv6Address):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        address = address.ipv4_mapped or inner or address
    if address.is_link_local or any(address in network for network in _NEVER):
        return "is a link-local or metadata address"
    if address.is_unspecified or address.is_multicast:
        return "is no single host's address"
    is_public = address.is_global and (address.version == 4 or address in _UNICAST)
    return None if is_public or allow_private else "is a private address"


def system_resolver(host: str) -> Sequence[str]:
    """Return the addresses of a host. Raises ``OSError`` or ``UnicodeError`` where it has none. It may block."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, kw_only=True)
class Network:
    """What an exchange may reach. Tests put their own resolver and transport at the network's edge."""

    allow_private: bool
    resolve: Callable[[str], Sequence[str]] = system_resolver
    transport: httpx2.AsyncBaseTransport | None = None


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends a request to the first of its host's addresses that can be connected to, after all of them were checked.

    ``Host`` and the name that TLS verifies stay the URL's own. Nothing of the environment is used: no proxy, no netrc. Raises
    ``FetchRefused`` where an address is refused, and ``SourceFailure`` where the host has none.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._inner = network.transport or httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.raw_host.decode("ascii")
        try:
            addresses = await in_thread(lambda: self._network.resolve(host))
        except (OSError, UnicodeError) as error:
            raise SourceFailure("the host name is not known") from error
        for address in addresses:
            refusal = address_refusal(address, allow_private=self._network.allow_private)
            if refusal is not None:
                raise FetchRefused(f"the host {refusal}")
        for address in addresses[:-1]:
            with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return await self._inner.handle_async_request(_pinned(request, host, address))
        return await self._inner.handle_async_request(_pinned(request, host, addresses[-1]))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _pinned(request: httpx2.Request, host: str, address: str) -> httpx2.Request:
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


@cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


# --- why there was no answer


def connection_reason(error: BaseException) -> str:
    """Say why no connection came about, by the system's own words beneath the error of an HTTP client."""
    while beneath := error.__cause__ or error.__context__:
        error = beneath
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the server's certificate is not trusted"
    number = error.errno or 0 if isinstance(error, OSError) else 0
    why = os.strerror(number) if number > 0 else str(error) or type(error).__name__
    return one_line(f"no connection: {why}", limit=120)


def status_failure(status: int, headers: httpx2.Headers, *, of: str = "", more: str = "") -> SourceFailure:
    """Return the failure that a bad status is; of a busy server with the seconds of its ``Retry-After``."""
    phrase = f" {HTTPStatus(status).phrase}" if status in list(HTTPStatus) else ""
    seconds = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*", headers.get("retry-after", ""))
    pause = float(seconds[1]) if seconds and status in {429, 503} else None
    return SourceFailure(f"{of}HTTP {status}{phrase}{more}", retry_after=pause)
