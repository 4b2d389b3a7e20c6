"""Documents as sections: Markdown, reStructuredText, HTML and plain text (SPEC 3.5). Pure; whatever a text holds, it never raises."""

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kr.text import strip_invisible

Form = Literal["section", "python", "typescript"]

MAX_TEXT = 1_000_000
"""Characters that are read of one document."""

MAX_SECTION = 1_000
"""About how many characters a section has: a longer one is cut between paragraphs, never inside of code."""

_MAX_CODE = 4_000
_MAX_TITLE = 200
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_UNDERLINE = re.compile(r"([=\-~^\"'`*+#.:_])\1{2,}[ \t]*$")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:(?!---)[^\n]*\n){0,100}---[ \t]*(?:\n|\Z)")
_ROLE = re.compile(r":[\w:+.-]{1,40}:`(?:~|!)?([^`<\n]{1,200}?)(?:\s*<[^`>\n]{0,300}>)?`")
_LINK = re.compile(r"`([^`<\n]{1,200}?)\s*<[^`>\n]{1,500}>`__?")
_CODE_DIRECTIVE = re.compile(
    r"\.\. (?:code-block|code|sourcecode|ipython|testcode|prompt)::[ \t]*([\w+#.-]{0,30})"
)
_DIRECTIVE = re.compile(r"\.\. ([\w:+-]{1,60})::[ \t]*(.*)")
_OPTION = re.compile(r":[\w-]{1,40}:")
_COMMENT = re.compile(r"\.\. (?:_[^\n]*:|\|[^\n]*\||\[[^\n]*\])|\.\.(?:[ \t]|$)")
_SILENT = frozenset(
    {"toctree", "image", "figure", "contents", "highlight", "currentmodule", "module", "index", "raw", "meta"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of documentation: a section of a document, or a public name with what its source says of it.

    ``name`` is the headings, or the dotted name; ``signature`` is code, and ``text`` is Markdown, for a name its docstring as it
    stands. ``place`` is the file, relative to the package or folder. ``is_private``: it stands under a name with an underscore, or is deprecated.
    """

    name: str
    text: str
    place: str
    signature: str = ""
    form: Form = "section"
    is_private: bool = False


def sections(text: str, *, place: str, title: str) -> Iterator[Section]:
    """Yield the sections of a document; the ending of ``place`` says what it is written in. ``title`` stands before the headings."""
    text = text[:MAX_TEXT]
    ending = place.lower().rpartition(".")[2]
    if ending in {"html", "htm"}:
        from kr.documents.html import to_markdown

        found = to_markdown(text, url="")
        yield from markdown_sections(found.text, place=place, title=found.title or title)
        return
    text = strip_invisible(text)
    if ending == "rst" or (ending in {"txt", ""} and _is_restructured(text)):
        text = restructured_to_markdown(text)
    yield from markdown_sections(text, place=place, title=title)


def markdown_sections(text: str, *, place: str, title: str) -> Iterator[Section]:
    """Yield what stands below each heading of a Markdown text, long parts in pieces."""
    above: list[tuple[int, str]] = []
    for level, heading, body in _by_headings(_FRONT_MATTER.sub("", text)):
        if level:
            above = [*(one for one in above if one[0] < level), (level, heading)]
        path = " > ".join(heading for _, heading in above[-3:] if heading != title)
        name = f"{title}: {path}" if path else title
        for piece in pieces(body):
            yield Section(name=name, text=piece, place=place)


def pieces(text: str, size: int = MAX_SECTION) -> Iterator[str]:
    """Cut a text between paragraphs into pieces of about ``size`` characters; code in a fence stays whole."""
    held: list[str] = []
    length = 0
    for block in _paragraphs(text):
        if held and length + len(block) > size and not _belongs(held[-1], block, length):
            yield "\n\n".join(held)
            held, length = [], 0
        held.append(block)
        length += len(block) + 2
    if held:
        yield "\n\n".join(held)


def _belongs(before: str, block: str, length: int) -> bool:
    """Tell whether code follows the sentence that announces it, and there is still room for both."""
    return (
        before.rstrip().endswith(":")
        and _FENCE.match(block) is not None
        and length + len(block) < 2 * MAX_SECTION
    )


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs, and code in a fence as one; of very long code each part has a fence of its own."""
    held: list[str] = []
    fence, size = "", 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            held.append(line)
            size += len(line) + 1
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
            elif size > _MAX_CODE:
                yield "\n".join([*held, fence])
                held, size = [fence], 0
        elif mark:
            fence, size = mark[1], 0
            held.append(line)
        elif line.strip():
            held.append(line)
        elif held:
            yield "\n".join(held)
            held = []
    if held:
        yield "\n".join([*held, *([fence] if fence else [])])


def _by_headings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield ``(level, heading, what stands below it)``; level 0 for what stands above the first heading."""
    level, heading = 0, ""
    body: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line[mark.end() :].strip() else fence
            body.append(line)
            continue
        found = _HEADING.match(line)
        setext = (
            _SETEXT.match(line)
            if body and body[-1].strip() and not body[-1].startswith((" ", "\t", "|", "-", "*", ">"))
            else None
        )
        if mark:
            fence = mark[1]
            body.append(line)
        elif found:
            yield level, heading, "\n".join(body)
            level, heading, body = len(found[1]), found[2][:_MAX_TITLE], []
        elif setext and (len(body) == 1 or not body[-2].strip()):
            title = body.pop().strip()
            yield level, heading, "\n".join(body)
            level, heading, body = 1 if setext[1][0] == "=" else 2, title[:_MAX_TITLE], []
        else:
            body.append(line)
    yield level, heading, "\n".join(body)


def _is_restructured(text: str) -> bool:
    """Tell whether a text without an ending that says so is reStructuredText: a directive, a role, or a literal block."""
    head = text[:20_000]
    return (
        bool(re.search(r"^\.\. [\w-]+::|:[a-z:]+:`|::\n\n[ \t]", head, re.MULTILINE)) and "\n```" not in head
    )


def restructured_to_markdown(text: str) -> str:
    """Return reStructuredText with its headings, code and references as Markdown has them; all else stays as it is."""
    return "\n".join(_Restructured(text).lines())


class _Restructured:
    def __init__(self, text: str) -> None:
        self._lines = text.expandtabs(4).split("\n")
        self._levels: list[str] = []

    def lines(self) -> Iterator[str]:
        at = 0
        while at < len(self._lines):
            at = yield from self._step(at)

    def _step(self, at: int) -> Generator[str, None, int]:
        """Yield the Markdown of what begins at a line; return where the next begins."""
        line = self._lines[at]
        following = self._lines[at + 1] if at + 1 < len(self._lines) else ""
        if _UNDERLINE.match(line) and following.strip() and _is_line_below(self._lines, at + 2, line):
            yield self._heading(following, line[0] * 2)
            return at + 3
        if (
            line.strip()
            and not line.startswith(" ")
            and _UNDERLINE.match(following)
            and len(following.strip()) + 2 >= len(line.strip())
        ):
            yield self._heading(line, following[0])
            return at + 2
        directive = _DIRECTIVE.match(line.strip())
        code = _CODE_DIRECTIVE.match(line.strip())
        if code:
            return (yield from self._code(at, code[1]))
        if directive:
            if directive[1] in _SILENT:
                return self._end_of_block(at + 1, _indent(line))
            yield (
                f"**{directive[1]}:** {directive[2]}".rstrip()
                if directive[2] or directive[1] in {"note", "warning"}
                else ""
            )
            return at + 1
        if _COMMENT.match(line.strip()):
            return self._end_of_block(at + 1, _indent(line))
        if line.rstrip().endswith("::"):
            shown = line.rstrip()[:-1] if line.strip() != "::" else ""
            yield from (_inline(shown), "") if shown else ()
            return (yield from self._code(at, ""))
        yield _inline(line)
        return at + 1

    def _heading(self, text: str, mark: str) -> str:
        if mark not in self._levels:
            self._levels.append(mark)
        return f"\n{'#' * min(6, self._levels.index(mark) + 1)} {_inline(text.strip())}\n"

    def _code(self, at: int, language: str) -> Generator[str, None, int]:
        """Yield the indented block below a line as a fence; return where it ends."""
        outer = _indent(self._lines[at])
        end = self._end_of_block(at + 1, outer)
        body = self._lines[at + 1 : end]
        while body and (not body[0].strip() or _OPTION.match(body[0].strip())):
            body = body[1:]
        while body and not body[-1].strip():
            body = body[:-1]
        if body:
            inner = min(_indent(line) for line in body if line.strip())
            longest = max((len(run) for line in body for run in re.findall("`+", line)), default=0)
            fence = "`" * max(3, longest + 1)
            yield from (f"{fence}{language}", *(line[inner:] for line in body), fence, "")
        return end

    def _end_of_block(self, at: int, outer: int) -> int:
        while at < len(self._lines) and (not self._lines[at].strip() or _indent(self._lines[at]) > outer):
            at += 1
        return at


def _is_line_below(lines: list[str], at: int, above: str) -> bool:
    return at < len(lines) and lines[at].rstrip() == above.rstrip()


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
