"""Documents as sections: Markdown, reStructuredText, HTML and plain text. Pure; whatever a text holds, it never raises."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import dropwhile
from textwrap import dedent
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
_BLOCK = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}|~{3,}).*\n?(?:.*\n)*?(?:[ \t>]*(?P=fence)[`~]*[ \t]*$|.*\Z)"
    r"|^ {0,3}(?P<level>#{1,6})[ \t]+(?P<heading>\S.*)$"
    r"|^(?P<title>[^\s|*>-].*)\n {0,3}(?:=+|(?P<second>-+))[ \t]*$"
    r"|^[ \t]*\S.*(?:\n(?![ \t>]*(?:```|~~~)| {0,3}#{1,6}[ \t]+\S)[ \t]*\S.*)*",
    re.MULTILINE,
)
"""Code in a fence, which may lack its end; a heading in either form; a paragraph."""
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:(?!---)[^\n]*\n){0,100}---[ \t]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
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
    if ending == "rst":
        text = restructured_to_markdown(text)
    yield from markdown_sections(text, place=place, title=title)


def markdown_sections(text: str, *, place: str, title: str) -> Iterator[Section]:
    """Yield what stands below each heading of a Markdown text, long parts in pieces."""
    above: list[tuple[int, str]] = []
    held: list[str] = []

    def below_heading() -> Iterator[Section]:
        path = " > ".join(heading for _, heading in above[-3:] if heading != title)
        name = f"{title}: {path}" if path else title
        for piece in _joined_up(held):
            yield Section(name=name, text=piece, place=place)

    for level, heading, raw in _blocks(_FRONT_MATTER.sub("", text)):
        if not level:
            held.append(raw)
            continue
        yield from below_heading()
        held = []
        above = [*(one for one in above if one[0] < level), (level, heading)]
    yield from below_heading()


def pieces(text: str) -> Iterator[str]:
    """Cut a text between paragraphs into pieces of about ``MAX_SECTION`` characters; code in a fence stays whole."""
    return _joined_up(raw for _, _, raw in _blocks(text))


def _joined_up(blocks: Iterable[str]) -> Iterator[str]:
    """Join blocks to pieces of about ``MAX_SECTION`` characters; code stays with the sentence that announces it, where there is room."""
    held: list[str] = []
    size = 0
    for block in blocks:
        is_announced = (
            bool(held) and held[-1].rstrip().endswith(":") and block.lstrip(" \t>").startswith(("```", "~~~"))
        )
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
    for found in _BLOCK.finditer(text):
        level = len(found["level"] or "") or (found["title"] and (2 if found["second"] else 1)) or 0
        heading = (found["heading"] or found["title"] or "").strip().rstrip("#").rstrip()[:_MAX_TITLE]
        opening, *lines = found[0].split("\n")
        if not found["fence"]:
            yield level, heading, found[0]
            continue
        is_closed = bool(lines) and lines[-1].strip(" \t>").startswith(found["fence"])
        end = lines.pop() if is_closed else found["fence"]
        size = max(1, len(lines) * _MAX_CODE // len(found[0]))
        for at in range(0, len(lines) or 1, size):
            yield 0, "", "\n".join([opening, *lines[at : at + size], end])


# --- reStructuredText ---

_FENCED = re.compile(r"^[ \t]*```", re.MULTILINE)
_MARK = r"[=\-~^\"'`*+#.:_]"
_TITLE = re.compile(
    rf"^(?:(?P<line>(?P<over>{_MARK})(?P=over){{2,}}) *\n *(?P<inner>\S.*)\n(?P=line)"
    rf"|(?P<title>\S.*)\n(?P<below>(?P<under>{_MARK})(?P=under){{2,}})) *$",
    re.MULTILINE,
)
_OPENING = re.compile(
    r"^(?P<indent> *+)(?:\.\. (?P<directive>[\w:+-]{1,60})::[ ]*(?P<argument>.*)|(?P<comment>\.\.(?: .*)?)|(?P<lead>.*):: *)$",
    re.MULTILINE,
)
"""A directive, a comment or target, or a line that a literal block follows."""
_ROLE = re.compile(r":[\w:+.-]{1,40}:`(?:~|!)?([^`<\n]{1,200}?)(?:\s*<[^`>\n]{0,300}>)?`")
_LINK = re.compile(r"`([^`<\n]{1,200}?)\s*<[^`>\n]{1,500}>`__?")
_CODE = frozenset({"code-block", "code", "sourcecode", "ipython", "testcode", "prompt"})
_SILENT = frozenset(
    {"toctree", "image", "figure", "contents", "highlight", "currentmodule", "module", "index", "raw", "meta"}
)
_OPTION = re.compile(r"\s*(?::[\w-]{1,40}:.*)?$")


def restructured_to_markdown(text: str) -> str:
    """Return reStructuredText with its headings, code and references as Markdown has them; all else stays as it is.

    A text with a fence is Markdown already, as many docstrings are.
    """
    if _FENCED.search(text):
        return text
    text = text.expandtabs(4)
    written: list[str] = []
    levels: list[str] = []
    at = 0
    while found := _OPENING.search(text, at):
        written.append(_prose(text[at : found.start()], levels))
        directive, at = found["directive"], found.end()
        if directive and directive not in _CODE | _SILENT:
            is_told = found["argument"] or directive in {"note", "warning"}
            written.append(f"**{directive}:** {found['argument']}".rstrip() if is_told else "")
            continue
        body = re.compile(rf"(?:\n *$|\n{found['indent']} +.*)*", re.MULTILINE).match(text, at)
        at = body.end() if body else at
        if found["lead"]:
            written.append(_prose(f"{found['indent']}{found['lead']}:\n\n", levels))
        if body and (directive in _CODE or found["lead"] is not None):
            code = dedent("\n".join(dropwhile(_OPTION.match, body[0].split("\n")))).rstrip()
            language = re.match(r"[\w+#.-]{0,30}", found["argument"] or "")
            written.append(f"{fenced(code, language[0] if language else '')}\n" if code else "")
    return "".join([*written, _prose(text[at:], levels)])


def _prose(text: str, levels: list[str]) -> str:
    """Return a text's headings and words as Markdown; of a heading that is ``levels`` holds the marks that came before."""

    def heading(found: re.Match[str]) -> str:
        title, mark = found["inner"] or found["title"], (found["over"] or "") * 2 or found["under"]
        if found["title"] and len(found["below"]) + 2 < len(title.strip()):
            return found[0]
        if mark not in levels:
            levels.append(mark)
        return f"\n{'#' * min(6, levels.index(mark) + 1)} {title.strip()}\n"

    text = _TITLE.sub(heading, text)
    return _LINK.sub(r"\1", _ROLE.sub(r"`\1`", text)).replace("``", "`")
