"""HTTP exchanges read up to a number of bytes: JSON of the user's own servers, the language model's among them, and strangers' pages.

Nothing of the environment is used: no proxy, no netrc, no cookies. Callers run this within a deadline (``network.run``).
"""

import codecs
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import httpx2

from kr.documents.text import to_markdown
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.settings.model import ModelServer
from kr.sources.base import Passage
from kr.sources.network import (
    CheckedTransport,
    FetchRefused,
    Network,
    connection_reason,
    in_thread,
    run,
    status_failure,
)

MAX_PAGE = 5 * 1024 * 1024
"""Bytes of a page's decoded text; the rest is cut."""
MAX_JSON = 2 * 1024 * 1024
"""Bytes of an answer in JSON; a longer one is none."""
MAX_REDIRECTS = 5
_CONNECT_SECONDS = 10.0
"""Seconds for connecting to one of several addresses."""
_ACCEPT = "text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8, application/json;q=0.5"
_HEADERS = {"User-Agent": "kr (knowledge cache for coding agents)", "Accept-Encoding": "gzip"}
_TEXT = re.compile(
    r"text/(?!css|(?:x-)?(?:java|ecma)script|event-stream)[\w.+-]+|application/(?:json|markdown|xhtml\+xml|[\w.+-]+\+json)"
)
_BINARY = re.compile(rb"%PDF-|\x89PNG|GIF8[79]a|\xff\xd8\xff|PK\x03\x04|\x1f\x8b|[^\0]{0,8192}\0")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w-]{1,40})""")
# Python has codecs that are no charset (punycode) or unsafe (utf-7).
_CHARSETS = frozenset(
    """big5 euc-jp euc-kr gb18030 gb2312 gbk iso-8859-2 iso-8859-5 iso-8859-15 koi8-r koi8-u shift_jis windows-1250 windows-1251
    windows-1253 windows-1254 windows-1255 windows-1256""".split()
)


async def exchange(
    method: str,
    url: httpx2.URL,
    *,
    network: Network,
    max_bytes: int,
    headers: Mapping[str, str],
    content: bytes | None = None,
) -> tuple[httpx2.Response, bytes, bool]:
    """Send one request; return the answer, at most ``max_bytes`` decoded bytes of a successful one, and whether there were more.

    A redirect is an answer too. Raises ``SourceTimeout``, ``FetchRefused`` and ``SourceFailure``.
    """
    timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
    try:
        async with (
            httpx2.AsyncClient(
                transport=CheckedTransport(network), trust_env=False, timeout=timeout, headers=_HEADERS
            ) as client,
            client.stream(method, url, headers=dict(headers), content=content) as response,
        ):
            data = bytearray()
            if not response.is_success:
                return response, b"", False
            encoding = response.headers.get("content-encoding", "gzip")
            if encoding.strip().lower() not in {"identity", "gzip"}:
                raise SourceFailure("the content encoding was not asked for")
            # What is compressed is unpacked piece by piece, and no further.
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > max_bytes:
                    break
            return response, bytes(data[:max_bytes]), len(data) > max_bytes
    except httpx2.TimeoutException as error:
        raise SourceTimeout("no answer in time") from error
    except httpx2.ConnectError as error:
        raise SourceFailure(connection_reason(error)) from error
    except httpx2.InvalidURL as error:  # httpx reads where a redirect leads, followed or not
        raise SourceFailure("the redirect's address is not valid") from error
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
        raise SourceFailure("the connection was cut or the answer is no HTTP") from error


# --- JSON of servers that the user configured, perhaps private


async def ask_json(
    name: str, url: httpx2.URL, *, headers: Mapping[str, str], body: Mapping[str, object] | None = None
) -> Any:
    """Ask a server, by POST where there is a ``body``. Redirects are not followed.

    Raises ``SourceTimeout`` and ``SourceFailure``, named ``name``, without address, header or answer.
    """
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise SourceNotAsked(f"{name}: the API key has characters that no header can carry")
    sent = {"Accept": "application/json", "Content-Type": "application/json", **headers}
    method, content = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
    network = Network(allow_private=True)
    try:
        reply, data, is_cut = await exchange(
            method, url, network=network, max_bytes=MAX_JSON, headers=sent, content=content
        )
    except SourceTimeout as error:
        raise SourceTimeout(f"{name} gave no answer in time") from error
    except SourceFailure as error:
        raise SourceFailure(f"{name}: {error.reason}") from error
    if not reply.is_success:
        more = ", a redirect that is not followed" if reply.is_redirect else ""
        raise status_failure(reply.status_code, reply.headers, of=f"{name}: ", more=more)
    if is_cut:
        raise SourceFailure(f"{name}: the answer is too long")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SourceFailure(f"{name}: the answer is no JSON") from error


_MODEL = "the language model"


def complete(
    config: ModelServer,
    environ: Mapping[str, str],
    system: str,
    user: str,
    *,
    timeout: float,
    temperature: float = 0.2,
) -> str:
    """Return what the model of an OpenAI-compatible server replies within ``timeout`` seconds.

    Raises ``SourceFailure``: in its reason is no address, key or reply.
    """
    if config.base_url is None or config.model is None:
        raise SourceNotAsked("not configured (knowledge_research.llm.base_url and llm.model)")
    try:
        url = httpx2.URL(f"{config.base_url.rstrip('/')}/chat/completions")
    except httpx2.InvalidURL as error:
        raise SourceFailure(f"{_MODEL}: its address is no URL") from error
    key = environ.get(config.api_key_env or "", "").strip()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    body = {"model": config.model, "messages": messages, "temperature": temperature}
    answer = run(lambda: ask_json(_MODEL, url, headers=headers, body=body), timeout=timeout)
    try:
        text = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise SourceFailure(f"{_MODEL}'s answer is no chat completion") from error
    if not isinstance(text, str) or not text.strip():
        raise SourceFailure(f"{_MODEL}'s answer is empty")
    return text.replace(key, "***") if key else text


# --- strangers' pages


async def fetch_page(url: str, *, network: Network) -> Passage:
    """Read the page at ``url`` as Markdown; the passage's is where it was after the redirects.

    Raises ``FetchRefused``, ``SourceTimeout``, ``SourceFailure`` (the server's fault), without the URL.
    """
    target = checked_url(url)
    for _ in range(MAX_REDIRECTS + 1):
        reply, data, is_cut = await exchange(
            "GET", target, network=network, max_bytes=MAX_PAGE, headers={"Accept": _ACCEPT}
        )
        if reply.next_request is None:
            page = await in_thread(partial(_page, reply, data))
            return replace(page, url=str(target), is_cut=page.is_cut or is_cut)
        target = reply.next_request.url
    raise FetchRefused(f"more than {MAX_REDIRECTS} redirects")


def checked_url(url: str) -> httpx2.URL:
    """Parse an address of an HTTP server; its host is checked when it is connected to. Raises ``FetchRefused``."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise FetchRefused("the address is not valid") from error
    if parsed.scheme not in {"http", "https"}:
        raise FetchRefused("the address is neither http nor https")
    return parsed


def _page(reply: httpx2.Response, data: bytes) -> Passage:
    if not reply.is_success:
        raise SourceFailure(f"HTTP {reply.status_code}")
    content_type = reply.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if not _TEXT.fullmatch(media_type) or _BINARY.match(data):
        raise FetchRefused("the content is no text")
    page = to_markdown(_decode(data, content_type), media_type=media_type)
    if not page.text.strip():
        raise SourceFailure("the page has no text")
    return Passage(text=page.text, title=page.title, is_cut=page.is_cut)


def _decode(data: bytes, content_type: str) -> str:
    """Decode a page: as UTF-8 where it is valid, else as the header or the page declares, else as Windows' Latin letters.

    What no charset can read becomes U+FFFD; a character that the end cuts in two is dropped.
    """
    with suppress(UnicodeError):
        return codecs.getincrementaldecoder("utf-8-sig")("strict").decode(data)
    declared = _CHARSET.findall(f"{content_type[:1000]} {data[:4096].decode('latin-1')}".lower())
    return data.decode(next((name for name in declared if name in _CHARSETS), "cp1252"), "replace")
