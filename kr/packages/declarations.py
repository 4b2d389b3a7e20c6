"""TypeScript declarations (``.d.ts``) and the documentation comments of both languages (JSDoc, TSDoc).

Declarations are read by a scanner of their statements: names, members, comments, exports.

No parser of the language: a statement ends at its ``;``, at the brace that closes its body, or at a line end after
which a new one begins. That is enough for what compilers and people write into declaration files, and whatever else
stands there costs only itself. One pass, so that time is linear.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from textwrap import dedent

from kr.packages.documented import Documented
from kr.packages.restructured import code_span, fence

LONGEST_COMMENT = 100_000
_DECLARATION = re.compile(r"\s{0,20}([^\r\n]{0,400})")
_NAME = re.compile(
    r"(?:(?:export|declare|default|abstract|static|readonly|public|async|function|class|interface|type|const|let|var"
    r"|enum|namespace|get|set)\s+)*([A-Za-z_$][\w$.]*)"
)
_CLASS = re.compile(r"^(?:export )?(?:default )?class (\w+)\b.*?^\}", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"^[ \t]{0,8}@(\w+)(?![\w(.])[ \t]*", re.MULTILINE)
_PARAMETER = re.compile(r"(?:\{([^}\n]{1,200})\}\s*)?(\[[^\]\n]{1,100}\]|[\w$.]{1,80})\s*(?:-\s*)?")
_LINK = re.compile(r"\{@link(?:code|plain)?\s+([^}|\s]{1,200})(?:[|\s]\s*([^}]{1,200}))?\}")
_NAMED = re.compile(r"(?<!`)\[\[([A-Za-z_$][\w$.#]{1,100})\]\](?![`(])")
"""A link of TypeDoc's older form."""
_SILENT = frozenset(
    {
        "alpha", "author", "beta", "callback", "category", "class", "constructor", "copyright", "event", "export",
        "fileoverview", "function", "global", "group", "internal", "kind", "license", "memberOf", "memberof", "method",
        "module", "name", "override", "packageDocumentation", "private", "property", "protected", "public", "sealed", "see",
        "since", "static", "template", "todo", "typedef", "version", "virtual",
    }
)  # fmt: skip
"""Tags that say nothing to somebody who writes code with it."""


def parse_comments(source: str, module: str) -> list[Documented]:
    """Return the documented declarations of a JavaScript file; ``docstring`` is the comment's Markdown.

    What stands in a class is named by it (``DateTime.fromFormat``), anything else by the module.
    """
    found = []
    classes = [(each.start(), each.end(), each[1]) for each in _CLASS.finditer(source)]
    for at, comment, declaration in _comments(source):
        text = comment_markdown(comment, "javascript")
        name = _NAME.match(declaration.strip())
        if text and not is_internal(comment) and name and name[1] not in {"import", "export"}:
            short = name[1].rpartition(".")[2] or name[1]
            signature = declaration.strip().rstrip("{").strip()
            owner = next((name for start, end, name in classes if start < at < end), module)
            path = short if short in {owner, module} else f"{owner}.{short}"
            found.append(Documented(path, signature, text, weight=comment_weight(comment)))
    return found


def is_internal(comment: str) -> bool:
    """Tell whether a comment says that what it documents is not for users."""
    return "@internal" in comment or "@private" in comment


def comment_weight(comment: str) -> float:
    """Return 1.0, less for what is marked as deprecated."""
    return 0.5 if "@deprecated" in comment else 1.0


def comment_markdown(comment: str, language: str) -> str:
    """Return what stands between ``/**`` and ``*/`` as Markdown.

    Parameters become a list, examples fenced code of the ``language``, links their words; tags that only sort pages go.
    """
    text = dedent(
        "\n".join(re.sub(r"^\s*\*(?: |$)", "", line).rstrip() for line in comment.splitlines())
    ).strip()
    # A comment within an example must not end the one that it stands in.
    text = text.replace("*\\/", "*/")
    # Three spaces of indentation mean code to the people who write them, four to Markdown.
    text = re.sub(r"^ {3}(?! )", "    ", text, flags=re.MULTILINE)
    starts = [*_tags(text)]
    parts = [_linked(text[: starts[0].start()] if starts else text).strip()]
    for tag, following in pairwise([*starts, None]):
        if tag is None:
            continue
        body = text[tag.end() : following.start() if following else len(text)].strip("\n").rstrip()
        parts.append(_tagged(tag[1], body, language))
    out = ""
    for part in (part for part in parts if part):
        both_items = part.startswith("- ") and out.rpartition("\n\n")[2].startswith("- ")
        out += ("\n" if both_items else "\n\n" if out else "") + part
    return out


def _tags(text: str) -> Iterator[re.Match[str]]:
    """Yield the tags that begin a line, none in fenced code."""
    fences = [found.start() for found in re.finditer(r"^[ \t]*(?:```|~~~)", text, re.MULTILINE)]
    for tag in _TAG.finditer(text):
        if sum(at < tag.start() for at in fences) % 2 == 0:
            yield tag


def _tagged(name: str, body: str, language: str) -> str:
    if name in _SILENT:
        return ""
    if name in {"example", "examples"}:
        return _example(body, language)
    text = " ".join(_linked(body).split()) if "```" not in body and "\n\n" not in body else _linked(body)
    if name in {"param", "arg", "argument", "typeParam", "prop"}:
        found = _PARAMETER.match(text)
        if not found:
            return ""
        kind = f" ({code_span(found[1])})" if found[1] else ""
        return f"- {code_span(found[2])}{kind}: {text[found.end() :]}".rstrip(": ")
    if name in {"returns", "return"}:
        return f"Returns: {re.sub(r'^{([^}]*)}', lambda kind: code_span(kind[1]), text)}" if text else ""
    if name in {"default", "defaultValue", "defaultvalue"}:
        return f"Default: {text if text.startswith('`') else code_span(text)}" if text else ""
    if name in {"remarks", "summary", "description"}:
        return text
    label = {"throws": "Throws", "deprecated": "**Deprecated:**"}.get(name, name.capitalize())
    return f"{label} {text}".rstrip() if text else label if name == "deprecated" else ""


def _example(body: str, language: str) -> str:
    """Return an example: fenced as it is, else put into a fence, with its caption above."""
    if "```" in body or "~~~" in body:
        return body.strip()
    if not body.strip():
        return ""
    caption = re.match(r"\s*<caption>([^<\n]*)</caption>[ \t]*\n", body)
    code = body[caption.end() :] if caption else body
    return (f"{caption[1].strip()}\n\n" if caption else "") + fence(code.strip("\n"), language)


def _linked(text: str) -> str:
    text = _LINK.sub(lambda found: found[2].strip() if found[2] else code_span(found[1]), text)
    return _NAMED.sub(lambda found: code_span(found[1]), text)


def _comments(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the place of each documentation comment, the comment and the line after it, in one pass over the source."""
    at = source.find("/**")
    while at >= 0:
        end = source.find("*/", at + 2)
        if end < 0:
            return
        after = end + 2
        if at + 3 <= end <= at + LONGEST_COMMENT and (line := _DECLARATION.match(source, after)):
            yield at, source[at + 3 : end], line[1]
            after = line.end()
        at = source.find("/**", after)


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
_CONTINUES = re.compile(r"\s{0,200}(?:[|&=,:)>?.\[{]|=>|extends\b|implements\b)")
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
