"""Python sources as sections: public names with their signature and docstring, read by ``ast`` and never run (SPEC 3.5).

A name that a public module hands on (``from ._core import Option``) is told by the shortest public path that leads to it.
"""

import ast
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kr.documents.text import MAX_SECTION, Section, pieces

MAX_SOURCE = 2_000_000
"""Bytes of a source that are read; a longer one is no source that somebody wrote."""

_MOST_MEMBERS = 60
_MOST_DEPTH = 2
_MAX_SIGNATURE = 1_600
_MAX_VALUE = 80
_SKIPPED = re.compile(
    r"(?:^|/)(?:tests?|testing|_vendor|vendor|vendored|examples?|benchmarks?|conftest)(?:/|\.pyi?$)|(?:^|/)test_[^/]*$"
)
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


def is_read(place: str) -> bool:
    """Tell whether a source counts: no tests, no examples of its authors, no other's package that is carried along."""
    return not _SKIPPED.search(place)


def python_sections(sources: Iterable[tuple[str, str]]) -> Iterator[Section]:
    """Yield the sections of a distribution's sources, given as ``(place, text)``; what can't be parsed has none."""
    modules = [module for place, text in sources if (module := _read_module(place, text)) is not None]
    public = _public_paths(modules)
    for module in modules:
        for section in module.sections:
            name = _public_name(section.name, public)
            yield replace(section, name=name, is_private=_is_private(name))


def module_name(place: str) -> str:
    """Return the dotted name of the module in a file: ``click/core.py`` is ``click.core``."""
    parts = re.sub(r"\.(?:pyi?|pyx)$", "", place).split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def _read_module(place: str, text: str) -> _Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in a stranger's strings
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    module = _Module(module_name(place), place, is_package="__init__.py" in place)
    if doc := ast.get_docstring(tree):
        module.sections += [Section(name=module.name, text=piece, place=place) for piece in pieces(doc)]
    try:
        _Reader(module).read(tree.body, module.name, 0)
    except RecursionError:
        return module  # what was read before it counts
    return module


@dataclass(slots=True)
class _Reader:
    """Takes the names out of one module."""

    module: _Module

    def read(self, body: Sequence[ast.stmt], prefix: str, depth: int) -> None:
        named: dict[str, _Named] = {}
        for at, node in enumerate(body):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    if not node.name.startswith("_"):
                        known = named.get(node.name)
                        # Of overloads and of a property's parts the one that is documented tells of all.
                        if known is None or (not ast.get_docstring(known) and ast.get_docstring(node)):
                            named[node.name] = node
                case ast.ImportFrom() if depth == 0:
                    self._import(node)
                case ast.If():
                    self.read([*node.body, *node.orelse], prefix, depth)
                case ast.Try():
                    self.read(node.body, prefix, depth)
                case ast.Assign() | ast.AnnAssign():
                    self._assigned(node, body[at + 1] if at + 1 < len(body) else None, prefix)
        for name, node in named.items():
            self._add(f"{prefix}.{name}", node, depth)

    def _import(self, node: ast.ImportFrom) -> None:
        around = self.module.name.split(".")
        base = around[: len(around) - node.level + self.module.is_package] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            if alias.name == "*":
                self.module.stars.append(source)
            else:
                self.module.imports[alias.asname or alias.name] = f"{source}.{alias.name}"

    def _assigned(self, node: ast.Assign | ast.AnnAssign, after: ast.stmt | None, prefix: str) -> None:
        """Take a constant or attribute that has a docstring of its own below it."""
        is_told = (
            isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        )
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not is_told or not isinstance(target, ast.Name) or target.id.startswith("_"):
            return
        text = after.value.value  # type: ignore[union-attr]  # seen above
        signature = ast.unparse(node)[: 2 * _MAX_VALUE]
        self._put(f"{prefix}.{target.id}", signature, inspect.cleandoc(text))

    def _add(self, name: str, node: _Named, depth: int) -> None:
        told = _take_docs(node)
        doc = ast.get_docstring(node) or ""
        self._put(name, _signature(node), "\n\n".join([doc, *told] if doc else told))
        if isinstance(node, ast.ClassDef) and depth < _MOST_DEPTH:
            self.read(node.body, name, depth + 1)

    def _put(self, name: str, signature: str, doc: str) -> None:
        for piece in list(pieces(doc, MAX_SECTION)) or [""]:
            self.module.sections.append(
                Section(
                    name=name,
                    text=piece,
                    place=self.module.place,
                    signature=signature[:_MAX_SIGNATURE],
                    form="python",
                )
            )


