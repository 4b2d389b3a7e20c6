"""Turns a page into honest Markdown: its content, code blocks whole and with their language, nothing invented.

What it gives is still untrusted text; ``kr.reports`` cleans and quotes it (SPEC 3.7).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag
from lxml import etree
from lxml.etree import _Element
from markdownify import ATX, MarkdownConverter

from kr.sources.html_content import (
    MAX_ELEMENTS,
    absolute,
    classes,
    code_language,
    code_text,
    is_dropped,
    is_label,
    main_element,
    page_title,
    parse,
)
from kr.sources.html_hidden import style_of, text_hidden
from kr.text.characters import strip_invisible

_MARKDOWN = frozenset({"text/plain", "text/markdown", "text/x-markdown", "application/markdown"})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_ESCAPE_REFERENCE = re.compile(r"&#(?:0{0,6}27|[xX]0{0,6}1[bB])(?:;|(?![0-9a-fA-F]))")
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
_EMPHASIS = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|(?<!\\)\*{1,3}")
"""Marks of emphasis, and the code in which such signs are none."""
_JOIN = "\ufdd0"  # a noncharacter: at the end of a label that stands before the text that it is about
_JOINED = re.compile(rf" *{_JOIN}\n[\s>]*+(?!```|[-+*|#>] |\d+[.)] |\Z)")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, kw_only=True)
class Markdown:
    """A page's text. ``title`` is the page's own; ``is_cut``: there was more than is kept of a page."""

    text: str = field(repr=False)
    title: str | None = None
    is_cut: bool = False


def to_markdown(text: str, *, media_type: str, url: str) -> Markdown:
    """Convert a page at ``url``: Markdown and plain text stay, JSON and other text become a code block. Never raises, linear time.

    Control and invisible characters and escapes go first: a parser would leave parts of them. Without content, or with too much markup
    inside one another or in one tag, the text is empty.
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
        return Markdown(text="")
    copy = TreeCopy(url)
    soup = copy.copy(main_element(root))
    text = _Converter(heading_style=ATX, bullets="-", table_infer_header=True).convert_soup(soup)
    text = _JOINED.sub(" ", text).replace(_JOIN, "")
    lines = (line.rstrip() if not line.endswith("  ") else line for line in text.split("\n"))
    return Markdown(text="\n".join(lines).strip(), title=page_title(root), is_cut=copy.is_cut)


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


