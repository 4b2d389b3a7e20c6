"""Reads a page of the web whose address a stranger chose (SPEC 3.7).

Only ``http`` and ``https``, only public addresses, no credentials, no cookies, no proxy; at most five
redirects, each checked like the first address; 5 MiB of decoded text; one deadline for everything.

A page's characters: a byte order mark decides, then where NUL bytes stand (UTF-16 and UTF-32), then valid UTF-8,
then what the header and the page itself declare: a page that declares Latin-1 and is valid UTF-8 lies far more often
than not. A label alone never makes UTF-16 or UTF-32 of a page (WHATWG HTML, 13.2.3.3).
"""

import codecs
import re
from dataclasses import dataclass, field

import httpx

from kr.errors import SourceFailure
from kr.sources.addresses import address_refusal, is_private_name
from kr.sources.http_exchange import Deadline, FetchRefused, Network, Reply, exchange

_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_CHARSET_PARAMETER = re.compile(r"""(?i);\s*charset\s*=\s*["']?([a-z0-9_.:-]{1,40})""")
_CHARSET_META = re.compile(
    rb"""(?i)<(?:meta\b|\?xml\b)[^>]{0,512}?(?:charset|encoding)\s*=\s*["']?([a-z0-9_.:-]{1,40})"""
)
_HTML_START = re.compile(
    rb"(?i)\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b",
    re.DOTALL,
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Real charsets of pages that are ASCII where they are ASCII. Python has codecs that are none (punycode,
# unicode_escape), unsafe (utf-7), or wholly different (cp037, an EBCDIC).
_KNOWN = re.compile(
    r"utf-8|iso8859-\d+|cp125\d|cp(?:437|850|852|855|858|862|866|874|932|936|949|950)|koi8-[rut]"
    r"|gb2312|gbk|gb18030|hz|big5|big5hkscs|shift_jis|euc_jp|euc_kr|johab|iso2022_[a-z0-9_]+|mac-[a-z]+|tis-620"
)
_TEXT_APPLICATIONS = frozenset({"application/json", "application/markdown", "application/xhtml+xml"})
_NO_DOCUMENTS = re.compile(
    r"text/(?:x-)?(?:(?:java|ecma|j|live)script(?:1\.\d)?|css|event-stream|calendar|vcard)"
)
_BINARY_START = re.compile(
    rb"%PDF-|%!PS-Adobe|\x89PNG|GIF8[79]a|\xff\xd8\xff|RIFF.{4}(?:WEBP|WAVE|AVI )|wOF[F2]|OggS"
    rb"|PK(?:\x03\x04|\x05\x06)|\x1f\x8b|BZh[1-9]1AY|\xfd7zXZ|7z\xbc\xaf|Rar!\x1a|\x28\xb5\x2f\xfd"
    rb"|\x7fELF|\xca\xfe\xba\xbe|!<arch>\n",
    re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CONTROLS = bytes([*range(9), *range(0x0E, 0x1B), *range(0x1C, 0x20)])
_MOST_CONTROLS = 0.05  # of all bytes; packed data has twice as many, and a stray one makes no text binary
_HIGH = re.compile(rb"[\x80-\xff]++(?!\Z)")  # at the end of a page, half a character may stand
_LOOKED_AT = 4096
"""Bytes, from the start, that tell UTF-16 and UTF-32."""


def media_type(content_type: str, start: bytes) -> str | None:
    """Tell the media type of a page that is text, HTML, Markdown or JSON; None for all others.

    ``content_type`` is the header's value. Without one, ``start``, the first bytes, must look like HTML.
    Scripts and style sheets are text, but no documentation.
    """
    declared = content_type.partition(";")[0].strip().lower()
    if not declared:
        return "text/html" if _HTML_START.match(start.removeprefix(codecs.BOM_UTF8)[:2048]) else None
    if not _TYPE.fullmatch(declared) or _NO_DOCUMENTS.fullmatch(declared):
        return None
    is_text = declared.startswith("text/") or declared in _TEXT_APPLICATIONS
    is_json = declared.startswith("application/") and declared.endswith("+json")
    return declared if is_text or is_json else None


def is_binary(data: bytes) -> bool:
    """Whether ``data`` is no text, whatever its type says.

    Told by its first bytes, or by NUL bytes among many control bytes where it is neither UTF-16 nor UTF-32.
    """
    if _BINARY_START.match(data):
        return True
    if b"\0" not in data or _wide_charset(data) is not None:
        return False
    return len(data) - len(data.translate(None, _CONTROLS)) > _MOST_CONTROLS * len(data)


def decode(data: bytes, content_type: str, *, is_cut: bool = False) -> str:
    """Decode a page. Never raises: what no charset can read becomes U+FFFD.

    ``is_cut`` drops a character that the end of ``data`` cuts in two.
    """
    wide = _wide_charset(data)
    if wide is not None:
        return codecs.getincrementaldecoder(wide)("replace").decode(data, final=not is_cut)
    declared = tuple(_declared(data, content_type))
    if data.isascii() and declared:  # ISO-2022 is nothing but ASCII bytes
        return data.decode(declared[0], "replace")
    for name in ("utf-8-sig", *declared):
        text = _strictly(data, name, is_cut=is_cut)
        if text is not None:
            return text
    marked = data.startswith(codecs.BOM_UTF8)
    if not marked and _is_western(data):
        return data.decode("cp1252", "replace")
    return data.decode(declared[0] if declared and not marked else "utf-8-sig", "replace")


def _is_western(data: bytes) -> bool:
    """Whether the letters beyond ASCII stand alone, as in Latin-1; in UTF-8 and East Asian charsets they have two bytes."""
    runs = _HIGH.findall(data)
    return 2 * sum(len(run) == 1 for run in runs) > len(runs)


def _wide_charset(data: bytes) -> str | None:
    """UTF-16 or UTF-32, by a byte order mark or by the NUL bytes that Latin letters and markup have there."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return None if name == "utf-8-sig" else name
    start = data[:_LOOKED_AT]
    if b"\0" not in start:
        return None
    return next((name for name in _by_nul_bytes(start) if _reads_as_text(start, name)), None)


def _by_nul_bytes(start: bytes) -> list[str]:
    lanes = [start[lane::4] for lane in range(4)]
    if len(start) >= 4:
        if not any(lanes[3]) and max(lanes[2]) <= 0x10:
            return ["utf-32-le"]
        if not any(lanes[0]) and max(lanes[1]) <= 0x10:
            return ["utf-32-be"]
    even, odd = start[::2].count(0), start[1::2].count(0)
    fewest = max(2, len(start) // 8)  # one character in four
    if odd >= fewest and odd >= 2 * even:
        return ["utf-16-le"]
    if even >= fewest and even >= 2 * odd:
        return ["utf-16-be"]
    return []


def _reads_as_text(start: bytes, name: str) -> bool:
    text = _strictly(start, name, is_cut=True)
    return bool(text) and not _CONTROL.search(text or "")


def _declared(data: bytes, content_type: str) -> list[str]:
    labels: list[str] = []
    header = _CHARSET_PARAMETER.search(content_type[:1000])
    if header:
        labels.append(header[1])
    meta = _CHARSET_META.search(data[:4096])
    if meta:
        labels.append(meta[1].decode("ascii"))
    return [name for label in labels if (name := _codec(label)) is not None]


def _codec(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    if name in {"iso8859-1", "ascii"}:
        return "cp1252"  # what those labels mean on the web (WHATWG Encoding, 4.2)
    return name if _KNOWN.fullmatch(name) else None


def _strictly(data: bytes, name: str, *, is_cut: bool) -> str | None:
    """Decode without replacements, or return None."""
    try:
        return codecs.getincrementaldecoder(name)("strict").decode(data, final=not is_cut)
    except (UnicodeError, ValueError):
        return None


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
