"""Markdown: a text's sections, a cut that fits a reader's room, and untrusted text quoted so that it can stand in a report.

Nothing that a source wrote can be taken for a line of kr's own: prose stands in quotations (``> ``), code in a fence that
it can't close. Raw HTML, pictures and the targets of links are dropped, a heading becomes a bold line. All is pure, and
linear in the length of the text.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote as percent_encoded

from kr.text import one_line, strip_invisible

MAX_CHARS = 300_000
"""How much of one text is read."""

_MAX_LINE = 4_000
_FENCE = re.compile(r"^[ \t>]{0,12}(?:[-*+] +|\d+[.)] +)?(`{3,}|~{3,})[ \t]*([\w+#.-]{0,30})[^`\n]*$")
_WITHIN = r"((?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])))*)[ \t]*"
"""Quotation marks and items that a line stands in."""
_HEADING = re.compile(rf"^{_WITHIN}#{{1,6}}(?:[ \t]+(.*?))?[ \t#]*$")
_UNDERLINE = re.compile(rf"^{_WITHIN}(?:=+|-+)[ \t]*$")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*\S.*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.{0,1000}?)(?<!`)\1(?!`)")
_ELEMENTS = (
    "a|abbr|article|aside|audio|b|blockquote|body|br|button|caption|center|cite|code|col|colgroup|dd|details|del|dfn|div|dl|dt|em|embed|"
    "figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|mark|meta|nav|"
    "object|ol|option|p|param|picture|pre|q|s|samp|script|section|select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|"
    "tbody|td|textarea|tfoot|th|thead|title|tr|tt|u|ul|var|video"
)
# What is not closed goes on to the end, as in a page; each is read once, however often it begins.
_SILENT = re.compile(
    r"<(script|style|template|noscript)\b[^>]{0,2000}+>(?:(?!</\1).)*+(?:</\1\s{0,100}>)?",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(
    rf"<!--(?:(?!-->).)*+(?:-->)?|</?(?:{_ELEMENTS})(?:\s[^<>]{{0,2000}}+)?/?>", re.DOTALL | re.IGNORECASE
)
_OPENS = re.compile(r"(?<!\\)((?:\\\\)*)(<(?=[A-Za-z/!?])(?!https?://[^\s<>]+>)|`)")
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,300})\](?:\([^()\n]{0,2000}\)|\[[^\[\]\n]{0,200}\])")
_LINK = re.compile(
    r"\[((?:[^\[\]]|\[[^\[\]]{0,100}\]){0,500})\](?:\((?:[^()\n]|\([^()\n]{0,200}\)){0,2000}\)|\[[^\[\]\n]{0,200}\])"
)
_END_OF_LINK = re.compile(r"(?<!\\)((?:\\\\)*)\](?=[(\[:])")
_BACKTICKS = re.compile("`+")
_SIGNS = re.compile(r"[\\`*\[\]<&#]|(?<![^\W_])_|_(?![^\W_])")
# What a report's own lines begin with: code that holds such a line is quoted too.
_LIKE_OURS = re.compile(
    r"^ {0,3}(?:##(?:[ \t]|$)|\*\*(?:Framework|Version|Research Date|Confidence|Sources):|- Source \d"
    r"|\[(?:Based on stale|No research results)|Notes (?:by kr|on this copy))",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a text: code as it was, or prose, which may have several paragraphs."""

    text: str
    is_code: bool = False
    language: str = ""


def split(text: str) -> list[Block]:
    """Take a text apart into clean prose and code, in its order; a fence that is not closed ends with the text."""
    found: list[Block] = []
    for block in _blocks(strip_invisible(text[:MAX_CHARS])):
        if block.is_code and block.text.strip():
            found.append(block)
        elif not block.is_code and any(map(str.isalnum, prose := clean(block.text))):
            found.append(Block(text=prose))
    return found


def _blocks(text: str) -> Iterator[Block]:
    """Give the blocks as they stand."""
    held: list[str] = []
    opened = language = ""
    indent = 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if opened and mark and mark[1].startswith(opened) and not mark[2]:
            yield Block(text="\n".join(held), is_code=True, language=language)
            held, opened = [], ""
        elif not opened and mark:
            yield Block(text="\n".join(held))
            held, opened, language = [], mark[1], mark[2]
            indent = len(line) - len(line.lstrip(" "))
        else:
            held.append(line.removeprefix(" " * indent) if opened else line)
    yield Block(text="\n".join(held), is_code=bool(opened), language=language)


def clean(text: str) -> str:
    """Return prose as harmless Markdown, its words as they stand."""
    kept: list[str] = []
    for line in _without_markup(text).split("\n"):
        if heading := _HEADING.match(line):
            words = (heading[2] or "").replace("**", "").strip()
            kept.append(f"{heading[1]} **{words}**".lstrip() if words.strip("*_ ") else heading[1])
        elif not _UNDERLINE.match(line):
            kept.append(line.rstrip()[:_MAX_LINE])
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n")


def _without_markup(text: str) -> str:
    """Return prose without HTML, pictures and links' targets; what stands in code spans is left as it is."""
    dropped = _outside_of_code(_SILENT.sub(" ", text), _drop)
    # A link's words may be code: its target is taken off once all is together again.
    return _outside_of_code(_LINK.sub(r"\1", dropped), _escape_markup)


def _outside_of_code(text: str, change: Callable[[str], str]) -> str:
    parts: list[str] = []
    end = 0
    for span in _CODE_SPAN.finditer(text):
        parts += [change(text[end : span.start()]), span[0]]
        end = span.end()
    return "".join([*parts, change(text[end:])])


def _drop(text: str) -> str:
    return _LINK.sub(r"\1", _IMAGE.sub("", _DEFINITION.sub("", _TAG.sub("", text))))


def _escape_markup(text: str) -> str:
    """Escape what is left of marks that hid in one another, and backticks that would make code of what follows."""
    return _END_OF_LINK.sub(r"\1\\]", _OPENS.sub(r"\1\\\2", text)).replace("![", "! [")


def render(blocks: Iterable[Block]) -> str:
    """Return blocks as they stand in a report: prose quoted, code in fences."""
    return "\n\n".join(fence(one.text, one.language) if one.is_code else quote(one.text) for one in blocks)


def quote(text: str) -> str:
    """Prefix every line with ``> ``."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def fence(code: str, language: str = "") -> str:
    """Put code, unchanged, into a fence that it can't close; quoted when a line of it looks like kr's own."""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    marks = "`" * max(3, longest + 1)
    text = f"{marks}{language}\n{code.strip(chr(10))}\n{marks}"
    return quote(text) if _LIKE_OURS.search(code) else text


def escape(text: str) -> str:
    """Return a text with a backslash before whatever would be Markdown or HTML inside of a line."""
    return _SIGNS.sub(r"\\\g<0>", strip_invisible(text))


def plain_line(text: str, limit: int = 500) -> str:
    """Return any text as one harmless line of Markdown, of at most ``limit`` characters before escaping."""
    line = escape(one_line(text, limit))
    return re.sub(r"^([-+=~|:>]|\d{1,9}[.)](?=\s|$))", r"\\\1", line)


def safe_url(url: str | None) -> str | None:
    """Return an http or https address fit for Markdown and for a comma separated list, else None."""
    shown = strip_invisible((url or "")[:2000]).strip()
    if len(shown) > 1000 or not re.match(r"https?://[^/\s]", shown, re.IGNORECASE):
        return None
    return percent_encoded(shown, safe="!#$%&'*+,/:;=?@[]_~-.")
