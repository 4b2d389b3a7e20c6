"""Documents as sections: Markdown, reStructuredText, HTML and plain text. Pure; whatever a text holds, it never raises."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Literal

from kr.documents.html import to_markdown
from kr.text import fenced, strip_invisible

Form = Literal["section", "python", "typescript"]

MAX_TEXT = 1_000_000
"""Characters that are read of one document."""

MAX_SECTION = 1_000
"""About how many characters a section has: a longer one is cut between paragraphs, never inside of code."""

_MAX_CODE = 4_000
_MAX_TITLE = 200
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)$")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:(?!---)[^\n]*\n){0,100}---[ \t]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of documentation: a section of a document, or a public name with what its source says of it.

    ``name`` is the headings, or the dotted name; ``signature`` is code, and ``text`` is Markdown, for a name its docstring as it
    stands. ``place`` is the file, relative to the package or folder. ``is_secondary``: it ranks behind, since it is private, deprecated,
    or a double that the package carries of another version.
    """

    name: str
    text: str
    place: str
    signature: str = ""
    form: Form = "section"
    is_secondary: bool = False


def sections(text: str, *, place: str, title: str) -> Iterator[Section]:
    """Yield the sections of a document; the ending of ``place`` says what it is written in. ``title`` stands before the headings."""
    text = text[:MAX_TEXT]
    ending = place.lower().rpartition(".")[2]
    if ending in {"html", "htm"}:
        found = to_markdown(text)
        yield from markdown_sections(found.text, place=place, title=found.title or title)
        return
    text = strip_invisible(text)
    if ending == "rst" or (ending in {"txt", ""} and _is_restructured(text)):
        text = restructured_to_markdown(text)
    yield from markdown_sections(text, place=place, title=title)


def markdown_sections(text: str, *, place: str, title: str) -> Iterator[Section]:
    """Yield what stands below each heading of a Markdown text, long parts in pieces."""
    above: list[tuple[int, str]] = []
    held: list[str] = []

    def below_heading() -> Iterator[Section]:
        path = " > ".join(heading for _, heading in above[-3:] if heading != title)
        name = f"{title}: {path}" if path else title
        for piece in _joined_up(map(_without_filling, held)):
            yield Section(name=name, text=piece, place=place)

    for level, heading, raw in _blocks(_FRONT_MATTER.sub("", text)):
        if not level:
            held.append(raw)
            continue
        yield from below_heading()
        held = []
        above = [*(one for one in above if one[0] < level), (level, heading)]
    yield from below_heading()


def _without_filling(block: str) -> str:
    """Return a table's rows without what only aligns them; any other block as it is."""
    if not block.lstrip().startswith(("|", "+-")):
        return block
    rows = (re.sub(r"[ \t]{2,}", " ", line) for line in block.split("\n"))
    return "\n".join(row for row in rows if not re.fullmatch(r"[\s+|:=-]*", row) or "|-" in row)


def pieces(text: str) -> Iterator[str]:
    """Cut a text between paragraphs into pieces of about ``MAX_SECTION`` characters; code in a fence stays whole."""
    return _joined_up(raw for _, _, raw in _blocks(text))


def _joined_up(blocks: Iterable[str]) -> Iterator[str]:
    """Join blocks to pieces of about ``MAX_SECTION`` characters; code stays with the sentence that announces it, where there is room."""
    held: list[str] = []
    size = 0
    for block in blocks:
        is_announced = bool(held) and held[-1].rstrip().endswith(":") and _FENCE.match(block) is not None
        room = 2 * MAX_SECTION if is_announced else MAX_SECTION
        if held and size + len(block) > room:
            yield "\n\n".join(held)
            held, size = [], 0
        held.append(block)
        size += len(block) + 2
    if held:
        yield "\n\n".join(held)


