"""Code in HTML pages: its language and its very characters (SPEC 3.7: complete blocks, with their language)."""

import re
from collections.abc import Iterator
from itertools import islice

from lxml.etree import _Element

from kr.sources.html_hidden import is_hidden, style_of, text_hidden

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
# Without those that are tags of people's languages too: cs (Czech), pl (Polish), ml, ps, vi.
_LANG = frozenset({
    "apache", "asm", "awk", "bash", "bat", "batch", "c", "c#", "c++", "clojure", "cmake", "console", "cpp",
    "csharp", "css", "cuda", "dart", "diff", "docker", "dockerfile", "elixir", "elm", "erlang", "fish",
    "fortran", "fsharp", "go", "golang", "graphql", "groovy", "haskell", "hcl", "html", "http", "ini", "java",
    "javascript", "js", "json", "json5", "jsonc", "jsx", "julia", "kotlin", "latex", "less", "lisp", "lua",
    "makefile", "markdown", "matlab", "mysql", "nginx", "nix", "objc", "objective-c", "ocaml", "pascal",
    "perl", "pgsql", "php", "plsql", "postgresql", "powershell", "prisma", "properties", "proto", "protobuf",
    "py", "python", "r", "rb", "ruby", "rust", "sass", "scala", "scheme", "scss", "sh", "shell", "solidity",
    "sql", "svelte", "swift", "terraform", "toml", "ts", "tsx", "typescript", "vb", "vbnet", "vue", "wasm",
    "xml", "yaml", "yml", "zig", "zsh",
})  # fmt: skip
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
    ``hljs x``, ``sourceCode x`` and the attributes ``data-lang`` and ``data-language``; and ``lang`` of the block
    and of the code in it (WordPress, older GitHub), where it names a language of programs and none of people.
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
    """Return the code of a ``pre`` element verbatim, without line numbers, buttons and hidden parts.

    In Doxygen's ``div`` the white space between the lines says nothing, as in any ``div``.
    """
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
    """Whether an element is what Doxygen shows when the pointer rests on a name in code."""
    return "ttc" in classes(element)


def _is_unseen(element: _Element) -> bool:
    """Whether people don't see a part of code. Colours don't count: highlighters set them inline, on blanks too."""
    style = style_of(element)
    said = text_hidden(element, style)
    return is_hidden(element, style) or said.get("font", False) or said.get("visibility", False)


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
