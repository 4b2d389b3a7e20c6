"""What a package says, piece by piece: the sections of its documents, and the names that its sources document."""

import re
from dataclasses import dataclass

from kr.reports.terms import Terms


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
_LABEL = re.compile(r"\*\*[^*\n]{1,80}:?\*\*:?|#{1,6} .*")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_NAME = re.compile(r"[*_`\s/-]*([\w.$]+)")


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of Markdown. ``title`` is the path of headings to it, joined by `` > ``; may be empty."""

    title: str
    text: str


def split_sections(markdown: str) -> list[Section]:
    """Return the sections of a document, one per heading and more where one is long.

    Headings that stand in code, lists or quotations are none. A fenced block is never cut unless it is
    longer than a section alone.
    """
    from markdown_it import MarkdownIt

    lines = markdown.splitlines()
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    blocks: list[str] = []

    def close() -> None:
        heading = " > ".join(text for _, text in path)
        found.extend(Section(heading, piece) for piece in join_blocks(blocks))
        blocks.clear()

    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    for index, token in enumerate(tokens):
        if token.level != 0 or token.map is None or token.nesting < 0:
            continue
        if token.type == "heading_open":
            close()
            level = int(token.tag[1])
            path = [entry for entry in path if entry[0] < level]
            path.append((level, " ".join(tokens[index + 1].content.split())[:200]))
        else:
            blocks += _pieces(lines[token.map[0] : token.map[1]], is_list=token.type.endswith("list_open"))
    close()
    return found


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
    """Return a signature of many lines with the parameters that the question or the ``text`` names, the rest as dots."""
    lines = signature.splitlines()
    if len(signature) <= max(_HEAD, _ROOM - len(text)) or len(lines) < 6:
        return signature
    out: list[str] = []
    for at, line in enumerate(lines):
        name = _NAME.match(line)
        is_edge = at in {0, len(lines) - 1} or not line.startswith((" ", "\t"))
        if is_edge or terms.within(line) or (name and f"`{name[1]}`" in text):
            out.append(line)
        elif out[-1].strip() != "...":
            out.append("    ...")
    return "\n".join(out)
