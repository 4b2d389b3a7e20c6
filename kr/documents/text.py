"""Documents as sections: Markdown, reStructuredText, HTML and plain text. Pure; whatever a text holds, it never raises.

What they give is still untrusted text, which the report cleans and quotes.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from textwrap import dedent
from typing import Any, Literal, NamedTuple, cast

from lxml import html
from lxml.etree import LxmlError, XPath
from lxml.html import HtmlElement
from markdownify import ATX, MarkdownConverter

from kr.text import fenced, strip_invisible

Form = Literal["section", "python", "typescript"]

MAX_TEXT = 1_000_000
"""Characters that are read, or kept, of one document."""

MAX_SECTION = 1_000
"""About how many characters a section has: a longer one is cut between paragraphs, never inside of code."""

_MAX_CODE = 4_000
_MAX_TITLE = 200
_BLOCK = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}|~{3,}).*\n?(?:.*\n)*?(?:[ \t>]*(?P=fence)[`~]*[ \t]*$|.*\Z)"
    r"|^ {0,3}(?P<level>#{1,6})[ \t]+(?P<heading>\S.*)$"
    r"|^(?P<title>[^\s|*>-].*)\n {0,3}(?:=+|(?P<second>-+))[ \t]*$"
    r"|^[ \t]*\S.*(?:\n(?![ \t>]*(?:```|~~~)| {0,3}#{1,6}[ \t]+\S)[ \t]*\S.*)*",
    re.MULTILINE,
)
"""Code in a fence, which may lack its end; a heading in either form; a paragraph."""
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:(?!---)[^\n]*\n){0,100}---[ \t]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of documentation: a section of a document, or a public name with what its source says of it.

    ``name`` is the headings, or the dotted name; ``signature`` is code, and ``text`` is Markdown, for a name its docstring as it
    stands. ``place`` is the file, relative to the package or folder. ``is_secondary``: it ranks behind, since it is private, deprecated,
    or a double that the package carries of another version.
    """

    name: str
    text: str
    place: str
    signature: str = ""
    form: Form = "section"
    is_secondary: bool = False


def sections(text: str, *, place: str, title: str) -> Iterator[Section]:
    """Yield the sections of a document; the ending of ``place`` says what it is written in. ``title`` stands before the headings."""
    text = text[:MAX_TEXT]
    ending = place.lower().rpartition(".")[2]
    if ending in {"html", "htm"}:
        page = to_markdown(text)
        return markdown_sections(page.text, place=place, title=page.title or title)
    text = strip_invisible(text)
    if ending == "rst":
        text = restructured_to_markdown(text)
    return markdown_sections(text, place=place, title=title)


def markdown_sections(text: str, *, place: str, title: str) -> Iterator[Section]:
    """Yield what stands below each heading of a Markdown text, long parts in pieces."""
    above: list[tuple[int, str]] = []
    held: list[str] = []

    def below_heading() -> Iterator[Section]:
        path = " > ".join(heading for _, heading in above[-3:] if heading != title)
        name = f"{title}: {path}" if title and path else path or title
        for piece in joined_up(held):
            yield Section(name=name, text=piece, place=place)

    for level, heading, raw in _blocks(_FRONT_MATTER.sub("", text)):
        if not level:
            held.append(raw)
            continue
        yield from below_heading()
        held = []
        above = [*(one for one in above if one[0] < level), (level, heading)]
    yield from below_heading()


def pieces(text: str) -> Iterator[str]:
    """Cut a text between paragraphs into pieces of about ``MAX_SECTION`` characters; code in a fence stays whole."""
    return joined_up(raw for _, _, raw in _blocks(text))


def joined_up(blocks: Iterable[str], joint: str = "\n\n") -> Iterator[str]:
    """Join blocks to pieces of about ``MAX_SECTION`` characters; code stays with the sentence that announces it, where there is room."""
    held: list[str] = []
    size = 0
    for block in blocks:
        is_announced = (
            held and held[-1].rstrip().endswith(":") and block.lstrip(" \t>").startswith(("```", "~~~"))
        )
        if held and size + len(block) > (2 if is_announced else 1) * MAX_SECTION:
            yield joint.join(held)
            held, size = [], 0
        held.append(block)
        size += len(block) + 2
    if held:
        yield joint.join(held)


