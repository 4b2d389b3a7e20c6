"""Which part of an HTML page is its content, which of its elements are none, what is code, and which links lead somewhere."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

from lxml import etree
from lxml.etree import _Element

from kr.sources.html_hidden import is_hidden, style_of, text_hidden

MAX_ELEMENTS = 200_000
"""Elements of a page that are looked at; what follows is cut."""

_MAX_ATTRIBUTES = 200
_ATTRIBUTE = (
    rb"[ \t\r\n\f/]*+[^ \t\r\n\f/>][^ \t\r\n\f/>=]*+"
    rb"(?:[ \t\r\n\f]*+=[ \t\r\n\f]*+(?:\"[^\"]*+\"?+|'[^']*+'?+|[^ \t\r\n\f>\"'][^ \t\r\n\f>]*+)?+)?+"
)
_TAG_NAME = re.compile(rb"<[A-Za-z][^ \t\r\n\f/>]*+")
_ATTRIBUTES = re.compile(rb"(?:" + _ATTRIBUTE + rb"){0,%d}+(" % (_MAX_ATTRIBUTES - 1) + _ATTRIBUTE + rb")?+")
_QUOTE = re.compile(rb"[\"']")
_MOST_READ = 10
"""How often, on the average, a byte is read in search of attributes."""

_LONG_ENOUGH = 200
"""Characters that make an element count as a page's content."""

_PARTS = Path(__file__).with_name("html_parts.txt").read_text(encoding="utf-8")


def _part(name: str) -> tuple[str, ...]:
    """Return the words of one section of ``html_parts.txt``."""
    lines = _PARTS.partition(f"\n[{name}]\n")[2].partition("\n[")[0].splitlines()
    return tuple(word for line in lines if not line.startswith("# ") for word in line.split())


_ENGINES, _IDS = _part("engines"), _part("ids")


def parse(html: str) -> _Element | None:
    """Parse any page in linear time, as deep as 2,048 elements; None when nothing is in it, or hundreds of attributes in one tag."""
    data = html.replace("\0", "").encode("utf-8", "replace")
    if not data.strip() or _is_crowded(data):
        return None
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, no_network=True
    )
    try:
        return etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        return None


def _is_crowded(data: bytes) -> bool:
    """Whether a tag has too many attributes: libxml2 compares each with all before it, and 80,000 take a minute.

    Inside of a tag only quotes are read again (in a comment they are none); markup that has to be read again and again is crowded.
    """
    place = read = 0
    while name := _TAG_NAME.search(data, place):
        found = _ATTRIBUTES.match(data, name.end())
        end = found.end() if found else name.end()
        read += end - name.end()
        if (found and found[1] is not None) or read > _MOST_READ * len(data):
            return True
        quote = _QUOTE.search(data, name.end(), end)
        place = quote.start() if quote else end
    return False


