"""HTTP exchanges to addresses that were checked, read up to a number of bytes; and the pages that a stranger's address leads to.

Nothing of the environment is used: no proxy, no netrc, no cookies. Callers run this within a deadline (``event_loop.run``).
"""

import codecs
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2

from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.sources.addresses import CheckedTransport, FetchRefused, Network
from kr.sources.reasons import connection_reason, pause_asked_for, status_reason

MAX_PAGE = 5 * 1024 * 1024
"""Bytes of a page's decoded text; the rest is cut."""

MAX_REDIRECTS = 5

_CONNECT_SECONDS = 10.0
"""Seconds for connecting to one of several addresses."""

_MAX_URL = 8192
_ACCEPT = "text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8, application/json;q=0.5"
_HEADERS = {"User-Agent": "kr (knowledge cache for coding agents)", "Accept-Encoding": "gzip"}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TEXT = re.compile(
    r"text/(?!css|(?:x-)?(?:java|ecma)script|event-stream)[\w.+-]+|application/(?:json|markdown|xhtml\+xml|[\w.+-]+\+json)"
)
_BINARY = re.compile(rb"%PDF-|\x89PNG|GIF8[79]a|\xff\xd8\xff|PK\x03\x04|\x1f\x8b")
_IN_HEADER = re.compile(r"""(?i);\s*charset\s*=\s*["']?([\w:.-]{1,40})""")
_IN_PAGE = re.compile(rb"""(?i)<meta\b[^>]{0,300}?charset\s*=\s*["']?([\w:.-]{1,40})""")
# Python has codecs that are no charset (punycode) or unsafe (utf-7): these are what pages are written in.
_CHARSETS = re.compile(
    r"cp125\d|cp8\d\d|cp9\d\d|iso8859-\d+|koi8-[rut]|gb\w+|big5\w*|shift_jis|euc_\w+|mac-\w+|tis-620"
)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An HTTP answer; a redirect is one too. ``is_cut``: the body was longer than what was read of it."""

    status: int
    headers: httpx2.Headers
    data: bytes = field(repr=False)
    is_cut: bool

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


async def exchange(
    method: str,
    url: httpx2.URL,
    *,
    network: Network,
    max_bytes: int,
    headers: Mapping[str, str],
    content: bytes | None = None,
) -> Reply:
    """Send one request and read at most ``max_bytes`` decoded bytes of a successful answer.

    Raises ``SourceTimeout``, ``FetchRefused`` and ``SourceFailure``.
    """
    timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
    try:
        async with (
            httpx2.AsyncClient(
                transport=CheckedTransport(network), trust_env=False, timeout=timeout, headers=_HEADERS
            ) as client,
            client.stream(method, url, headers=dict(headers), content=content) as response,
        ):
            data, is_cut = await _read(response, max_bytes) if response.is_success else (b"", False)
            return Reply(status=response.status_code, headers=response.headers, data=data, is_cut=is_cut)
    except httpx2.TimeoutException as error:
        raise SourceTimeout("no answer in time") from error
    except httpx2.InvalidURL as error:  # httpx reads where a redirect leads, followed or not
        raise FetchRefused("the redirect's address is not valid") from error
    except httpx2.DecodingError as error:
        raise SourceFailure("the compressed answer is broken") from error
    except httpx2.ConnectError as error:
        raise SourceFailure(connection_reason(error)) from error
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
        raise SourceFailure("the connection was cut or the answer is no HTTP") from error


async def _read(response: httpx2.Response, max_bytes: int) -> tuple[bytes, bool]:
    """Read a body until ``max_bytes`` decoded bytes are there; a compressed one is unpacked piece by piece, and no further."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip"}:
        raise SourceFailure("the content encoding was not asked for")
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > max_bytes:
            return bytes(data[:max_bytes]), True
    return bytes(data), False


