"""Python sources as sections: public names with their signature and docstring, read by ``ast`` and never run.

A name that a package hands on (``from ._core import Option`` in its ``__init__``) is told by the shortest public path that leads to it.
"""

import ast
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kr.documents.text import Section, pieces

_MOST_MEMBERS = 60
_MOST_DEPTH = 2
_MOST_HOPS = 6
"""Modules through which a name may be handed on."""
_MAX_SIGNATURE = 1_600
_MAX_VALUE = 160
SKIPPED = re.compile(
    r"(?:^|/)(?:tests|_vendor|vendor|vendored|examples?|benchmarks?|conftest)(?:/|\.pyi?$)|(?:^|/)test_[^/]*$"
)
"""Sources that do not count: tests, examples of the authors, others' packages that are carried along."""
_SECONDARY = re.compile(r"(?:^|\.)(?:_(?!_)|(?:v\d{1,2}|compat|deprecated|legacy)(?:\.|$))")
"""Private names, and what a package carries for those who still use something older."""
_SHOWN_DECORATORS = re.compile(r"property|classmethod|staticmethod|cached_property|.*contextmanager.*")
_Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(slots=True)
class _Module:
    name: str
    place: str
    is_package: bool
    sections: list[Section] = field(default_factory=list)
    imports: dict[str, str] = field(default_factory=dict)
    """Names of this module that come from elsewhere, and their whole dotted names there."""
    stars: list[str] = field(default_factory=list)
    listed: set[str] = field(default_factory=set)
    """What ``__all__`` lists."""


def python_sections(sources: Iterable[tuple[str, str]]) -> Iterator[Section]:
    """Yield the sections of a distribution's sources, given as ``(place, text)``; what can't be parsed has none."""
    modules = [module for place, text in sources if (module := _read_module(place, text)) is not None]
    public = _public_paths(modules)
    for module in modules:
        for section in module.sections:
            name = _public_name(section.name, public)
            yield replace(section, name=name, is_secondary=_is_secondary(name))


def module_name(place: str) -> str:
    """Return the dotted name of the module in a file: ``click/core.py`` is ``click.core``."""
    parts = re.sub(r"\.pyi?$", "", place).split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _is_secondary(name: str) -> bool:
    return _SECONDARY.search(name) is not None


# --- what one module holds ---


