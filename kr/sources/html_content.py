"""Which elements of a page are content, and which links lead somewhere."""

import re
from itertools import islice
from urllib.parse import quote, urljoin, urlsplit

from lxml.etree import _Element

from kr.sources.html_code import classes, is_gutter
from kr.sources.html_hidden import is_hidden

_DROPPED = frozenset({
    "script", "style", "noscript", "template", "nav", "footer", "form", "button", "input", "select",
    "textarea", "option", "svg", "iframe", "object", "embed", "applet", "canvas", "audio", "video",
    "map", "dialog", "menu", "head", "title", "link", "meta", "base", "clipboard-copy",
})  # fmt: skip
_DROPPED_ROLES = frozenset({
    "navigation", "search", "banner", "contentinfo", "complementary", "dialog", "menu", "menubar",
    "toolbar", "doc-toc",
})  # fmt: skip
_DROPPED_CLASSES = frozenset({
    "headerlink", "anchor-link", "hash-link", "permalink", "anchorjs-link", "header-anchor",
    "heading-anchor-link", "breadcrumb", "breadcrumbs", "wy-breadcrumbs", "theme-doc-breadcrumbs",
    "theme-doc-toc-mobile", "theme-doc-footer", "pagination-nav", "prev-next-area", "related",
    "toctree-mobile", "table-of-contents", "toc-drawer", "md-sidebar", "md-source-file",
    "sphinxsidebar", "bd-sidebar", "copybtn", "copy-button", "clipboard-copy",
    "zeroclipboard-container", "edit-this-page", "mw-editsection", "noprint",
    "visually-hidden-focusable",
    "t-navbar", "catlinks", "printfooter", "coliru-btn",  # MediaWiki, cppreference
    "navheader", "navfooter", "navigation", "navigationbar", "navpath", "footer",  # DocBook, GTK-Doc, qdoc, Doxygen
    "toc", "contents-heading", "contents_element", "shortcontents", "nav-panel",  # Texinfo and others
    "toplang", "bottomlang",  # Apache
})  # fmt: skip
_DROPPED_IDS = frozenset({
    "toc", "gtoc", "column2", "siteSub", "contentSub", "jump-to-nav", "quickview", "page-header", "path", "footer",
    "comments_section", "side-nav", "titlearea", "nav-path", "TOC", "table-of-contents",
})  # fmt: skip
_CONTENTS = frozenset({"contents", "table of contents", "on this page"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SIGNS = frozenset({"#", "¶", "§", "🔗", "\uf0c1", "\u200b", "[src]", "[source]", "[edit]"})
"""Of links beside a heading or a definition, to itself or its source."""

_FOOTNOTE = re.compile(r"\[?\d{1,3}\]?")
_TO_NEIGHBOURS = frozenset({"next", "prev", "previous"})
_FEWEST_LINKS = 4
_MOST_LINKS = 2_000
_LINKED = 0.8  # of a list's text: it is a table of contents
_MOST_PIECES = 40

_UNSAFE_IN_LINK = re.compile(r"""[\s"'<>()\[\]\\`|\x00-\x1f\x7f]""")


def is_dropped(element: _Element) -> bool:
    """Whether an element is no content: scripts, navigation, tables of contents, forms, hidden parts, permalinks."""
    tag = element.tag
    if tag in _DROPPED or element.get("role") in _DROPPED_ROLES or element.get("id") in _DROPPED_IDS:
        return True
    if element.get("aria-hidden") == "true" or is_hidden(element):
        return True
    if not _DROPPED_CLASSES.isdisjoint(classes(element)) or is_gutter(element):
        return True
    if tag in {"header", "aside"}:
        parent = element.getparent()
        return parent is not None and parent.tag == "body"
    if tag in {"ul", "ol"}:
        return _is_contents(element)
    if tag in {"p", "div"}:
        return _leads_to_neighbours(element)
    if tag in _HEADINGS:
        return _text(element).casefold() in _CONTENTS
    return tag == "a" and _is_permalink(element)


def _is_permalink(link: _Element) -> bool:
    text = _text(link)
    if text in _SIGNS:
        return True
    is_here = (link.get("href") or "").startswith("#")
    return is_here and (not text or _FOOTNOTE.fullmatch(text) is not None)


def _text(element: _Element) -> str:
    """Return the text of a small element, however deep it stands in it."""
    return "".join(map(str, islice(element.itertext(), _MOST_PIECES))).strip()


def _is_contents(items: _Element) -> bool:
    """Whether a list is the page's table of contents: links to places of the page, and hardly anything else."""
    around = items.getparent()
    if around is not None and around.tag == "li":
        return False  # decided for the outermost list, with all that is in it
    links = list(islice(items.iter("a"), _MOST_LINKS))
    if len(links) < _FEWEST_LINKS or not all((link.get("href") or "#").startswith("#") for link in links):
        return False
    linked = sum(len(_text(link)) for link in links)
    return linked >= _LINKED * len("".join("".join(map(str, items.itertext())).split()))


def _leads_to_neighbours(element: _Element) -> bool:
    """Whether a line is there to turn pages: it has a link to the next or the previous one, as Texinfo's have."""
    return any(
        not _TO_NEIGHBOURS.isdisjoint((child.get("rel") or "").split())
        for child in islice(element, 12)
        if child.tag == "a"
    )


def absolute(base: str, address: str | None) -> str | None:
    """Return the absolute form of a link's address, safe inside a Markdown link.

    None for what is no web or mail address (``javascript:``, ``data:``, ``file:``), and for a place on the page itself.
    """
    if address is None:
        return None
    try:
        joined = urljoin(base, address.strip()[:4000])
        parts = urlsplit(joined)
    except ValueError:
        return None
    is_address = (parts.scheme in {"http", "https"} and parts.netloc) or (
        parts.scheme == "mailto" and parts.path
    )
    if not is_address or joined.partition("#")[0] == base.partition("#")[0]:
        return None
    return _UNSAFE_IN_LINK.sub(lambda found: quote(found[0], safe=""), joined)
