"""What single elements of a page are: hidden from people, or code with its language and its very characters (SPEC 3.7).

What is hidden is there for readers of the markup alone. Known is what stands in the markup itself: the
attributes ``hidden`` and ``style``. Style sheets are not read.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from lxml.etree import _Element

Style = Mapping[str, str]
"""Declarations of an inline style, names and values in lower case."""

_MAX_STYLE = 2000
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\r\n\f]?|([^\r\n\f]))")
# No number is tried twice: a style of digits alone must not take long.
_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d{1,3})?"
_LENGTH = re.compile(rf"(?<![\w.#-])({_NUMBER})(px|pt|pc|cm|mm|in|q|r?em|ex|ch|v[whi]|vmin|vmax|%)?(?![\w.])")
_FONT_SIZE = re.compile(rf"(?:^|\s)({_NUMBER})(px|pt|r?em|ex|ch|%)?(?=$|[\s/])")
_FUNCTION = re.compile(r"(?<![a-z-])([a-z-]++)\(([^()]*+)\)")
_COLOR = re.compile(r"#[0-9a-f]{3,8}\b|(?:rgb|hsl)a?\([^()]*\)|[a-z]+")

_PIXELS = {"px": 1.0, "pt": 1.33, "pc": 16.0, "cm": 38.0, "mm": 3.8, "in": 96.0, "q": 0.95, "%": 5.0, "": 1.0}
"""Of the units, about; a percentage is of 500, and those of a font's size or a window count 16."""

_FAR = -500.0
"""Pixels: a text that is moved by so much to the left or up is off the page."""

_OFFSETS = ("left", "right", "top", "bottom", "inset", "text-indent", "margin", "margin-left", "margin-top")
_HIDES = frozenset({
    "display", "opacity", "filter", "transform", "clip", "clip-path", "overflow", *_OFFSETS,
})  # fmt: skip
_CLIPPED_BY_HALF = 50.0
_FEWEST_PIXELS = 1.0
_AROUND = 8
_NAMED = {
    "white": "ffffff", "black": "000000", "red": "ff0000", "lime": "00ff00", "blue": "0000ff",
    "yellow": "ffff00", "gray": "808080", "grey": "808080", "silver": "c0c0c0", "green": "008000",
    "whitesmoke": "f5f5f5", "snow": "fffafa", "ivory": "fffff0", "transparent": "transparent",
}  # fmt: skip


def style_of(element: _Element) -> Style:
    """Return the declarations of an element's ``style``; of repeated ones the last counts."""
    text = element.get("style")
    if not text:
        return {}
    text = _ESCAPE.sub(_unescaped, _COMMENT.sub(" ", text[:_MAX_STYLE])).lower()
    pairs = (declaration.partition(":") for declaration in text.split(";"))
    return {name.strip(): value.partition("!")[0].strip() for name, _, value in pairs if value.strip()}


def is_hidden(element: _Element, style: Style | None = None) -> bool:
    """Whether an element is hidden with all that is in it.

    ``display: none``, no opacity, far off the page, clipped away, scaled to nothing, or of no size.
    ``style`` is what ``style_of`` gives, for those who have it.
    """
    if "hidden" in element.attrib:
        return True
    style = style_of(element) if style is None else style
    return not _HIDES.isdisjoint(style) and (
        style.get("display") == "none"
        or _is_transparent(style)
        or _is_far_off(style)
        or _is_clipped(style)
        or _is_without_size(style)
    )


