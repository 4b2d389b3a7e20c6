"""One HTTP request within one deadline, to an address that was checked, read up to a number of bytes.

A network backend for httpcore resolves a name once, refuses it when any of its addresses is refused, and
connects to the very address that was checked; TLS still verifies the name. Nothing of the environment is
used: no proxy, no netrc, no cookies.
"""

import ipaddress
import json
import logging
import socket
import ssl
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Any

import httpcore
import httpx

from kr.deadline import Deadline, bounded
from kr.errors import SourceFailure, SourceTimeout
from kr.sources.base import one_line, retry_after_seconds, status_reason

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Body:
    """``is_cut`` tells that there was more."""

    data: bytes = field(repr=False)
    is_cut: bool = False


def read_body(chunks: Iterable[bytes], encoding: str, max_bytes: int) -> Body:
    """Read ``chunks``, gzip undone, until ``max_bytes`` decoded bytes are there; the rest is not unpacked.

    Raises ``SourceFailure`` for any other encoding, a broken one, and one that ends too early.
    """
    name = encoding.strip().lower()
    if name not in {"", "identity", "gzip", "x-gzip"}:
        raise SourceFailure("the content encoding was not asked for")
    kept = bytearray()
    for piece in _unpacked(chunks, max_bytes + 1) if name.endswith("gzip") else chunks:
        kept += piece
        if len(kept) > max_bytes:
            return Body(bytes(kept[:max_bytes]), is_cut=True)
    return Body(bytes(kept))


def _unpacked(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Unpack gzip, at most ``most`` bytes at a time: a bomb is cut while it is unpacked.

    Several members may follow one another (RFC 1952, 2.2); other padding is ignored, as browsers do.
    """
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
    rest = b""
    for chunk in chunks:
        rest += chunk
        while rest:
            if decoder.eof:
                if not rest.startswith(_GZIP_MAGIC[: len(rest)]):
                    return
                if len(rest) < len(_GZIP_MAGIC):
                    break
                decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                yield decoder.decompress(rest, most)
            except zlib.error as error:
                raise SourceFailure("the compressed answer is broken") from error
            rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    if not decoder.eof:
        raise SourceFailure("the compressed answer ends too early")


def _networks(*texts: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(map(ipaddress.ip_network, texts))


_NEVER = _networks(
    "169.254.0.0/16",  # link-local, with the metadata service of most clouds
    "fe80::/10",
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
# Python's tables hold these, or some addresses in them, to be global; the first is for protocols (RFC 6890).
_NOT_GLOBAL = _networks("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")
_UNICAST = ipaddress.ip_network("2000::/3")
"""The only part of IPv6 whose addresses are given to hosts (RFC 4291, 2.4)."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NEVER_REASON = "is a link-local or metadata address"


def is_metadata_address(text: str) -> bool:
    """Whether ``text`` is a link-local or metadata address, in whatever form: never connected to (SPEC 3.7)."""
    return address_refusal(text, allow_private=True) == _NEVER_REASON


def address_refusal(text: str, *, allow_private: bool) -> str | None:
    """Say why an address is not connected to, or None (SPEC 3.7); IPv4 inside IPv6 (mapped, 6to4, NAT64) is held to the same.

    ``allow_private`` lets private and loopback pass; link-local, metadata, multicast, reserved and unspecified never do.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "is no address"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in _NEVER):
        return _NEVER_REASON
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


Resolver = Callable[[str, int], Sequence[str]]
"""Gives the addresses of a host name; raises ``OSError`` when it has none."""

_USER_AGENT = "kr (knowledge cache for coding agents)"
_MOST_ADDRESSES = 4
_PER_ADDRESS = 5.0
"""Seconds for one of several addresses."""


class FetchRefused(SourceFailure):
    """What was asked for is not fetched: its address, scheme, redirect or content is not allowed."""

    code = "fetch_refused"


def system_resolver(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, kw_only=True)
class Network:
    """What an exchange may reach, and how: tests put their own resolver and connector at the network's edge."""

    allow_private: bool
    resolve: Resolver = system_resolver
    backend: httpcore.NetworkBackend = field(default_factory=httpcore.SyncBackend)
    tls: ssl.SSLContext | None = None
    """The certificates that are trusted; by default those that httpx trusts."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An HTTP answer. ``headers`` have lower-case names; of repeated ones the first counts."""

    status: int
    headers: Mapping[str, str]
    body: Body = field(repr=False)


def exchange(
    method: str,
    url: httpx.URL,
    *,
    network: Network,
    deadline: Deadline,
    max_bytes: int,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    read_status: Callable[[int], bool] = lambda status: 200 <= status < 300,
) -> Reply:
    """Send one request and read the answer; redirects are answers too.

    The body is read, and decoded, up to ``max_bytes``, when ``read_status`` wants it. Raises
    ``SourceTimeout``, ``FetchRefused`` and ``SourceFailure``.
    """
    logging.getLogger("httpcore").setLevel(logging.WARNING)  # it logs headers, and keys stand in them
    sent: dict[bytes | str, bytes | str] = {
        "Host": _host(url),
        "User-Agent": _USER_AGENT,
        "Accept-Encoding": "gzip",
        "Connection": "close",
    }
    sent.update((headers or {}).items())
    target = httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host.rstrip(b"."), port=url.port, target=url.raw_path
    )
    try:
        with (
            httpcore.ConnectionPool(
                ssl_context=network.tls or _default_tls(),
                network_backend=_Backend(network, deadline),
                max_connections=1,
                max_keepalive_connections=0,
            ) as pool,
            pool.stream(method, target, headers=sent, content=content) as response,
        ):
            found = _headers(response.headers)
            body = Body(b"")
            if read_status(response.status):
                body = read_body(response.iter_stream(), found.get("content-encoding", ""), max_bytes)
            return Reply(status=response.status, headers=found, body=body)
    except SourceFailure:
        raise
    except (httpcore.TimeoutException, TimeoutError) as error:
        raise SourceTimeout("no answer in time") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        deadline.remaining()  # a connection that was broken off is late, not broken
        raise SourceFailure(_why(error)) from error