def _blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield ``(level, heading, raw)``: headings, and with level 0 paragraphs and code, each fence as one block.

    Of very long code each part has a fence of its own.
    """
    held: list[str] = []
    fence, size = "", 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            held.append(line)
            size += len(line) + 1
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                yield 0, "", "\n".join(held)
                held, fence = [], ""
            elif size > _MAX_CODE:
                yield 0, "", "\n".join([*held, fence])
                held, size = [held[0]], 0
            continue
        heading = _HEADING.match(line)
        underline = _SETEXT.match(line) if len(held) == 1 and held[0][0] not in " \t|-*>" else None
        if underline:
            yield 1 if underline[1][0] == "=" else 2, held[0].strip()[:_MAX_TITLE], f"{held[0]}\n{line}"
            held = []
        elif mark or heading or not line.strip():
            if held:
                yield 0, "", "\n".join(held)
            held, fence, size = ([line], mark[1], 0) if mark else ([], "", 0)
            if heading:
                yield len(heading[1]), heading[2].rstrip(" \t").rstrip("#").rstrip(" \t")[:_MAX_TITLE], line
        else:
            held.append(line)
    if held:
        yield 0, "", "\n".join([*held, *([fence] if fence else [])])


# --- reStructuredText ---

_FENCED = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_UNDERLINE = re.compile(r"([=\-~^\"'`*+#.:_])\1{2,}[ \t]*$")
_ROLE = re.compile(r":[\w:+.-]{1,40}:`(?:~|!)?([^`<\n]{1,200}?)(?:\s*<[^`>\n]{0,300}>)?`")
_LINK = re.compile(r"`([^`<\n]{1,200}?)\s*<[^`>\n]{1,500}>`__?")
_DIRECTIVE = re.compile(r"\.\. ([\w:+-]{1,60})::[ \t]*(.*)")
_CODE = frozenset({"code-block", "code", "sourcecode", "ipython", "testcode", "prompt"})
_SILENT = frozenset(
    {"toctree", "image", "figure", "contents", "highlight", "currentmodule", "module", "index", "raw", "meta"}
)
_OPTION = re.compile(r":[\w-]{1,40}:")
_COMMENT = re.compile(r"\.\. (?:_[^\n]*:|\|[^\n]*\||\[[^\n]*\])|\.\.(?:[ \t]|$)")


def _is_restructured(text: str) -> bool:
    """Tell whether a text without an ending that says so is reStructuredText: a directive, a role, or a literal block."""
    head = text[:20_000]
    signs = re.search(r"^\.\. [\w-]+::|:[a-z:]+:`|::\n\n[ \t]", head, re.MULTILINE)
    return signs is not None and "\n```" not in head


def restructured_to_markdown(text: str) -> str:
    """Return reStructuredText with its headings, code and references as Markdown has them; all else stays as it is.

    A text with a fence is Markdown already, as many docstrings are.
    """
    if _FENCED.search(text):
        return text
    lines = text.expandtabs(4).split("\n")
    written: list[str] = []
    levels: list[str] = []
    at = 0
    while at < len(lines):
        heading = _heading(lines, at)
        if heading is not None:
            title, mark, height = heading
            if mark not in levels:
                levels.append(mark)
            written.append(f"\n{'#' * min(6, levels.index(mark) + 1)} {_inline(title.strip())}\n")
            at += height
        else:
            shown, at = _block(lines, at)
            written += shown
    return "\n".join(written)


def _heading(lines: Sequence[str], at: int) -> tuple[str, str, int] | None:
    """Return a heading at a line as ``(title, mark, lines that it takes)``, or None."""
    line, below, third = (*lines[at : at + 3], "", "")[:3]
    if _UNDERLINE.match(line) and below.strip() and third.rstrip() == line.rstrip():
        return below, line[0] * 2, 3
    is_title = line.strip() and not line.startswith(" ")
    if is_title and _UNDERLINE.match(below) and len(below.strip()) + 2 >= len(line.strip()):
        return line, below[0], 2
    return None


def _block(lines: Sequence[str], at: int) -> tuple[list[str], int]:
    """Return the Markdown of what begins at a line, and where the next block begins."""
    line = lines[at]
    bare = line.strip()
    directive = _DIRECTIVE.match(bare)
    if directive and directive[1] not in _CODE | _SILENT:
        is_told = directive[2] or directive[1] in {"note", "warning"}
        return [f"**{directive[1]}:** {directive[2]}".rstrip() if is_told else ""], at + 1
    if not directive and not bare.endswith("::") and not _COMMENT.match(bare):
        return [_inline(line)], at + 1
    end = _end_of_block(lines, at)
    if directive and directive[1] in _CODE:
        return _fenced_block(lines[at + 1 : end], directive[2].partition(" ")[0]), end
    if directive or _COMMENT.match(bare):
        return [], end
    shown = [_inline(line.rstrip()[:-1]), ""] if bare != "::" else []
    return [*shown, *_fenced_block(lines[at + 1 : end], "")], end


def _end_of_block(lines: Sequence[str], at: int) -> int:
    """Return where the lines end that are indented deeper than the one at ``at``, and stand below it."""
    outer = _indent(lines[at])
    at += 1
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > outer):
        at += 1
    return at


def _fenced_block(lines: Sequence[str], language: str) -> list[str]:
    body = list(dropwhile(lambda line: not line.strip() or _OPTION.match(line.strip()), lines))
    if not body:
        return []
    inner = min(_indent(line) for line in body if line.strip())
    code = "\n".join(line[inner:] for line in body).rstrip()
    return [fenced(code, language if re.fullmatch(r"[\w+#.-]{0,30}", language) else ""), ""]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _inline(line: str) -> str:
    """Return a line with roles and links as their words, in code where they name something."""
    if "`" not in line:
        return line
    line = _ROLE.sub(r"`\1`", line) if ":" in line else line
    line = _LINK.sub(r"\1", line) if "<" in line else line
    return line.replace("``", "`")


def joined(parts: Iterable[str]) -> str:
    """Join what is not empty as paragraphs."""
    return "\n\n".join(part for part in parts if part.strip())
