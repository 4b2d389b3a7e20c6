"""What a page's bytes are: text or not, and in which characters."""

import codecs
import re
from contextlib import suppress

_TEXT = re.compile(
    r"text/(?!css|(?:x-)?(?:java|ecma)script|event-stream)[\w.+-]+|application/(?:json|markdown|xhtml\+xml|[\w.+-]+\+json)"
)
_BINARY = re.compile(rb"%PDF-|\x89PNG|GIF8[79]a|\xff\xd8\xff|PK\x03\x04|\x1f\x8b")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_IN_HEADER = re.compile(r"""(?i);\s*charset\s*=\s*["']?([\w:.-]{1,40})""")
_IN_PAGE = re.compile(rb"""(?i)<meta\b[^>]{0,300}?charset\s*=\s*["']?([\w:.-]{1,40})""")
# Python has codecs that are no charset (punycode) or unsafe (utf-7): these are what pages are written in.
_CHARSETS = re.compile(
    r"cp125\d|cp8\d\d|cp9\d\d|iso8859-\d+|koi8-[rut]|gb\w+|big5\w*|shift_jis|euc_\w+|mac-\w+|tis-620"
)


def media_type(content_type: str, data: bytes) -> str | None:
    """Tell the media type of a page that is text, HTML, Markdown or JSON, by header or first bytes; None for all else."""
    declared = content_type.partition(";")[0].strip().lower()
    if not declared:
        declared = (
            "text/html" if re.search(rb"(?i)<(?:!doctype\s+html|html|head|body)\b", data[:2048]) else ""
        )
    is_marked = data.startswith(tuple(mark for mark, _ in _MARKS))
    is_binary = _BINARY.match(data) or (b"\0" in data[:8192] and not is_marked)
    return declared if _TEXT.fullmatch(declared) and not is_binary else None


def decode(data: bytes, content_type: str, *, is_cut: bool = False) -> str:
    """Decode a page: a byte order mark decides, then valid UTF-8, then what the header or the page declares.

    What no charset can read becomes U+FFFD. ``is_cut`` drops a character that the end cuts in two.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.removeprefix(mark).decode(name, "replace")
    with suppress(UnicodeError):
        return codecs.getincrementaldecoder("utf-8")("strict").decode(data, final=not is_cut)
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
