"""What kind of text a page is, and its characters. Pure.

A byte order mark decides, then where NUL bytes stand (UTF-16 and UTF-32), then valid UTF-8, then what the
header and the page itself declare: a page that declares Latin-1 and is valid UTF-8 lies far more often than
not. One that declares UTF-8 and is Latin-1 is read as that. A label alone never makes UTF-16 or UTF-32 of a page (WHATWG HTML, 13.2.3.3, on the label of a page).
"""

import codecs
import re

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
