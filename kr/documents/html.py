"""A page as Markdown: its content without navigation and hidden text, code blocks whole and with their language.

What it gives is still untrusted text, which the report cleans and quotes. lxml reads the page, markdownify writes it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from lxml import etree
from lxml.etree import _Element
from markdownify import ATX, MarkdownConverter

from kr.text import strip_invisible

MAX_TEXT = 1_000_000
"""Characters that are kept of a page."""

_MAX_TAGS = 200_000
"""Tags that are read of a page."""

_MAX_ATTRIBUTES = re.compile(rb"<[A-Za-z][^<>]{20000}")
_LEAST = 200  # characters that make an element the page's content
_MARKDOWN = frozenset({"text/plain", "text/markdown", "text/x-markdown", "application/markdown"})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_ESCAPE_REFERENCE = re.compile(r"&#(?:0{0,6}27|[xX]0{0,6}1[bB])(?:;|(?![0-9a-fA-F]))")
_MAIN = (
    ".//*[@role='main']",
    ".//main",
    ".//*[@itemprop='articleBody']",
    ".//article",
    ".//div[@class='document']",
)
_LANGUAGE = re.compile(
    r"(?:highlight-source-|highlight-|language-|lang-|source-|src-|brush:\s*)([a-z0-9+#.-]{1,20})"
)
_NO_LANGUAGE = frozenset(
    {"default", "none", "text", "plain", "plaintext", "code", "notranslate", "highlight"}
)
_DROPPED_TAGS = """
script style template noscript nav footer form button input select textarea iframe object embed svg canvas audio video title meta link base
"""
_DROPPED = frozenset(_DROPPED_TAGS.split())
_DROPPED_ROLES = frozenset(
    {"navigation", "search", "banner", "contentinfo", "menu", "menubar", "complementary", "dialog"}
)
_DROPPED_CLASSES = re.compile(
    r"(?:^|\s)(?:headerlink|anchor-link|hash-link|toc|toctree-wrapper|sphinxsidebar|sidebar|breadcrumbs?|navbar|nav|navigation|"
    r"related|pagination|prev-next-area|edit-this-page|cookie[\w-]*|footer|copybtn|linenos|lineno|gutter|sr-only|visually-hidden|"
    r"mw-editsection|viewcode-link|src-link)(?:\s|$)"
)
_HIDING_STYLE = re.compile(
    r"(?:display:none|visibility:(?:hidden|collapse)|opacity:0*(?:\.0+)?|font-size:0*(?:\.0+)?(?:px|em|rem|pt|%)?)(?:;|!|$)"
)
_FILLING = re.compile(r"[ \t\r\n]{3,}")
"""Of white space one is enough, and markdownify's time grows with the square of it."""

_PERMALINK = frozenset({"#", "¶", "§", "🔗", "\uf0c1", "[src]", "[source]", "[edit]", ""})
_LINES = frozenset({"div", "li", "p", "tr"})
_IN_WORDS = {"img": "alt", "math": "alttext"}


@dataclass(frozen=True, kw_only=True)
class Markdown:
    """A page's text. ``title`` is the page's own; ``is_cut``: there was more than is kept of a page."""

    text: str = field(repr=False)
    title: str | None = None
    is_cut: bool = False


def to_markdown(text: str, *, media_type: str = "text/html") -> Markdown:
    """Convert a page: Markdown and plain text stay, JSON and other text become a code block. Never raises.

    Control and invisible characters and escapes go first: a parser would leave parts of them.
    """
    is_html = media_type in _HTML
    text = strip_invisible(_ESCAPE_REFERENCE.sub("\x1b", text) if is_html else text)
    if is_html:
        return _from_html(text)
    is_cut = len(text) > MAX_TEXT
    text = text[:MAX_TEXT].strip("\n")
    if media_type in _MARKDOWN:
        found = re.search(r"^# +(\S.{0,199}?)[ #]*$", text[:10_000], re.MULTILINE)
        return Markdown(text=text, title=found[1] if found else None, is_cut=is_cut)
    language = "json" if media_type.endswith("json") else ""
    return Markdown(text=fenced(text, language) if text.strip() else "", is_cut=is_cut)


