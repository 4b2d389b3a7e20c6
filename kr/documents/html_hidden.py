"""What the markup of a page hides from people: there for readers of the markup alone, it is no content (SPEC 3.5, 3.7).

Told by ``hidden``, ``style``, ``color`` and ``bgcolor``; style sheets are not read.
"""

import re
from collections.abc import Mapping
from itertools import chain, islice

from lxml.etree import _Element

Style = Mapping[str, str]
"""Declarations of an inline style, names and values in lower case."""

_MAX_STYLE = 2000
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
_FAR_OFF = r"-(?:\d{4}|[5-9]\d\d|\d{3}%)"
"""A text that is moved by so much to the left or up is off the page."""
_NOTHING = re.compile(r"(?:0+(?:\.0\d*)?|\.0\d*|1(?=px|%|$))(?![\d.])")
_HIDING = {
    "display": re.compile(r"none"),
    "opacity": re.compile(r"(?:0|\.0)\d*(?:\.0\d*)?%?$"),
    "transform": re.compile(rf".*?(?:scale\w*\(0(?![\d.])|translate\w*\([^)]*{_FAR_OFF})"),
    "clip": re.compile(r"rect\((?:[01](?:px)?[\s,]*+){4}\)"),
    "clip-path": re.compile(r"inset\([^)]*(?:[5-9]\d|100)%|(?:circle|ellipse)\(0|polygon\((?:0(?:px|%)?[\s,]*+)++\)"),
    **dict.fromkeys(
        ("left", "right", "top", "bottom", "inset", "text-indent", "margin", "margin-left", "margin-top"),
        re.compile(rf".*?{_FAR_OFF}"),
    ),
}  # fmt: skip


def style_of(element: _Element) -> Style:
    """Return the declarations of an element's ``style``; of repeated ones the last counts."""
    text = element.get("style")
    if not text:
        return {}
    pairs = (pair.partition(":") for pair in _COMMENT.sub(" ", text[:_MAX_STYLE]).lower().split(";"))
    return {name.strip(): value.partition("!")[0].strip() for name, _, value in pairs if value.strip()}


def is_hidden(element: _Element, style: Style | None = None) -> bool:
    """Whether an element is hidden with all that is in it: not displayed, transparent, far off, clipped away, or of no size."""
    if "hidden" in element.attrib:
        return True
    style = style_of(element) if style is None else style
    return any(name in _HIDING and _HIDING[name].match(value) for name, value in style.items()) or (
        style.get("overflow", "").startswith(("hidden", "clip"))
        and all(_NOTHING.match(style.get(side, "-")) for side in ("width", "height"))
    )


_BEFORE_SIZE = re.compile(r"^\D*")
"""What may stand before the size in ``font``: style and weight in words."""
_AROUND = 8
"""Elements outward in which a background is sought."""
_NAMED = {"white": "#ffffff", "black": "#000000"}
_CLEAR = re.compile(r"transparent|rgba\((?:[^,/ )]+[,/ ]+){3}0?\.?0+\)|#(?:...0|.{6}00)")


def text_hidden(element: _Element, style: Style) -> dict[str, bool]:
    """Tell of ``font``, ``visibility`` and ``color``, which children inherit, whether the style hides text by them."""
    said: dict[str, bool] = {}
    size = style.get("font-size") or _BEFORE_SIZE.sub("", style.get("font", ""))
    if size:
        said["font"] = _NOTHING.match(size) is not None
    if "visibility" in style:
        said["visibility"] = style["visibility"] in {"hidden", "collapse"}
    color = _color(style.get("color") or (element.get("color") or "").lower())
    if color:
        said["color"] = color == "transparent" or color == _background(element)
    return said


def _color(value: str) -> str | None:
    """Return a colour as six hexadecimal digits or ``transparent``; None for a form that is hardly used to hide text."""
    if _CLEAR.fullmatch(value):
        return "transparent"
    numbers = re.fullmatch(r"rgba?\((\d{1,3})[, ]+(\d{1,3})[, ]+(\d{1,3})\)", value)
    if numbers:
        return "#" + "".join(f"{int(number):02x}" for number in numbers.groups())
    if re.fullmatch(r"#[0-9a-f]{3}", value):
        return "#" + "".join(digit * 2 for digit in value[1:])
    return value if re.fullmatch(r"#[0-9a-f]{6}", value) else _NAMED.get(value)


def _background(element: _Element) -> str | None:
    """Return the nearest background that stands inline; None where a picture or a style sheet may be in between."""
    for around in islice(chain((element,), element.iterancestors()), _AROUND):
        style = style_of(around)
        value = (
            style.get("background-color") or style.get("background") or (around.get("bgcolor") or "").lower()
        )
        if value:
            return _color(value.removesuffix(" none"))
        if "class" in around.attrib or "id" in around.attrib:
            return None
    return None