def _plain(markdown: str) -> str:
    """Return a line without its marks of emphasis."""
    return _EMPHASIS.sub(lambda found: found[0] if found[1] else "", markdown.strip())


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

    def convert_code(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if text and not text.strip():
            return " "  # ``3.5<tt>&nbsp;</tt>Transactions``
        return str(super().convert_code(el, text, parent_tags))  # type: ignore[misc]  # not in its stubs

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
        bare = _plain(text)
        is_code = bare.startswith("`") and bare.endswith("`") and bare.count("`") == 2
        shown = bare if is_code or not bare else f"**{bare}**"
        return str(self.convert_p(el, shown, parent_tags))  # type: ignore[attr-defined]  # untyped there

    def convert_label(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        bare = _plain(text).rstrip(" :")
        return f"\n\n**{bare}:**{_JOIN}\n\n" if bare else ""

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return str(self.convert_div(el, text, parent_tags))  # type: ignore[attr-defined]

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        inner = _UNESCAPED_PIPE.sub(r"\\|", " ".join(text.split()))
        return f" {inner} |" + " |" * (int(str(el.get("colspan") or 1)) - 1)

    convert_th = convert_td


MAX_TEXT = 1_000_000
"""Characters that are kept of a page."""

_MAX_TAGS = 40_000
_MAX_DEPTH = 60
_MAX_NESTED_LISTS = 8

_SAME = {
    "strong": "b", "em": "i", "tt": "code", "kbd": "code", "samp": "code",
    "summary": "p", "figcaption": "p", "address": "p", "legend": "p", "caption": "p", "dir": "ul",
}  # fmt: skip
_INLINE = frozenset({"a", "b", "i", "code", "q"})
_BLOCK = frozenset({
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd", "blockquote",
    "table", "tr", "td", "th", "hr", "br", "pre",
})  # fmt: skip
_CONTAINERS = frozenset({
    "div", "section", "article", "main", "aside", "header", "figure", "details", "center",
    "fieldset", "hgroup", "body", "html", "menu",
})  # fmt: skip
_LISTS = frozenset({"ul", "ol", "blockquote"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_NO_TEXT = frozenset({"table", "tr", "ul", "ol", "dl"})
_IN_WORDS = {"img": ("alt", 300), "math": ("alttext", 1000)}
_CODE = frozenset({"t-c", "t-lc", "mw-geshi"})  # MediaWiki's inline code on cppreference
_WHITESPACE = re.compile(r"\s+")
_HOLDS_BLOCKS = (_BLOCK | _CONTAINERS) - {"br"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where copies go: ``tag`` in the new tree, and what is around it."""

    tag: Tag
    depth: int = 0
    lists: int = 0
    in_heading: bool = False
    in_head: bool = False
    hidden: frozenset[str] = frozenset()
    """What hides the text here, of the properties that ``text_hidden`` tells of."""


@dataclass(slots=True)
class TreeCopy:
    """Copies ``main`` into ``soup``; ``is_cut`` tells that not all of it fitted. ``url`` is the page's."""

    url: str
    soup: BeautifulSoup = field(default_factory=lambda: BeautifulSoup("", "html.parser"))
    is_cut: bool = False
    _left: int = MAX_TEXT
    _tags: int = 0
    _text: list[str] = field(default_factory=list)
    _open: Tag | None = None
    _with_blocks: set[_Element] = field(default_factory=set)
    _layout: set[_Element] = field(default_factory=set)
    _numbers: dict[int, int] = field(default_factory=dict)

    def copy(self, main: _Element) -> BeautifulSoup:
        self._survey(main)
        waiting: list[tuple[_Element | str, _Place]] = [(main, _Place(self.soup))]
        seen = 0
        while waiting:
            item, place = waiting.pop()
            if isinstance(item, str):
                self._say(item, place)
                continue
            seen += 1
            if seen > MAX_ELEMENTS or self._tags >= _MAX_TAGS or self._left <= 0:
                self.is_cut = True
                break
            if item is not main:
                if is_dropped(item):
                    continue
                place = _as_styled(item, place)
            inner = self._enter(item, place)
            if inner is not None:
                waiting.extend(_children(item, inner))
        self._flush()
        return self.soup

    def _survey(self, main: _Element) -> None:
        """Note which elements have blocks in them, and which tables are there for the layout alone."""
        for element in islice(main.iter(etree.Element), MAX_ELEMENTS):
            if element.tag in _HOLDS_BLOCKS:
                _mark_ancestors(element, self._with_blocks)
            if element.tag in {"pre", "table", "h1", "h2", "h3", "h4"} or _is_long_fragment(element):
                _mark_ancestors(element, self._layout)

    def _enter(self, element: _Element, place: _Place) -> _Place | None:
        """Copy one element; return where its children go, or None when they are done."""
        tag = str(element.tag)
        name = "code" if tag == "span" and not _CODE.isdisjoint(classes(element)) else _SAME.get(tag, tag)
        match name:
            case "pre" | "div" if name == "pre" or _is_fragment(element):
                self._add_code(element, place)
                return None
            case "br" | "hr":
                self._append(name, place)
                return None
            case "img" | "math":
                attribute, most = _IN_WORDS[name]
                self._say(f" {(element.get(attribute) or '')[:most]} ", place)
                return None
            case "dt" if "sig" in classes(element) or element.find("pre") is not None:
                self._add_declaration(element, place)
                return None
            case _ if is_label(element):
                return replace(place, tag=self._append("label", place), depth=place.depth + 1)
            case "thead":
                return replace(place, in_head=True)
        if name in _INLINE:
            return self._enter_inline(name, element, place)
        if name in _CONTAINERS or "-" in name:
            name = "div"
        elif name not in _BLOCK:
            return place
        return self._enter_block(name, element, place)

    def _enter_inline(self, name: str, element: _Element, place: _Place) -> _Place:
        attributes: dict[str, str] = {}
        is_in_one = place.tag.name == name or place.tag.find_parent(name) is not None
        if element in self._with_blocks or place.depth >= _MAX_DEPTH or is_in_one:
            return place  # bold text that is set in bold again is bold
        if name == "a":
            address = None if place.in_heading else absolute(self.url, element.get("href"))
            if address is None:
                return place
            attributes["href"] = address
        return replace(place, tag=self._append(name, place, attributes), depth=place.depth + 1)

    def _enter_block(self, name: str, element: _Element, place: _Place) -> _Place:
        name = self._block_name(name, element, place)
        if name == "div" and _is_wrapper(element):
            return place
        if place.depth >= _MAX_DEPTH:
            self._say("\n", place)
            return place
        if element.tag == "caption" and place.tag.name == "table":
            self._flush()
            caption = self.soup.new_tag("p")
            around = place.tag.parent or self.soup
            around.insert(
                len(around.contents) - 1, caption
            )  # an open table is the last; nothing to search for
            return replace(place, tag=caption)
        return replace(
            place,
            tag=self._append(name, place, self._attributes(name, element, place)),
            depth=place.depth + 1,
            lists=place.lists + (name in _LISTS),
            in_heading=place.in_heading or name in _HEADINGS,
        )

    def _block_name(self, name: str, element: _Element, place: _Place) -> str:
        """Make a plain block of what is out of its place, there for the layout, or nested too deeply."""
        around = place.tag.name
        match name:
            case "table" if (
                element in self._layout or element.get("role") == "presentation" or _is_note(element)
            ):
                return "div"
            case "tr" if around != "table":
                return "div"
            case "td" | "th":
                return "div" if around != "tr" else "th" if place.in_head else name
            case "li" if around not in {"ul", "ol"}:
                return "div"
            case "ul" | "ol" | "blockquote" if place.lists >= _MAX_NESTED_LISTS:
                return "div"
        return name

    def _attributes(self, name: str, element: _Element, place: _Place) -> dict[str, str]:
        if name in {"td", "th"}:
            return {"colspan": str(min(20, _number(element.get("colspan"), 1)))}
        if name == "ol":
            return {"start": str(_number(element.get("start"), 1))}
        if name == "li" and place.tag.name == "ol":
            number = self._numbers.get(id(place.tag), int(str(place.tag["start"])))
            self._numbers[id(place.tag)] = number + 1
            return {"value": str(number)}
        return {}

    def _add_code(self, element: _Element, place: _Place) -> None:
        code = "" if place.hidden else code_text(element)
        if len(code) > self._left:
            self.is_cut = True
            code = code[: self._left]
        if not code.strip():
            return
        self._left -= len(code)
        if place.in_heading or place.tag.name in {"td", "th"}:
            self._append("code", place).append(" ".join(code.split()))
        else:
            self._append("pre", place, {"data-language": code_language(element)}).append(code)

    def _add_declaration(self, term: _Element, place: _Place) -> None:
        """Make a heading of a term that is code; where nim doc's lines may matter, they follow whole."""
        pre = term.find("pre")
        if pre is None:
            self._add_signature(_on_one_line(term), place)
            return
        first, *others = code_text(pre).split("\n")
        is_open = sum(map(first.count, "([{")) > sum(map(first.count, ")]}"))
        self._add_signature(_on_one_line(pre) if is_open else first, place)
        if others and not is_open:
            self._add_code(pre, place)

    def _add_signature(self, signature: str, place: _Place) -> None:
        """Sphinx marks up every part of a signature: as one piece of code, a heading to what follows, it can be read."""
        if place.hidden or not signature.strip():
            return
        signature = re.sub(r"(?: ?\[source\])?[ ¶#\uf0c1]*$", "", signature)[: min(2000, self._left)]
        self._left -= len(signature)
        code = self.soup.new_tag("code")
        code.append(signature)
        self._append("h6" if place.tag.name == "dl" and place.tag.find_parent("dd") else "h5", place).append(
            code
        )

    def _say(self, text: str, place: _Place) -> None:
        """Add text; adjacent pieces become one, so that a converter sees whole words."""
        if place.hidden:
            return
        text = _WHITESPACE.sub(" ", text)
        if text == " " and place.tag.name in _NO_TEXT:
            return
        if self._open is not place.tag:
            self._flush()
            self._open = place.tag
        if len(text) > self._left:
            self.is_cut = True
        self._text.append(text[: self._left])
        self._left -= min(self._left, len(text))

    def _flush(self) -> None:
        text = _WHITESPACE.sub(" ", "".join(self._text))
        if text and self._open is not None:
            self._open.append(text)
        self._text.clear()
        self._open = None

    def _append(self, name: str, place: _Place, attributes: dict[str, str] | None = None) -> Tag:
        self._flush()
        self._tags += 1
        tag = self.soup.new_tag(name, attrs=dict(attributes or {}))
        place.tag.append(tag)
        return tag


def _on_one_line(element: _Element) -> str:
    return " ".join("".join(map(str, element.itertext())).split())


def _as_styled(element: _Element, place: _Place) -> _Place:
    """Tell from an element's style what hides its text; an inner element may show its own again."""
    said = text_hidden(element, style_of(element))
    if not said:
        return place
    hides = {name for name, is_so in said.items() if is_so}
    return replace(place, hidden=place.hidden - said.keys() | hides)


def _children(element: _Element, place: _Place) -> Iterator[tuple[_Element | str, _Place]]:
    """What is in an element, the last part first, since the first is taken from the end."""
    for child in reversed(element):
        if child.tail:
            yield str(child.tail), place
        yield child, place
    if element.text:
        yield str(element.text), place


def _mark_ancestors(element: _Element, marked: set[_Element]) -> None:
    """Add the ancestors to ``marked``, as far as they are not in it: each is added once."""
    for parent in element.iterancestors():
        if parent in marked:
            return
        marked.add(parent)


def _is_wrapper(element: _Element) -> bool:
    """Whether an element holds one block and nothing else; ten thousand of them may be around a text."""
    if len(element) != 1 or (element.text and not element.text.isspace()):
        return False
    child = element[0]
    return child.tag in _HOLDS_BLOCKS and (not child.tail or child.tail.isspace())


def _is_fragment(element: _Element) -> bool:
    return element.tag == "div" and "fragment" in classes(element)


def _is_long_fragment(element: _Element) -> bool:
    return _is_fragment(element) and len(element) > 1


def _is_note(table: _Element) -> bool:
    """Whether a table is there to set a note of AsciiDoc apart."""
    around = table.getparent()
    return around is not None and "admonitionblock" in classes(around)


def _number(text: str | None, default: int) -> int:
    return (
        int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 and int(text) else default
    )