async def ask_json(
    name: str,
    method: str,
    url: httpx2.URL,
    *,
    max_bytes: int,
    headers: Mapping[str, str],
    body: Mapping[str, object] | None = None,
) -> Any:
    """Ask a server of the user's, perhaps private, and read its answer as JSON.

    Raises ``SourceTimeout`` and ``SourceFailure``, named ``name``, without address, header or answer. Redirects are not followed.
    """
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise SourceNotAsked(f"{name}: the API key has characters that no header can carry")
    sent = {"Accept": "application/json", **headers}
    content = None
    if body is not None:
        sent["Content-Type"] = "application/json"
        content = json.dumps(body).encode()
    network = Network(allow_private=True)
    try:
        reply = await exchange(
            method, url, network=network, max_bytes=max_bytes, headers=sent, content=content
        )
    except SourceTimeout as error:
        raise SourceTimeout(f"{name} gave no answer in time") from error
    except SourceFailure as error:
        raise SourceFailure(f"{name}: {error.reason}") from error
    if not reply.is_success:
        more = ", a redirect that is not followed" if reply.status < 400 else ""
        reason = f"{name}: {status_reason(reply.status)}{more}"
        pause = pause_asked_for(reply.status, reply.headers.get("retry-after"))
        raise SourceFailure(reason, retry_after=pause)
    if reply.is_cut:
        raise SourceFailure(f"{name}: the answer is too long")
    try:
        return json.loads(reply.data)
    except (ValueError, RecursionError) as error:
        raise SourceFailure(f"{name}: the answer is no JSON") from error


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page that was read. ``url`` is where it was after the redirects; ``is_cut``: there was more."""

    url: str
    media_type: str
    text: str = field(repr=False)
    is_cut: bool = False


async def fetch_page(url: str, *, network: Network) -> Page:
    """Read the page at ``url``. Raises ``FetchRefused``, ``SourceTimeout``, ``SourceFailure`` (the server's fault), without the URL."""
    target = checked_url(url)
    for _ in range(MAX_REDIRECTS + 1):
        reply = await exchange(
            "GET", target, network=network, max_bytes=MAX_PAGE, headers={"Accept": _ACCEPT}
        )
        if reply.status not in _REDIRECTS:
            return _page(target, reply)
        target = _next(target, reply)
    raise FetchRefused(f"more than {MAX_REDIRECTS} redirects")


def checked_url(url: str) -> httpx2.URL:
    """Parse an address, plainly of an HTTP server; its host is checked when it is connected to. Raises ``FetchRefused``."""
    is_plain = len(url) <= _MAX_URL and url.isprintable() and not re.search(r"[\s\\]", url)
    try:
        parsed = httpx2.URL(url if is_plain else "http://[")
        is_good = parsed.port is None or 0 < parsed.port < 65536
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise FetchRefused("the address is not valid") from error
    if parsed.scheme not in {"http", "https"}:
        raise FetchRefused("the address is neither http nor https")
    if parsed.userinfo or "@" in re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]:
        raise FetchRefused("the address has a user name in it")
    host = parsed.host.rstrip(".")
    if not host or not is_good:
        raise FetchRefused("the address is not valid")
    return parsed.copy_with(host=host)


def _next(current: httpx2.URL, reply: Reply) -> httpx2.URL:
    """Return where a redirect leads, checked like the first address."""
    location = reply.headers.get("location", "")
    if not location:
        raise SourceFailure(f"HTTP {reply.status} without a location")
    try:
        joined = str(current.join(location))
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise FetchRefused("the redirect's address is not valid") from error
    # Joining may have hidden what an address may not hold.
    target = checked_url(joined if location.isprintable() and "\\" not in location else location)
    if current.scheme == "https" and target.scheme == "http":
        raise FetchRefused("a redirect from https to http")
    return target


def _page(url: httpx2.URL, reply: Reply) -> Page:
    if not reply.is_success:
        raise SourceFailure(f"HTTP {reply.status}")
    content_type = reply.headers.get("content-type", "")
    kind = media_type(content_type, reply.data)
    text = decode(reply.data, content_type, is_cut=reply.is_cut)
    if kind is None:
        raise FetchRefused("the content is no text")
    if not text.strip():
        raise SourceFailure("the page is empty")
    return Page(url=str(url), media_type=kind, text=text, is_cut=reply.is_cut)


# --- what a page's bytes are: text or not, and in which characters


def media_type(content_type: str, data: bytes) -> str | None:
    """Tell the declared media type of a page that is text, HTML, Markdown or JSON; None for all else."""
    declared = content_type.partition(";")[0].strip().lower()
    is_binary = _BINARY.match(data) or b"\0" in data[:8192]
    return declared if _TEXT.fullmatch(declared) and not is_binary else None


def decode(data: bytes, content_type: str, *, is_cut: bool = False) -> str:
    """Decode a page: as UTF-8 where it is valid, else as the header or the page declares.

    What no charset can read becomes U+FFFD. ``is_cut`` drops a character that the end cuts in two.
    """
    with suppress(UnicodeError):
        return codecs.getincrementaldecoder("utf-8-sig")("strict").decode(data, final=not is_cut)
    in_page = _IN_PAGE.search(data[:4096])
    labels = [*_IN_HEADER.findall(content_type[:1000]), *([in_page[1].decode()] if in_page else [])]
    return data.decode(next(filter(None, map(_charset, labels)), "cp1252"), "replace")


def _charset(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    # On the web Latin-1 means Windows' (WHATWG Encoding, 4.2).
    return name if name != "iso8859-1" and _CHARSETS.fullmatch(name) else None
