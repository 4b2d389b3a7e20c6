"""What a page's bytes are: text or not, and in which characters.

A byte order mark decides, then valid UTF-8, then what the header or the page declares: a page that declares Latin-1 and is valid UTF-8
lies far more often than not.
"""

import codecs
import re
from contextlib import suppress

_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_TEXT_APPLICATIONS = frozenset({"application/json", "application/markdown", "application/xhtml+xml"})
_NO_DOCUMENTS = re.compile(r"text/(?:x-)?(?:(?:java|ecma|j|live)script|css|event-stream|calendar|vcard)")
_HTML_START = re.compile(rb"(?i)\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype\s+html|html|head|body)\b")
_BINARY_START = re.compile(rb"%PDF-|\x89PNG|GIF8[79]a|\xff\xd8\xff|PK\x03\x04|\x1f\x8b")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_MOST_CONTROLS = 0.05  # of all characters; packed data has twice as many

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
        return "text/html" if _HTML_START.match(data.removeprefix(codecs.BOM_UTF8)[:2048]) else None
    if not _TYPE.fullmatch(declared) or _NO_DOCUMENTS.fullmatch(declared):
        return None
    is_json = declared.startswith("application/") and declared.endswith("+json")
    is_text = declared.startswith("text/") or declared in _TEXT_APPLICATIONS
    return declared if is_text or is_json else None


def is_binary(data: bytes, text: str) -> bool:
    """Whether the bytes, decoded as ``text``, are no text, whatever their header says."""
    return _BINARY_START.match(data) is not None or len(_CONTROL.findall(text)) > _MOST_CONTROLS * len(text)


def decode(data: bytes, content_type: str, *, is_cut: bool = False) -> str:
    """Decode a page: what no charset can read becomes U+FFFD. ``is_cut`` drops a character that the end cuts in two."""
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
