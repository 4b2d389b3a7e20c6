"""Pages of a manual as ``man`` sets them, in columns of spaces: what web pages show as one preformatted text."""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from textwrap import dedent

from kr.text.inline import code_span, marked
from kr.text.markdown import Block, render

__all__ = ["manual_markdown"]

_HEADING = re.compile(r"[A-Z][A-Z0-9 ,/_-]{2,60}")
_FEWEST = 3  # headings
_OF_SUBHEADING = 4  # columns, at most
_PARAGRAPH = re.compile(r"\n(?:[ \t]*\n)+")
_GAP = re.compile(r"(?<=\S) {2,}")
_LONGEST_TAG = 80
_ITEM = re.compile(r"(?:[o•·*+-]|\(?(\d{1,2})[.)])(?: {2,}|$)")
_HYPHENED = re.compile(r"\w+-[a-z]\w*")
_BROKEN = re.compile(r"(\w+)-\n *([a-z]\w*)")


def manual_markdown(text: str) -> str | None:
    """Return a page of a manual as Markdown, each option a name above what it does; None where the text is no such page.

    That is one with three headings in capitals at the margin and all else set in.
    """
    lines = text.expandtabs().split("\n")
    at_margin = [line for line in lines if line[:1] not in {"", " "}]
    headings = {line for line in at_margin if _HEADING.fullmatch(line.rstrip())}
    if len(headings) < _FEWEST or len(at_margin) > 2 * len(headings):
        return None
    parts: list[tuple[str, list[str]]] = []
    for line in lines:
        if line in headings:
            parts.append((line.strip(), []))
        elif parts and line[:1] in {"", " "}:
            parts[-1][1].append(line)
    words = frozenset(_HYPHENED.findall(text))
    found = (f"## {heading}\n\n" + "\n\n".join(_section(heading, body, words)) for heading, body in parts)
    return "\n\n".join(found)


def _section(heading: str, lines: Sequence[str], hyphened: AbstractSet[str]) -> Iterator[str]:
    body = "\n".join(lines).strip("\n")
    if heading == "SYNOPSIS":
        yield _fenced(body)
        return
    margin = min((at for line in lines if (at := _indent(line)) > _OF_SUBHEADING), default=0)
    columns = {margin}  # where text begins: what is set in otherwise is shown as it is typed
    for paragraph in _PARAGRAPH.split(body):
        told = paragraph.split("\n")
        if 0 < _indent(told[0]) < margin:
            yield f"### {marked(told.pop(0).strip())}"
        if told and told[0].strip() and _indent(told[0]) <= margin:
            tag, told = _tagged(told, margin)
            if tag:
                columns = {margin, *(_indent(line) for line in told[-1:])}
                yield code_span(tag)
        if item := _ITEM.match(told[0].strip()) if told else None:
            columns |= {_indent(line) for line in told[1:2]}
            yield f"{f'{item[1]}.' if item[1] else '-'} {_prose([told[0].strip()[item.end() :], *told[1:]], hyphened)}"
        elif any(line.strip() for line in told):
            found = set(map(_indent, told))
            is_prose = len(found) == 1 and found <= columns
            yield _prose(told, hyphened) if is_prose else _fenced("\n".join(told))


def _tagged(lines: list[str], margin: int) -> tuple[str, list[str]]:
    """Return the option that a paragraph is about, which hangs to the left of its text, and the text; else an empty name."""
    first, rest = lines[0].strip(), lines[1:]
    tag, *told = _GAP.split(first, maxsplit=1)
    hangs = rest[0] if rest else ""
    if len(tag) > _LONGEST_TAG or not (_indent(hangs) > margin if rest else first.startswith("-")):
        return "", lines
    if told and rest and _indent(lines[0]) + first.rindex(told[0]) != _indent(hangs):
        return first, rest
    return tag, [*(" " * _indent(hangs) + line for line in told), *rest]


def _prose(lines: Sequence[str], hyphened: AbstractSet[str]) -> str:
    """Join the lines of a paragraph, with its broken words; a hyphen stays in a word that has it elsewhere."""
    joined = _BROKEN.sub(
        lambda found: f"{found[1]}{'-' * (f'{found[1]}-{found[2]}' in hyphened)}{found[2]}", "\n".join(lines)
    )
    return marked(" ".join(joined.split()))


def _fenced(code: str) -> str:
    return render(Block(kind="code", text=dedent(code)))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
