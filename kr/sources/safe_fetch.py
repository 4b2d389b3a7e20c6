"""Reads a page of the web whose address a stranger chose (SPEC 3.7).

Only ``http`` and ``https``, only public addresses, no credentials, no cookies, no proxy; at most five
redirects, each checked like the first address; 5 MiB of decoded text; one deadline for everything.

A page's characters: a byte order mark decides, then valid UTF-8, then what the header and the page itself declare: a page
that declares Latin-1 and is valid UTF-8 lies far more often than not. A label alone never makes UTF-16 of a page (WHATWG
HTML, 13.2.3.3).
"""

import codecs
import re
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from kr.deadline import Deadline
from kr.errors import SourceFailure
from kr.sources.http_exchange import FetchRefused, Network, Reply, exchange

_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_CHARSET_PARAMETER = re.compile(r"""(?i);\s*charset\s*=\s*["']?([a-z0-9_.:-]{1,40})""")
_HTML_START = re.compile(
    rb"(?i)\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b",
    re.DOTALL,
)
# Real charsets of pages that are ASCII where they are ASCII. Python has codecs that are none (punycode,
# unicode_escape), unsafe (utf-7), or wholly different (cp037, an EBCDIC).
_KNOWN = re.compile(
    r"utf-8|iso8859-\d+|cp125\d|cp(?:437|850|852|855|858|862|866|874|932|936|949|950)|koi8-[rut]"
    r"|gb2312|gbk|gb18030|hz|big5|big5hkscs|shift_jis|euc_jp|euc_kr|johab|iso2022_[a-z0-9_]+|mac-[a-z]+|tis-620"
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(
    rb"""<meta\b[^>]{0,300}?charset\s*=\s*["']?([\w:.-]{1,40})|<\?xml\b[^>]{0,100}?encoding\s*=\s*["']([\w:.-]{1,40})""",
    re.IGNORECASE,
)
_TEXT_APPLICATIONS = frozenset({"application/json", "application/markdown", "application/xhtml+xml"})
_NO_DOCUMENTS = re.compile(
    r"text/(?:x-)?(?:(?:java|ecma|j|live)script(?:1\.\d)?|css|event-stream|calendar|vcard)"
)
_BINARY_START = re.compile(rb"%PDF-|\x89PNG|GIF8[79]a|\xff\xd8\xff|PK\x03\x04|\x1f\x8b")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_MOST_CONTROLS = (
    0.05  # of all characters; packed data has twice as many, and a stray one makes no text binary
)


def media_type(content_type: str, start: bytes) -> str | None:
    """Tell the media type of a page that is text, HTML, Markdown or JSON, by header or first bytes; scripts and styles: None."""
    declared = content_type.partition(";")[0].strip().lower()
    if not declared:
        return "text/html" if _HTML_START.match(start.removeprefix(codecs.BOM_UTF8)[:2048]) else None
    if not _TYPE.fullmatch(declared) or _NO_DOCUMENTS.fullmatch(declared):
        return None
    is_text = declared.startswith("text/") or declared in _TEXT_APPLICATIONS
    is_json = declared.startswith("application/") and declared.endswith("+json")
    return declared if is_text or is_json else None


def decode(data: bytes, content_type: str, *, is_cut: bool = False) -> str:
    """Decode a page: what no charset can read becomes U+FFFD. ``is_cut`` drops a character that the end cuts in two."""
    mark = next(((sign, name) for sign, name in _MARKS if data.startswith(sign)), (b"", None))
    text, marked = data.removeprefix(mark[0]), mark[1]
    found = _DECLARED.search(data[:4096])
    header = _CHARSET_PARAMETER.search(content_type[:1000])
    labels = (
        header[1] if header else None,
        (found[1] or found[2]).decode("ascii", "replace") if found else None,
    )
    declared = [name for label in labels if label and (name := _codec(label)) is not None]
    if text.isascii() and declared:  # ISO-2022 is nothing but ASCII bytes
        return text.decode(declared[0], "replace")
    for name in [marked] if marked else ["utf-8", *declared]:
        with suppress(UnicodeError, ValueError):
            return codecs.getincrementaldecoder(name)("strict").decode(text, final=not is_cut)
    return text.decode(marked or (declared or ["cp1252"])[0], "replace")


def _codec(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    if name in {"iso8859-1", "ascii"}:
        return "cp1252"  # what those labels mean on the web (WHATWG Encoding, 4.2)
    return name if _KNOWN.fullmatch(name) else None


MAX_PAGE = 5 * 1024 * 1024
"""Bytes of decoded text; the rest is cut."""

MAX_REDIRECTS = 5

_MAX_URL = 8192
_ACCEPT = "text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8, application/json;q=0.5"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page that was read. ``url`` is where it was after the redirects; ``is_cut``: there was more."""

    url: str
    media_type: str
    text: str = field(repr=False)
    is_cut: bool = False


def fetch_page(url: str, *, network: Network, deadline: Deadline) -> Page:
    """Read the page at ``url``. Raises ``FetchRefused``, ``SourceTimeout``, ``SourceFailure`` (the server's fault), without the URL."""
    target = checked_url(url)
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
        target = _next(target, reply)
    raise FetchRefused(f"more than {MAX_REDIRECTS} redirects")


def checked_url(url: str) -> httpx.URL:
    """Parse an address, plainly of an HTTP server; hosts are checked when connected to. Raises ``FetchRefused``."""
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
    if not parsed.host:
        raise FetchRefused("the address has no host")
    return parsed


def _next(current: httpx.URL, reply: Reply) -> httpx.URL:
    location = reply.headers.get("location", "")
    if not location:
        raise SourceFailure(f"HTTP {reply.status} without a location")
    if len(location) > _MAX_URL or not location.isprintable() or "\\" in location:
        raise FetchRefused("the redirect's address is not valid")
    try:
        joined = str(current.join(location))
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise FetchRefused("the redirect's address is not valid") from error
    target = checked_url(joined)
    if current.scheme == "https" and target.scheme == "http":
        raise FetchRefused("a redirect from https to http")
    return target


def _page(url: httpx.URL, reply: Reply) -> Page:
    if not 200 <= reply.status < 300:
        raise SourceFailure(f"HTTP {reply.status}")
    content_type = reply.headers.get("content-type", "")
    kind = media_type(content_type, reply.body.data)
    text = decode(reply.body.data, content_type, is_cut=reply.body.is_cut)
    is_binary = _BINARY_START.match(reply.body.data) or len(_CONTROL.findall(text)) > _MOST_CONTROLS * len(
        text
    )
    if kind is None or is_binary:
        raise FetchRefused("the content is no text")
    if not text.strip():
        where = " in the first 5 MiB, all that was read" if reply.body.is_cut else ""
        raise SourceFailure(f"the page is empty{where}")
    return Page(url=str(url), media_type=kind, text=text, is_cut=reply.body.is_cut)
