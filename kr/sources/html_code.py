"""Code in HTML pages: its language and its very characters (SPEC 3.7: complete blocks, with their language)."""

import re
from collections.abc import Iterator

from lxml.etree import _Element

_GUTTERS = frozenset({
    "linenos", "lineno", "linenodiv", "gutter", "gl", "hljs-ln-numbers", "line-numbers-rows",
    "line-numbers-wrapper", "rouge-gutter", "ec-line-numbers", "ln", "code-lineno", "line-number",
    "linenumber", "react-syntax-highlighter-line-number",
})  # fmt: skip
_NOT_CODE = frozenset({"button", "script", "style", "template", "svg", "select", "input"})
_LINES = frozenset({"div", "li", "p", "tr", "table", "ol", "ul", "pre", "figure"})
_WRAPPERS = frozenset({"div", "figure", "td", "tr", "tbody", "table", "section", "span"})
_PREFIX = re.compile(
    r"(?:highlight-source-|highlight-text-|highlight-|language-|lang-|source-|src-|brush:)(.+)"
)
_NO_LANGUAGE = frozenset({
    "default", "none", "plain", "plaintext", "text", "txt", "notranslate", "hljs", "highlight",
    "code", "container", "wrapper", "block", "copy", "group", "example", "unknown", "auto",
    "numbers", "line-numbers", "sourcecode", "toolbar", "nohighlight", "no-highlight",
})  # fmt: skip
_SAME = {"python3": "python", "ipython3": "python", "ipython": "python", "source-shell": "shell"}
_LANGUAGE = re.compile(r"[a-z0-9][a-z0-9+#._-]{0,29}")


def classes(element: _Element) -> list[str]:
    """Return the element's classes in lower case."""
    return (element.get("class") or "")[:2000].lower().split()


def is_gutter(element: _Element) -> bool:
    """Whether an element holds line numbers beside code."""
    if element.tag == "pre" and "lineno" not in classes(element):
        return False
    return not _GUTTERS.isdisjoint(classes(element)) or "data-line-number" in element.attrib


def code_language(pre: _Element) -> str:
    """Tell the language that a ``pre`` element, the code in it or a wrapper around it names; else ``""``.

    Understood are ``language-x``, ``lang-x``, ``highlight-x``, ``highlight-source-x``, ``brush: x``,
    ``hljs x``, ``sourceCode x`` and the attributes ``data-lang`` and ``data-language``.
    """
    for element in _named(pre):
        for name in ("data-lang", "data-language"):
            found = _clean(element.get(name) or "")
            if found:
                return found
        found = _of_classes(classes(element))
        if found:
            return found
    return ""


def code_text(pre: _Element) -> str:
    """Return the code of a ``pre`` element verbatim, without line numbers, buttons and hidden parts."""
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
        if item.tag in _NOT_CODE or (item is not pre and is_gutter(item)):
            continue
        is_line = item.tag in _LINES and item is not pre
        if is_line:
            _end_line(parts)
            waiting.append(None)
        if item.tag == "br":
            parts.append("\n")
        for child in reversed(item):
            if child.tail:
                waiting.append(str(child.tail))
            waiting.append(child)
        if item.text:
            waiting.append(str(item.text))
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n")
    return text.strip("\n").rstrip()


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
        if around is None or around.tag not in _WRAPPERS or len(around) > 4:
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
