"""Nested plain data as it was written: its type, how JSON is read as such, and how a place in it is named."""

import json
from typing import Any, TypeAlias

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | None"
"""Every scalar is the text that was written."""
KeyPath: TypeAlias = tuple[str | int, ...]

DEPTH = 32
"""How deep mappings and lists may be nested."""


def show_path(path: KeyPath) -> str:
    """Write ``("a", "b", 0)`` as ``a.b[0]``, printable and bounded whatever the keys hold."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{shown_key(step)}" for step in path)
    return "".join(steps).removeprefix(".")


def shown_key(key: str) -> str:
    """Write a key in one short printable word."""
    cut = key if len(key) <= 60 else key[:59] + "…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def read_json(text: str) -> Tree:
    """Read JSON. Raises ``ValueError`` for what is none or has a key twice, ``RecursionError`` beyond ``DEPTH``."""
    value = json.loads(text, object_pairs_hook=_mapping, parse_int=str, parse_float=str, parse_constant=str)
    return _as_tree(value, DEPTH)


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key is given twice")
    return mapping


def _as_tree(value: Any, depth: int) -> Tree:
    if depth < 0:
        raise RecursionError
    if isinstance(value, dict):
        return {_unicode(key): _as_tree(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_tree(item, depth - 1) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else _unicode(value)


def _unicode(text: str) -> str:
    text.encode()  # a lone surrogate is a ValueError
    return text
