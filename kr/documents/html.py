"""A page as Markdown: its content without navigation and hidden text, code blocks whole and with their language (SPEC 3.5, 3.7).

What it gives is still untrusted text, which the report cleans and quotes. lxml reads the page, markdownify writes it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol
from urllib.parse import urljoin

from lxml import etree
from lxml.etree import _Element
from markdownify import ATX, MarkdownConverter

from kr.documents.html_hidden import is_hidden, style_of, text_hidden
from kr.text import strip_invisible

MAX_TEXT = 1_000_000
"""Characters that are kept of a page."""

_MAX_ELEMENTS = 100_000
_MAX_DEPTH = 60
_MAX_ATTRIBUTES = re.compile(rb"<[A-Za-z][^<>]{20000}")
_LEAST = 200  # characters that make an element the page's content
_MARKDOWN = frozenset({"text/plain", "text/markdown", "text/x-markdown", "application/markdown"})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_ESCAPE_REFERENCE = re.compile(r"&#(?:0{0,6}27|[xX]0{0,6}1[bB])(?:;|(?![0-9a-fA-F]))")
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
_PERMALINK = frozenset({"#", "¶", "§", "🔗", "\uf0c1", "[src]", "[source]", "[edit]", ""})
_LINES = frozenset({"div", "li", "p", "tr"})
_IN_WORDS = {"img": "alt", "math": "alttext"}
_JOINED = {"tt": "code", "kbd": "code", "samp": "code"}


@dataclass(frozen=True, kw_only=True)
class Markdown:
    """A page's text. ``title`` is the page's own; ``is_cut``: there was more than is kept of a page."""

    text: str = field(repr=False)
    title: str | None = None
    is_cut: bool = False


def to_markdown(text: str, *, url: str, media_type: str = "text/html") -> Markdown:
    """Convert a page at ``url``: Markdown and plain text stay, JSON and other text become a code block. Never raises.

    Control and invisible characters and escapes go first: a parser would leave parts of them.
    """
    is_html = media_type in _HTML
    text = strip_invisible(_ESCAPE_REFERENCE.sub("\x1b", text) if is_html else text)
    if is_html:
        return _from_html(text, url)
    is_cut = len(text) > MAX_TEXT
    text = text[:MAX_TEXT].strip("\n")
    if media_type in _MARKDOWN:
        found = re.search(r"^# +(\S.{0,199}?)[ #]*$", text[:10_000], re.MULTILINE)
        return Markdown(text=text, title=found[1] if found else None, is_cut=is_cut)
    return Markdown(
        text=_fenced(text, "json" if media_type.endswith("json") else "") if text.strip() else "",
        is_cut=is_cut,
    )


def _from_html(html: str, url: str) -> Markdown:
    root = _parse(html)
    if root is None:
        return Markdown(text="")
    titles = root.iter("title")
    title = " ".join("".join(map(str, next(titles, etree.Element("title")).itertext()))[:4000].split())[:200]
    main = _main(root)
    is_cut = _clean(main, url)
    source = etree.tostring(main, encoding="unicode", method="html", with_tail=False)
    try:
        text = _Converter(heading_style=ATX, bullets="-", table_infer_header=True).convert(source)
    except RecursionError:  # what is nested beyond what was cut
        text = "\n".join(map(str, main.itertext()))
    lines = (line.rstrip() for line in str(text).split("\n"))
    whole = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return Markdown(text=whole[:MAX_TEXT], title=title or None, is_cut=is_cut or len(whole) > MAX_TEXT)


def _parse(html: str) -> _Element | None:
    """Parse any page; None when nothing is in it, or a tag has so many attributes that libxml2 takes minutes for it."""
    data = html.replace("\0", "").encode("utf-8", "replace")
    if not data.strip() or _MAX_ATTRIBUTES.search(data):
        return None
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, no_network=True
    )
    try:
        return etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        return None


def _main(root: _Element) -> _Element:
    """Return the content: the one element that is marked as it, by role or tag; else the body."""
    body = next(root.iter("body"), root)
    for path in (
        ".//*[@role='main']",
        ".//main",
        ".//*[@itemprop='articleBody']",
        ".//article",
        ".//div[@class='document']",
    ):
        found = [one for one in body.iterfind(path) if not any(map(_is_dropped, _around(one, body)))]
        if len(found) == 1 and len("".join(map(str, found[0].itertext()))) >= _LEAST:
            return found[0]
    return body


def _around(element: _Element, body: _Element) -> Iterator[_Element]:
    around: _Element | None = element
    while around is not None and around is not body:
        yield around
        around = around.getparent()


def _clean(main: _Element, url: str) -> bool:
    """Take out of the tree what is no content, and make code blocks plain; return whether something was cut off."""
    hidden: dict[_Element, frozenset[str]] = {}
    depth = {main: 0}
    cut = False
    for count, element in enumerate(list(islice(main.iter(etree.Element), _MAX_ELEMENTS + 1))):
        around = element.getparent()
        if element is not main and (around is None or around not in depth):
            continue  # in what was dropped
        depth[element] = depth[around] + 1 if around is not None and around in depth else 0
        if element is not main and (count == _MAX_ELEMENTS or _is_dropped(element)):
            cut = cut or count == _MAX_ELEMENTS
            _drop(element)
            del depth[element]
            continue
        if element.tag == "body":  # which a script may show once the page is there
            hidden[element] = frozenset()
            continue
        _hide(element, hidden)
        if element.tag in _IN_WORDS:
            _replace(
                element, "" if hidden[element] else f" {(element.get(_IN_WORDS[element.tag]) or '')[:300]} "
            )
            del depth[element]
            continue
        if element.tag == "pre":
            if hidden[element]:
                _drop(element)
            else:
                _flatten(element)
            del depth[element]
        elif depth[element] > _MAX_DEPTH and element is not main:
            text = " ".join(map(str, element.itertext()))[:10_000]
            cut = True
            _replace(element, text)
            del depth[element]
        elif element.tag == "a":
            _link(element, url)
        else:
            _join(element)
    return cut


def _join(element: _Element) -> None:
    joined = _JOINED.get(str(element.tag))
    if joined is not None:  # a tag of the page's own may have a name that can't be set
        element.tag = joined


def _hide(element: _Element, hidden: dict[_Element, frozenset[str]]) -> None:
    """Take the text off an element whose own or inherited style hides it; elements in it may show theirs again."""
    around = element.getparent()
    inherited = hidden.get(around, frozenset()) if around is not None else frozenset()
    said = text_hidden(element, style_of(element))
    hidden[element] = frozenset(
        {*inherited, *(name for name, so in said.items() if so)}
        - {name for name, so in said.items() if not so}
    )
    if hidden[element]:
        element.text = None
        for child in element:
            child.tail = None


def _is_dropped(element: _Element) -> bool:
    """Tell whether an element is no content: scripts, navigation, forms, hidden parts, permalinks."""
    if (
        element.tag in _DROPPED
        or element.get("role") in _DROPPED_ROLES
        or element.get("aria-hidden") == "true"
    ):
        return True
    if is_hidden(element) or _DROPPED_CLASSES.search((element.get("class") or "")[:2000].lower()):
        return True
    if element.tag == "a":
        text = "".join(map(str, islice(element.itertext(), 20))).strip()
        return text in _PERMALINK and element.find(".//img") is None
    around = element.getparent()
    return element.tag in {"header", "aside"} and around is not None and around.tag == "body"


def _drop(element: _Element) -> None:
    _replace(element, "")


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


def _link(element: _Element, url: str) -> None:
    address = (element.get("href") or "").strip()
    element.attrib.clear()
    try:
        joined = urljoin(url, address)
    except ValueError:
        return
    if joined.startswith(("http://", "https://")) and joined.partition("#")[0] != url.partition("#")[0]:
        element.set("href", joined)


def _flatten(pre: _Element) -> None:
    """Leave in a code block its text alone, verbatim, and the language that it or what is around it names."""
    language = _language(pre)
    parts: list[str] = []
    for event, element in etree.iterwalk(pre, events=("start", "end")):
        if event == "start":
            if element is not pre and (_is_unseen(element) or element.tag in _DROPPED or _is_number(element)):
                element.text = None
                for child in list(element):
                    element.remove(child)
            if element.tag in _LINES and parts and not parts[-1].endswith("\n"):
                parts.append("\n")
            parts += [element.text or "", "\n" if element.tag == "br" else ""]
        elif element is not pre:
            if element.tag in _LINES and parts and not parts[-1].endswith("\n"):
                parts.append("\n")
            parts.append(element.tail or "")
    tail = pre.tail
    pre.clear()
    pre.tail = tail
    pre.text = "".join(part for part in parts if part).replace("\r\n", "\n").strip("\n").rstrip()
    if language:
        pre.set("class", language)


def _is_unseen(element: _Element) -> bool:
    said = text_hidden(element, style_of(element))
    # In code what has the background's colour is a space or a mark that a highlighter paints.
    return is_hidden(element) or any(so for name, so in said.items() if name != "color")


def _is_number(element: _Element) -> bool:
    return (
        _DROPPED_CLASSES.search((element.get("class") or "").lower()) is not None
        or "data-line-number" in element.attrib
    )


def _language(pre: _Element) -> str:
    around = [pre, *islice(pre.iter("code"), 1), *islice(pre.iterancestors(), 3)]
    for element in around:
        told = element.get("data-lang") or element.get("data-language") or ""
        found = _LANGUAGE.search((element.get("class") or "")[:2000].lower())
        name = told.strip().lower() or (found[1] if found else "")
        name = {"python3": "python", "ipython3": "python", "ipython": "python"}.get(name, name)
        if name and name not in _NO_LANGUAGE and re.fullmatch(r"[a-z0-9][a-z0-9+#._-]{0,29}", name):
            return name
    return ""


def _fenced(code: str, language: str) -> str:
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


class _Tag(Protocol):
    """What is used of an element that markdownify hands over."""

    def get_text(self) -> str: ...

    def get(self, name: str) -> list[str] | None: ...


class _Converter(MarkdownConverter):
    """markdownify's converter, with fences that code can't close."""

    def convert_pre(self, el: _Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002 - markdownify's signature
        code = el.get_text().strip("\n")
        return f"\n\n{_fenced(code, ' '.join(el.get('class') or []))}\n\n" if code.strip() else ""

    def convert_dt(self, el: _Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        bare = text.strip()
        return f"\n\n**{bare.replace('**', '')}**\n\n" if bare else ""

    def convert_dd(self, el: _Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        return f"\n\n{text.strip()}\n\n"
