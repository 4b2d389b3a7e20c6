"""What a Python source documents: public names with signature and text, and command line options; nothing is ever imported."""

import ast
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kr.packages.documented import Documented
from kr.packages.restructured import code_span

if TYPE_CHECKING:
    from griffe import Alias, Attribute, Class, Function, Module, Object, Parameter

_LONGEST_DOCSTRING = 100_000
_LONGEST_SIGNATURE = 8_000
_LONGEST_DEFAULT = 80
_MOST_MEMBERS = 40
_MOST_OVERLOADS = 3
_MAX_DEPTH = 4
_FEWEST_WORDS = 8  # of a text that tells about its class
_DECLINING = 0.5
_SELF = frozenset({"self", "cls", "__self", "cls_"})
_FILLED_IN = re.compile(r"^[ \t]*%\(\w+\)s[ \t]*\n?", re.MULTILINE)
"""A line that stands for a text which the package puts in when it is imported."""
_SAID = frozenset({"classmethod", "staticmethod"})
_PROPERTY = re.compile(r"(?:\w+\.)*\w*property(?:\(.*\))?", re.IGNORECASE | re.DOTALL)
"""A decorator that makes an attribute of a method, of a kind that a library has of its own (``DictProperty("environ")``)."""
_DEPRECATED = re.compile(r"\A.{0,300}?\bdeprecated\b", re.IGNORECASE | re.DOTALL)


_CYTHON = re.compile(
    r"^(?:[ \t]*(?P<property>@property)\n)?(?P<indent>[ \t]*)(?:cdef\s+(?:\w+\s+)*?)?(?P<kind>class|def|cpdef)\s+[^(:\n]*?"
    r"(?P<name>\w+)[ \t]*(?:\((?P<arguments>(?:[^()]|\([^()]*\)){0,4000})\)|(?=[:\[]))(?:\s*\[[^]]{0,200}\])?[^:\n]*:",
    re.MULTILINE,
)
_CYTHON_TEXT = re.compile(r"""(?:[ \t]*(?:\#[^\n]*)?\n)*[ \t]*([ru]?(\"{3}|'{3}).*?\2)""", re.DOTALL)
_CYTHON_ARGUMENT = re.compile(
    r"\s*(?:.*?[\s*\]])??(\*{1,2}\w*|/|\w+)\s*(?:(?:not|or)\s+None\s*)?(:[^=]*)?(=.*)?", re.DOTALL
)


def cython_outline(source: str) -> str:
    """Return the classes and functions of a Cython source with their docstrings as Python, without types and code."""
    out: list[str] = []
    levels: list[int] = []
    told = 0
    for found in _CYTHON.finditer(source):
        if found.start() < told:  # in a docstring
            continue
        indent = len(found["indent"].expandtabs())
        if re.search(r"^[^\s#]", source[told : found.start()], re.MULTILINE):
            levels = []  # a statement of the module has ended the class above
        levels = [*(level for level in levels if level < indent), indent]
        pad = "    " * (len(levels) - 1)
        text = _CYTHON_TEXT.match(source, found.end())
        told = text.end() if text else found.end()
        if found["property"]:
            out.append(f"{pad}@property")
        out += [f"{pad}{_cython_head(found)}", f"{pad}    {_cython_text(text)}"]
    return "\n".join(out)


def _cython_head(found: re.Match[str]) -> str:
    parts = re.split(r",(?![^\[({]*[\])}])", found["arguments"] or "")
    arguments = (_CYTHON_ARGUMENT.fullmatch(part) for part in parts)
    plain = ", ".join(f"{one[1]}{one[2] or ''}{one[3] or ''}" for one in arguments if one)
    kind = "class" if found["kind"] == "class" else "def"
    if kind == "class" and not plain:
        return f"class {found['name']}:"
    try:
        ast.parse(f"def f({plain}): ...")
    except (SyntaxError, ValueError):
        plain = "*arguments"
    return f"{kind} {found['name']}({plain}):"


def _cython_text(found: re.Match[str] | None) -> str:
    try:
        return repr(str(ast.literal_eval(found[1]))) if found else "..."
    except (SyntaxError, ValueError):
        return "..."


