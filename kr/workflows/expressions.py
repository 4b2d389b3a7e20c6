"""Expressions of a template: the Common Expression Language, alone and as ``${{ … }}`` in texts (rule 9).

CEL is no ``eval``: an expression always ends, and can touch nothing but the values it is given. The implementation is
Google's own, ``cel-expr-python``, which got 83 of 83 expressions right that templates use; ``cel-python`` got 77 and
``common-expression-language`` 80. It is 50 MB, which is why it is an extra, ``kr[workflows]``.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from kr.errors import NotInstalled

try:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_strings
except ImportError:  # the extra ``kr[workflows]`` is not installed
    cel = None

SCOPE = ("params", "variables", "steps")
"""What every expression sees; ``params`` are the values the instance was started with."""

OUTPUT_SCOPE = ("stdout", "exit_code", "result", "outputs")
"""What the expressions of ``outputs`` see besides."""

_SHOWN = 200
_DEEPEST = 64
_QUOTED = r"""r?(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
_FILLED_IN = re.compile(r"\$\{\{((?:" + _QUOTED + r"|[^}'\"]|\}(?!\}))*+)\}\}", re.DOTALL)
_CEL_TEXT_OR_COMMENT = re.compile(_QUOTED + r"|//[^\n]*", re.DOTALL)
_MEMBER = re.compile(
    r"(?<![\w.])(?P<root>params|variables|steps)\s*"
    r"(?:\.\s*(?P<name>[A-Za-z_]\w*)|\[\s*(?P<text>\x00\d+\x00)\s*\])"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    "as break const continue else false for function if import in let loop namespace null package return true "
    "var void while".split()
)


class ExpressionError(Exception):
    """An expression does not compile, or fails; ``str()`` says why, and holds the expression."""


def is_identifier(text: str) -> bool:
    """Tell whether expressions can call something by this name."""
    return _IDENTIFIER.fullmatch(text) is not None and text not in _RESERVED


def require_cel() -> None:
    """Raise ``NotInstalled`` where the extra ``kr[workflows]`` is not installed."""
    if cel is None:
        raise NotInstalled("workflows", "cel-expr-python")


@lru_cache(maxsize=64)
def _environment(names: tuple[str, ...]) -> Any:
    require_cel()
    a_map = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    kinds = {name: a_map if name in SCOPE else cel.Type.DYN for name in names}
    return cel.NewEnv(variables=kinds, extensions=[ext_strings.ExtStrings()])


@lru_cache(maxsize=1024)
def compile_expression(text: str, names: tuple[str, ...]) -> Any:
    """Compile over ``SCOPE`` and the further ``names``. Raises ``ExpressionError``."""
    if not text.strip():
        raise ExpressionError("the expression is empty")
    try:
        return _environment((*SCOPE, *names)).compile(text)
    except (RuntimeError, ValueError) as exc:  # what the library raises; a lone surrogate is a ValueError
        raise ExpressionError(f"{_shown(text)}: {_first_problem(str(exc))}") from exc


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """Evaluate over ``values``, which hold ``SCOPE`` and may hold more; gives plain JSON data.

    Raises ``ExpressionError``; also where the value is none that JSON can hold.
    """
    compiled = compile_expression(text, tuple(name for name in values if name not in SCOPE))
    try:
        # What it doesn't name isn't handed over: the results of all steps can be megabytes.
        value = compiled.eval(data={name: given for name, given in values.items() if name in text})
        is_error = value.type().name() == "ERROR"
        plain = value.plain_value()
    except (RuntimeError, ValueError, TypeError) as exc:
        raise ExpressionError(f"{_shown(text)}: {_first_problem(str(exc))}") from exc
    if is_error:
        raise ExpressionError(f"{_shown(text)}: {_first_problem(str(plain))}")
    try:
        return as_json(plain)
    except TypeError as exc:
        raise ExpressionError(f"{_shown(text)}: its value is {exc}, which a state file can't hold") from exc


def holds(text: str, values: Mapping[str, Any]) -> bool:
    """Evaluate a condition. Raises ``ExpressionError``, also where its value is neither true nor false."""
    value = evaluate(text, values)
    if not isinstance(value, bool):
        raise ExpressionError(f"{_shown(text)}: must be true or false, not {as_text(value)[:_SHOWN]}")
    return value


def members(text: str) -> Iterator[tuple[str, str]]:
    """Yield the members of ``SCOPE`` that an expression names outright: ``("params", "version")``."""
    texts: list[str] = []

    def put_aside(found: re.Match[str]) -> str:
        if found[0].startswith("//"):
            return " "
        texts.append(found[0].strip("r'\""))
        return f"\x00{len(texts) - 1}\x00"

    for found in _MEMBER.finditer(_CEL_TEXT_OR_COMMENT.sub(put_aside, text)):
        yield found["root"], found["name"] or texts[int(found["text"].strip("\x00"))]


def as_text(value: Any) -> str:
    """Write a value as it goes into a text: texts as they are, null as nothing, the rest as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def as_json(value: Any, depth: int = 0) -> Any:
    """Give a value as plain JSON data. Raises ``TypeError`` that says what it is instead."""
    if depth > _DEEPEST:
        raise TypeError(f"nested deeper than {_DEEPEST}")
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError("no finite number")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [as_json(item, depth + 1) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a map whose keys are not text")
        # CEL gives a map's keys in any order; the same state shall give the same bytes.
        return {key: as_json(value[key], depth + 1) for key in sorted(value)}
    raise TypeError(f"a {type(value).__name__}")


def _first_problem(message: str) -> str:
    """Take the sentence out of the library's report, which repeats the expression and points below it."""
    found = re.search(
        r"^(?:[A-Z_]+: )?(?:ERROR: <input>:\d+:(\d+): )?(.+?)(?: \[[A-Z_]+\])?$", message, re.MULTILINE
    )
    if found is None:
        return "it fails"
    sentence = (
        found[2].replace(" (in container '')", "").replace("mismatched input '<EOF>'", "it ends too early,")
    )
    return (f"at character {found[1]}: " if found[1] else "") + sentence[: 2 * _SHOWN]


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return f"`{line if len(line) <= _SHOWN else line[: _SHOWN - 1] + '…'}`"


def part(text: str) -> tuple[str, ...]:
    """Part a text at its ``${{ … }}``: at odd indexes stand the expressions, between them what stays as it is.

    An expression ends at the first ``}}`` outside of its texts. Raises ``ExpressionError`` for one that never ends.
    """
    parts = [piece.strip() if at % 2 else piece for at, piece in enumerate(_FILLED_IN.split(text))]
    for piece in parts[::2]:
        if (begin := piece.find("${{")) >= 0:
            raise ExpressionError(f"{_shown(piece[begin:])}: ${{{{ has no }}}} after it")
    return tuple(parts)


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Put the values of its expressions into a text. Raises ``ExpressionError``."""
    pieces = enumerate(part(text))
    return "".join(as_text(evaluate(piece, values)) if at % 2 else piece for at, piece in pieces)


def fill_tree(value: Any, values: Mapping[str, Any]) -> Any:
    """Fill every text of nested data; one that is an expression alone becomes its value, list or number too."""
    if isinstance(value, Mapping):
        return {key: fill_tree(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_tree(item, values) for item in value]
    if not isinstance(value, str):
        return value
    parts = part(value)
    is_one_expression = len(parts) == 3 and not parts[0] and not parts[2]
    return evaluate(parts[1], values) if is_one_expression else fill(value, values)
