"""TypeScript declarations as sections: each with the comment above it, as the source has them. Pure, in linear time."""

import re
from collections.abc import Iterator

from kr.documents.text import Section

_MOST = 20_000
_MAX_PIECE = 1_100
_MAX_DEPTH = 4  # of namespaces in one another
_KINDS = r"class|interface|namespace|module|enum|function|const|let|var|type"
_DECLARED = re.compile(
    rf"(?:(?:export|declare|default|abstract|async)\s+)*(?:(?P<kind>{_KINDS})\b\*?\s+)(?P<name>[A-Za-z_$][\w$.]*|[\"'][^\"'\n]+[\"'])"
)
_SKIP = re.compile(r"\s+|//[^\n]*|/\*(?!\*).*?\*/", re.DOTALL)
_DOC = re.compile(r"/\*\*.*?\*/", re.DOTALL)
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`")
_SPECIAL = re.compile(r"[{}()\[\];\"'`]|/[/*]|\n")
_BLOCK = re.compile(r"[^={;(]*?\b(?:class|interface|namespace|module|enum|global)\b")
_CONTAINERS = frozenset({"namespace", "module"})
_INTERNAL = re.compile(r"\*\s*@(?:internal|private)\b")
_DEPRECATED = re.compile(r"\*\s*@deprecated\b")


def declarations(text: str, *, place: str, prefix: str) -> Iterator[Section]:
    """Yield the declarations of a ``.d.ts`` file; what is longer than a section in pieces between its members."""
    for count, (name, kind, comment, code) in enumerate(_declared(text, 0, len(text), prefix)):
        if count == _MOST:
            return
        if not _INTERNAL.search(comment):
            yield from _sections(name, kind, comment, code, place)


def _declared(text: str, start: int, end: int, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield ``(name, kind, comment, code)`` of the statements between two places; namespaces are opened."""
    waiting = [(start, end, prefix, 0)]
    while waiting:
        at, end, around, depth = waiting.pop()
        comment = ""
        while at < end:
            if skipped := _SKIP.match(text, at, end):
                at = skipped.end()
            elif doc := _DOC.match(text, at, end):
                comment, at = doc[0], doc.end()
            elif found := _DECLARED.match(text, at, end):
                stop, body = _statement(text, at, end)
                name = found["name"].strip("\"'")
                if found["kind"] in _CONTAINERS and body is not None and depth < _MAX_DEPTH:
                    inner = around if "/" in name or name == around else f"{around}.{name}"
                    waiting.append((body + 1, stop - 1, inner, depth + 1))
                else:
                    yield f"{around}.{name}", found["kind"], comment, text[at:stop]
                comment, at = "", max(stop, at + 1)
            else:
                stop, body = _statement(text, at, end)
                if (
                    body is not None
                    and depth < _MAX_DEPTH
                    and text.startswith(("declare global", "declare module"), at)
                ):
                    waiting.append((body + 1, stop - 1, around, depth + 1))
                comment, at = "", max(stop, at + 1)


def _statement(text: str, at: int, end: int) -> tuple[int, int | None]:
    """Return where a statement ends, and where its braces open if it has some."""
    depth, opened = 0, None
    is_block = _BLOCK.match(text, at, min(end, at + 400)) is not None
    while found := _SPECIAL.search(text, at, end):
        sign, at = found[0], _behind(text, found, end)
        if sign in "{([":
            opened = found.start() if sign == "{" and depth == 0 and opened is None else opened
            depth += 1
        elif sign in "})]":
            depth -= 1
            if depth < 0 or (depth == 0 and sign == "}" and is_block):
                return at, opened
        elif depth == 0 and sign == ";":
            return at, opened
        elif depth == 0 and sign == "\n" and not is_block and _ends_here(text, found.start(), at, end):
            return found.start(), opened
    return end, opened


def _behind(text: str, found: re.Match[str], end: int) -> int:
    """Return the place behind a sign, and behind all of a string or comment that begins with it."""
    at = found.end()
    if found[0] in {'"', "'", "`"}:
        string = _STRING.match(text, found.start(), end)
        return string.end() if string else at
    if found[0] in {"//", "/*"}:
        close = text.find("\n" if found[0] == "//" else "*/", at, end)
        return end if close < 0 else close + (0 if found[0] == "//" else 2)
    return at


def _ends_here(text: str, newline: int, at: int, end: int) -> bool:
    """Tell whether a statement without a semicolon ends at a line break: the next line begins another one."""
    following = text[at : min(end, at + 40)].lstrip()
    return text[max(0, newline - 1)] not in ",=|&:(<" and following.startswith(
        ("export ", "declare ", "/**", "type ", "interface ", "}")
    )


def _sections(name: str, kind: str, comment: str, code: str, place: str) -> Iterator[Section]:
    whole = f"{comment}\n{code}".strip() if comment else code.strip()
    if len(whole) <= _MAX_PIECE or kind not in {"interface", "class", "type", "enum", "const", "var"}:
        yield _section(name, whole[: 3 * _MAX_PIECE], place)
        return
    head, brace, body = whole.partition("{\n") if "{\n" in whole else ("", "", whole)
    held = ""
    for member in _members(body):
        if held and len(held) + len(member) > _MAX_PIECE:
            yield _section(name, f"{head}{brace}{held}" if len(head) < 400 else held, place)
            head, held = code.partition("{")[0].strip()[:200] + " ", ""
        held += member[: 2 * _MAX_PIECE]
    if held.strip():
        yield _section(name, f"{head}{brace}{held}", place)


def _members(body: str) -> Iterator[str]:
    """Yield the members of a body, each with the comment above it."""
    at, start, depth = 0, 0, 0
    while found := _SPECIAL.search(body, at):
        sign, at = found[0], _behind(body, found, len(body))
        if sign in "{([":
            depth += 1
        elif sign in "})]":
            depth = max(0, depth - 1)
        elif sign == "\n" and depth == 0 and not body[start:at].rstrip().endswith("*/"):
            yield body[start:at]
            start = at
    yield body[start:]


def _section(name: str, code: str, place: str) -> Section:
    is_old = _DEPRECATED.search(code[:_MAX_PIECE]) is not None and code.lstrip().startswith("/**")
    return Section(
        name=name, text="", signature=code.strip("\n"), place=place, form="typescript", is_secondary=is_old
    )