@lru_cache(maxsize=256)
def parse_source(source: str, module: str, *, kept: bool = False) -> list[Documented]:
    """Return what the source of ``module`` documents, in order; nothing when it is no valid Python.

    Public names come with docstring or without; ``__init__`` is told with its class, and so is what it documents of
    the attributes it sets. Classes that stand in ``if`` and ``except`` count as well. ``kept``: private classes too, which
    compiled modules hand out (``lxml.etree._Element``).
    """
    from griffe import GriffeError, visit

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # another package's odd escapes are not our warnings
            # griffelib asks for the file's place to resolve imports, which are not looked at here.
            tree = visit(module, filepath=Path(f"{module}.py"), code=source)
            found = [*_module(tree, module), *_Reader(source, kept=kept).members(tree, module, depth=0)]
            if ".__doc__" in source:
                found += _assigned(ast.parse(source).body, module)
    except (SyntaxError, ValueError, RecursionError, MemoryError, GriffeError):
        return []
    return found


def _module(tree: "Module", module: str) -> Iterator[Documented]:
    if text := _text(tree):
        yield Documented(module, "", text)


def _meant(owner: "Module | Class", member: "Object | Alias") -> "Object | Alias":
    """Return the private class or function of the same module that a public name is given to (``chord = _chord``)."""
    if not member.is_attribute or not (name := str(member.value)).startswith("_"):  # type: ignore[union-attr]
        return member
    meant = owner.members.get(name)
    return meant if meant is not None and (meant.is_class or meant.is_function) else member


class _Reader:
    def __init__(self, source: str, *, kept: bool) -> None:
        self._lines = source.splitlines()
        self._kept = kept
        self._handed_on: set[str] = set()

    def members(self, owner: "Module | Class", prefix: str, *, depth: int) -> Iterator[Documented]:
        """Yield the public members of a module or class, and theirs."""
        for name, overloads in owner.overloads.items():
            # A stub file has the overloads alone.
            if name not in owner.members and not name.startswith("_"):
                yield _overloaded(f"{prefix}.{name}", overloads, is_method=owner.is_class)
        for name, found in owner.members.items():
            if found.is_alias or depth >= _MAX_DEPTH:
                continue
            if name.startswith("_") and not (self._kept and found.is_class and _is_documented(found)):
                continue
            path = f"{prefix}.{name}"
            member = _meant(owner, found)
            if member.is_class:
                yield self._class(member, path)  # type: ignore[arg-type]
                yield from self.members(member, path, depth=depth + 1)  # type: ignore[arg-type]
            elif member.is_function:
                yield _function(member, path, is_method=owner.is_class)  # type: ignore[arg-type]
            elif documented := self._attribute(member, path):  # type: ignore[arg-type]
                yield documented
        if owner.is_class and not self._kept:
            yield from self._taken_over(owner, prefix, depth)  # type: ignore[arg-type]

    def _taken_over(self, owner: "Class", prefix: str, depth: int) -> Iterator[Documented]:
        """Yield what a public class has from a private one of its module, once: the first heir stands for all."""
        for base in owner.bases:
            known = owner.module.members.get(str(base).partition("[")[0])
            if known is None or known.is_alias or not known.is_class or not known.name.startswith("_"):
                continue
            if known.name in self._handed_on:
                continue
            self._handed_on.add(known.name)
            for entry in self.members(known, prefix, depth=depth):  # type: ignore[arg-type]
                if entry.name.removeprefix(f"{prefix}.").partition(".")[0] not in owner.members:
                    yield entry

    def _class(self, owner: "Class", path: str) -> Documented:
        init = owner.members.get("__init__")
        init = init if init is not None and not init.is_alias and init.is_function else None
        texts = [text for text in (_text(owner), _text(init) if init else "") if text]
        parameters = list(init.parameters)[1:] if init is not None else []  # type: ignore[union-attr]
        docstring = "\n\n".join(texts)[:_LONGEST_DOCSTRING]
        if arguments := _arguments(parameters):
            signature = f"class {path.rpartition('.')[2]}({arguments})"
        else:
            signature = self._stub(owner, is_bare=not docstring)
        docstring = docstring or _kept_text(owner)
        return Documented(path, signature, docstring, _told(parameters), _weight(owner, docstring))

    def _stub(self, owner: "Class", *, is_bare: bool) -> str:
        """Return the fields of a class, and its methods where no text tells about it; nothing when it has none."""
        lines = []
        for name, member in owner.members.items():
            if member.is_alias or name.startswith("_"):
                continue
            if member.is_attribute and (member.annotation is not None or is_bare):  # type: ignore[union-attr]
                lines.append(_assignment(member))  # type: ignore[arg-type]
            elif member.is_function and is_bare:
                told = _signature(member, is_method=True, is_short=True)  # type: ignore[arg-type]
                lines.append(f"{told}: ..." if "def " in told else told)
        keywords = (f"{name}={value}" for name, value in owner.keywords.items() if name != "metaclass")
        bases = ", ".join([*map(str, owner.bases), *keywords])
        head = f"class {owner.name}({bases}):" if bases else f"class {owner.name}:"
        body = "\n".join(lines[:_MOST_MEMBERS]).replace("\n", "\n    ")
        return f"{head}\n    {body}" if lines else ""

    def _attribute(self, attribute: "Attribute", path: str) -> Documented | None:
        """Return an attribute that has a text: below it, or in comments of Sphinx's form (``#: text``)."""
        text = _text(attribute) or self._comment(attribute.lineno)
        if not text:
            return None
        # A class that a decorator called by hand has made anew (``Factory = add_eq(Factory)``) has no signature left.
        is_remade = re.search(rf"\b{attribute.name}\b", str(attribute.value or ""))
        signature = "" if is_remade else _assignment(attribute)
        return Documented(path, signature, text, weight=_weight(attribute, text))

    def _comment(self, lineno: int | None) -> str:
        if lineno is None or not 0 < lineno <= len(self._lines):
            return ""
        found: list[str] = []
        at = lineno - 2
        while at >= 0 and (line := self._lines[at].strip()).startswith("#:"):
            found.insert(0, line[2:].removeprefix(" "))
            at -= 1
        beside = re.search(r"\s#: ?(.*)$", self._lines[lineno - 1])
        return "\n".join([*found, *([beside[1]] if beside else [])])[:_LONGEST_DOCSTRING]


