"""Reads a request document that a stranger wrote: YAML or JSON in, nested text out (SPEC 3.1).

Every scalar is the text that was written, so that ``framework_version: 2.10`` stays ``2.10``; which
text is a number or a boolean is for the validation of the request to decide.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from kr.errors import FieldError, InvalidRequest

if TYPE_CHECKING:
    import json

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | None"
KeyPath: TypeAlias = tuple[str | int, ...]

LIMIT = 1024 * 1024
DEPTH = 32
_SHOWN_WARNINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """``data`` holds dicts, lists, texts and None; ``warnings`` are sentences for a person."""

    data: dict[str, Tree]
    warnings: tuple[str, ...] = ()


def read_document(data: bytes, *, limit: int = LIMIT, depth: int = DEPTH) -> Document:
    """Parse one request of at most ``limit`` bytes, at most ``depth`` deep: JSON, or YAML with the core tags and no aliases.

    Of a key that stands twice the last counts, with a warning. Raises ``InvalidRequest`` with one ``FieldError``, whose field is the key's
    path, else ``request``, and with the texts at the document's top that were read before.
    """
    if len(data) > limit:
        refuse(f"the request is larger than {limit} bytes")
    text = _decode(data)
    doubles = Doubles()
    tree, json_problem = _read_json(text, depth, doubles)
    if tree is None:
        from kr.yamltext import read_yaml

        tree = read_yaml(text, depth, doubles, json_problem)
    if tree is None:
        refuse("the request is empty; it must be a mapping in YAML or JSON")
    if not isinstance(tree, dict):
        refuse(
            f"the request must be a mapping in YAML or JSON, not {'a list' if isinstance(tree, list) else 'plain text'}"
        )
    return Document(data=tree, warnings=doubles.warnings())


def show_path(path: KeyPath) -> str:
    """Write ``("a", "b", 0)`` as ``a.b[0]``: printable and bounded whatever the keys hold; ``request`` when empty."""
    shown = ""
    for step in path:
        shown += f"[{step}]" if isinstance(step, int) else f".{show_key(step)}"
    return shown.removeprefix(".") or "request"


def show_key(key: str) -> str:
    cut = key if len(key) <= 60 else key[:59] + "…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def refuse(message: str, path: KeyPath = ()) -> NoReturn:
    # A list's members are told under the list's own name: the validation table knows no `tags[0]`.
    named = tuple(step for step in path if isinstance(step, str))
    raise InvalidRequest(FieldError(show_path(named), message))


def _decode(data: bytes) -> str:
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8"
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode(encoding)
    except UnicodeDecodeError as exc:
        problem = (
            f"the request is not {'UTF-16' if encoding == 'utf-16' else 'UTF-8'} text (byte {exc.start})"
        )
        raise InvalidRequest(FieldError("request", problem)) from exc


def at_place(line: int, column: int) -> str:
    return f"line {line + 1}, column {column + 1}"


class Doubles:
    """The keys that were given more than once; and the texts that a ``#`` without quotes ended, as in ``What is #include?``."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self.cut: dict[str, int] = {}

    def note(self, path: KeyPath) -> None:
        self.paths.setdefault(show_path(path))

    def warnings(self) -> tuple[str, ...]:
        shown = [
            f"{path} is given more than once; the last one counts"
            for path in list(self.paths)[:_SHOWN_WARNINGS]
        ]
        shown += [
            f"{path}: what follows # in line {line} is a comment in YAML and was not read; put the text in quotes"
            for path, line in list(self.cut.items())[:_SHOWN_WARNINGS]
        ]
        if len(self.paths) > _SHOWN_WARNINGS:
            shown.append(f"{len(self.paths) - _SHOWN_WARNINGS} more keys are given more than once")
        return tuple(shown)


class _Pairs(list[tuple[str, object]]):
    """A JSON object as it was written, double keys included."""


def _read_json(text: str, depth: int, doubles: Doubles) -> tuple[Tree, str | None]:
    """Return the tree, or None and what the JSON reader minded (None when the text does not look like JSON)."""
    body = text.lstrip(" \t\r\n")
    if not body.startswith("{"):
        return None, None
    import json

    try:
        return _from_json(_json_decoder().decode(text), (), doubles, depth), None
    except RecursionError:  # the reader of YAML says where it becomes too deep
        return None, None
    except json.JSONDecodeError as exc:
        looks_like_json = body[1:].lstrip().startswith('"')
        return None, f"{at_place(exc.lineno - 1, exc.colno - 1)}: {exc.msg}" if looks_like_json else None


@cache
def _json_decoder() -> "json.JSONDecoder":
    import json

    return json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str)


def _from_json(value: object, path: KeyPath, doubles: Doubles, depth: int) -> Tree:
    if len(path) >= depth and isinstance(value, list):
        raise RecursionError
    if isinstance(value, _Pairs):
        mapping: dict[str, Tree] = {}
        for key, item in value:
            here = (*path, key)
            checked(key, here)
            if key in mapping:
                doubles.note(here)
            mapping[key] = _from_json(item, here, doubles, depth)
        return mapping
    if isinstance(value, list):
        return [_from_json(item, (*path, index), doubles, depth) for index, item in enumerate(value)]
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else checked(str(value), path)


def checked(text: str, path: KeyPath) -> str:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        refuse("a lone surrogate (\\ud800 to \\udfff) is not a character", path)
    return text
