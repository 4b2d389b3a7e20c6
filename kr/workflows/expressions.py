"""Expressions of a template: the Common Expression Language, alone and as ``${{ … }}`` in texts (rule 9).

CEL is no ``eval``: an expression always ends, and can touch nothing but the values it is given. The implementation is
Google's own, ``cel-expr-python``; it is 50 MB, which is why it is an extra, ``kr[workflows]``.

A value reaches a shell command through an environment variable that the command expands as one quoted word. The shell
never reads the value itself as code, so none can become a command.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kr.errors import NotInstalled
from kr.text import one_line

try:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_strings
except ImportError:  # the extra ``kr[workflows]`` is not installed
    cel = None

SCOPE = ("params", "variables", "steps")
"""What every expression sees; ``params`` are the values the instance was started with."""

OUTPUT_SCOPE = ("stdout", "exit_code", "result")
"""What the expressions of ``outputs`` see besides."""

_FILLED_IN = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_TEXT_OR_COMMENT = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|//[^\n]*""")
_MEMBER = re.compile(r"(?<![\w.])(params|variables|steps)\s*\.\s*([A-Za-z_]\w*)")
# What the shell reads as one piece, so that a quote in it opens nothing; the group is a quote that stays open.
_SHELL_PIECES = re.compile(
    r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?<![^\s;&|()<>])\#[^\n]*|(?P<open>['"])""", re.DOTALL
)


class ExpressionError(Exception):
    """An expression does not compile, or fails; ``str()`` says why, and holds the expression."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"`{one_line(text, 200)}`: {problem}")


@lru_cache(maxsize=1024)
def compile_expression(text: str, names: tuple[str, ...]) -> Any:
    """Compile over ``SCOPE`` and the further ``names``. Raises ``ExpressionError``, or ``NotInstalled`` without the extra."""
    if cel is None:
        raise NotInstalled("workflows", "cel-expr-python")
    a_map = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    kinds = dict.fromkeys(names, cel.Type.DYN) | dict.fromkeys(SCOPE, a_map)
    try:
        return cel.NewEnv(variables=kinds, extensions=[ext_strings.ExtStrings()]).compile(text)
    except (RuntimeError, ValueError) as exc:  # what the library raises; a lone surrogate is a ValueError
        raise ExpressionError(text, _problem(exc)) from exc


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """Evaluate over ``values``, which hold ``SCOPE`` and may hold more; gives plain JSON data.

    Raises ``ExpressionError``; also where the value is none that JSON can hold.
    """
    compiled = compile_expression(text, tuple(name for name in values if name not in SCOPE))
    try:
        # What it doesn't name isn't handed over: the results of all steps can be megabytes.
        value = compiled.eval(data={name: given for name, given in values.items() if name in text})
        plain = value.plain_value()
        if value.type().name() == "ERROR":
            raise ExpressionError(text, _problem(plain))
        # CEL gives a map's keys in any order; the same state shall give the same bytes.
        return json.loads(json.dumps(plain, sort_keys=True, allow_nan=False))
    except (RuntimeError, ValueError, TypeError) as exc:
        raise ExpressionError(text, _problem(exc)) from exc


def holds(text: str, values: Mapping[str, Any]) -> bool:
    """Evaluate a condition. Raises ``ExpressionError``, also where its value is neither true nor false."""
    value = evaluate(text, values)
    if not isinstance(value, bool):
        raise ExpressionError(text, f"must be true or false, not {one_line(as_text(value), 200)}")
    return value


def members(text: str) -> list[tuple[str, str]]:
    """List the members of ``SCOPE`` that an expression names with a dot: ``("params", "version")``."""
    return _MEMBER.findall(_TEXT_OR_COMMENT.sub(" ", text))


def as_text(value: Any) -> str:
    """Write a value as it goes into a text: texts as they are, null as nothing, the rest as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _problem(error: object) -> str:
    """Take the sentence out of the library's report, which repeats the expression and points below it."""
    line = str(error).partition("\n")[0].partition(": ")[2] or str(error)
    return line.removeprefix("ERROR: <input>:").replace(" (in container '')", "")[:400]


# --- in texts


def expressions(text: str) -> list[str]:
    """List the expressions of a text: each ends at the first ``}}``. Raises ``ExpressionError`` for one that never ends."""
    rest = _FILLED_IN.sub("", text)
    if "${{" in rest:
        raise ExpressionError(rest[rest.index("${{") :], "${{ has no }} after it")
    return [found[1].strip() for found in _FILLED_IN.finditer(text)]


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Put the values of its expressions into a text. Raises ``ExpressionError``."""
    return _FILLED_IN.sub(lambda found: as_text(evaluate(found[1], values)), text)


def fill_tree(value: Any, values: Mapping[str, Any]) -> Any:
    """Fill every text of nested data; one that is an expression alone becomes its value, list or number too."""
    if isinstance(value, Mapping):
        return {key: fill_tree(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_tree(item, values) for item in value]
    if not isinstance(value, str):
        return value
    found = _FILLED_IN.match(value)
    is_alone = found is not None and found.end() == len(value)
    return evaluate(found[1], values) if found and is_alone else fill(value, values)


# --- in shell commands


def fill_shell(text: str, values: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Give a shell command and the environment variables that hold the values of its expressions.

    Raises ``ExpressionError``.
    """
    require_words(text)  # a state file that a person edited was never validated
    variables: dict[str, str] = {}

    def word(found: re.Match[str]) -> str:
        name = f"KR_VALUE_{len(variables) + 1}"
        variables[name] = as_text(evaluate(found[1], values))
        return f'"${name}"'

    return _FILLED_IN.sub(word, text), variables


def require_words(text: str) -> None:
    """Refuse a shell command with an expression where a quoted word would not be one word.

    It could reach a second shell there, or arithmetic. In doubt it is refused. Raises ``ExpressionError``.
    """
    for found in _FILLED_IN.finditer(text):
        before = _FILLED_IN.sub("x", text[: found.start()])
        is_quoted = any(piece["open"] for piece in _SHELL_PIECES.finditer(before))
        is_arithmetic = before.rfind("$((") > before.rfind("))")
        if is_quoted or is_arithmetic or "<<" in before or before.endswith(("$", "\\")):
            where = "inside quotes, arithmetic, or behind << or a $ or \\"
            raise ExpressionError(
                found[1], f"stands {where}; it becomes a quoted word by itself, or goes into env"
            )