def text_hidden(element: _Element, style: Style) -> dict[str, bool]:
    """Tell of each property that children inherit whether it hides text: ``font``, ``visibility``, ``color``.

    What the element does not say is not in the answer: it is as around it.
    """
    said: dict[str, bool] = {}
    size = _font_size(style)
    if size is not None:
        said["font"] = size <= _FEWEST_PIXELS
    if "visibility" in style:
        said["visibility"] = style["visibility"] in {"hidden", "collapse"}
    text = _color(style.get("color") or (element.get("color") or "").lower())
    if text is not None:
        said["color"] = text == "transparent" or text == _background(element)
    return said


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[2]
    code = int(found[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _lengths(value: str) -> list[float]:
    """Return the lengths in a value in pixels, about."""
    return [float(number) * _PIXELS.get(unit, 16.0) for number, unit in _LENGTH.findall(value)]


def _font_size(style: Style) -> float | None:
    """Return the size in pixels; percentages and the like are taken of 16 pixels. None: it says nothing."""
    for value in (style.get("font-size"), style.get("font")):
        found = _FONT_SIZE.search(value) if value else None
        if found:
            unit = found[2] or ""
            return float(found[1]) * (0.16 if unit == "%" else _PIXELS.get(unit, 16.0))
    return None


def _is_transparent(style: Style) -> bool:
    found = re.fullmatch(rf"({_NUMBER})(%?)", style.get("opacity", ""))
    if found and float(found[1]) / (100 if found[2] else 1) < 0.05:
        return True
    functions = _FUNCTION.findall(style.get("filter", ""))
    return any(name == "opacity" and _lengths(inner) == [0.0] for name, inner in functions)


def _is_far_off(style: Style) -> bool:
    moved = [length for name in _OFFSETS for length in _lengths(style.get(name, ""))]
    for name, inner in _FUNCTION.findall(style.get("transform", "")):
        if name.startswith("translate"):
            moved += _lengths(inner)
    return any(length <= _FAR for length in moved)


def _is_clipped(style: Style) -> bool:
    for name, inner in _FUNCTION.findall(f"{style.get('clip', '')} {style.get('clip-path', '')}"):
        found = _LENGTH.findall(inner)
        numbers = [float(number) for number, _ in found]
        shares = [float(number) for number, unit in found if unit == "%"]
        if name == "inset" and shares and (min(numbers) >= _CLIPPED_BY_HALF or max(shares) >= 100):
            return True
        if name in {"rect", "polygon"} and numbers and "auto" not in inner and _spread(numbers) <= 1:
            return True
        if name in {"circle", "ellipse"} and numbers and numbers[0] == 0:
            return True
    return False


def _spread(numbers: list[float]) -> float:
    return max(numbers) - min(numbers)


def _is_without_size(style: Style) -> bool:
    """Whether both sides are a pixel at most and nothing flows over, or it is scaled to nothing."""
    if any(
        name.startswith("scale") and 0.0 in _lengths(inner)
        for name, inner in _FUNCTION.findall(style.get("transform", ""))
    ):
        return True
    if not style.get("overflow", "").startswith(("hidden", "clip")):
        return False
    sides = [_lengths(style.get(f"max-{name}", style.get(name, ""))) for name in ("width", "height")]
    return all(side and side[0] <= _FEWEST_PIXELS for side in sides)


def _color(value: str) -> str | None:
    """Return a colour in one form: six hexadecimal digits, or ``transparent``; None for what is not known."""
    value = value.strip()
    if re.fullmatch(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", value):
        digits = value[1:] if len(value) > 5 else "".join(digit * 2 for digit in value[1:])
        return "transparent" if digits[6:] == "00" else digits[:6]
    found = re.fullmatch(r"rgba?\(([^()]*)\)", value)
    if not found:
        return _NAMED.get(value)
    numbers = [float(number) * (2.55 if unit == "%" else 1) for number, unit in _LENGTH.findall(found[1])]
    if len(numbers) == 4 and numbers[3] == 0:
        return "transparent"
    if len(numbers) < 3:
        return None
    return "".join(f"{round(min(255.0, max(0.0, number))):02x}" for number in numbers[:3])


def _background(element: _Element) -> str | None:
    """Return the nearest background that stands inline, the element's own or of one around it.

    None where it is not known: a picture, or an element on the way to which a style sheet may give one.
    """
    around: _Element | None = element
    for _ in range(_AROUND):
        if around is None:
            return None
        style = style_of(around)
        value = style.get("background-color") or style.get("background") or around.get("bgcolor")
        if value:
            found = _COLOR.findall(value.lower())
            return _color(found[0]) if found and "url(" not in value and "gradient" not in value else None
        if "class" in around.attrib or "id" in around.attrib:
            return None
        around = around.getparent()
    return None


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
