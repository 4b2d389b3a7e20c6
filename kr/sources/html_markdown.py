"""Turns a page into honest Markdown: its content, code blocks whole and with their language, nothing invented.

What it gives is still untrusted text; ``kr.reports`` cleans and quotes it (SPEC 3.7).
"""

import re
from dataclasses import dataclass, field
from html import unescape

from bs4.element import NavigableString, Tag
from markdownify import ATX, MarkdownConverter

from kr.sources.html_main import main_element, page_title, parse
from kr.sources.html_tree import TreeCopy
from kr.text.characters import strip_invisible

_MARKDOWN = frozenset({"text/plain", "text/markdown", "text/x-markdown", "application/markdown"})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_ESCAPE_REFERENCE = re.compile(r"&#(?:0{0,6}27|[xX]0{0,6}1[bB])(?:;|(?![0-9a-fA-F]))")
_BEYOND_ALL = re.compile(r"&#[0-9]{10,}+;?")
"""A reference to no character, whose number may be too long to be read as one."""
_BACKTICKS = re.compile(r"`+")
_LANGUAGE_OF_TYPE = re.compile(r"text/(?:x-)?([a-z0-9+#-]{1,20})")
_MAX_CODE = 1_000_000

# Signs that mean something in Markdown wherever they stand.
_SIGNS = r"[\\`*\[]|<(?=[A-Za-z/!?])|&(?=#?\w{1,32};)|(?<![^\W_])_|_(?![^\W_])|~(?=~)"
_INLINE_SIGNS = re.compile(rf"{_SIGNS}|\](?=[(\[:])")
_SIGNS_IN_LINK = re.compile(rf"{_SIGNS}|\]")  # the first that stands bare ends the link's words
# Signs that mean something at the start of a line.
_LINE_START = re.compile(r"(?:#{1,6}|[-+>])(?=\s|$)|[>]|(?:-{3,}|={2,}|~{3,})(?=\s*$)")
_NUMBERED_START = re.compile(r"([0-9]{1,9})([.)])(?=\s|$)")
_EMPHASIS = re.compile(r"(?<!\\)\*{1,3}")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")

# Possessive: a tag without an end is read once, not once for every length of its name.
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*+)[^<>]*+>|<![^<>]*+>")
_SILENT = frozenset({"script", "style", "template", "noscript", "title", "textarea", "nav"})


@dataclass(frozen=True, kw_only=True)
class Markdown:
    """A page's text. ``title`` is the page's own; ``is_cut``: there was more than is kept of a page."""

    text: str = field(repr=False)
    title: str | None = None
    is_cut: bool = False


def to_markdown(text: str, *, media_type: str, url: str) -> Markdown:
    """Convert a page. Markdown and plain text stay as they are; JSON and other text become a code block.

    ``url`` is the page's address, which relative links are resolved against. The text may be empty: a page
    without content. Control and invisible characters and terminal escapes go first, whole: a parser would take
    a part of an escape and leave the rest as text. Never raises for a page's content, and takes time in proportion to its length.
    """
    is_html = media_type in _HTML
    text = strip_invisible(_ESCAPE_REFERENCE.sub("\x1b", text) if is_html else text)
    if is_html:
        return _from_html(text, url)
    if media_type in _MARKDOWN:
        return Markdown(text=text.strip("\n"), title=_first_heading(text))
    if not text.strip():
        return Markdown(text="")
    code = text[:_MAX_CODE].strip("\n")
    return Markdown(text=fenced(code, _language(media_type)), is_cut=len(text) > _MAX_CODE)


def fenced(code: str, language: str) -> str:
    """Make a code block whose fence is longer than any run of backticks in ``code``."""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def _from_html(html: str, url: str) -> Markdown:
    root = parse(html)
    if root is None:
        text = _text_alone(html)
        return Markdown(text=text[:_MAX_CODE], is_cut=len(text) > _MAX_CODE)
    copy = TreeCopy(url)
    soup = copy.copy(main_element(root))
    text = _Converter(heading_style=ATX, bullets="-", table_infer_header=True).convert_soup(soup)
    lines = (line.rstrip() if not line.endswith("  ") else line for line in text.split("\n"))
    return Markdown(text="\n".join(lines).strip(), title=page_title(root), is_cut=copy.is_cut)