def main_element(root: _Element) -> _Element:
    """Return the content: by what engines mark, then tag, role and id; else the body. What several carry is no mark."""
    body = next(root.iter("body"), root)
    for group in _candidates(body):
        candidates = [one for one in group if not _is_within_hidden(one, body)]
        outer = [one for one in candidates if not any(parent in candidates for parent in one.iterancestors())]
        if len(outer) == 1 and _length(outer[0]) >= min(_LONG_ENOUGH, max(1, _length(body) // 2)):
            return outer[0]
    return body


def page_title(root: _Element) -> str | None:
    title = next(root.iter("title"), None)
    text = "" if title is None else " ".join((title.text or "")[:4000].split())[:200].strip()
    return text or None


def _is_within_hidden(element: _Element, body: _Element) -> bool:
    around: _Element | None = element
    while around is not None and around is not body:
        if is_hidden(around):
            return True
        around = around.getparent()
    return False


def _candidates(body: _Element) -> list[list[_Element]]:
    """Groups of elements that carry the same mark, the most telling mark first. At most 30 of a group."""
    marked: dict[str, list[_Element]] = {}
    for element in islice(body.iter(etree.Element), MAX_ELEMENTS):
        for mark in _marks(element):
            marked.setdefault(mark, []).append(element)
    order = (*_ENGINES, "articleBody", "article", "role", "main", "document", *_IDS)
    return [group for mark in order if 0 < len(group := marked.get(mark, [])) <= 30]


def _marks(element: _Element) -> list[str]:
    found = [name for name in (element.get("class") or "")[:2000].split() if name in _ENGINES]
    if element.get("itemprop") == "articleBody":
        found.append("articleBody")
    if element.tag in {"article", "main"}:
        found.append(str(element.tag))
    if element.get("role") == "main":
        found.append("role")
    if element.tag == "div" and element.get("class") == "document":
        found.append("document")
    identifier = element.get("id")
    if identifier in _IDS:
        found.append(identifier)
    return found


def _length(element: _Element) -> int:
    return int(float(str(element.xpath("string-length(normalize-space(.))"))))


_DROPPED = frozenset(_part("dropped tags"))
_DROPPED_ROLES = frozenset(_part("dropped roles"))
_DROPPED_CLASSES = frozenset(_part("dropped classes"))
_DROPPED_IDS = frozenset(_part("dropped ids"))
_PARTS_OF_PAGES = frozenset({"div", "p", "ul", "table"})
_LABELS = frozenset(_part("labels"))
_NOTES = frozenset(_part("notes"))
_CONTENTS = frozenset({"contents", "table of contents", "on this page"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SIGNS = frozenset({"#", "¶", "§", "🔗", "\uf0c1", "\u200b", "[src]", "[source]", "[edit]", "More..."})
"""Of links beside a heading or a definition, to itself, its source, or what says more of it on the same page."""

_TO_SOURCE = frozenset({"link", "link-seesrc", "src"})  # Haddock, nim doc, rustdoc
_OF_SOURCE = re.compile(r"Definition at line \d|Referenced by |References ")
_DEFINED_IN = re.compile(r"Defined in\s+\S+:\d+")
"""Doxygen's and YUIDoc's lines on where in the sources a name stands."""

_FOOTNOTE = re.compile(r"\[?\d{1,3}\]?")
_TURNS = frozenset({"<<", "<", ">", ">>", "up", "top", "contents", "index", "?"})
_MOST_CELLS = 20
_TO_NEIGHBOURS = frozenset({"next", "prev", "previous"})
_FEWEST_LINKS = 4
_MOST_LINKS = 2_000
_LINKED = 0.8  # of a list's text: it is a table of contents
_MOST_PIECES = 40

_UNSAFE_IN_LINK = re.compile(r"""[\s"'<>()\[\]\\`|\x00-\x1f\x7f]""")


def is_dropped(element: _Element) -> bool:
    """Whether an element is no content: scripts, navigation, tables of contents, forms, hidden parts, permalinks."""
    tag = element.tag
    if tag in _DROPPED or element.get("role") in _DROPPED_ROLES:
        return True
    if element.get("aria-hidden") == "true" or is_hidden(element):
        return True
    marks = classes(element)
    told = _DROPPED_CLASSES.intersection(marks)
    # Texinfo marks any list without bullets so.
    is_list = told == {"toc"} and tag in {"ul", "ol"}
    if (told and not (is_list and not _is_linked(element))) or is_gutter(element):
        return True
    # A heading or a section has such an id where its words are those: "Path", "Navigation".
    if element.get("id") in _DROPPED_IDS and tag in _PARTS_OF_PAGES and "section" not in marks:
        return True
    if tag in {"header", "aside"}:
        parent = element.getparent()
        return parent is not None and parent.tag == "body"
    if tag in {"ul", "ol"}:
        return _is_contents(element)
    if tag == "table":
        return _turns_pages(element)
    if tag in {"p", "div"}:
        return _leads_to_neighbours(element) or _is_of_source(element)
    if tag in _HEADINGS:
        return _text(element).casefold() in _CONTENTS
    return tag == "a" and _is_permalink(element)


def is_label(element: _Element) -> bool:
    """Whether an element says of what kind a note is that is set apart: a title of its own, or a heading in it."""
    if element.tag in {"p", "td"}:
        return not _LABELS.isdisjoint(classes(element))
    around = element.getparent()
    return element.tag in _HEADINGS and around is not None and not _NOTES.isdisjoint(classes(around))


def _is_permalink(link: _Element) -> bool:
    text = _text(link)
    if text in _SIGNS:
        return True
    if text in {"Source", "Edit"} and not _TO_SOURCE.isdisjoint(classes(link)):
        return True
    is_here = (link.get("href") or "").startswith("#")
    return is_here and (not text or _FOOTNOTE.fullmatch(text) is not None)


def _is_of_source(line: _Element) -> bool:
    marks = {"definition", "reference"}.intersection(classes(line))
    return (bool(marks) and _OF_SOURCE.match(_text(line)) is not None) or (
        line.tag == "p" and _DEFINED_IN.fullmatch(_text(line)) is not None
    )


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
    return _is_linked(items)


def _is_linked(items: _Element) -> bool:
    """Whether hardly anything in a list is no link."""
    linked = sum(len("".join(_text(link).split())) for link in islice(items.iter("a"), _MOST_LINKS))
    return linked >= _LINKED * len("".join("".join(map(str, items.itertext())).split()))


def _leads_to_neighbours(element: _Element) -> bool:
    """Whether a line is there to turn pages: it has a link to the next or the previous one, as Texinfo's have."""
    return any(
        not _TO_NEIGHBOURS.isdisjoint((child.get("rel") or "").split())
        for child in islice(element, 12)
        if child.tag == "a"
    )


def _turns_pages(table: _Element) -> bool:
    """Whether a table is a row of links above or below a page: DocBook's, or Texinfo's, ``[ < ] [ Up ] [ > ] [Top]``."""
    if (table.get("summary") or "").casefold().startswith("navigation"):
        return True
    cells = list(islice(table.iter("td", "th"), _MOST_CELLS + 1))
    texts = {_text(cell).strip("[] \xa0").casefold() for cell in cells} - {""}
    return len(cells) <= _MOST_CELLS and len(texts) > 1 and texts <= _TURNS


def absolute(base: str, address: str | None) -> str | None:
    """Return a link's absolute address, safe inside Markdown; None for no web or mail address, or a place on the page itself."""
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


_GUTTERS = frozenset(_part("gutters"))
_NOT_CODE = frozenset({"button", "script", "style", "template", "svg", "select", "input"})
_LINES = frozenset({"div", "li", "p", "tr", "table", "ol", "ul", "pre", "figure"})
_WRAPPERS = frozenset({"div", "figure", "td", "tr", "tbody", "table", "section", "span"})
_PREFIX = re.compile(
    r"(?:highlight-source-|highlight-text-|highlight-|language-|lang-|source-|src-|brush:)(.+)"
)
_NO_LANGUAGE = frozenset(_part("no language"))
_SAME = {"python3": "python", "ipython3": "python", "ipython": "python", "source-shell": "shell"}
_LANG = frozenset(_part("languages"))
_LANGUAGE = re.compile(r"[a-z0-9][a-z0-9+#._-]{0,29}")


def classes(element: _Element) -> list[str]:
    return (element.get("class") or "")[:2000].lower().split()


def is_gutter(element: _Element) -> bool:
    """Whether an element holds line numbers beside code."""
    if element.tag == "pre" and "lineno" not in classes(element):
        return False
    return not _GUTTERS.isdisjoint(classes(element)) or "data-line-number" in element.attrib


def code_language(pre: _Element) -> str:
    """Tell the language that a ``pre`` element, the code in it or a wrapper around it names; else ``""``.

    By class, ``data-lang``, ``data-language``, or ``lang`` (WordPress, older GitHub), where that is none of people.
    """
    for element in _named(pre):
        lang = _clean(element.get("lang") or "")
        if lang in _LANG and element.tag in {"pre", "code"}:
            return lang
        for name in ("data-lang", "data-language"):
            found = _clean(element.get(name) or "")
            if found:
                return found
        found = _of_classes(classes(element))
        if found:
            return found
    return ""


def code_text(pre: _Element) -> str:
    """Return the code of a ``pre`` element, or Doxygen's ``div``, verbatim, without line numbers, buttons and hidden parts."""
    parts: list[str] = []
    waiting: list[_Element | str | None] = [pre]  # None: the end of an element that is a line
    while waiting:
        item = waiting.pop()
        if item is None:
            _end_line(parts)
            continue
        if isinstance(item, str):
            parts.append(item)
            continue
        if item.tag in _NOT_CODE or (
            item is not pre and (is_gutter(item) or _is_tip(item) or _is_unseen(item))
        ):
            continue
        is_line = item.tag in _LINES and item is not pre
        if is_line:
            _end_line(parts)
            waiting.append(None)
        if item.tag == "br":
            parts.append("\n")
        for child in reversed(item):
            if child.tail and not (item.tag == "div" and item is pre and child.tail.isspace()):
                waiting.append(str(child.tail))
            waiting.append(child)
        if item.text:
            waiting.append(str(item.text))
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n")
    return text.strip("\n").rstrip()


def _is_tip(element: _Element) -> bool:
    return "ttc" in classes(element)


def _is_unseen(element: _Element) -> bool:
    style = style_of(element)
    said = text_hidden(element, style)
    # In code what has the background's colour is a space or a mark that a highlighter paints.
    return is_hidden(element, style) or any(so for name, so in said.items() if name != "color")


def _end_line(parts: list[str]) -> None:
    last = next((part for part in reversed(parts) if part), "\n")
    if not last.endswith("\n"):
        parts.append("\n")


def _named(pre: _Element) -> Iterator[_Element]:
    """The elements that may name the language: the block, the code in it, then what is wrapped around it."""
    yield pre
    code = next(pre.iter("code"), None)
    if code is not None:
        yield code
    around = pre.getparent()
    for _ in range(6):
        # Its children are not counted: there may be as many as blocks that ask.
        if around is None or around.tag not in _WRAPPERS or next(islice(around, 4, 5), None) is not None:
            return
        yield around
        around = around.getparent()


def _of_classes(names: list[str]) -> str:
    for index, name in enumerate(names):
        if name == "brush:" and index + 1 < len(names):
            return _clean(names[index + 1])
        prefixed = _PREFIX.fullmatch(name)
        if prefixed and (found := _clean(prefixed[1])):
            return found
    if {"hljs", "sourcecode", "rust-example-rendered"}.isdisjoint(names):
        return ""
    return next((found for name in names if "-" not in name and (found := _clean(name))), "")


def _clean(name: str) -> str:
    name = name.strip().rstrip(";").lower()
    name = _SAME.get(name, name)
    return name if _LANGUAGE.fullmatch(name) and name not in _NO_LANGUAGE else ""
