"""TypeScript declarations (``.d.ts``), read by a scanner of their statements: names, members, comments, exports.

No parser of the language: a statement ends at its ``;``, at the brace that closes its body, or at a line end after
which a new one begins. That is enough for what compilers and people write into declaration files, and whatever else
stands there costs only itself. One pass, so that time is linear.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kr.packages.jsdoc import LONGEST_COMMENT

_TOKEN = re.compile(r"/\*|//[^\n]*|\"[^\"\n]*\"|'[^'\n]*'|`|[{}()\[\];\n]")
_WORDS = (
    "export|declare|default|abstract|static|readonly|public|protected|private|async|get|set|override|accessor|const|let"
    "|var|function|class|interface|type|enum|namespace|module"
)
_HEAD = re.compile(
    rf"((?:(?:{_WORDS})\s+)*)(?:([A-Za-z_$][\w$]*)|\"([^\"\n]{{1,200}})\"|'([^'\n]{{1,200}})')?"
)
_WITH_MEMBERS = frozenset({"class", "interface", "enum", "namespace", "module"})
_BLOCKS = _WITH_MEMBERS | {"function"}
_SIGNS = frozenset("{}()[];\n")
_BEGINNERS = frozenset("{([\"'`")
_KINDS = _BLOCKS | {"type", "const", "let", "var"}
_GOES_ON = re.compile(r"(?:[|&=,:(<?.+*-]|=>|\b(?:extends|implements|keyof|typeof|in|is|infer|new))\s*$")
_CONTINUES = re.compile(r"\s{0,200}(?:[|&=,:)>?.\[]|=>|extends\b|implements\b)")
_MAX_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Declaration:
    """One statement or member. ``text`` is its code without comments at its beginning, without body where it has members."""

    kind: str
    """``function``, ``class``, ``interface``, ``type``, ``const``, ``enum``, ``namespace``, ``export``, ``import`` or ``member``."""
    name: str
    text: str
    comment: str = ""
    """What stands between ``/**`` and ``*/`` right above it."""
    members: tuple["Declaration", ...] = ()
    is_exported: bool = False


@dataclass(slots=True)
class _Statement:
    """A statement: places in the source, the body's without its braces; ``depth`` are the brackets open in it."""

    start: int = -1
    end: int = -1
    comment: str = ""
    body: tuple[int, int] | None = None
    opened: int = -1
    depth: list[str] = field(default_factory=list)


def parse_declarations(source: str, *, _depth: int = 0) -> list[Declaration]:
    """Return the statements of a declaration file, with the members of interfaces, classes, namespaces and literals."""
    found = (_declaration(source, statement, _depth) for statement in _statements(source))
    return [declared for declared in found if declared is not None]


def _statements(source: str) -> Iterator[_Statement]:
    now = _Statement()
    for begun, sign, start, end in _signs(source):
        if now.start < 0:
            now.start = begun
        if (
            sign == "/*"
            and now.start < 0
            and source.startswith("*", start + 2)
            and end - start <= LONGEST_COMMENT
        ):
            now.comment = source[start + 3 : end - 2]
        elif sign in _SIGNS and _ends(source, now, sign, start, end):
            now.end = end if sign == "}" else start
            if now.start >= 0:
                yield now
            now = _Statement()
    if now.start >= 0 and not now.depth:
        now.end = len(source)
        yield now


def _signs(source: str) -> Iterator[tuple[int, str, int, int]]:
    """Yield ``(begun, sign, start, end)`` of comments, strings, brackets, semicolons and line ends.

    ``begun`` is where text begins between the sign before and this one, or this one that begins a statement; -1 for none.
    """
    at = 0
    while token := _TOKEN.search(source, at):
        start, end = token.span()
        text = source[at:start].lstrip()
        begun = start - len(text) if text else -1
        if token[0] in {"/*", "`"}:
            close = source.find("*/" if token[0] == "/*" else "`", end)
            if close < 0:
                return
            end = close + len(token[0])
        if begun < 0 and token[0][:1] in _BEGINNERS:
            begun = start
        yield begun, token[0], start, end
        at = end
    if text := source[at:].lstrip():
        yield len(source) - len(text), "", len(source), len(source)


def _ends(source: str, now: _Statement, sign: str, start: int, end: int) -> bool:
    """Take one sign into account, and tell whether the statement ends with it."""
    if sign in "{([":
        if not now.depth and sign == "{" and now.body is None:
            now.opened = end
        now.depth.append(sign)
        return False
    if sign in "})]":
        if now.depth:
            now.depth.pop()
        return not now.depth and sign == "}" and _closes(source, now, start, end)
    if now.depth or now.start < 0:
        return False
    if sign == ";":
        return True
    return not _GOES_ON.search(source[max(now.start, start - 40) : start]) and not _CONTINUES.match(
        source, end
    )


def _closes(source: str, now: _Statement, start: int, end: int) -> bool:
    """Take the brace that closes the outermost body; tell whether the statement ends there."""
    if now.body is None and now.opened >= 0:
        now.body = (now.opened, start)
    words = _HEAD.match(source, now.start) if now.start >= 0 else None
    if words is None or not set(words[1].split()) & _BLOCKS:
        return False
    if _CONTINUES.match(source, end):
        now.body, now.opened = None, -1  # the default of a type parameter (``<T = {}>``)
        return False
    return True


def _declaration(source: str, found: _Statement, depth: int) -> Declaration | None:
    head = _HEAD.match(source, found.start)
    words = head[1].split() if head else []
    if head is None or {"private", "protected"} & set(words):
        return None
    name = head[2] or head[3] or head[4] or ""
    text = source[found.start : found.end].strip().rstrip(",")
    if name == "import":
        return Declaration("import", name, text)
    kind = _kind(words)
    if kind == "export":
        return Declaration(kind, name, text)
    body = found.body
    members: tuple[Declaration, ...] = ()
    is_literal = body is not None and source[head.end() : body[0] - 1].rstrip()[-1:] in {":", "="}
    if body is not None and depth < _MAX_DEPTH and (kind in _WITH_MEMBERS or is_literal):
        members = tuple(parse_declarations(source[body[0] : body[1]], _depth=depth + 1))
        if kind in _WITH_MEMBERS:
            text = source[found.start : body[0] - 1].strip()
    return Declaration(kind, name, text, found.comment, members, words[:1] == ["export"])


def _kind(words: list[str]) -> str:
    kind = next((word for word in reversed(words) if word in _KINDS), "")
    if not kind:
        return "export" if words[:1] == ["export"] else "member"
    return {"module": "namespace", "let": "const", "var": "const"}.get(kind, kind)