def _is_documented(owner: "Object | Alias") -> bool:
    return any(one.docstring for one in (owner, *owner.members.values()) if not one.is_alias)


def _text(member: "Module | Class | Function | Attribute | object") -> str:
    docstring = getattr(member, "docstring", None)
    text = inspect.cleandoc(docstring.value)[:_LONGEST_DOCSTRING] if docstring is not None else ""
    return _FILLED_IN.sub("", text) if "%(" in text else text


def _kept_text(owner: "Class") -> str:
    """Return the text that a class keeps in attributes, as one does that stands for a setting (``desc = "..."``)."""
    values = [getattr(member, "value", None) for member in owner.members.values() if not member.is_alias]
    texts = (inspect.cleandoc(text) for value in values if (text := _literal(str(value))))
    return "\n\n".join(text for text in texts if len(text.split()) >= _FEWEST_WORDS)[:_LONGEST_DOCSTRING]


def _literal(value: str) -> str:
    if not re.match(r"[a-zA-Z]{0,2}[\"']", value):
        return ""
    try:
        found = ast.literal_eval(value)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return found if isinstance(found, str) else ""


def _weight(member: "Class | Function | Attribute", docstring: str) -> float:
    decorators = [] if member.is_attribute else member.decorators  # type: ignore[union-attr]
    is_marked = any("deprecated" in str(decorator.value).partition("(")[0] for decorator in decorators)
    return _DECLINING if is_marked or _DEPRECATED.match(docstring) else 1.0


def _function(function: "Function", path: str, *, is_method: bool) -> Documented:
    text = _text(function)
    told = _told(list(function.parameters))
    return Documented(path, _signature(function, is_method=is_method), text, told, _weight(function, text))


def _overloaded(path: str, overloads: "Iterable[Function]", *, is_method: bool) -> Documented:
    variants = list(overloads)
    text = next((text for one in variants if (text := _text(one))), "")
    # The last ones are the widest as a rule.
    signatures = [_signature(one, is_method=is_method) for one in variants[-_MOST_OVERLOADS:]]
    return Documented(path, "\n".join(signatures), text)


def _signature(function: "Function", *, is_method: bool, is_short: bool = False) -> str:
    decorators = [text for one in function.decorators if (text := str(one.value)) in _SAID]
    word = "async def" if "async" in function.labels else "def"
    returns = f" -> {function.returns}" if function.returns is not None else ""
    parameters = list(function.parameters)
    if is_method and parameters and parameters[0].name in _SELF:
        parameters = parameters[1:]
        if not parameters and any(_PROPERTY.fullmatch(str(one.value)) for one in function.decorators):
            return function.name + (f": {function.returns}" if function.returns is not None else "")
    arguments = _arguments(parameters)
    if is_short and "\n" in arguments:
        arguments = "..."
    return "\n".join([*(f"@{d}" for d in decorators), f"{word} {function.name}({arguments}){returns}"])


