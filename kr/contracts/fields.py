"""The kinds of field that requests are made of, and how a bad one is named.

A request is a table of readers: each takes what was given (None where nothing was) and returns the value, or raises
``Bad``. Every message is a detail after the seed's words ``Validation failed:`` (seed 000, step 1).
"""

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kr.errors import FieldError
from kr.naming import nearest
from kr.values import NamedTuple

_LINE_SEPARATORS = "\u2028\u2029"
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol that are blank."""
_MOST_DIGITS = 18
"""A longer number fits no integer column and no timer, and nobody means it."""


class Bad(Exception):
    """What was given is not allowed; the text is the whole message."""


def bad(detail: str) -> Bad:
    """Make the error that reads ``Validation failed: {detail}``."""
    return Bad(f"Validation failed: {detail}")


Reader = Callable[[Any], Any]


class Field(NamedTuple):
    """How a field is read. Where its key is missing, ``read`` gets None, unless there is a ``default``."""

    read: Reader
    default: Any = NotImplemented


Fields = Mapping[str, Field]


def read_fields(
    fields: Fields, data: Mapping[str, Any], prefix: str = ""
) -> tuple[dict[str, Any], list[FieldError]]:
    """Read every field; give what could be read, and an error for each that could not, by its dotted name."""
    read: dict[str, Any] = {}
    errors: list[FieldError] = []
    for name, field in fields.items():
        if name not in data and field.default is not NotImplemented:
            read[name] = field.default
            continue
        try:
            read[name] = field.read(data.get(name))
        except Bad as wrong:
            errors.append(FieldError(f"{prefix}{name}", f"{wrong}{misspelt(name, fields, data)}"))
    return read, errors


def misspelt(name: str, known: Collection[str], data: Mapping[str, Any]) -> str:
    """End the message of a missing key: with the unknown key that is spelt nearly like it, or with nothing."""
    if name in data:
        return ""
    near = (key for key in data if key not in known and nearest(key, known) == name)
    return "".join(f"; {shown(key)} is unknown: did you mean {name}?" for key in near)


def unknown_keys(
    known: Mapping[str, Any],
    data: Mapping[str, Any],
    prefix: str = "",
    within: Mapping[str, Fields] = MappingProxyType({}),
) -> Iterator[str]:
    """Name every key that is not ``known``, nor known ``within`` a block."""
    for key, value in data.items():
        if key not in known:
            yield f"{prefix}{key}"
        elif key in within and isinstance(value, Mapping):
            yield from unknown_keys(within[key], value, f"{prefix}{key}.")


def as_text(value: object) -> str:
    """Take a scalar as text; refuse lists and mappings. Booleans and numbers read as YAML writes them."""
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise bad("is not valid Unicode text")
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        raise bad("required, but missing")
    raise bad(f"must be text, not a {'mapping' if isinstance(value, Mapping) else 'list'}")


def is_blank(text: str) -> bool:
    """Tell whether a text shows nothing: white space and invisible characters alone."""
    return all(c.isspace() or c in _FILLERS or unicodedata.category(c) == "Cf" for c in text)


def text(value: object) -> str:
    """Take text that is not blank; white space alone is (SPEC 3.1)."""
    taken = as_text(value)
    if is_blank(taken):
        raise bad("must not be empty")
    return taken


def line(value: object) -> str:
    """Take text that is not blank, without control characters and line breaks (SPEC 3.7), trimmed."""
    taken = text(value)
    for character in taken:
        if unicodedata.category(character) == "Cc" or character in _LINE_SEPARATORS:
            raise bad(f"must not contain line breaks or control characters (found U+{ord(character):04X})")
    return taken.strip()


def story_key(value: object) -> str:
    """Take an epic and a story: ``3-1``."""
    taken = text(value)
    epic, _, story = taken.partition("-")
    if not all(part.isascii() and part.isdigit() for part in (epic, story)):
        raise bad(f"must look like 3-1 (epic-story, digits only), not {shown(taken)}")
    return taken


def phase_of(phases: Sequence[str]) -> Reader:
    """Take one of the legal phase tags."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in phases:
            return value
        detail = shown(value) if value else "required, but missing"
        raise Bad(f"Invalid phase tag: {detail}; allowed: {', '.join(phases)}")

    return read


def one_of(*names: str) -> Reader:
    """Take one of these words."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise bad(f"must be one of {', '.join(names)}, not {shown(value)}")

    return read


def yes_no(value: object) -> bool:
    """Take a boolean, or as a document's text has it: scalars are read as text (SPEC 3.1)."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else None
    if word not in {"true", "false"}:
        raise bad(f"must be true or false, not {shown(value)}")
    return word == "true"


def optional_paths(value: object) -> tuple[str, ...]:
    """Take paths or a single one, and pass over what is none: optional fields never stop a recording."""
    given = value if isinstance(value, list | tuple) else (value,)
    texts = (as_text(item) for item in given if item is not None and not isinstance(item, Mapping | list))
    return tuple(path for path in texts if path.strip())


def optional_text(value: object) -> str:
    """Take text that may be missing; a list's members stand side by side."""
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, list | tuple):
        members = (item for item in value if item is not None and not isinstance(item, Mapping | list))
        return ", ".join(map(as_text, members)).strip()
    return as_text(value).strip()


def read_count(value: object, *, zero_is_meant: bool) -> int | None:
    """Read an override that must be a positive integer below 10**18; ``None`` when it is none (seed 000, step 1).

    ``zero_is_meant`` lets ``0`` through (SPEC 3.1: ``max_calls: 0`` means that nothing is left).
    """
    digits = value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""
    if not (digits.isascii() and digits.isdigit()) or (digits[0] == "0" and digits != "0"):
        return None
    if digits == "0" and not zero_is_meant:
        return None
    return int(digits) if len(digits) <= _MOST_DIGITS else None


def shown(value: object, limit: int = 60) -> str:
    """Quote what was given, shortened, in one line, for a message."""
    given = value if isinstance(value, str) else str(value)
    given = "".join(c if c.isprintable() else "\ufffd" for c in given[: limit + 1])
    return f'"{given[:limit]}…"' if len(given) > limit else f'"{given}"'
