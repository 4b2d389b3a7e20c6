"""How a person sees plain data: a table of rows, a line for each key of a mapping, an envelope with what was wrong."""

import re
import sys
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from kr.text import columns, one_line

_LONGEST = 2000
_MOST_ROWS = 12
_NOTHING: tuple[object, ...] = (None, [], "")
_LEAST = 24
"""What is wider than so many columns may be wrapped in a table."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):[\d.]+Z")


def readable(value: Any, indent: str = "") -> list[str]:
    """Show nested plain data: a line for each key of a mapping, a paragraph for each row of a list."""
    if isinstance(value, list):
        return table(value, indent) or [line for row in value for line in _row(row, indent)]
    lines: list[str] = []
    for name, it in value.items():
        label = f"{indent}{name.replace('_', ' ')}: "
        if block := _block(it, f"{indent}  "):
            lines += [label.rstrip(), *block]
        else:
            lines += wrapped(label, _scalar(it), f"{indent}    ")
    return lines


def table(rows: list[dict[str, Any]], indent: str = "") -> list[str]:
    """Lay rows out under the names of their keys, wide cells wrapped; none where the terminal has no room, or none reads."""
    names = [name for name in (rows[0] if rows else ()) if any(row.get(name) not in _NOTHING for row in rows)]
    is_plain = all(
        row.keys() == rows[0].keys() and not any(_block(row[it], "") for it in names) for row in rows
    )
    if not (names and is_plain):
        return []
    cells = [[name.replace("_", " "), *(_scalar(row[name]) for row in rows)] for name in names]
    widths = [max(map(columns, column)) for column in cells]
    least = [min(_LEAST, max(map(columns, [*name.split(), *column]))) for name, *column in cells]
    while sum(widths) + 2 * len(widths) > width() - len(indent):
        spare = [has - needs for has, needs in zip(widths, least, strict=True)]
        if not any(spare):
            return []
        widths[spare.index(max(spare))] -= 1
    lines: list[str] = []
    for row_of_cells in zip(*cells, strict=True):
        folded = [_folded(cell, most) for cell, most in zip(row_of_cells, widths, strict=True)]
        for parts in zip_longest(*folded, fillvalue=""):
            padded = (part + " " * (most - columns(part)) for part, most in zip(parts, widths, strict=True))
            lines.append(f"{indent}{'  '.join(padded)}".rstrip())
    return lines


def _folded(text: str, most: int) -> list[str]:
    """Break a text into lines of so many columns; a Chinese letter has two."""
    from textwrap import wrap  # heavy

    return wrap(text, most if columns(text) == len(text) else most // 2)


def _row(row: dict[str, Any], indent: str) -> list[str]:
    """Show a row: what comes first in it, what is known beside it, then what takes lines of its own."""
    blocks = {name: it for name, it in row.items() if _block(it, "")}
    title, *names = (name for name in row if name not in blocks)
    known = [name for name in names if row[name] not in _NOTHING]
    beside = "; ".join(f"{name.replace('_', ' ')} {_scalar(row[name])}" for name in known)
    below = f"{indent}    "
    return [*wrapped(f"{indent}{_scalar(row[title])}  ", beside, below), *readable(blocks, below)]


def _block(value: Any, indent: str) -> list[str]:
    """Return the lines of what does not stand on one; none of anything else."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(it, dict) for it in value)):
        rows = value[:_MOST_ROWS] if isinstance(value, list) else value
        more = len(value) - len(rows)
        return readable(rows, indent) + ([f"{indent}… {more} more: --format json"] if more else [])
    return [f"{indent}| {line}" for line in value.strip("\n").splitlines()] if "\n" in str(value) else []


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_scalar, value)) or "-"
    if value is None or value == {}:
        return "-"
    return one_line(_TIME.sub(r"\1 \2", str(value)), _LONGEST)


def width() -> int:
    """Return the columns of the terminal, 40 at least; 0 where none reads."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 0
    from shutil import get_terminal_size  # heavy: it imports three compressors

    return max(get_terminal_size((80, 24)).columns, 40)


def wrapped(label: str, text: str, indent: str) -> list[str]:
    """Return ``label`` and ``text`` as lines of at most the terminal's width. Where no terminal reads, nothing is wrapped."""
    line = f"{label}{text}".rstrip()
    if not (columns := width()):
        return [line]
    from textwrap import wrap  # heavy

    return wrap(line, columns, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True) or [""]


def envelope_view(value: dict[str, Any]) -> list[str]:
    """Show what a request got back: its status, what was wrong with it, and its results."""
    return [value["status"], *problem_lines(value), *readable(value["results"] or {}, "  ")]


def problem_lines(value: dict[str, Any]) -> Iterator[str]:
    """Say what is wrong with a request; a field by the last part of its name, as its option is called."""
    for problem in value["errors"]:
        message = problem["message"].removeprefix("Validation failed: ")
        field = (problem.get("field") or "").rpartition(".")[2]
        yield from wrapped("  error  ", f"{field}: {message}" if field else message, "    ")