def _arguments(parameters: "list[Parameter]") -> str:
    """Return the parameters, on lines of their own when they are many."""
    from griffe import ParameterKind

    parts: list[str] = []
    kinds = [p.kind for p in parameters]
    for at, parameter in enumerate(parameters):
        is_first_named = parameter.kind is ParameterKind.keyword_only and not (
            {ParameterKind.keyword_only, ParameterKind.var_positional} & set(kinds[:at])
        )
        if is_first_named:
            parts.append("*")
        parts.append(_parameter(parameter))
        is_last_positional = parameter.kind is ParameterKind.positional_only and (
            at + 1 == len(parameters) or kinds[at + 1] is not ParameterKind.positional_only
        )
        if is_last_positional:
            parts.append("/")
    line = ", ".join(parts)
    if len(line) <= 90:
        return line
    return "\n" + "".join(f"    {part},\n" for part in parts) if len(line) <= _LONGEST_SIGNATURE else "..."


def _parameter(parameter: "Parameter") -> str:
    from griffe import ParameterKind

    stars = {ParameterKind.var_positional: "*", ParameterKind.var_keyword: "**"}.get(parameter.kind, "")  # type: ignore[arg-type]
    kind = _annotation(parameter)[0]
    text = f"{stars}{parameter.name}" + (f": {kind}" if kind else "")
    if parameter.default is None or stars:
        return text
    default = _shortened(str(parameter.default))
    return f"{text} = {default}" if kind else f"{text}={default}"


def _assignment(attribute: "Attribute") -> str:
    kind = f": {attribute.annotation}" if attribute.annotation is not None else ""
    value = f" = {_shortened(str(attribute.value))}" if attribute.value is not None else ""
    return (attribute.name + kind + value)[:300]


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST_DEFAULT else "..."


def _annotation(parameter: "Parameter") -> tuple[str, str]:
    """Return a parameter's type, and the text of ``Annotated[type, Doc("text")]``."""
    text = str(parameter.annotation) if parameter.annotation is not None else ""
    if "Annotated[" not in text:
        return text, ""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return "", ""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return text, ""
    said = ""
    for item in node.slice.elts[1:]:
        if isinstance(item, ast.Call) and ast.unparse(item.func).rpartition(".")[2] in {"Doc", "doc"}:
            said = next((_constant(argument) or "" for argument in item.args), "")
    return ast.unparse(node.slice.elts[0]), said


def _told(parameters: "list[Parameter]") -> str:
    """Return what annotations say about the parameters, as a list in Markdown."""
    items = []
    for parameter in parameters:
        kind, said = _annotation(parameter)
        if said:
            text = said.replace("\n", "\n  ")
            items.append(f"- `{parameter.name}`{f' (`{kind}`)' if kind else ''}: {text}")
    return "**Parameters:**\n\n" + "\n".join(items) if items else ""


def _assigned(body: list[ast.stmt], module: str) -> Iterator[Documented]:
    """Yield what is documented by ``name.__doc__ = text``, the text literal or kept in a name."""
    texts: dict[str, str] = {}
    for node in body:
        if not isinstance(node, ast.Assign):
            continue
        target, text = node.targets[0], _constant(node.value)
        if isinstance(node.value, ast.Name):
            text = texts.get(node.value.id)
        if isinstance(target, ast.Name) and text:
            texts[target.id] = text
        elif isinstance(target, ast.Attribute) and target.attr == "__doc__" and text:
            owner = ast.unparse(target.value)
            if not owner.startswith("_"):
                yield Documented(f"{module}.{owner}", "", text)


def _constant(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return inspect.cleandoc(node.value)[:_LONGEST_DOCSTRING]
    return None


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
    names = [text for argument in call.args if (text := _text_of(argument)) and text.startswith("-")]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    said = _text_of(keywords.get("help"))
    if not names or not said:
        return ""
    default = keywords.get("default")
    known = ast.unparse(default) if isinstance(default, ast.Constant) and default.value is not None else ""
    shown = ", ".join(code_span(name) for name in names)
    return f"- {shown}: {' '.join(said.split())}" + (f" Default: {code_span(known)}." if known else "")


def _text_of(node: ast.expr | None) -> str:
    """Return a text constant, also one of several joined by ``+`` or in brackets of a translation call."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text_of(node.left) + _text_of(node.right)
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _text_of(node.args[0])
    return ""
