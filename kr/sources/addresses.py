"""The one way to the network: which addresses are connected to, and how a name becomes one that was checked.

A name is resolved once; it is refused when any of its addresses is; and the connection goes to the very address that was checked.
Link-local and metadata addresses are refused always, private ones unless they are allowed.
"""

import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import httpx2

from kr.errors import SourceFailure
from kr.sources.event_loop import in_thread

for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(
        logging.CRITICAL + 1
    )  # they log addresses and headers, in which keys stand

Resolver = Callable[[str], Sequence[str]]
"""Gives the addresses of a host name; raises ``OSError`` or ``UnicodeError`` when it has none. It may block."""

_MOST_ADDRESSES = 4


class FetchRefused(SourceFailure):
    """What was asked for is not fetched: its address, scheme, redirect or content is not allowed."""

    code = "fetch_refused"


def _networks(*texts: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(map(ipaddress.ip_network, texts))


_METADATA = _networks(
    "fd00:ec2::254/128",  # Amazon
    "fd20:ce::254/128",  # Google
    "100.100.100.200/32",  # Alibaba
    "168.63.129.16/32",  # Azure, a public address
    "192.0.0.192/32",  # Oracle
)
_PRIVATE = _networks(
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "127.0.0.0/8",
    "100.64.0.0/10",
    "198.18.0.0/15",  # what some proxies answer for every name
    "::1/128",
    "fc00::/7",
)
# Python takes these, or some addresses in them, to be global; the first is for protocols (RFC 6890).
_NOT_GLOBAL = _networks("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")
_UNICAST = ipaddress.ip_network("2000::/3")
"""The only part of IPv6 whose addresses are given to hosts (RFC 4291, 2.4)."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def address_refusal(text: str, *, allow_private: bool) -> str | None:
    """Say why an address is not connected to, or None; IPv4 inside IPv6 (mapped, 6to4, NAT64) is held to the same.

    ``allow_private`` lets private and loopback pass; link-local, metadata, multicast, reserved and unspecified never do.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "is no address"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_link_local or any(address in network for network in _METADATA):
        return "is a link-local or metadata address"
    if address.is_unspecified or address.is_multicast:
        return "is no single host's address"
    if any(address in network for network in _PRIVATE):
        return None if allow_private else "is a private address"
    if isinstance(address, ipaddress.IPv6Address):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address.sixtofour
        if inner is not None:
            return address_refusal(str(inner), allow_private=False)
        if address not in _UNICAST:
            return "is no public address"
    if not address.is_global or any(address in network for network in _NOT_GLOBAL):
        return "is no public address"
    return None


def system_resolver(host: str) -> Sequence[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def checked_addresses(host: str, resolve: Resolver, *, allow_private: bool) -> Sequence[str]:
    """Resolve a host name. Raises ``FetchRefused`` when any of its addresses is, ``SourceFailure`` when it has none."""
    try:
        addresses = await in_thread(lambda: resolve(host))
    except (OSError, UnicodeError) as error:
        raise SourceFailure("the host name is not known") from error
    for address in addresses:
        refusal = address_refusal(address, allow_private=allow_private)
        if refusal is not None:
            raise FetchRefused(f"the host {refusal}")
    return addresses[:_MOST_ADDRESSES]


@dataclass(frozen=True, kw_only=True)
class Network:
    """What an exchange may reach. Tests put their own resolver and transport at the network's edge."""

    allow_private: bool
    resolve: Resolver = system_resolver
    transport: httpx2.AsyncBaseTransport | None = None


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends a request to the first of its host's checked addresses that can be connected to.

    ``Host`` and the name that TLS verifies stay the URL's own. Nothing of the environment is used: no proxy, no netrc.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._inner = network.transport or httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host, network = request.url.raw_host.decode("ascii"), self._network
        addresses = await checked_addresses(host, network.resolve, allow_private=network.allow_private)
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
