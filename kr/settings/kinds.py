"""What a configuration is made of: sections of keys, and the kinds of value that a key may take.

A kind reads what was written, and knows what is allowed. So does a section, which is a kind itself.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from kr.tree import KeyPath
from kr.values import Value

_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9_]*)")
_YES_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


class Problem(NamedTuple):
    """What is wrong with one key; ``message`` follows the key's name in a sentence."""

    path: KeyPath
    message: str


class Wrong(ValueError):
    """What was written is not allowed. Paths are those below the key that was read."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems

    def below(self, key: str) -> list[Problem]:
        return [Problem((key, *path), message) for path, message in self.problems]


def wrong(message: str) -> Wrong:
    return Wrong(Problem((), message))


def shown(value: object) -> str:
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
    """A reader of one scalar. ``allowed`` follows "must be"; ``read`` raises ValueError; a secret's value is never shown."""

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

    return Kind(f"a whole number from {low} to {high}{_or_null(nullable)}", read, nullable=nullable)


def yes_no() -> Kind:
    def read(text: str) -> bool:
        try:
            return _YES_NO[text.strip().casefold()]
        except KeyError:
            raise ValueError from None

    return Kind("true or false", read)


def _fitting(
    allowed: str, fits: Callable[[str], bool], *, nullable: bool = False, secret: bool = False
) -> Kind:
    """Take the text as it is where it ``fits``, which may raise ValueError too."""

    def read(value: str) -> str:
        if not fits(value):
            raise ValueError
        return value

    return Kind(f"{allowed}{_or_null(nullable)}", read, nullable=nullable, secret=secret)


def _or_null(nullable: bool) -> str:
    return " or null" if nullable else ""


def one_of(*names: str, nullable: bool = False) -> Kind:
    return _fitting(f"one of {', '.join(names)}", names.__contains__, nullable=nullable)


def text(what: str = "text", *, pattern: str = r".+", nullable: bool = False, secret: bool = False) -> Kind:
    """Take printable text that is not blank and wholly matches the pattern."""

    def fits(value: str) -> bool:
        return bool(value.strip()) and value.isprintable() and re.fullmatch(pattern, value) is not None

    return _fitting(what, fits, nullable=nullable, secret=secret)


def web_address(*, nullable: bool = False) -> Kind:
    """Take an http or https URL. It may hold a key, so it is never shown."""

    def fits(value: str) -> bool:
        parts = urlsplit(value)
        _ = parts.port  # raises ValueError when it is none
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname)
        return is_web and " " not in value and value.isprintable()

    return _fitting("an http or https URL", fits, nullable=nullable, secret=True)


def header_value() -> Kind:
    return _fitting("text of one line", str.isprintable, secret=True)


def variable_value() -> Kind:
    """Take what an environment variable can hold, several lines included."""
    return _fitting("text without NUL", lambda value: "\0" not in value, secret=True)


def variable_name() -> Kind:
    """Take the name of an environment variable. A key pasted in its place is not shown."""
    return text("the name of an environment variable", pattern=_VARIABLE, nullable=True, secret=True)


def list_of(
    allowed: str, is_member: Callable[[object], bool], *, once: bool = False, secret: bool = False
) -> "Reader":
    """Take a list of such members, ``once``: each at most once; what is ``allowed`` follows "must be a list of"."""

    def read(value: object) -> object:
        items = value if isinstance(value, list | tuple) else [value]
        is_list = items is value and all(map(is_member, items))
        if not is_list or (once and len(set(items)) < len(items)):
            told = "" if secret else f", not {', '.join(map(shown, items[:5]))}"
            raise wrong(f"must be a list of {allowed}{told}")
        return tuple(items)

    return read


def mapping_of(kind: Kind, *, is_name: Callable[[str], bool] = bool, bad_name: str = "") -> "Reader":
    """Take a mapping whose values are all of one kind; a wrong one, and a name that is none, are told by the name."""

    def read(value: object) -> object:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise wrong(f"must be a mapping, not {shown(value)}")
        for key, item in value.items():
            try:
                kind(item)
            except ValueError as exc:
                raise wrong(f"has a wrong value for {shown(key)}: {exc}") from exc
            if not is_name(key):
                raise wrong(f"has a name that {bad_name} can have: {shown(key)}")
        return value

    return read


Reader = Callable[[object], Any]
"""Takes what was written and gives the value. Raises ``Wrong``."""


class Key(NamedTuple):
    """How a key is read, what holds without it, and what the template and the reference say of it."""

    read: Reader
    default: Any
    description: str
    is_hidden: bool = False
    """Whether it may hold a secret, so that no representation shows it."""

    @property
    def section(self) -> "type[Section] | None":
        return type(self.default) if isinstance(self.default, Section) else None


def key(read: Reader, default: object, description: str, *, is_hidden: bool = False) -> Any:
    return Key(read, default, description, is_hidden)


def section(kind: "type[Section]", description: str) -> Any:
    return Key(kind.read, kind(), description)


class Section(Value):
    """A mapping of the file. A key with nothing after it holds no keys; unknown keys are ignored here."""

    keys = MappingProxyType[str, Key]({})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.keys = MappingProxyType(
            {name: found for name, found in cls.__dict__.items() if isinstance(found, Key)}
        )
        cls._defaults = {name: found.default for name, found in cls.keys.items()}

    @classmethod
    def read(cls, data: object) -> Self:
        if data is not None and not isinstance(data, dict):
            raise wrong(f"must be a mapping, not {shown(data)}")
        values: dict[str, Any] = {}
        problems: list[Problem] = []
        written = data or {}
        for name, found in cls.keys.items():
            if name in written:
                try:
                    values[name] = found.read(written[name])
                except Wrong as error:
                    problems += error.below(name)
        if problems:
            raise Wrong(*problems)
        made = cls(**values)
        made.check()
        return made

    def check(self) -> None:
        """Raise ``Wrong`` where the values don't go together."""

    def __repr__(self) -> str:
        plain = (
            f"{name}={value!r}" for name, value in self.fields().items() if not self.keys[name].is_hidden
        )
        return f"{type(self).__name__}({', '.join(plain)})"