def _read_module(place: str, text: str) -> _Module | None:
    module = _Module(module_name(place), place, is_package="__init__.py" in place)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in a stranger's strings
            tree = ast.parse(text)
        doc = ast.get_docstring(tree) or ""
        module.sections += [Section(name=module.name, text=piece, place=place) for piece in pieces(doc)]
        _read_body(module, tree.body, module.name, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return module


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, those under a condition or ``try`` too."""
    for node in body:
        match node:
            case ast.If():
                yield from _statements([*node.body, *node.orelse])
            case ast.Try():
                yield from _statements(node.body)
            case _:
                yield node


def _read_body(module: _Module, body: Sequence[ast.stmt], prefix: str, depth: int) -> None:
    named: dict[str, _Named] = {}
    for node, after in pairwise([*_statements(body), ast.Pass()]):
        match node:
            case ast.ImportFrom() if not depth:
                _add_imports(module, node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                known = named.get(node.name)
                # Of overloads and of a property's parts the one that is documented stands for all.
                if known is None or (not ast.get_docstring(known) and ast.get_docstring(node)):
                    named[node.name] = node
            case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.AnnAssign(target=ast.Name(id="__all__")):
                constants = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
                module.listed |= {one for one in constants if isinstance(one, str)}
            case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
                match after:
                    case ast.Expr(value=ast.Constant(value=str(text))) if not name.startswith("_"):
                        signature = ast.unparse(node)[:_MAX_VALUE]
                        _put(module, f"{prefix}.{name}", signature, inspect.cleandoc(text))
    for name, definition in named.items():
        if not name.startswith("_"):
            _add_definition(module, f"{prefix}.{name}", definition, depth)


def _add_definition(module: _Module, name: str, node: _Named, depth: int) -> None:
    _put(module, name, _signature(node), ast.get_docstring(node) or "")
    if isinstance(node, ast.ClassDef) and depth < _MOST_DEPTH:
        _read_body(module, node.body, name, depth + 1)


def _add_imports(module: _Module, node: ast.ImportFrom) -> None:
    around = module.name.split(".")
    base = around[: len(around) - node.level + module.is_package] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(source)
        else:
            module.imports.setdefault(alias.asname or alias.name, f"{source}.{alias.name}")


def _put(module: _Module, name: str, signature: str, doc: str) -> None:
    shown = signature[:_MAX_SIGNATURE]
    for piece in list(pieces(doc)) or [""]:
        section = Section(name=name, text=piece, place=module.place, signature=shown, form="python")
        module.sections.append(section)


def _signature(node: _Named) -> str:
    decorators = [
        f"@{text}" for one in node.decorator_list if _SHOWN_DECORATORS.fullmatch(text := ast.unparse(one))
    ]
    if not isinstance(node, ast.ClassDef):
        returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        return "\n".join([*decorators, f"{kind} {node.name}({ast.unparse(node.args)}){returned}"])
    bases = ", ".join(map(ast.unparse, [*node.bases, *node.keywords]))
    lines = [*decorators, f"class {node.name}({bases})" if bases else f"class {node.name}"]
    methods = (one for one in node.body if isinstance(one, ast.FunctionDef))
    if made := next((one for one in methods if one.name == "__init__"), None):
        lines.append(f"    def __init__({ast.unparse(made.args)})")
    members = [_member(one) for one in node.body if isinstance(one, ast.AnnAssign | ast.Assign)]
    return "\n".join([*lines, *[line for line in members if line][:_MOST_MEMBERS]])


def _member(node: ast.AnnAssign | ast.Assign) -> str:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    if not isinstance(target, ast.Name) or target.id.startswith("_"):
        return ""
    line = ast.unparse(node)
    return f"    {line if len(line) <= _MAX_VALUE else line[:_MAX_VALUE] + '…'}"


# --- the public path of a name ---


def _public_paths(modules: Sequence[_Module]) -> dict[str, str]:
    """Return by the whole name of a definition the shortest public path that leads to it.

    A path is one by which the name can be imported and is meant to be: a package's ``__init__`` hands it on, or ``__all__`` lists it.
    """
    known = {module.name: module for module in modules}
    defined = {section.name for module in modules for section in module.sections}
    for module in modules:
        for star in (known[name] for name in module.stars if name in known):
            names = (one.name.removeprefix(f"{star.name}.") for one in star.sections)
            module.imports |= {name: f"{star.name}.{name}" for name in names if name not in module.imports}
    found: dict[str, str] = {}
    for module in modules:
        for name, target in () if _is_secondary(module.name) else module.imports.items():
            is_meant = name in module.listed if module.listed else module.is_package
            if is_meant and not name.startswith("_") and "." not in name:
                origin, path = _origin(target, known, defined), f"{module.name}.{name}"
                found[origin] = min(found.get(origin, origin), path, key=_order)
    return found


def _origin(name: str, known: Mapping[str, _Module], defined: set[str]) -> str:
    """Return the whole name under which a name that is handed on is defined, as far as that can be followed."""
    for _ in range(_MOST_HOPS):
        module, _, last = name.rpartition(".")
        if name in defined or module not in known or last not in known[module].imports:
            break
        name = known[module].imports[last]
    return name


def _order(name: str) -> tuple[bool, int, int]:
    return _is_secondary(name), name.count("."), len(name)


def _public_name(name: str, public: Mapping[str, str]) -> str:
    """Return a name by its public path, a member by its class's."""
    head, tail = name, ""
    while head:
        if head in public:
            return public[head] + tail
        head, dot, last = head.rpartition(".")
        tail = f"{dot}{last}{tail}"
    return name