def fenced(code: str, language: str) -> str:
    """Put code into a fence that it can't close."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def _from_html(html: str) -> Markdown:
    beyond = next(islice(re.finditer("<", html), _MAX_TAGS, None), None)
    root = _parse(html[: beyond.start()] if beyond else html)
    if root is None:
        return Markdown(text="")
    title = next((" ".join(_text(one)[:4000].split())[:200] for one in root.iter("title")), "")
    main = _main(root)
    _clean(main)
    source = etree.tostring(main, encoding="unicode", method="html", with_tail=False)
    try:
        text = _Converter(heading_style=ATX, bullets="-", table_infer_header=True).convert(source)
    except RecursionError:  # nobody writes a page that is nested so deeply
        text = _text(main)
    lines = (line.rstrip() for line in str(text).split("\n"))
    whole = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    is_cut = beyond is not None or len(whole) > MAX_TEXT
    return Markdown(text=whole[:MAX_TEXT], title=title or None, is_cut=is_cut)


def _parse(html: str) -> _Element | None:
    """Parse any page; None when nothing is in it, or a tag has so many attributes that libxml2 takes minutes for it."""
    data = html.replace("\0", "").encode("utf-8", "replace")
    if not data.strip() or _MAX_ATTRIBUTES.search(data):
        return None
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        return etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        return None


def _text(element: _Element) -> str:
    return "".join(map(str, element.itertext()))


def _main(root: _Element) -> _Element:
    """Return the content: the one element that is marked as it, by role or tag; else the body."""
    body = next(root.iter("body"), root)
    for path in _MAIN:
        found = [one for one in body.iterfind(path) if not any(map(_is_dropped, _within(one, body)))]
        if len(found) == 1 and len(_text(found[0])) >= _LEAST:
            return found[0]
    return body


def _within(element: _Element, body: _Element) -> Iterator[_Element]:
    """Yield an element and those around it, within the body."""
    around: _Element | None = element
    while around is not None and around is not body:
        yield around
        around = around.getparent()


def _clean(main: _Element) -> None:
    """Take out of the tree what is no content, and make code blocks plain."""
    kept = {main}
    for element in list(main.iter(etree.Element))[1:]:
        if element.getparent() not in kept:
            continue  # in what was dropped
        element.tail = _FILLING.sub(" ", element.tail or "")
        if _is_dropped(element):
            _replace(element, "")
        elif element.tag in _IN_WORDS:
            _replace(element, f" {(element.get(_IN_WORDS[element.tag]) or '')[:300]} ")
        elif element.tag == "pre":
            _flatten(element)
        else:
            kept.add(element)
            element.text = _FILLING.sub(" ", element.text or "")
            if element.tag == "a":
                element.attrib.clear()  # of a link a report keeps the words alone
            elif element.tag in {"tt", "kbd", "samp"}:
                element.tag = "code"


def _is_dropped(element: _Element) -> bool:
    """Tell whether an element is no content: scripts, navigation, forms, hidden parts, permalinks."""
    if element.tag in _DROPPED or element.get("role") in _DROPPED_ROLES or _is_hidden(element):
        return True
    if _DROPPED_CLASSES.search((element.get("class") or "")[:2000].lower()):
        return True
    if element.tag == "a":
        text = "".join(map(str, islice(element.itertext(), 20))).strip()
        return text in _PERMALINK and element.find(".//img") is None
    around = element.getparent()
    return element.tag in {"header", "aside"} and around is not None and around.tag == "body"


def _is_hidden(element: _Element) -> bool:
    """Tell what a page's own markup hides from people; style sheets are not read."""
    style = re.sub(r"\s+", "", (element.get("style") or "")[:2000].lower())
    is_marked = "hidden" in element.attrib or element.get("aria-hidden") == "true"
    return is_marked or _HIDING_STYLE.search(style) is not None


def _replace(element: _Element, text: str) -> None:
    """Put text in the place of an element; what stands behind it stays."""
    around = element.getparent()
    if around is None:
        return
    text += element.tail or ""
    before = element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + text
    else:
        around.text = (around.text or "") + text
    around.remove(element)


def _flatten(pre: _Element) -> None:
    """Leave in a code block its text alone, verbatim, and the language that it or what is around it names."""
    language = _language(pre)
    parts: list[str] = []
    for event, element in etree.iterwalk(pre, events=("start", "end")):
        is_inner = element is not pre
        if element.tag in _LINES and is_inner and parts and not parts[-1].endswith("\n"):
            parts.append("\n")
        if event == "start":
            if is_inner and _is_no_code(element):
                element.text = None
                for child in list(element):
                    element.remove(child)
            parts += filter(None, [element.text, "\n" if element.tag == "br" else ""])
        elif is_inner:
            parts += filter(None, [element.tail])
    tail = pre.tail
    pre.clear()
    pre.tail = tail
    pre.text = "".join(parts).replace("\r\n", "\n").strip("\n").rstrip()
    if language:
        pre.set("class", language)


def _is_no_code(element: _Element) -> bool:
    """Tell what stands in a code block and is no part of it: line numbers, buttons, what is hidden."""
    is_number = "data-line-number" in element.attrib
    is_dropped = _DROPPED_CLASSES.search((element.get("class") or "")[:2000].lower())
    return is_number or element.tag in _DROPPED or _is_hidden(element) or is_dropped is not None


def _language(pre: _Element) -> str:
    around = [pre, *islice(pre.iter("code"), 1), *islice(pre.iterancestors(), 3)]
    for element in around:
        declared = element.get("data-lang") or element.get("data-language") or ""
        found = _LANGUAGE.search((element.get("class") or "")[:2000].lower())
        name = declared.strip().lower() or (found[1] if found else "")
        name = {"python3": "python", "ipython3": "python", "ipython": "python"}.get(name, name)
        if name and name not in _NO_LANGUAGE and re.fullmatch(r"[a-z0-9][a-z0-9+#._-]{0,29}", name):
            return name
    return ""


class _Tag(Protocol):
    """What is used of an element that markdownify hands over."""

    def get_text(self) -> str: ...

    def get(self, name: str) -> list[str] | None: ...


class _Converter(MarkdownConverter):
    """markdownify's converter, with fences that code can't close."""

    def convert_pre(self, el: _Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002 - markdownify's signature
        code = el.get_text().strip("\n")
        return f"\n\n{fenced(code, ' '.join(el.get('class') or []))}\n\n" if code.strip() else ""

    def convert_dt(self, el: _Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        bare = text.strip()
        return f"\n\n**{bare.replace('**', '')}**\n\n" if bare else ""

    def convert_dd(self, el: _Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        return f"\n\n{text.strip()}\n\n"
