"""TypeScript declarations as sections: each with the comment above it, as the source has them. Pure, in linear time."""

import re
from collections.abc import Iterator

from kr.documents.text import Section

_MOST = 20_000
_MAX_PIECE = 1_100
_MAX_DEPTH = 4  # of namespaces in one another
_SPELLED = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`", re.DOTALL
)
"""Comments and strings: what they hold is no code."""
_DECLARED = re.compile(
    r"^[ \t]*(?:(?:export|declare|default|abstract|async)\s+)*"
    r"(?:(?P<kind>class|interface|namespace|module|enum|function|const|let|var|type(?=\s+\w+\s*[=<]))\b\*?\s+"
    r"(?P<name>[A-Za-z_$][\w$.]*|_+)|(?<=declare )global\b)",
    re.MULTILINE,
)
_BLOCK = re.compile(r"[^={;(]*?\b(?:class|interface|namespace|module|enum|global)\b")
_NEXT = re.compile(r"\s*(?:export |declare |type |interface |\})")
_BRACKET = re.compile(r"[{}()\[\];\n]")
_INTERNAL = re.compile(r"\*\s*@(?:internal|private)\b")
_DEPRECATED = re.compile(r"\*\s*@deprecated\b")


def declarations(text: str, *, place: str, prefix: str) -> Iterator[Section]:
    """Yield the declarations of a ``.d.ts`` file; what is longer than a section in pieces between its members."""
    code = _SPELLED.sub(lambda found: ("_" if found[0][0] in "\"'`" else " ") * len(found[0]), text)
    waiting = [(0, len(text), prefix, 0)]
    count = 0
    while waiting:
        at, end, around, depth = waiting.pop()
        while (found := _DECLARED.search(code, at, end)) and count < _MOST:
            above = text[at : found.start()].rstrip()
            comment = above[above.rfind("/**") :] if above.endswith("*/") and "/**" in above else ""
            at, body = _statement(code, found.start(), end)
            name = text[slice(*found.span("name"))].strip("\"'") if found["name"] else ""
            if found["kind"] in {"namespace", "module", None} and body is not None and depth < _MAX_DEPTH:
                inner = around if not name or "/" in name or name == around else f"{around}.{name}"
                waiting.append((body + 1, at - 1, inner, depth + 1))
            elif not _INTERNAL.search(comment):
                count += 1
                start = found.end() - len(found[0].lstrip())
                for piece in _pieces(found["kind"], comment, text[start:at]):
                    is_old = piece.startswith("/**") and _DEPRECATED.search(piece[:_MAX_PIECE]) is not None
                    yield Section(
                        f"{around}.{name}", "", place, piece.strip("\n"), "typescript", is_secondary=is_old
                    )


def _statement(code: str, at: int, end: int) -> tuple[int, int | None]:
    """Return where a statement ends, and where its braces open if it has some."""
    depth, opened = 0, None
    is_block = _BLOCK.match(code, at, min(end, at + 400)) is not None
    for found in _BRACKET.finditer(code, at, end):
        sign = found[0]
        if sign in "{([":
            opened = found.start() if sign == "{" and depth == 0 and opened is None else opened
            depth += 1
        elif sign in "})]":
            depth -= 1
            if depth < 0 or (depth == 0 and sign == "}" and is_block):
                return found.end(), opened
        elif depth == 0 and (sign == ";" or (not is_block and _NEXT.match(code, found.end(), end))):
            return found.end(), opened
    return end, opened


def _pieces(kind: str, comment: str, text: str) -> Iterator[str]:
    """Yield a declaration with its comment, a long one in pieces between its members, each below the declaration's head."""
    whole = f"{comment}\n{text}".strip()
    if len(whole) <= _MAX_PIECE or kind in {"function", "let", "namespace", "module"}:
        yield whole[: 3 * _MAX_PIECE]
        return
    cut = text.find("{\n") + 2 if "{\n" in text else 0
    head = f"{comment}\n{text[:cut]}".lstrip()
    held = ""
    # Members are indented alike, each below its comment.
    body = text[cut:]
    indent = body[: len(body) - len(body.lstrip(" \t"))]
    for member in re.split(rf"(?<=\n)(?<!\*/\n)(?={indent}[^\s*}}\])])", body):
        if held and len(held) + len(member) > _MAX_PIECE:
            yield f"{head}{held}" if len(head) < 400 else held
            head, held = f"{text.partition('{')[0].strip()[:200]} {text[cut - 2 : cut]}", ""
        held += member[: 2 * _MAX_PIECE]
    if held.strip():
        yield f"{head}{held}"
