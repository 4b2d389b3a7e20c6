"""The kinds of value that a key may take: each reads what was written and knows what is allowed."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic_core import PydanticCustomError

_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9_]*)")
_YES_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def wrong(message: str) -> PydanticCustomError:
    """Make the error whose message follows the key's name in a sentence."""
    # What was written travels as a value, never as a template.
    return PydanticCustomError("kr", "{message}", {"message": message})


def shown(value: object) -> str:
    """What was written, short and printable."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value)
    cut = text if len(text) <= 40 else text[:39] + "…"
    return f'"{cut}"' if cut.isprintable() else ascii(cut)


@dataclass(frozen=True, slots=True)
class Kind:
    """A validator for one scalar. ``allowed`` follows "must be"; ``read`` raises ValueError for the rest.

    A secret kind never shows the value that it refuses.
    """

    allowed: str
    read: Callable[[str], object]
    nullable: bool = False
    secret: bool = False

    def __call__(self, value: object) -> object:
        if value is None and self.nullable:
            return None
        if isinstance(value, str | int | float):
            try:
                return self.read(str(value))
            except ValueError:
                pass
        raise wrong(f"must be {self.allowed}" + ("" if self.secret else f", not {shown(value)}"))


def whole(low: int, high: int, *, nullable: bool = False) -> Kind:
    """Take a whole number within bounds, both inclusive; quoted digits are digits too."""

    def read(text: str) -> int:
        if len(text) > 20 or _WHOLE.fullmatch(text.strip()) is None:
            raise ValueError
        number = int(text)
        if not low <= number <= high:
            raise ValueError
        return number

    return Kind(
        f"a whole number from {low} to {high}{' or null' if nullable else ''}", read, nullable=nullable
    )


def yes_no() -> Kind:
    """Take a boolean as YAML 1.1 writes it."""

    def read(text: str) -> bool:
        try:
            return _YES_NO[text.strip().casefold()]
        except KeyError:
            raise ValueError from None

    return Kind("true or false", read)


def one_of(*names: str, nullable: bool = False) -> Kind:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError
        return text

    return Kind(f"one of {', '.join(names)}{' or null' if nullable else ''}", read, nullable=nullable)


def text(what: str = "text", *, pattern: str = r".+", nullable: bool = False, secret: bool = False) -> Kind:
    """Take printable text that is not blank and wholly matches the pattern."""
    compiled = re.compile(pattern)

    def read(value: str) -> str:
        if not value.strip() or not value.isprintable() or compiled.fullmatch(value) is None:
            raise ValueError
        return value

    return Kind(f"{what}{' or null' if nullable else ''}", read, nullable=nullable, secret=secret)


def web_address(*, nullable: bool = False) -> Kind:
    """Take an http or https URL. It may hold a key, so it is never shown."""

    def read(value: str) -> str:
        parts = urlsplit(value)
        _ = parts.port  # raises ValueError when it is none
        if (
            parts.scheme not in {"http", "https"}
            or not parts.hostname
            or " " in value
            or not value.isprintable()
        ):
            raise ValueError
        return value

    return Kind(f"an http or https URL{' or null' if nullable else ''}", read, nullable=nullable, secret=True)


def header_value() -> Kind:
    """Take what fits into one line of a header."""

    def read(value: str) -> str:
        if not value.isprintable():
            raise ValueError
        return value

    return Kind("text of one line", read, secret=True)


def variable_value() -> Kind:
    """Take what an environment variable can hold, several lines included."""

    def read(value: str) -> str:
        if "\0" in value:
            raise ValueError
        return value

    return Kind("text without NUL", read, secret=True)


def variable_name() -> Kind:
    """Take the name of an environment variable. A key pasted in its place is not shown."""
    return text("the name of an environment variable", pattern=_VARIABLE.pattern, nullable=True, secret=True)
