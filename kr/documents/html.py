"""A page as Markdown: its content without navigation and hidden text, code blocks whole.

What it gives is still untrusted text, which the report cleans and quotes. lxml reads the page, markdownify writes it.
"""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from lxml import html
from lxml.etree import LxmlError, XPath
from lxml.html import HtmlElement
from markdownify import ATX, MarkdownConverter

from kr.text import fenced, strip_invisible

MAX_TEXT = 1_000_000
"""Characters that are kept of a page."""

_MAX_TAGS = 200_000
"""Tags that are read of a page."""

_MAX_ATTRIBUTES = re.compile(rb"<[A-Za-z][^<>]{20000}")
_LEAST = 200  # characters that make an element the page's content
_MARKDOWN = frozenset({"text/plain", "text/markdown", "text/x-markdown", "application/markdown"})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_MAIN = (
    "//*[@role='main']",
    "//main",
    "//*[@itemprop='articleBody']",
    "//article",
    "//div[@class='document']",
)
_TAGS = (
    "script style template noscript nav footer form button input select textarea iframe object embed svg canvas audio video title meta "
    "link base"
)
_ROLES = "navigation search banner contentinfo menu menubar complementary dialog"
_CLASSES = (
    r"(?:^|\s)(?:headerlink|anchor-link|hash-link|toc|toctree-wrapper|sphinxsidebar|sidebar|breadcrumbs?|navbar|nav|navigation|"
    r"related|pagination|prev-next-area|edit-this-page|cookie[\w-]*|footer|copybtn|linenos|lineno|gutter|sr-only|visually-hidden|"
    r"mw-editsection|viewcode-link|src-link)(?:\s|$)"
)
_HIDING = (
    r"(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0*(?:\.0+)?|"
    r"font-size\s*:\s*0*(?:\.0+)?(?:px|em|rem|pt|%)?)\s*(?:;|!|$)"
)
_PERMALINKS = " # ¶ § 🔗 \uf0c1 [src] [source] [edit]  "
_SIGNS = (
    *(f"self::{tag}" for tag in _TAGS.split()),
    *(f"@role = '{role}'" for role in _ROLES.split()),
    "@hidden",
    "@aria-hidden = 'true'",
    "@data-line-number",
    f"(@class and re:test(@class, '{_CLASSES}', 'i'))",
    f"(@style and re:test(@style, '{_HIDING}', 'i'))",
    "((self::header or self::aside) and parent::body)",
    f"(self::a and not(.//img) and contains('{_PERMALINKS}', concat(' ', normalize-space(.), ' ')))",
)
_NO_CONTENT = XPath(
    f"/*//*[not(self::body) and ({' or '.join(_SIGNS)})]",
    namespaces={"re": "http://exslt.org/regular-expressions"},
)
"""Scripts, navigation, forms, permalinks, and what the markup hides from people; style sheets are not read."""

_FILLING = re.compile(r"[ \t\r\n]{3,}")
"""Of white space one is enough, and markdownify's time grows with the square of it."""


@dataclass(frozen=True, kw_only=True)
class Markdown:
    """A page's text. ``title`` is the page's own; ``is_cut``: there was more than is kept of a page."""

    text: str = field(repr=False)
    title: str | None = None
    is_cut: bool = False


def to_markdown(text: str, *, media_type: str = "text/html") -> Markdown:
    """Convert a page: Markdown and plain text stay, JSON and other text become a code block. Never raises.

    Control and invisible characters and escapes go, also those that are written as references.
    """
    text, title = strip_invisible(text), None
    if media_type in _HTML:
        text, title = _from_html(text)
    is_cut = len(text) > MAX_TEXT
    text = text[:MAX_TEXT].strip("\n")
    if media_type in _MARKDOWN:
        found = re.search(r"^# +(\S.{0,199}?)[ #]*$", text[:10_000], re.MULTILINE)
        title = found[1] if found else None
    elif media_type not in _HTML and text.strip():
        text = fenced(text, "json" if media_type.endswith("json") else "")
    return Markdown(text=text, title=title, is_cut=is_cut)


def _from_html(page: str) -> tuple[str, str | None]:
    """Return the Markdown of a page's content, and the page's title."""
    beyond = next(islice(re.finditer("<", page), _MAX_TAGS, None), None)
    data = (page[: beyond.start()] if beyond else page).encode("utf-8", "replace")
    # libxml2 takes minutes for a tag with very many attributes.
    if not data.strip() or _MAX_ATTRIBUTES.search(data):
        return "", None
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        root = html.document_fromstring(data, parser)
    except (LxmlError, ValueError):
        return "", None
    title = " ".join(root.findtext(".//title", "")[:4000].split())[:200]
    for element in cast("list[HtmlElement]", _NO_CONTENT(root)):
        element.drop_tree()
    main = _main(root)
    for pre in main.xpath(".//pre"):
        _flatten(pre)
    for element in main.iter():
        if element.tag != "pre":
            element.text = _FILLING.sub(" ", element.text or "")
        element.tail = _FILLING.sub(" ", element.tail or "")
    try:
        source = html.tostring(main, encoding="unicode", with_tail=False)
        text = str(
            _Converter(heading_style=ATX, bullets="-", table_infer_header=True, strip=["a"]).convert(source)
        )
    except RecursionError:  # nobody writes a page that is nested so deeply
        text = main.text_content()
    lines = (line.rstrip() for line in strip_invisible(text).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), strip_invisible(title) or None


def _main(root: HtmlElement) -> HtmlElement:
    """Return the content: the one element that is marked as it, by role or tag; else the body."""
    for path in _MAIN:
        found = root.xpath(path)
        if len(found) == 1 and len(found[0].text_content()) >= _LEAST:
            return found[0]
    return next(root.iter("body"), root)


def _flatten(pre: HtmlElement) -> None:
    """Leave in a code block its text alone, verbatim."""
    for element in pre.iter("br", "div", "li", "p", "tr"):
        if element is not pre and not element.text_content().endswith("\n"):
            element.tail = f"\n{element.tail or ''}"
    text, tail = pre.text_content(), pre.tail
    pre.clear()
    pre.text, pre.tail = text.replace("\r\n", "\n").strip("\n").rstrip(), tail


class _Converter(MarkdownConverter):
    """markdownify's converter, with fences that code can't close; of links and pictures the words."""

    def convert_pre(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002 - markdownify's signature
        code = el.get_text().strip("\n")
        return f"\n\n{fenced(code)}\n\n" if code.strip() else ""

    def convert_img(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        return f" {(el.get('alt') or '')[:300]} "