def ask_json(
    name: str,
    method: str,
    url: httpx.URL,
    *,
    deadline: Deadline,
    max_bytes: int,
    headers: Mapping[str, str],
    body: Mapping[str, object] | None = None,
    hints: Mapping[int, str] = MappingProxyType({}),
) -> Any:
    """Ask a server of the user's, perhaps private, and read its answer as JSON; ``hints`` are said behind a status.

    Raises ``SourceTimeout`` and ``SourceFailure``, named ``name``, without address, header or answer. Redirects are not followed.
    """
    sent = {"Accept": "application/json", **headers}
    content = None
    if body is not None:
        sent["Content-Type"] = "application/json"
        content = json.dumps(body).encode()
    network = Network(allow_private=True)
    try:
        reply = exchange(
            method,
            url,
            network=network,
            deadline=deadline,
            max_bytes=max_bytes,
            headers=sent,
            content=content,
        )
    except SourceTimeout as error:
        raise SourceTimeout(f"{name} gave no answer in time") from error
    except SourceFailure as error:
        raise SourceFailure(f"{name}: {error.reason}") from error
    if not 200 <= reply.status < 300:
        after = retry_after_seconds(reply.headers.get("retry-after"), now=datetime.now(UTC))
        more = ", a redirect that is not followed" if reply.status < 400 else hints.get(reply.status, "")
        why = f"{status_reason(reply.status)}{more}"
        raise SourceFailure(f"{name}: {why}", retry_after=after if reply.status in {429, 503} else None)
    if reply.body.is_cut:
        raise SourceFailure(f"{name}: the answer is too long")
    try:
        return json.loads(reply.body.data)
    except (ValueError, RecursionError) as error:
        raise SourceFailure(f"{name}: the answer is no JSON") from error


def _host(url: httpx.URL) -> str:
    host = url.raw_host.decode("ascii").rstrip(".")
    host = f"[{host}]" if ":" in host else host
    return host if url.port is None else f"{host}:{url.port}"


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name.decode("ascii", "replace").lower(), value.decode("utf-8", "replace").strip())
    return found


def _why(error: Exception) -> str:
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text or "certificate" in text.lower():
        return "the server's certificate is not trusted"
    if "refused" in text:
        return "the connection was refused"
    if isinstance(error, httpcore.ConnectError):
        return one_line(f"no connection ({text})", limit=120)
    return "the connection was cut or the answer is no HTTP"


@cache
def _default_tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()


class _Backend(httpcore.NetworkBackend):
    def __init__(self, network: Network, deadline: Deadline) -> None:
        self._network = network
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  # the deadline rules
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        addresses = self._checked(host, port)[:_MOST_ADDRESSES]
        for last, address in ((address is addresses[-1], address) for address in addresses):
            left = self._deadline.remaining()
            try:
                stream = self._network.backend.connect_tcp(
                    address, port, left if last else min(left, _PER_ADDRESS)
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if last:
                    raise
                continue
            return _Stream(stream, self._deadline)
        raise httpcore.ConnectError("the host name has no address")

    def _checked(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = bounded(lambda: self._network.resolve(host, port), self._deadline)
        except (OSError, UnicodeError) as error:
            raise SourceFailure("the host name is not known") from error
        for address in addresses:
            refusal = address_refusal(address, allow_private=self._network.allow_private)
            if refusal is not None:
                raise FetchRefused(f"the host {refusal}")
        return addresses


class _Stream(httpcore.NetworkStream):
    """A connection whose every read and write ends at the deadline, however slowly bytes trickle."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline
        self._socket: socket.socket = stream.get_extra_info("socket")
        deadline.watch(self._socket)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, self._deadline.remaining())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, self._deadline.remaining())

    def close(self) -> None:
        self._deadline.forget(self._socket)
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        self._deadline.forget(self._socket)
        self._stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.remaining())
        self._socket = self._stream.get_extra_info("socket")
        self._deadline.watch(self._socket)
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
