"""The command line options of a Python program, from their help strings: argparse, click and typer say them alike."""

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache

from kr.packages.documented import Documented
from kr.packages.restructured import code_span

_CALLS = frozenset({"add_argument", "option", "Option", "argument", "Argument", "version_option"})
_HINT = ("add_argument(", "option(", "Option(")


@lru_cache(maxsize=256)
def parse_options(source: str, module: str) -> list[Documented]:
    """Return the options that a module declares, those of one function together; nothing when it is no valid Python.

    The option's names and its help are told, its default where that is a constant.
    """
    if "help" not in source or not any(hint in source for hint in _HINT):
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # another package's odd escapes are not our warnings
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    groups: dict[str, list[str]] = {}
    for owner, call in _calls(tree, ""):
        if item := _item(call):
            groups.setdefault(owner, []).append(item)
    return [
        Documented(
            f"{module}.{owner}.options" if owner else f"{module}.options", "", "\n".join(dict.fromkeys(items))
        )
        for owner, items in groups.items()
    ]


def _calls(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls that declare options, with the function that they stand in or decorate."""
    for child in ast.iter_child_nodes(node):
        inner = owner
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{owner}.{child.name}" if owner else child.name
        if isinstance(child, ast.Call):
            name = child.func.attr if isinstance(child.func, ast.Attribute) else getattr(child.func, "id", "")
            if name in _CALLS:
                yield owner, child
        yield from _calls(child, inner)


def _item(call: ast.Call) -> str:
    names = [text for argument in call.args if (text := _text(argument)) and text.startswith("-")]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    said = _text(keywords.get("help"))
    if not names or not said:
        return ""
    default = keywords.get("default")
    known = ast.unparse(default) if isinstance(default, ast.Constant) and default.value is not None else ""
    shown = ", ".join(code_span(name) for name in names)
    return f"- {shown}: {' '.join(said.split())}" + (f" Default: {code_span(known)}." if known else "")


def _text(node: ast.expr | None) -> str:
    """Return a text constant, also one of several joined by ``+`` or in brackets of a translation call."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _text(node.args[0])
    return ""
