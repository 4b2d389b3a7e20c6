"""Reads a page of the web whose address a stranger chose (SPEC 3.7).

Only ``http`` and ``https``, only public addresses, no credentials, no cookies, no proxy; at most five
redirects, each checked like the first address; 5 MiB of decoded text; one deadline for everything.
"""

import re
from dataclasses import dataclass, field

import httpx

from kr.errors import SourceFailure
from kr.sources.addresses import address_refusal, is_private_name
from kr.sources.deadline import Deadline
from kr.sources.http_exchange import FetchRefused, Network, Reply, exchange
from kr.sources.page_text import decode, is_binary, media_type

MAX_PAGE = 5 * 1024 * 1024
"""Bytes of decoded text; the rest is cut."""

MAX_REDIRECTS = 5

_MAX_URL = 8192
_ACCEPT = "text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8, application/json;q=0.5"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
_DOTTED_QUAD = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
# The last label of what a resolver may read as an IPv4 address: 2130706433, 127.1, 0x7f.1 (WHATWG URL, 3.5).
_NUMERIC_END = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page that was read. ``url`` is where it was after the redirects; ``is_cut``: there was more."""

    url: str
    media_type: str
    text: str = field(repr=False)
    is_cut: bool = False


def fetch_page(url: str, *, network: Network, deadline: Deadline) -> Page:
    """Read the page at ``url``.

    Raises ``FetchRefused`` (an address, scheme, redirect or content that is not allowed), ``SourceTimeout``
    and ``SourceFailure`` (the server's fault); each reason is one short line without the URL.
    """
    target = checked_url(url, allow_private=network.allow_private)
    for _ in range(MAX_REDIRECTS + 1):
        reply = exchange(
            "GET",
            target,
            network=network,
            deadline=deadline,
            max_bytes=MAX_PAGE,
            headers={"Accept": _ACCEPT},
        )
        if reply.status not in _REDIRECTS:
            return _page(target, reply)
        target = _next(target, reply, allow_private=network.allow_private)
    raise FetchRefused(f"more than {MAX_REDIRECTS} redirects")


def checked_url(url: str, *, allow_private: bool) -> httpx.URL:
    """Parse an address and refuse all that is not plainly one of an HTTP server. Raises ``FetchRefused``.

    Host names are checked again, by their addresses, when they are connected to.
    """
    if len(url) > _MAX_URL:
        raise FetchRefused("the address is too long")
    if not url.isprintable() or any(char.isspace() or char == "\\" for char in url):
        raise FetchRefused("the address has characters that no address has")
    try:
        parsed = httpx.URL(url)
        port = parsed.port
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise FetchRefused("the address is not valid") from error
    if parsed.scheme not in {"http", "https"}:
        raise FetchRefused("the address is neither http nor https")
    if parsed.userinfo or "@" in re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]:
        raise FetchRefused("the address has a user name in it")
    if port is not None and not 0 < port < 65536:
        raise FetchRefused("the address has no valid port")
    refusal = _host_refusal(parsed.raw_host.decode("ascii", "replace").lower(), allow_private=allow_private)
    if refusal is not None:
        raise FetchRefused(f"the host {refusal}")
    return parsed


def _host_refusal(host: str, *, allow_private: bool) -> str | None:
    if "%" in host:
        return "has percent signs"
    if ":" in host:
        return address_refusal(host, allow_private=allow_private)
    name = host.removesuffix(".")
    if _NUMERIC_END.fullmatch(name):
        if not _DOTTED_QUAD.fullmatch(name):
            return "is a number in disguise"
        return address_refusal(name, allow_private=allow_private)
    if len(name) > 253 or not _HOST_NAME.fullmatch(name):
        return "is no host name"
    if is_private_name(name) and not allow_private:
        return "is a private address"
    return None


def _next(current: httpx.URL, reply: Reply, *, allow_private: bool) -> httpx.URL:
    location = reply.headers.get("location", "")
    if not location:
        raise SourceFailure(f"HTTP {reply.status} without a location")
    if len(location) > _MAX_URL or not location.isprintable() or "\\" in location:
        raise FetchRefused("the redirect's address is not valid")
    try:
        joined = str(current.join(location))
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise FetchRefused("the redirect's address is not valid") from error
    target = checked_url(joined, allow_private=allow_private)
    if current.scheme == "https" and target.scheme == "http":
        raise FetchRefused("a redirect from https to http")
    return target


def _page(url: httpx.URL, reply: Reply) -> Page:
    if not 200 <= reply.status < 300:
        raise SourceFailure(f"HTTP {reply.status}")
    content_type = reply.headers.get("content-type", "")
    kind = media_type(content_type, reply.body.data)
    if kind is None or is_binary(reply.body.data):
        raise FetchRefused("the content is no text")
    text = decode(reply.body.data, content_type, is_cut=reply.body.is_cut)
    if not text.strip():
        where = " in the first 5 MiB, all that was read" if reply.body.is_cut else ""
        raise SourceFailure(f"the page is empty{where}")
    return Page(url=str(url), media_type=kind, text=text, is_cut=reply.body.is_cut)
