"""What kind of text a page is, and its characters. Pure.

A byte order mark decides, then valid UTF-8, then what the header and the page itself declare: a page that
declares Latin-1 and is valid UTF-8 lies far more often than not.
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
# Real charsets of pages; Python has codecs that are none (punycode, unicode_escape) or unsafe (utf-7).
_KNOWN = re.compile(
    r"utf-8|utf-16(?:-le|-be)?|utf-32(?:-le|-be)?|ascii|iso8859-\d+|cp\d+|koi8-[rut]|gb2312|gbk|gb18030|hz|big5"
    r"|big5hkscs|shift_jis|shift_jisx0213|euc_jp|euc_kr|johab|iso2022_[a-z0-9_]+|mac-[a-z]+|tis-620"
)
_TEXT_APPLICATIONS = frozenset({"application/json", "application/markdown", "application/xhtml+xml"})


def media_type(content_type: str, start: bytes) -> str | None:
    """Tell the media type of a page that is text, HTML, Markdown or JSON; None for all others.

    ``content_type`` is the header's value. Without one, ``start``, the first bytes, must look like HTML.
    """
    declared = content_type.partition(";")[0].strip().lower()
    if not declared:
        return "text/html" if _HTML_START.match(start.removeprefix(codecs.BOM_UTF8)[:2048]) else None
    if not _TYPE.fullmatch(declared):
        return None
    is_text = declared.startswith("text/") or declared in _TEXT_APPLICATIONS
    is_json = declared.startswith("application/") and declared.endswith("+json")
    return declared if is_text or is_json else None


def decode(data: bytes, content_type: str, *, is_cut: bool = False) -> str:
    """Decode a page. Never raises: what no charset can read becomes U+FFFD.

    ``is_cut`` drops a character that the end of ``data`` cuts in two.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    declared = tuple(_declared(data, content_type))
    if data.isascii() and declared:  # UTF-16 and ISO-2022 may be nothing but ASCII bytes
        return data.decode(declared[0], "replace")
    for name in ("utf-8", *declared):
        text = _strictly(data, name, is_cut=is_cut)
        if text is not None:
            return text
    return data.decode(declared[0] if declared else "utf-8", "replace")


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
