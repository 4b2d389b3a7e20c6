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
})  # fmt: skip
_PERMALINK_SIGNS = frozenset({"#", "¶", "§", "🔗", "\uf0c1", "\u200b"})

_UNSAFE_IN_LINK = re.compile(r"""[\s"'<>()\[\]\\`|\x00-\x1f\x7f]""")


def is_dropped(element: _Element) -> bool:
    """Whether an element is no content: scripts, navigation, forms, hidden parts, permalinks, line numbers."""
    tag = element.tag
    if tag in _DROPPED or element.get("role") in _DROPPED_ROLES:
        return True
    if element.get("aria-hidden") == "true" or is_hidden(element):
        return True
    if not _DROPPED_CLASSES.isdisjoint(classes(element)) or is_gutter(element):
        return True
    if tag in {"header", "aside"}:
        parent = element.getparent()
        return parent is not None and parent.tag == "body"
    return tag == "a" and _is_permalink(element)


def _is_permalink(link: _Element) -> bool:
    address = link.get("href") or ""
    text = (link.text or "") + "".join((child.text or "") + (child.tail or "") for child in islice(link, 3))
    text = text.strip()
    return text in _PERMALINK_SIGNS or (not text and address.startswith("#"))


def absolute(base: str, address: str | None) -> str | None:
    """Return the absolute form of a link's address, safe inside a Markdown link.

    None for what is no web or mail address (``javascript:``, ``data:``, ``file:``).
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
    if not is_address:
        return None
    return _UNSAFE_IN_LINK.sub(lambda found: quote(found[0], safe=""), joined)