def _take_docs(node: _Named) -> list[str]:
    """Take the texts of ``Annotated[..., Doc("…")]`` (PEP 727) out of a function's parameters; return them as lines of its docstring."""
    made = node if not isinstance(node, ast.ClassDef) else _initializer(node)
    arguments = [*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs] if made else []
    told: list[str] = []
    for argument in arguments:
        match argument.annotation:
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[kind, *others])):
                texts = [
                    one.args[0].value
                    for one in others
                    if isinstance(one, ast.Call) and one.args and isinstance(one.args[0], ast.Constant)
                ]
                argument.annotation = kind
                told += [
                    f"`{argument.arg}`: {inspect.cleandoc(text)}" for text in texts if isinstance(text, str)
                ]
    return told


def _initializer(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next(
        (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None
    )


def _signature(node: _Named) -> str:
    if not isinstance(node, ast.ClassDef):
        returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        return "\n".join([*_decorators(node), f"{kind} {node.name}({ast.unparse(node.args)}){returned}"])
    bases = ", ".join(map(ast.unparse, [*node.bases, *node.keywords]))
    lines = [*_decorators(node), f"class {node.name}({bases})" if bases else f"class {node.name}"]
    if made := _initializer(node):
        lines.append(f"    def __init__({ast.unparse(made.args)})")
    members = [_member(one) for one in node.body if isinstance(one, ast.AnnAssign | ast.Assign)]
    return "\n".join([*lines, *[line for line in members if line][:_MOST_MEMBERS]])


def _member(node: ast.AnnAssign | ast.Assign) -> str:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    if not isinstance(target, ast.Name) or target.id.startswith("_"):
        return ""
    line = ast.unparse(node)
    return f"    {line if len(line) <= _MAX_VALUE * 2 else line[: _MAX_VALUE * 2] + '…'}"


def _decorators(node: _Named) -> list[str]:
    told = [ast.unparse(one) for one in node.decorator_list]
    return [
        f"@{one}"
        for one in told
        if one in {"property", "classmethod", "staticmethod", "cached_property"} or "contextmanager" in one
    ]


def _public_paths(modules: Sequence[_Module]) -> dict[str, str]:
    """Return by the whole name of a definition the shortest public path that leads to it."""
    known = {module.name: module for module in modules}
    defined = {section.name for module in modules for section in module.sections}
    top = {
        module.name: {s.name.removeprefix(f"{module.name}.") for s in module.sections} for module in modules
    }
    found: dict[str, str] = {}

    def origin(name: str) -> str | None:
        for _ in range(6):
            if name in defined:
                return name
            module, _, last = name.rpartition(".")
            held = known.get(module)
            if held is None:
                return None
            target = held.imports.get(last) or next(
                (f"{star}.{last}" for star in held.stars if last in top.get(star, ())), None
            )
            if target is None:
                return None
            name = target
        return None

    for module in modules:
        if _is_private(module.name):
            continue
        handed = [
            *module.imports.items(),
            *((name, f"{star}.{name}") for star in module.stars for name in top.get(star, ())),
        ]
        for name, target in handed:
            at = origin(target) if not name.startswith("_") and "." not in name else None
            if at is not None:
                _offer(found, at, f"{module.name}.{name}")
    return found


def _offer(found: dict[str, str], at: str, path: str) -> None:
    """Take a path for a definition when it is better than its own and the one that is known."""
    best = found.get(at, at)

    def order(name: str) -> tuple[bool, int, int]:
        return _is_private(name), name.count("."), len(name)

    if order(path) < order(best):
        found[at] = path


def _public_name(name: str, public: dict[str, str]) -> str:
    """Return a name by its public path, a member by its class's."""
    head, tail = name, ""
    while head:
        if head in public:
            return public[head] + tail
        head, dot, last = head.rpartition(".")
        tail = f"{dot}{last}{tail}"
    return name
