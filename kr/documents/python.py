"""Python sources as sections: public names with their signature and docstring, read by ``ast`` and never run.

A name that a package hands on (``from ._core import Option`` in its ``__init__``) is told by the shortest public path that leads to it.
"""

import ast
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kr.documents.text import Section, pieces

_MOST_MEMBERS = 60
_MOST_DEPTH = 2
_MOST_HOPS = 6
"""Modules through which a name may be handed on."""
_MAX_SIGNATURE = 1_600
_MAX_VALUE = 160
_SKIPPED = re.compile(
    r"(?:^|/)(?:tests|_vendor|vendor|vendored|examples?|benchmarks?|conftest)(?:/|\.pyi?$)|(?:^|/)test_[^/]*$"
)
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
    typing_imports: dict[str, str] = field(default_factory=dict)
    """The same under ``if TYPE_CHECKING``: of these only what ``__all__`` lists can be imported from here, by a lazy ``__getattr__``."""
    listed: frozenset[str] = frozenset()
    """What ``__all__`` lists."""


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
            yield replace(section, name=name, is_secondary=_is_secondary(name))


def module_name(place: str) -> str:
    """Return the dotted name of the module in a file: ``click/core.py`` is ``click.core``."""
    parts = re.sub(r"\.pyi?$", "", place).split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _is_secondary(name: str) -> bool:
    return _SECONDARY.search(name) is not None


# --- what one module holds ---


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
        _read_imports(module, tree.body, module.imports)
        _read_body(module, tree.body, module.name, 0)
    except RecursionError:
        return module  # what was read before it counts
    lazy = {name: target for name, target in module.typing_imports.items() if name in module.listed}
    module.imports = {**lazy, **module.imports}
    return module


def _read_body(module: _Module, body: Sequence[ast.stmt], prefix: str, depth: int) -> None:
    named: dict[str, _Named] = {}
    for at, node in enumerate(body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                known = named.get(node.name)
                # Of overloads and of a property's parts the one that is documented stands for all.
                if known is None or (not ast.get_docstring(known) and ast.get_docstring(node)):
                    named[node.name] = node
            case ast.If():
                _read_body(module, [*node.body, *node.orelse], prefix, depth)
            case ast.Try():
                _read_body(module, node.body, prefix, depth)
            case ast.Assign() | ast.AnnAssign():
                _add_assigned(module, node, body[at + 1 : at + 2], prefix)
    for name, node in named.items():
        if not name.startswith("_"):
            _add_definition(module, f"{prefix}.{name}", node, depth)


def _read_imports(module: _Module, body: Sequence[ast.stmt], into: dict[str, str]) -> None:
    for node in body:
        match node:
            case ast.ImportFrom():
                _add_imports(module, node, into)
            case ast.If():
                is_typing = ast.unparse(node.test).endswith("TYPE_CHECKING")
                _read_imports(module, node.body, module.typing_imports if is_typing else into)
                _read_imports(module, node.orelse, into)
            case ast.Try():
                _read_imports(module, node.body, into)


def _add_imports(module: _Module, node: ast.ImportFrom, into: dict[str, str]) -> None:
    around = module.name.split(".")
    base = around[: len(around) - node.level + module.is_package] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(source)
        else:
            into[alias.asname or alias.name] = f"{source}.{alias.name}"


def _add_assigned(
    module: _Module, node: ast.Assign | ast.AnnAssign, after: Sequence[ast.stmt], prefix: str
) -> None:
    """Take a constant or attribute that has a docstring of its own below it, and what ``__all__`` lists."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if not isinstance(target, ast.Name):
        return
    if target.id == "__all__" and node.value is not None:
        module.listed = frozenset(
            one.value
            for one in ast.walk(node.value)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        )
    match after:
        case [ast.Expr(value=ast.Constant(value=str(text)))] if not target.id.startswith("_"):
            _put(module, f"{prefix}.{target.id}", ast.unparse(node)[:_MAX_VALUE], inspect.cleandoc(text))


def _add_definition(module: _Module, name: str, node: _Named, depth: int) -> None:
    of_parts = _take_annotated_docs(node)
    doc = ast.get_docstring(node) or ""
    _put(module, name, _signature(node), "\n\n".join([doc, *of_parts] if doc else of_parts))
    if isinstance(node, ast.ClassDef) and depth < _MOST_DEPTH:
        _read_body(module, node.body, name, depth + 1)


def _put(module: _Module, name: str, signature: str, doc: str) -> None:
    for piece in list(pieces(doc)) or [""]:
        module.sections.append(
            Section(
                name=name,
                text=piece,
                place=module.place,
                signature=signature[:_MAX_SIGNATURE],
                form="python",
            )
        )


def _take_annotated_docs(node: _Named) -> list[str]:
    """Take the texts of ``Annotated[..., Doc("…")]`` (PEP 727) out of parameters and attributes; return them as paragraphs of the docstring."""
    made = node if not isinstance(node, ast.ClassDef) else _initializer(node)
    described: list[tuple[str, ast.arg | ast.AnnAssign]] = []
    if made is not None:
        arguments = (*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs)
        described += [(one.arg, one) for one in arguments]
    if isinstance(node, ast.ClassDef):
        body = [*node.body, *(made.body if made is not None else [])]
        described += [(_attribute(one), one) for one in body if isinstance(one, ast.AnnAssign)]
    docs: dict[str, None] = {}
    for name, one in described:
        match one.annotation:
            case ast.Subscript(
                value=ast.Name(id="Annotated") | ast.Attribute(attr="Annotated"),
                slice=ast.Tuple(elts=[kind, *others]),
            ):
                one.annotation = kind
                for other in others:
                    match other:
                        case ast.Call(args=[ast.Constant(value=str(text)), *_]) if name:
                            docs.setdefault(f"`{name}`: {inspect.cleandoc(text)}")
    return [*docs]


def _attribute(node: ast.AnnAssign) -> str:
    """Return the name of a public attribute, set in a class or on ``self``; else nothing."""
    match node.target:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
            return "" if name.startswith("_") else name
    return ""


def _initializer(node: ast.ClassDef) -> ast.FunctionDef | None:
    functions = (one for one in node.body if isinstance(one, ast.FunctionDef))
    return next((one for one in functions if one.name == "__init__"), None)


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
    if made := _initializer(node):
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
    top = {
        module.name: {one.name.removeprefix(f"{module.name}.") for one in module.sections}
        for module in modules
    }
    found: dict[str, str] = {}
    for module in modules:
        if _is_secondary(module.name):
            continue
        of_stars = {name: f"{star}.{name}" for star in module.stars for name in top.get(star, ())}
        for name, target in {**of_stars, **module.imports}.items():
            is_public = not name.startswith("_") and "." not in name
            if not is_public or not (module.is_package or name in module.listed):
                continue
            origin = _origin(target, known, defined, top)
            if origin is not None:
                path = f"{module.name}.{name}"
                found[origin] = min(found.get(origin, origin), path, key=_order)
    return found


def _origin(
    name: str, known: Mapping[str, _Module], defined: set[str], top: Mapping[str, set[str]]
) -> str | None:
    """Return the whole name under which a name that is handed on is defined, or None where that is in another package."""
    for _ in range(_MOST_HOPS):
        if name in defined:
            return name
        module, _, last = name.rpartition(".")
        held = known.get(module)
        if held is None:
            return None
        of_star = (f"{star}.{last}" for star in held.stars if last in top.get(star, ()))
        target = held.imports.get(last) or next(of_star, None)
        if target is None:
            return None
        name = target
    return None


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
