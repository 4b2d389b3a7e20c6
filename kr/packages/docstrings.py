"""The documentation that stands in Python sources, read with ``ast``: nothing is ever imported."""

import ast
import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from kr.packages.restructured import fence, to_markdown, with_roles_as_code

_LONGEST_DOCSTRING = 100_000
_GOOGLE = re.compile(
    r"^(Args|Arguments|Parameters|Keyword Args|Keyword Arguments|Attributes|Returns|Return|Yields|Raises|Warns|Examples?"
    r"|Notes?|Warnings?|Usage|See Also|Todo):[ ]*$"
)
_GOOGLE_ENTRIES = re.compile(
    r"^(?:Args|Arguments|Parameters|Keyword Arg(?:ument)?s|Attributes|Returns|Yields|Raises):[ ]*\n[ \t]+\S",
    re.MULTILINE,
)
_MARKDOWN = re.compile(r"^\s*(?:```|~~~|!!! \w|/// \w)|\]\[[\w.]*\]", re.MULTILINE)
_NUMPY = re.compile(r"^-{3,}\s*$")
_RESTRUCTURED = re.compile(
    r":\w[\w:]*:`|^\s*:(?:param|return|returns|raises|type|rtype)\b|^\s*\.\. [\w:-]+::|::\s*$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Documented:
    """A module, class, function or attribute with a docstring. ``signature`` is Python text, may be empty."""

    name: str
    signature: str
    docstring: str


def parse_source(source: str, module: str) -> list[Documented]:
    """Return what the source of ``module`` documents, in order; nothing when it is no valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # another package's odd escapes are not our warnings
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    docstring = ast.get_docstring(tree)
    if docstring:
        found.append(Documented(module, "", docstring[:_LONGEST_DOCSTRING]))
    found += _members(tree.body, module, depth=0)
    found += _assigned(tree.body, module)
    return found


def docstring_markdown(docstring: str) -> str:
    """Return a docstring as Markdown, whether it is reStructuredText, Google's or NumPy's style, or Markdown."""
    if _MARKDOWN.search(docstring) or not _RESTRUCTURED.search(docstring):
        return _plain_markdown(docstring)
    return _mixed(docstring) if _GOOGLE_ENTRIES.search(docstring) else to_markdown(docstring)


def _mixed(docstring: str) -> str:
    """Return reStructuredText with Google's parts in it: these as lists, the rest as docutils reads it."""
    lines = docstring.splitlines()
    out: list[str] = []
    held: list[str] = []
    index = 0
    while index < len(lines):
        part = _part(lines, index) if _GOOGLE.match(lines[index]) else None
        if part is None:
            held.append(lines[index])
            index += 1
            continue
        out += [to_markdown("\n".join(held)), with_roles_as_code(part[0])]
        held, index = [], part[1]
    return "\n\n".join(text.strip() for text in (*out, to_markdown("\n".join(held))) if text.strip()) + "\n"


def _members(body: list[ast.stmt], prefix: str, *, depth: int) -> Iterator[Documented]:
    for index, node in enumerate(body):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name.startswith("_"):
                continue
            name = f"{prefix}.{node.name}"
            docstring = ast.get_docstring(node)
            if isinstance(node, ast.ClassDef):
                init = _init(node)
                inner = ast.get_docstring(init) if init else None
                joined = "\n\n".join(text for text in (docstring, inner) if text)
                if joined:
                    yield Documented(name, _class_signature(node, init), joined[:_LONGEST_DOCSTRING])
                if depth < 3:
                    yield from _members(node.body, name, depth=depth + 1)
            elif docstring:
                yield Documented(name, _signature(node), docstring[:_LONGEST_DOCSTRING])
        elif isinstance(node, (ast.If, ast.Try)) and depth < 3:
            yield from _members([*node.body, *node.orelse], prefix, depth=depth + 1)
        elif attribute := _attribute(body, index):
            name, text = attribute
            yield Documented(f"{prefix}.{name}", ast.unparse(node)[:300], text)


def _attribute(body: list[ast.stmt], index: int) -> tuple[str, str] | None:
    """Return a public name that is assigned here and the text that stands right below the assignment."""
    node = body[index]
    target: ast.expr | None = None
    if isinstance(node, ast.AnnAssign):
        target = node.target
    elif isinstance(node, ast.Assign):
        target = node.targets[0]
    if not isinstance(target, ast.Name) or target.id.startswith("_") or index + 1 >= len(body):
        return None
    after = body[index + 1]
    text = _constant(after.value) if isinstance(after, ast.Expr) else None
    return (target.id, text) if text else None


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


def _init(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)


def _class_signature(node: ast.ClassDef, init: ast.FunctionDef | None) -> str:
    arguments = _arguments(init.args) if init else ""
    return f"class {node.name}({arguments})" if arguments else f"class {node.name}"


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    decorators = [
        d for d in map(ast.unparse, node.decorator_list) if d in {"property", "classmethod", "staticmethod"}
    ]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    lines = [*(f"@{d}" for d in decorators), f"{word} {node.name}({_arguments(node.args)}){returns}"]
    return "\n".join(lines)


def _arguments(arguments: ast.arguments) -> str:
    """Return the arguments without ``self``, on lines of their own when they are many."""
    first = [*arguments.posonlyargs, *arguments.args][:1]
    text = ast.unparse(arguments)
    if first and first[0].arg in {"self", "cls", "__self", "cls_"}:
        text = re.sub(r"^[^,]*(?:, /)?(?:, |$)", "", text, count=1)
    if len(text) <= 90:
        return text
    parts = _split_arguments(text)
    return "\n" + "".join(f"    {part},\n" for part in parts) if len(text) <= 8_000 else f"{text[:8_000]} ..."


def _split_arguments(text: str) -> list[str]:
    """Split at the commas that stand in no bracket and no quotation."""
    parts, depth, quote, start = [], 0, "", 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[index - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def _plain_markdown(docstring: str) -> str:
    """Return Markdown as it is, with doctests fenced and Google's and NumPy's parts as lists."""
    lines = docstring.splitlines()
    out: list[str] = []
    index = 0
    is_fenced = False
    while index < len(lines):
        line = lines[index]
        if line.lstrip().startswith(("```", "~~~")):
            is_fenced = not is_fenced
        part = None if is_fenced else _part(lines, index)
        if part is None:
            out.append(line)
            index += 1
        else:
            text, index = part
            out += ["", text, ""]
    return "\n".join(out).strip() + "\n"


def _part(lines: list[str], index: int) -> tuple[str, int] | None:
    """Return the Markdown of the doctest or titled part that starts here, and the line after it."""
    line = lines[index]
    if line.lstrip().startswith(">>> "):
        end = _end_of_paragraph(lines, index)
        return fence(inspect.cleandoc("\n".join(lines[index:end])), "python"), end
    if heading := _GOOGLE.match(line):
        end = index + 1
        while end < len(lines) and (not lines[end].strip() or lines[end].startswith((" ", "\t"))):
            end += 1
        title, body = heading[1], lines[index + 1 : end]
    elif line.strip() and index + 1 < len(lines) and _NUMPY.match(lines[index + 1]):
        end = index + 2
        while end < len(lines) and not (
            end + 1 < len(lines) and lines[end].strip() and _NUMPY.match(lines[end + 1])
        ):
            end += 1
        title, body = line.strip(), lines[index + 2 : end]
    else:
        return None
    text = inspect.cleandoc("\n" + "\n".join(body))
    return f"**{title}:**\n\n{_entries(text) if _is_entries(title) else _plain_markdown(text)}", end


def _is_entries(heading: str) -> bool:
    return heading not in {"Example", "Examples", "Note", "Notes", "Usage", "Warning", "Warnings", "See Also"}


def _entries(body: str) -> str:
    """Write ``name: text`` (Google) and ``name : type`` (NumPy) with indented continuations as a list."""
    lines: list[str] = []
    for line in body.splitlines():
        found = re.match(r"(\*{0,2}\w[\w., |\[\]*]{0,80}?)(?: \(([^)]*)\))?( ?): ?(.*)$", line)
        if found:
            kind = found[2] or (found[4] if found[3] else "")
            text = "" if found[3] else found[4]
            lines.append(f"- `{found[1]}`{f' (`{kind}`)' if kind else ''}: {text}".rstrip())
        elif lines and line.startswith((" ", "\t")):
            lines.append(f"  {line.strip()}")
        else:
            lines.append(line)
    return "\n".join(lines)


def _end_of_paragraph(lines: list[str], index: int) -> int:
    while index < len(lines) and lines[index].strip():
        index += 1
    return index
