"""What a Python package offers: the names that its ``__init__`` files import, and the modules that it keeps to itself."""

import ast
import re
import warnings
from collections.abc import Iterable

_INTERNAL = re.compile(
    r"_\w+|internals?|tests?|testing_support|vendor(?:ed)?|v\d+|compat|legacy|deprecated", re.ASCII
)


def exported_names(sources: Iterable[str]) -> frozenset[str]:
    """Return the names that the texts of ``__init__`` files import from other modules or list in ``__all__``."""
    found: set[str] = set()
    for source in sources:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # another package's odd escapes are not our warnings
                tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found.update(alias.asname or alias.name for alias in node.names)
            elif isinstance(node, (ast.Assign, ast.AugAssign)) and _is_all(node):
                found.update(_texts(node.value))
    return frozenset(name for name in found if not name.startswith("_") and name != "*")


def standing(name: str, exported: frozenset[str]) -> float:
    """Return how much the documentation of ``package.module.Class.method`` speaks to users, 0.6 to 1.25.

    More when the package exports it or its class, less when it stands in a module that is kept private.
    """
    _, *parts = name.split(".")
    is_private = any(_INTERNAL.fullmatch(part) for part in parts)
    if any(part in exported for part in parts if not part[:1].islower() or part == parts[-1]):
        return 1.15 if is_private else 1.25
    return 0.6 if is_private else 1.0


def _is_all(node: ast.Assign | ast.AugAssign) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _texts(node: ast.expr) -> list[str]:
    return [
        item.value
        for item in ast.walk(node)
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]
