"""Writes answers as block YAML: PyYAML writes the same, and to import it costs a third of what Python and click cost."""

import unicodedata
from collections.abc import Iterator
from typing import Any

_INDICATORS = frozenset("#,[]{}&*!|>'\"%@`?:")
# With these begins what one reader of YAML or another takes for a number, a date, null or a key of its own.
_NUMBERLIKE = frozenset("-+.0123456789~<=")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_LONGEST_KEY = 1000
"""Of a key that stands before its colon; YAML allows 1,024 characters."""


def to_yaml(value: Any) -> str:
    """Render nested plain data (mappings, lists, texts, numbers, None) as YAML that readers of 1.1 and 1.2 take alike.

    Texts of several lines are blocks, and letters stand as they are. Raises ``TypeError`` for other data.
    """
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: Any, pad: str) -> Iterator[str]:
    """Give the lines of a value, each behind ``pad``."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _pair(key, item, pad)
    elif isinstance(value, list | tuple) and value:
        for item in value:
            first, *rest = _lines(item, f"{pad}  ")
            yield f"{pad}- {first[len(pad) + 2 :]}"
            yield from rest
    else:
        yield pad + _scalar(value, pad or "  ")


def _pair(key: Any, item: Any, pad: str) -> Iterator[str]:
    name = _quoted(key) if isinstance(key, str) and "\n" in key else _scalar(key, pad)
    head = f"{pad}{name}:" if len(name) <= _LONGEST_KEY else f"{pad}? {name}\n{pad}:"
    if isinstance(item, dict | list | tuple) and item:
        yield head
        yield from _lines(item, f"{pad}  " if isinstance(item, dict) else pad)
    else:
        yield f"{head} {_scalar(item, f'{pad}  ')}"


def _scalar(value: Any, pad: str) -> str:
    if isinstance(value, str):
        return _text(value, pad)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if value == {}:
        return "{}"
    if value in ([], ()):
        return "[]"
    raise TypeError(f"{type(value).__name__} is no plain data")


def _float(value: float) -> str:
    shown = repr(value)
    if "n" in shown:  # inf and nan
        return f"{'-' if shown[0] == '-' else ''}.{shown.lstrip('-')}"
    # Without a point YAML 1.1 reads a text.
    return shown.replace("e", ".0e") if "." not in shown else shown


def _text(text: str, pad: str) -> str:
    if not _is_shown(text.replace("\n", "")):
        return _quoted(text)
    if "\n" in text:
        return _block(text, pad)
    if _is_plain(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _is_plain(text: str) -> bool:
    """Tell whether every reader takes these characters, without quotes, for this very text."""
    return (
        text != ""
        and text[0] not in _INDICATORS
        and text[0] not in _NUMBERLIKE
        and not text[0].isspace()
        and not text[-1].isspace()
        and text[-1] != ":"
        and ": " not in text
        and " #" not in text
        and text.lower() not in _WORDS
    )


def _block(text: str, pad: str) -> str:
    body = text.removesuffix("\n")
    lines = body.split("\n")
    # A block can't say where it begins or ends with blanks, and no editor keeps those at a line's end.
    if any(line[-1:].isspace() for line in lines) or not lines[0] or not lines[-1] or lines[0][0].isspace():
        return _quoted(text)
    indented = (pad + line if line else "" for line in lines)
    return "\n".join(("|" if text.endswith("\n") else "|-", *indented))


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "\n":
        return "\\n"
    if _is_shown(character):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_shown(text: str) -> bool:
    """Tell whether YAML takes all characters as they are; of those that are not seen, blanks and joiners only."""
    if text.isprintable():
        return True
    return all(
        character.isprintable() or (character != "\ufeff" and unicodedata.category(character) in {"Zs", "Cf"})
        for character in set(text)
    )