def _blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield ``(level, heading, raw)``: headings, and with level 0 paragraphs and code, each fence as one block.

    Of very long code each part has a fence of its own.
    """
    for found in _BLOCK.finditer(text):
        level = len(found["level"] or "") or (found["title"] and (2 if found["second"] else 1)) or 0
        heading = (found["heading"] or found["title"] or "").strip().rstrip("#").rstrip()[:_MAX_TITLE]
        opening, *lines = found[0].split("\n")
        if not found["fence"]:
            yield level, heading, found[0]
            continue
        is_closed = bool(lines) and lines[-1].strip(" \t>").startswith(found["fence"])
        end = lines.pop() if is_closed else found["fence"]
        size = max(1, len(lines) * _MAX_CODE // len(found[0]))
        for at in range(0, len(lines) or 1, size):
            yield 0, "", "\n".join([opening, *lines[at : at + size], end])


# --- reStructuredText

_MARK = r"[=\-~^\"'`*+#.:_]"
_TITLE = re.compile(
    rf"^(?:{_MARK}{{3,}} *\n *)?(?P<title>\S.*)\n(?P<below>(?P<mark>{_MARK})(?P=mark){{2,}}) *$", re.MULTILINE
)
_LITERAL = re.compile(
    r"^(?P<indent> *+)(?:\.\. (?:code-block|code|sourcecode)::[ ]*(?P<language>[\w+#.-]*).*|(?P<lead>.*):: *)"
    r"(?:\n +:[\w-]+:.*)*(?P<body>(?:\n *$|\n(?P=indent) +.*)+)",
    re.MULTILINE,
)
"""A block of code, below a directive or a line that ends with two colons."""
_SILENT = re.compile(r"^( *+)\.\. (?:_|\||toctree|image|figure|raw).*(?:\n *$|\n\1 +.*)*", re.MULTILINE)


def restructured_to_markdown(text: str) -> str:
    """Return reStructuredText with its headings and code as Markdown has them; a text with a fence is Markdown already."""
    if "```" in text:
        return text
    marks: list[str] = []

    def heading(found: re.Match[str]) -> str:
        title, mark = found["title"].strip(), found["mark"]
        if len(found["below"]) + 2 < len(title):
            return found[0]
        if mark not in marks:
            marks.append(mark)
        return f"\n{'#' * min(6, marks.index(mark) + 1)} {title}\n"

    def literal(found: re.Match[str]) -> str:
        code = dedent(found["body"]).strip("\n").rstrip()
        lead = f"{found['indent']}{found['lead']}:\n\n" if found["lead"] else ""
        return f"{lead}{fenced(code, found['language'] or '')}\n" if code else found[0]

    text = _LITERAL.sub(literal, _SILENT.sub("", _TITLE.sub(heading, text.expandtabs(4))))
    return re.sub(r"(?<!`)``(?!`)", "`", text)


# --- a page as Markdown: its content without navigation and hidden text, code blocks whole. lxml reads it, markdownify writes it

_MAX_TAGS = 200_000
_MAX_ATTRIBUTES = re.compile(rb"<[A-Za-z][^<>]{20000}")
_MAIN = ("//*[@role='main']", "//main", "//article", "//div[@class='document']")
_TAGS = "script style template noscript nav footer form button select textarea iframe object svg canvas audio video title"
_CLASSES = (
    r"(?:^|\s)(?:toc|toctree-wrapper|sphinxsidebar|sidebar|breadcrumbs?|navbar|pagination|cookie[\w-]*|footer|copybtn|linenos?|gutter|"
    r"sr-only|visually-hidden|mw-editsection|viewcode-link)(?:\s|$)"
)
_HIDING = r"(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|(?:opacity|font-size)\s*:\s*0*(?:\.0+)?(?:px|em|rem|pt|%)?)\s*(?:;|!|$)"
_PERMALINKS = " # ¶ § 🔗 \uf0c1 [src] [source] [edit]  "
_SIGNS = (
    *(f"self::{tag}" for tag in _TAGS.split()),
    *(f"@role = '{role}'" for role in ("navigation", "search", "banner", "contentinfo", "menu", "dialog")),
    "@hidden",
    "@aria-hidden = 'true'",
    f"(@class and re:test(@class, '{_CLASSES}', 'i'))",
    f"(@style and re:test(@style, '{_HIDING}', 'i'))",
    f"(self::a and not(.//img) and contains('{_PERMALINKS}', concat(' ', normalize-space(.), ' ')))",
)
_NO_CONTENT = XPath(
    f"/*//*[not(self::body) and ({' or '.join(_SIGNS)})]",
    namespaces={"re": "http://exslt.org/regular-expressions"},
)
"""Scripts, navigation, forms, permalinks, and what the markup hides from people; style sheets are not read."""

_FILLING = re.compile(r"[ \t\r\n]{3,}")
"""Of white space one is enough, and markdownify's time grows with the square of it."""


class Page(NamedTuple):
    """A page as Markdown. ``is_cut``: there was more than is kept of one."""

    text: str
    title: str | None
    is_cut: bool


def to_markdown(text: str, *, media_type: str = "text/html") -> Page:
    """Convert a page: Markdown and plain text stay, JSON and other text become a code block. Never raises.

    Control and invisible characters and escapes go, also those that are written as references.
    """
    text, title = strip_invisible(text), None
    if "html" in media_type:
        text, title = _from_html(text)
    is_cut = len(text) > MAX_TEXT
    text = text[:MAX_TEXT].strip("\n")
    if not media_type.endswith(("html+xml", "html", "plain", "markdown")) and text.strip():
        text = fenced(text, "json" if media_type.endswith("json") else "")
    return Page(text, title, is_cut)


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
    marked = (cast("list[HtmlElement]", root.xpath(path)) for path in _MAIN)
    alone = (found[0] for found in marked if len(found) == 1 and len(found[0].text_content()) >= 200)
    main: HtmlElement = next(alone, next(root.iter("body"), root))
    for pre in list(main.iter("pre")):
        _flatten(pre)
    for element in main.iter():
        if element.tag != "pre":
            element.text = _FILLING.sub(" ", element.text or "")
        element.tail = _FILLING.sub(" ", element.tail or "")
    converter = _Converter(heading_style=ATX, bullets="-", table_infer_header=True, strip=["a"])
    try:
        text = str(converter.convert(html.tostring(main, encoding="unicode", with_tail=False)))
    except RecursionError:  # nobody writes a page that is nested so deeply
        text = main.text_content()
    lines = (line.rstrip() for line in strip_invisible(text).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), strip_invisible(title) or None


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
