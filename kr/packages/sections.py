"""What a package says, piece by piece: the sections of its documents, and the names that its sources document."""

from dataclasses import dataclass


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