def _text_alone(html: str) -> str:
    """What a page says, for one whose tags are too many inside one another or too long for a tree."""
    html = _without_comments(html)
    parts: list[str] = []
    silent = ""
    end = 0
    for tag in _TAG.finditer(html):
        if not silent:
            parts.append(html[end : tag.start()])
        end = tag.end()
        name = (tag[2] or "").lower()
        if name == silent and tag[1]:
            silent = ""
        elif not silent and name in _SILENT and not tag[1]:
            silent = name
    if not silent:
        parts.append(html[end:])
    lines = (" ".join(unescape(_BEYOND_ALL.sub("\ufffd", part)).replace("\0", "").split()) for part in parts)
    return "\n\n".join(_escaped(line) for line in lines if line)


def _without_comments(html: str) -> str:
    """Take comments out; one that is never closed takes the rest with it."""
    parts: list[str] = []
    end = 0
    while (start := html.find("<!--", end)) >= 0:
        parts.append(html[end:start])
        close = html.find("-->", start + 4)
        if close < 0:
            return "".join(parts)
        end = close + 3
    return "".join((*parts, html[end:]))


def _first_heading(markdown: str) -> str | None:
    found = re.search(r"^# +(\S.{0,199}?)[ #]*$", markdown[:10_000], re.MULTILINE)
    return found[1] if found else None


def _language(media_type: str) -> str:
    if media_type.endswith("json"):
        return "json"
    found = _LANGUAGE_OF_TYPE.fullmatch(media_type)
    return found[1] if found else ""


def _escaped(text: str) -> str:
    text = _INLINE_SIGNS.sub(lambda sign: "\\" + sign[0], text)
    return _escaped_start(text)


def _escaped_start(text: str) -> str:
    text = _NUMBERED_START.sub(r"\1\\\2", text, count=1) if _NUMBERED_START.match(text) else text
    return "\\" + text if _LINE_START.match(text) else text


class _Converter(MarkdownConverter):
    """markdownify's converter, for the trees of ``TreeCopy``, linear in their size."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        signs = _SIGNS_IN_LINK if "a" in parent_tags else _INLINE_SIGNS
        return signs.sub(lambda sign: "\\" + sign[0], text or "")

    def process_text(self, el: NavigableString, parent_tags: set[str] | None = None) -> str:
        text = str(super().process_text(el, parent_tags=parent_tags))  # type: ignore[misc]  # not in its stubs
        before = el.previous_sibling
        starts_line = before is None or (isinstance(before, Tag) and before.name in {"br", "p", "div", "hr"})
        if not starts_line or "_noformat" in (parent_tags or ()):
            return text
        stripped = text.lstrip()
        return text[: len(text) - len(stripped)] + _escaped_start(stripped)

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        return f"\n\n{fenced(el.get_text(), str(el.get('data-language') or ''))}\n\n"

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        text = text.strip()
        if not text:
            return "\n"
        if "_inline" in parent_tags:
            return f" {text} "
        marker = f"{el['value']}. " if el.has_attr("value") else "- "
        indent = "\n" + " " * len(marker)
        return marker + indent.join(text.split("\n")).replace(indent + "\n", "\n\n") + "\n"

    def convert_dt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        # A line of its own that is all bold or all code names what follows (kr.reports.passages).
        bare = _EMPHASIS.sub("", text.strip())
        is_code = bare.startswith("`") and bare.endswith("`") and bare.count("`") == 2
        shown = bare if is_code or not bare else f"**{bare}**"
        return str(self.convert_p(el, shown, parent_tags))  # type: ignore[attr-defined]  # untyped there

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return str(self.convert_div(el, text, parent_tags))  # type: ignore[attr-defined]

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        inner = _UNESCAPED_PIPE.sub(r"\\|", " ".join(text.split()))
        return f" {inner} |" + " |" * (int(str(el.get("colspan") or 1)) - 1)

    convert_th = convert_td
