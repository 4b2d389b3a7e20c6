"""Sources as sections: the public names of Python with signature and docstring, and TypeScript's declarations with their comments.

Python is read by ``ast`` and never run. A name that a package hands on (``from ._core import Option`` in its ``__init__``) is told by the
shortest public path that leads to it. TypeScript is read as text, in linear time.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise

from kr.documents.text import Section, joined_up, pieces

_MOST_MEMBERS = 60
_MOST_DEPTH = 2
_MOST_HOPS = 6
"""Modules through which a name may be handed on."""
_MAX_SIGNATURE = 1_600
_MAX_VALUE = 160  # characters of a line
SKIPPED = re.compile(
    r"(?:^|/)(?:tests|_vendor|vendor|vendored|examples?|benchmarks?|conftest)(?:/|\.pyi?$)|(?:^|/)test_[^/]*$"
)
"""Sources that do not count: tests, examples of the authors, others' packages that are carried along."""
_SECONDARY = re.compile(r"(?:^|\.)(?:_(?!_)|(?:v\d{1,2}|compat|deprecated|legacy)(?:\.|$))")
"""Private names, and what a package carries for those who still use something older."""
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


def _is_secondary(name: str) -> bool:
    return _SECONDARY.search(name) is not None


# --- what one module holds ---


def _read_module(place: str, text: str) -> _Module | None:
    path = re.sub(r"\.pyi?$", "", place)
    is_package = path.endswith("/__init__")
    module = _Module(path.removesuffix("/__init__").replace("/", "."), place, is_package)
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
    for node in _statements(body):
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
    for name, definition in named.items():
        if name.startswith("_"):
            continue
        whole = f"{prefix}.{name}"
        signature = _signature(definition)
        module.sections += [
            Section(name=whole, text=piece, place=module.place, signature=signature, form="python")
            for piece in list(pieces(ast.get_docstring(definition) or "")) or [""]
        ]
        if isinstance(definition, ast.ClassDef) and depth < _MOST_DEPTH:
            _read_body(module, definition.body, whole, depth + 1)


def _add_imports(module: _Module, node: ast.ImportFrom) -> None:
    around = module.name.split(".")
    base = around[: len(around) - node.level + module.is_package] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(source)
        else:
            module.imports.setdefault(alias.asname or alias.name, f"{source}.{alias.name}")


def _signature(node: _Named) -> str:
    """Return a definition without its code; of a class how it is made, and its public attributes."""
    members: list[ast.stmt] = []
    if isinstance(node, ast.ClassDef):
        members = [_with(it) for it in node.body if isinstance(it, ast.FunctionDef) and it.name == "__init__"]
        named = [it for it in node.body if isinstance(it, ast.AnnAssign | ast.Assign)]
        members += [it for it in named if not ast.unparse(it).startswith("_")][:_MOST_MEMBERS]
    text = re.sub(r":\n +\.\.\.", "", ast.unparse(_with(node, members)))
    # Values may be long, signatures have to be whole.
    lines = (it if "def " in it else it[:_MAX_VALUE] for it in text.split("\n") if it)
    return "\n".join(lines)[:_MAX_SIGNATURE]


def _with(node: _Named, body: Sequence[ast.stmt] = ()) -> _Named:
    shown = copy(node)
    shown.body = [*body] or [ast.Expr(ast.Constant(...))]
    return shown


# --- the public path of a name ---


def _public_paths(modules: Sequence[_Module]) -> dict[str, str]:
    """Return by the whole name of a definition the shortest path by which a package hands it on, or ``__all__`` lists it."""
    known = {module.name: module for module in modules}
    for module in modules:
        for star in (known[name] for name in module.stars if name in known):
            names = (one.name.removeprefix(f"{star.name}.") for one in star.sections)
            module.imports |= {name: f"{star.name}.{name}" for name in names if name not in module.imports}
    found: dict[str, str] = {}
    for module in modules:
        for name, target in module.imports.items():
            is_meant = name in module.listed if module.listed else module.is_package
            if is_meant and not name.startswith("_"):
                origin = target
                for _ in range(_MOST_HOPS):
                    above, _, last = origin.rpartition(".")
                    origin = known[above].imports.get(last, origin) if above in known else origin
                path = f"{module.name}.{name}"
                found[origin] = min(found.get(origin, origin), path, key=_order)
    return found


def _order(name: str) -> tuple[bool, int, int]:
    return _is_secondary(name), name.count("."), len(name)


def _public_name(name: str, public: Mapping[str, str]) -> str:
    """Return a name by its public path, a member by its class's."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        if path := public.get(".".join(parts[:count])):
            return ".".join([path, *parts[count:]])
    return name


# --- TypeScript

_MOST = 20_000
_MAX_PIECE = 3_000
_MAX_COMMENT = 2_000
_SPELLED = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`", re.DOTALL
)
"""Comments and strings: what they hold is no code."""
_DECLARED = re.compile(
    r"^[ \t]*(?:(?:export|declare|default|abstract|async)\s+)*"
    r"(?:class|interface|namespace|module|enum|function|const|let|var|type(?=\s+\w+\s*[=<]))\b\*?\s+"
    r"(?P<name>[A-Za-z_$][\w$.]*)",
    re.MULTILINE,
)
_INTERNAL = re.compile(r"\*\s*@(?:internal|private)\b")
_DEPRECATED = re.compile(r"\*\s*@deprecated\b")


def declarations(text: str, *, place: str, prefix: str) -> Iterator[Section]:
    """Yield the declarations of a ``.d.ts`` file, each from the comment above it to the next one; a long one in pieces between its members."""
    code = _SPELLED.sub(lambda found: " " * len(found[0]), text)
    found = list(islice(_DECLARED.finditer(code), _MOST))
    begins: list[int] = []
    for at, one in zip([0, *(one.end() for one in found)], found, strict=False):
        is_told = text[at : one.start()].rstrip().endswith("*/")
        told_at = text.rfind("/**", at, one.start()) if is_told else -1
        begins.append(one.start() if told_at < 0 else told_at)
    for one, (begin, end) in zip(found, pairwise([*begins, len(text)]), strict=True):
        comment, name = text[begin : one.start()].strip(), f"{prefix}.{one['name']}"
        if _INTERNAL.search(comment):
            continue
        is_old = _DEPRECATED.search(comment) is not None
        for piece in _ts_pieces(f"{comment[:_MAX_COMMENT]}\n{text[one.start() : end]}".strip()):
            yield Section(name, "", place, piece, "typescript", is_secondary=is_old)


def _ts_pieces(text: str) -> Iterator[str]:
    """Yield a declaration with its comment, a long one in pieces between its members, which are indented alike."""
    first = re.search(r"\{\n([ \t]+)", text)
    between = rf"(?<=\n)(?<!\*/\n)(?={first[1]}[^\s*}}\])])" if first else "(?!)"
    return joined_up((member[:_MAX_PIECE] for member in re.split(between, text)), joint="")
