"""What a package says, piece by piece: the sections of its documents, the names that its sources document, docstrings as Markdown."""

import ast
import inspect
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kr.packages.restructured import code_span, fence, to_markdown, with_roles_as_code
from kr.reports.terms import Terms
from kr.text.inline import unlinked
from kr.text.sentences import part as sentences


@dataclass(frozen=True, slots=True)
class Documented:
    """A module, class, function, attribute, type or option.

    ``name`` is its path where it is defined (``click.core.Option.prompt``); ``signature`` is code of the source's
    language and may be empty; ``docstring`` is the text as the source has it, of Python in any style, of TypeScript
    as Markdown; ``more`` is Markdown that stands below it. ``weight`` is how much it speaks to users, 1.0 as a rule.
    """

    name: str
    signature: str
    docstring: str
    more: str = ""
    weight: float = 1.0


MAX_SECTION = 6_000
"""Characters up to which a section stays whole; a longer one is cut between blocks."""
_PIECE = 2_500
_ROOM = 2_200
_HEAD = 700  # characters of a signature that stay in any case
_LINE = 240  # characters of names
_DEEPER = ("     ", "\t\t")  # what belongs to a member
_BADGE = re.compile(
    r"\[?!\[[^\]\n]*\]\([^)\n]*\)(?:\]\([^)\n]*\))?|\[\W*\]\([^)\n]*\)|<!--.*?-->|</?a\b[^>]*>", re.IGNORECASE
)
"""What a heading holds that names nothing: pictures, arrows back to the contents, anchors."""
_REFERENCE = re.compile(r"(?<!\\)\[((?:[^\[\]\n]|\[[^\[\]\n]*\])+)\]\[([^\[\]\n]*)\]")
_POINTER = re.compile(r"\s*(?:(?:[-*+]|\d{1,3}\.) +\[.*\]\(#[^)]*\)\s*)?")
"""An item of a table of contents, or an empty line."""
_SENTENCE = re.compile(r"\S+(?:\s+\S+){4,}[.!?:]")
_LABEL = re.compile(r"\*\*[^*\n]{1,80}:?\*\*:?|#{1,6} .*")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_NAME = re.compile(r"[*_`\s/-]*([\w.$]+)")
_HULL = re.compile(r"[^\n]*\{\n *\.\.\.[^\n]*\n\}")
"""A declaration of which nothing is left."""


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of Markdown. ``title`` is the path of headings to it, joined by `` > ``; may be empty."""

    title: str
    text: str


def split_sections(markdown: str) -> list[Section]:
    """Return the sections of a document, one per heading and more where one is long.

    Headings that stand in code, lists or quotations are none, and neither is a sentence above a line that should part
    paragraphs. A fenced block is never cut unless it is longer than a section alone. Links say themselves where they lead.
    """
    from markdown_it import MarkdownIt

    known: dict[str, Any] = {}
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown, known)
    lines = [_with_addresses(line, known.get("references", {})) for line in markdown.splitlines()]
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    blocks: list[str] = []

    def close() -> None:
        heading = " > ".join(text for _, text in path if text)
        found.extend(Section(heading, piece) for piece in join_blocks(blocks))
        blocks.clear()

    for index, token in enumerate(tokens):
        if token.level != 0 or token.map is None or token.nesting < 0:
            continue
        heading = tokens[index + 1].content if token.type == "heading_open" else ""
        if heading and not (token.markup == "-" and _SENTENCE.fullmatch(heading)):
            close()
            level = int(token.tag[1])
            path = [entry for entry in path if entry[0] < level]
            heading = unlinked(_BADGE.sub("", _with_addresses(heading, known.get("references", {}))))
            path.append((level, " ".join(heading.split())[:200]))
        elif not all(map(_POINTER.fullmatch, own := lines[token.map[0] : token.map[1]])):
            blocks += _pieces(own, is_list=token.type.endswith("list_open"))
    close()
    return found


def _with_addresses(line: str, known: Mapping[str, Mapping[str, str]]) -> str:
    """Write out the links of a line whose addresses stand elsewhere in the document."""
    from markdown_it.common.utils import normalizeReference

    def written(found: re.Match[str]) -> str:
        words = _REFERENCE.sub(written, found[1])
        to = known.get(normalizeReference(found[2] or found[1]))
        return f"[{words}]({to['href']})" if to else f"[{words}][{found[2]}]"

    return _REFERENCE.sub(written, line) if known and "][" in line else line


def join_blocks(blocks: list[str]) -> list[str]:
    """Join blocks to texts: one when it fits ``MAX_SECTION``, else several of about 2,500 characters."""
    whole = "\n\n".join(blocks).strip()
    if not whole:
        return []
    if len(whole) <= MAX_SECTION:
        return [whole]
    texts: list[str] = []
    current = ""
    for block in (block for block in blocks if block.strip()):
        if current and len(current) + len(block) > _PIECE:
            texts.append(current)
            current = ""
        current = f"{current}\n\n{block}" if current else block
    return [*texts, current] if current else texts


def _pieces(lines: list[str], *, is_list: bool) -> list[str]:
    """Return one block; a long list as its items, so that a list of parameters can be cut."""
    text = "\n".join(lines).rstrip()
    if not is_list or len(text) <= _PIECE:
        return [text] if text else []
    items: list[list[str]] = [[]]
    for line in lines:
        if line[:1] not in {"", " ", "\t"} and items[-1]:
            items.append([])
        items[-1].append(line)
    return ["\n".join(item).rstrip() for item in items if any(line.strip() for line in item)]


def without_sections(markdown: str) -> str:
    """Return a text whose parts are named in its prose: headings would take it apart, and it is about one name.

    ``## Example`` and ``**Parameters:**`` become ``Example:`` and ``Parameters:``; code is left alone.
    """
    out: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
        found = None if fence else _LABEL.fullmatch(line.strip())
        ends = (
            ":" if line.startswith("#") or ":" in line[-4:] else "."
        )  # "**Added in 4.0**" names nothing below
        out.append(f"{line.strip('#*: ')}{ends}" if found else line)
    return "\n".join(out)


def shortened(signature: str, text: str, terms: Terms) -> str:
    """Return a long signature with the parameters that the question or the ``text`` names, the rest as dots with their names.

    Of the declarations that stand below it those go that nothing is left of.
    """
    lines = signature.splitlines()
    if len(signature) <= max(_HEAD, _ROOM - len(text)) or len(lines) < 6:
        return signature
    out: list[str] = []
    left_out: list[str] = []
    for at, line in enumerate(lines):
        name = _NAME.match(line)
        is_edge = at in {0, len(lines) - 1} or not line.startswith((" ", "\t"))
        if is_edge or terms.within(line) or (name and f"`{name[1]}`" in text):
            out += _dots(left_out)
            left_out = []
            out.append(line)
        else:
            left_out.append(name[1] if name and not line.startswith(_DEEPER) else "")
    first, *others = "\n".join(out).split("\n\n")
    return "\n\n".join([first, *(one for one in others if not _HULL.fullmatch(one))])


def _dots(names: Sequence[str]) -> list[str]:
    """Return the line that stands for what was left out, with the names of as much of it as fit a line."""
    told: list[str] = []
    for name in dict.fromkeys(filter(None, names)):
        if sum(map(len, told)) + 2 * len(told) + len(name) > _LINE:
            break
        told.append(name)
    return [f"    ... {', '.join(told)}".rstrip()] if names else []


_GOOGLE = re.compile(
    r"^(Args|Arguments|Parameters|Keyword Args|Keyword Arguments|Other Parameters|Attributes|Returns|Return|Yields|Raises|Warns"
    r"|Examples?|Notes?|Warnings?|Usage|See Also|Todo):[ ]*$"
)
_ENTRIES = frozenset(
    {
        "Args", "Arguments", "Attributes", "Keyword Args", "Keyword Arguments", "Methods", "Other Parameters", "Parameters",
        "Raises", "Receives", "Return", "Returns", "Warns", "Yields",
    }
)  # fmt: skip
_PARTS = re.compile(
    r"^(?:(?:Args|Arguments|Parameters|Keyword Arg(?:ument)?s|Attributes|Returns|Yields|Raises):[ ]*\n[ \t]+\S"
    r"|(?:Parameters|Other Parameters|Returns|Yields|Raises|Attributes|Examples|Notes)[ ]*\n-{3,}[ ]*$)",
    re.MULTILINE,
)
_LEFT_OUT = frozenset({"References", "See Also", "Todo"})
_MARKDOWN = re.compile(r"^\s*(?:```|~~~(?!~)|!!! \w|/// \w)|`\]\[[\w.]*\]", re.MULTILINE)
"""A longer line of tildes underlines a heading of reStructuredText."""
_NUMPY = re.compile(r"^-{3,}\s*$")
_RESTRUCTURED = re.compile(
    r":\w[\w:]*:`|^\s*:(?:param|return|returns|raises|type|rtype|copyright|ivar|cvar|vartype)\b|^\s*\.\. [\w:-]+::|::\s*$|^~{4,}[ \t]*$",
    re.MULTILINE,
)
_TERM = re.compile(r"[a-z*]\w*(?:, [a-z*]\w*)*")
_ENTRY = re.compile(r"~?(\*{0,2}\w[\w., |\[\]*]{0,80}?)(?: ?\(([^)]*)\))?( ?): ?(.*)$")
_DIRECTIVE = re.compile(
    r"^(?P<indent>[ \t]*)\.\. (?P<name>[\w-]+)::[ \t]*(?P<argument>[^\n]*)$", re.MULTILINE
)
_SINCE = {"versionadded": "Added in", "versionchanged": "Changed in", "deprecated": "Deprecated since"}
_SILENT = frozenset({"seealso", "plot", "index", "highlight", "currentmodule", "only", "image", "figure"})
_DASH = re.compile(r"(\*{0,2}[A-Za-z_]\w*) --? (.*)")
_DASHED = re.compile(
    r"(?:^\*{0,2}[A-Za-z_]\w* --? .*(?:\n(?!\*{0,2}\w+ --? )(?!.*:[ \t]*$)[ \t]*\S.*)*(?:\n|\Z)){3,}",
    re.MULTILINE,
)
"""Three parameters or more, each with what it is behind a dash, and what goes on in the lines after it."""
_MORE_THAN_WORDS = re.compile(
    r":\w[\w:]*:`|\.\. |::|`_|_\b(?!\w)|\||^[ \t]+\S|^\S.*\n[=~^-]{3,}|>>>", re.MULTILINE
)
_DOCTEST = re.compile(r"^([ \t]*(?:>>>|\.\.\.) [^\n]*?)[ \t]*#[ \t]*doctest:[ \t]*[+-][^\n]*$", re.MULTILINE)
"""What tells a test of the docstring how to run a line."""
_NAME_ALONE = re.compile(r"(?:\A|(?<=\n\n))\|[a-z]{2,60}\|[ \t]*(?:\n[ \t]*\n|\s*\Z)")
"""A paragraph that is nothing but such a name: what it stands for is said of many (``|coro|``)."""
_SUBSTITUTED = re.compile(
    r"(?P<kept>(`+)[^`](?:[^`\n]*[^`\n])?\2(?!`)|\$[^$\n]*\$|^[ \t]*(?:>>>|\.\.\. |\|[^\n]*\|[ \t]*$)[^\n]*)"
    r"|(?<![\w|`)])\|(?P<name>[A-Z][A-Za-z]{2,60}(?:\.\w+)*|str|int|float|bool|bytes|list|dict|tuple|callable|object)\|_?(?![\w|`(])"
    r"|(?<![\w|`)])\|(?P<linked>[A-Za-z][\w -]{1,60}\w)\|_(?![\w|`(])",
    re.MULTILINE,
)
"""A name for which reStructuredText puts another text, mostly itself as a link (``|Paragraph|``); no absolute value, output or table."""
_LONGEST_CODE = 4_000


def docstring_markdown(docstring: str) -> str:
    """Return a docstring as Markdown, whether it is reStructuredText, Google's or NumPy's style, or Markdown."""
    docstring = _named(_NAME_ALONE.sub("", _DOCTEST.sub(r"\1", docstring)))
    docstring = _DASHED.sub(_listed, docstring)
    if _MARKDOWN.search(docstring) or not _RESTRUCTURED.search(docstring):
        return _plain_markdown(docstring)
    return _mixed(docstring) if _PARTS.search(docstring) else to_markdown(docstring)


def first_sentence(docstring: str) -> str:
    """Return what a docstring says first, as one line of Markdown; empty where it begins with a list or code."""
    paragraph = _NAME_ALONE.sub("", docstring.strip()).partition("\n\n")[0]
    if paragraph.startswith(("- ", "```", ">>>")):
        return ""
    return next(iter(sentences(with_roles_as_code(_named(paragraph)))), "")


def _named(docstring: str) -> str:
    """Return a docstring with the names that stand for links as code; Markdown has none."""
    if "|" not in docstring or "```" in docstring:
        return docstring

    def code(found: re.Match[str]) -> str:
        return found["kept"] or f"``{found['name'] or found['linked']}``"

    return _SUBSTITUTED.sub(code, docstring)


def _listed(found: re.Match[str]) -> str:
    """Write lines that name a parameter each (``limit - how many``) as a list: as a paragraph they are one."""
    lines: list[str] = []
    for line in found[0].splitlines():
        named = _DASH.match(line)
        lines.append(f"- `{named[1]}`: {named[2]}" if named else f"  {line.strip()}")
    return "\n" + "\n".join(lines) + "\n\n"


def _mixed(docstring: str) -> str:
    """Return reStructuredText with Google's or NumPy's parts in it: these as lists, the rest as docutils reads it."""
    lines = docstring.splitlines()
    out: list[str] = []
    held: list[str] = []
    index = 0
    while index < len(lines):
        part = None if lines[index].lstrip().startswith(">>> ") else _part(lines, index)
        if part is None:
            held.append(lines[index])
            index += 1
            continue
        out += [_prose("\n".join(held)), with_roles_as_code(part[0])]
        held, index = [], part[1]
    return "\n\n".join(text.strip() for text in (*out, _prose("\n".join(held))) if text.strip()) + "\n"


def _prose(text: str) -> str:
    """Return what stands between the parts; docutils is asked where it is more than paragraphs."""
    return to_markdown(text) if _MORE_THAN_WORDS.search(text) else text


def _plain_markdown(docstring: str) -> str:
    """Return Markdown as it is, with code fenced and Google's and NumPy's parts as lists."""
    lines = docstring.splitlines()
    out: list[str] = []
    index = 0
    is_fenced = False
    while index < len(lines):
        line = lines[index]
        if line.lstrip().startswith(("```", "~~~")):
            is_fenced = not is_fenced
        part = None if is_fenced else _part(lines, index) or _commented(lines, index) or _terms(lines, index)
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
        end = _end_of_indented(lines, index + 1)
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
    if title in _LEFT_OUT:
        return "", end
    text = inspect.cleandoc("\n" + "\n".join(body))
    return (f"**{title}:**\n\n{_told(title, text)}" if text else ""), end


def _end_of_indented(lines: list[str], index: int) -> int:
    """Return the line after what is indented, or empty, from a line on."""
    while index < len(lines) and (not lines[index].strip() or lines[index].startswith((" ", "\t"))):
        index += 1
    return index


def _terms(lines: list[str], index: int) -> tuple[str, int] | None:
    """Return names with what is said of each indented below it (h5py's docstrings) as a list, and the line after it; as paragraphs they are one."""
    items: list[str] = []
    end = index
    while end + 1 < len(lines) and _TERM.fullmatch(lines[end]) and lines[end + 1].startswith((" ", "\t")):
        start, end = end + 1, _end_of_indented(lines, end + 1)
        items.append(f"- {code_span(lines[start - 1])}: {' '.join(' '.join(lines[start:end]).split())}")
    return ("\n".join(items), end) if len(items) > 1 else None


def _told(title: str, text: str) -> str:
    if title in _ENTRIES or title.startswith("Parameters for "):
        return _entries(without_directives(text))
    if title.startswith(("Example", "Usage")):
        text = _with_code_fenced(text)
    is_restructured = _RESTRUCTURED.search(text) and not _MARKDOWN.search(text)
    return (to_markdown(text) if is_restructured else _plain_markdown(text)).strip()


def without_directives(text: str) -> str:
    """Return text with reStructuredText's directives as words (``.. note::``), without those that say nothing."""
    out: list[str] = []
    dropped: int | None = None
    lines = text.splitlines()
    for at, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if dropped is not None and (not line.strip() or indent > dropped):
            continue
        dropped = None
        found = _DIRECTIVE.match(line)
        if found is None:
            out.append(line)
        elif found["name"] in _SILENT:
            dropped = indent
        elif found["name"] in _SINCE:
            following = next((one for one in lines[at + 1 :] if one.strip()), "")
            is_told = len(following) - len(following.lstrip()) > indent
            out.append(f"{line[:indent]}{_SINCE[found['name']]} {found['argument']}{':' if is_told else '.'}")
        else:
            out.append(
                f"{found['indent']}**{found['name'].replace('-', ' ').capitalize()}:** {found['argument']}".rstrip()
            )
    return "\n".join(out)


def _entries(body: str) -> str:
    """Write ``name: text`` (Google) and ``name : type`` (NumPy) with indented continuations as a list."""
    lines: list[str] = []
    given = body.splitlines()
    for at, line in enumerate(given):
        following = next((text for text in given[at + 1 : at + 3] if text.strip()), "")
        is_labelled = bool(lines) and lines[-1].startswith("- ") and lines[-1].endswith(":")
        found = _ENTRY.match(line)
        if not line and is_labelled and following.startswith((" ", "\t")):
            continue  # an empty line between a name and its text
        if found:
            kind = re.sub(r"~(?=\w)|`", "", found[2] or (found[4] if found[3] else ""))
            text = "" if found[3] else found[4]
            lines.append(f"- `{found[1]}`{f' (`{kind}`)' if kind else ''}: {text}".rstrip())
        elif line.startswith((" ", "\t")) and lines:
            lines[-1:] = [f"{lines[-1]} {line.strip()}"] if is_labelled else [lines[-1], f"  {line.strip()}"]
        elif line and following.startswith((" ", "\t")) and len(line) <= 100:
            lines.append(f"- `{line.strip('`:')}`:")  # a name or a type with its text below
        else:
            lines.append(line)
    return "\n".join(lines)


def _commented(lines: list[str], index: int) -> tuple[str, int] | None:
    """Return code that begins with a comment, or that a colon announces, fenced: to Markdown it would be headings or prose."""
    if not lines[index].strip() or (index and lines[index - 1].strip()):
        return None
    before = index - 1
    while before > 0 and not lines[before].strip():
        before -= 1
    is_announced = before >= 0 and lines[before].rstrip("* ").endswith(":")
    end = _end_of_paragraph(lines, index)
    code = "\n".join(lines[index:end])
    is_meant = lines[index].startswith("#") or (is_announced and "(" in code)
    return (fence(code, "python"), end) if is_meant and _is_code(code) else None


def _with_code_fenced(text: str) -> str:
    """Return the text of an example with its paragraphs of code fenced, neighbours together."""
    if _MARKDOWN.search(text) or ">>>" in text or _RESTRUCTURED.search(text):
        return text
    paragraphs = re.split(r"\n[ \t]*\n", text)
    if _is_code(text):
        return fence(text, "python")
    return "\n\n".join(fence(one, "python") if _is_code(one) else one for one in paragraphs)


def _is_code(text: str) -> bool:
    """Tell whether text is Python that does something: a call, an assignment, a definition."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(inspect.cleandoc(text[:_LONGEST_CODE]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    kinds = (
        ast.Assign,
        ast.AnnAssign,
        ast.Import,
        ast.ImportFrom,
        ast.With,
        ast.For,
        ast.FunctionDef,
        ast.ClassDef,
    )
    return any(
        isinstance(node, (*kinds, ast.AsyncFunctionDef, ast.Call, ast.Await)) for node in ast.walk(tree)
    )


def _end_of_paragraph(lines: list[str], index: int) -> int:
    while index < len(lines) and lines[index].strip():
        index += 1
    return index
